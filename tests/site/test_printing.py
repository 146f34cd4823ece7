"""The printed book and the exercise sheets.

What goes into the documents, and what Chromium makes of them.
"""

import io
import re
import shutil
from dataclasses import replace
from functools import cache
from html import unescape
from unicodedata import normalize

import pytest
from bs4 import BeautifulSoup
from pypdf import PdfReader

from book import browser, printing

SITE = printing.ROOT / "_build" / "html"
TABLE = """
## Exercise sheets

| sheet | title | in class | at home | if you like |
|---|---|---|---|---|
| 1 | Closed forms | {ref}`ex-duplicates`, {ref}`ex-constant` | {ref}`ex-ker-loo` | |
| 2 | One step | {ref}`ex-dam-step` | | |

## After
"""


def squeezed(text):
    """The text without spaces, and with two characters where a font has one for fi."""
    return re.sub(r"\s+", "", normalize("NFKC", text))


@pytest.fixture(scope="module")
def site():
    if not (SITE / "index.html").is_file():
        pytest.fail("the site is not built: run make book")
    return printing.read(SITE)


@pytest.fixture(scope="module")
def rows():
    return printing.sheets(printing.INSTRUCTOR.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def book(site):
    return BeautifulSoup(printing.book(site), "html.parser")


def test_table_of_sheets():
    assert printing.sheets(TABLE) == [
        printing.Sheet(1, "Closed forms", ("ex-duplicates", "ex-constant"), ("ex-ker-loo",)),
        printing.Sheet(2, "One step", ("ex-dam-step",)),
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{ref}`ex-dam-step`", "ex-dam-step", r"row '2 .* must read"),
        ("| 2 | One step |", "| 2 |", r"row '2 .* must read"),
        ("| 2 | One", "| 1 | One", "two sheets with the number 1"),
        ("## Exercise sheets", "## Sheets", "no table under"),
    ],
)
def test_malformed_table_is_named(old, new, message):
    with pytest.raises(ValueError, match=message):
        printing.sheets(TABLE.replace(old, new))


def test_unknown_label_is_named(site):
    with pytest.raises(
        ValueError, match=r"sheet 3: .* label ex-duplicate, did you mean ex-duplicates"
    ):
        printing.sheet(site, printing.Sheet(3, "Title", ("ex-duplicate",)), solutions=False)


@pytest.mark.parametrize(
    ("line", "effort"),
    [
        ("Derive · easy · core · 10 minutes.", (2, 10, False)),
        ("Derive and check · medium · 25 minutes.", (4, 25, False)),
        ("Open-ended · hard · extra · an hour or more.", (6, 60, True)),
    ],
)
def test_effort_is_read_from_the_first_line(line, effort):
    task = BeautifulSoup(
        f'<div id="ex"><p><em>{line}</em> Show <em>this</em>.</p></div>', "html.parser"
    ).div
    assert printing.effort(task) == effort


def test_effort_names_the_exercise():
    task = BeautifulSoup(
        '<div id="ex-one"><em>Derive · simple · 10 minutes.</em></div>', "html.parser"
    ).div
    with pytest.raises(ValueError, match="exercise ex-one"):
        printing.effort(task)


def test_ids_are_unique_and_no_link_dangles(book):
    ids = [tag["id"] for tag in book.select("[id]")]
    assert len(ids) == len(set(ids))
    internal = [
        link["href"] for link in book.select("a[href]") if not re.match(r"\w+:", link["href"])
    ]
    assert len(internal) > 1000
    assert {href for href in internal if href.removeprefix("#") not in ids} == set()


def test_every_number_of_the_site_is_in_the_book(site, book):
    """The site's pages are read by expressions: a parser takes seconds for all their formulas."""
    number = re.compile(r'class="(caption-number|eqno|section-number)"[^>]*>([^<]*)')
    theorem = re.compile(r'class="(?:[^"]* )?(?:solution|proof|fl-claim)[" ]')
    tags = book.select(".caption-number, .eqno, .section-number")
    printed = {(tag["class"][0], tag.get_text()) for tag in tags}
    pages = {
        printing._anchor(path.relative_to(SITE).with_suffix("").as_posix()): path
        for path in (SITE / "chapters").rglob("*.html")
    }
    found = set()
    for text in site.texts:
        original = printing.UNCOLOURED.sub(r"\1", pages[text["id"]].read_text(encoding="utf-8"))
        original = original[original.index("<article") : original.index("</article>")]
        here = {(kind, unescape(said)) for kind, said in number.findall(original)}
        assert here <= printed
        found |= here
        assert len(text.select("img")) == original.count("<img ")
        assert len(text.select(".solution, .proof, .fl-claim")) == len(theorem.findall(original))
    assert found == printed
    assert len(found) > 500


def test_nothing_is_folded_and_all_images_are_there(book):
    assert book.select("details, summary, button, .headerlink") == []
    assert [
        image["src"] for image in book.select("img") if not (SITE / image["src"][1:]).is_file()
    ] == []


def test_folded_code_is_printed_in_solutions_only():
    fold = '<details class="hide above-input"><summary>Show</summary><pre>{}</pre></details>'
    solution = f'<div class="solution">{fold.format("answer")}</div>'
    page = f"<article>{fold.format('plot')}{solution}</article>"
    text = printing._for_paper(
        BeautifulSoup(page, "html.parser").article, "chapters/one", ["chapters/one"]
    )
    assert text.get_text() == "answer"


def test_solutions_are_on_the_second_version_alone(site, rows):
    for name, document in printing.sheet_documents(site, rows).items():
        soup = BeautifulSoup(document, "html.parser")
        row = next(row for row in rows if name.startswith(f"sheet-{row.number:02}"))
        assert len(soup.select(".exercise")) == len(row.labels)
        assert len(soup.select(".solution")) == (len(row.labels) if "solutions" in name else 0), (
            name
        )
        links = [link["href"] for link in soup.select("a")]
        assert links == [
            f"{site.address}{site.exercises[label].page}.html#{label}" for label in row.labels
        ]
        assert bool(soup.select(".blank")) == ("solutions" not in name), "for name and date"
        assert [h2.contents[0] for h2 in soup.select("h2")] == list(row.parts)
        title = f"Sheet {row.number}: {row.title}" + (" · Solutions" if "solutions" in name else "")
        assert soup.h1.get_text() == title
        assert soup.title.get_text().endswith(title) and title in soup.style.get_text(), (
            "in the running head"
        )


def test_sheet_zero_and_the_projects(site):
    plan = printing.INSTRUCTOR.read_text(encoding="utf-8")
    first = BeautifulSoup(printing.zero(site), "html.parser")
    assert first.h1.get_text() == "Sheet 0: Set up, and a first check"
    assert len(first.select("ol > li")) == 6 and first.select(".blank")
    projects = BeautifulSoup(
        printing.sheet(site, printing.projects(plan), solutions=False), "html.parser"
    )
    assert projects.h1.get_text() == "Projects" and len(projects.select(".exercise")) == 8


def test_without_solutions_a_sheet_has_one_version(site, rows, monkeypatch):
    monkeypatch.setenv("SOLUTIONS", "no")
    assert list(printing.sheet_documents(site, rows[:1])) == ["sheet-01.pdf"]


def test_missing_browser_is_one_line(monkeypatch, site, tmp_path, capsys):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(printing, "read", lambda folder: site)
    assert printing.main(["--out", str(tmp_path)]) == 1
    error = capsys.readouterr().err
    assert "apt install chromium" in error
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def part(site):
    """The front page, a short chapter with theorems and the bibliography.

    Tags and outline of the whole book take minutes.
    """
    chapter = min(
        (text for text in site.texts if text.select(".theorem")), key=lambda t: len(str(t))
    )
    bibliography = next(text for text in site.texts if text.select(".citation"))
    return replace(site, texts=[site.texts[0], chapter, bibliography])


@pytest.fixture(scope="module")
def printed(needs_chromium, site, part, rows, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pdf")
    some = [rows[0], rows[-1]]  # the whole book, which holds all exercises, is typeset below
    documents = {"book.pdf": printing.book(part), **printing.sheet_documents(site, some)}
    printing.write(documents, site, folder)
    assert sorted(path.name for path in folder.iterdir()) == sorted(documents)
    return {path.name: PdfReader(path) for path in folder.iterdir()}


@pytest.fixture(scope="module")
def page_text(printed):
    """The text of a page of the book by its number.

    Reading them all would take longer than printing them.
    """
    return cache(lambda number: printed["book.pdf"].pages[number - 1].extract_text())


@pytest.fixture(scope="module")
def starts(printed, part):
    """The page on which each part of the book begins."""
    book = printed["book.pdf"]
    places = {id.lstrip("/"): to for id, to in book.named_destinations.items()}
    return {
        text["id"]: book.get_destination_page_number(places[text["id"]]) + 1 for text in part.texts
    }


def test_all_pages_are_a4(printed):
    for name, pdf in printed.items():
        for page in pdf.pages:
            assert [float(x) for x in page.mediabox[2:]] == pytest.approx([595, 842], abs=1), name


def test_book_has_a_plausible_length_and_numbered_pages(printed, page_text):
    count = len(printed["book.pdf"].pages)
    assert 10 < count < 80
    for number in (*range(2, count, 7), count):
        assert str(number) in page_text(number).split(), number


def test_book_has_its_first_theorem_and_its_last_reference(printed, part, starts, page_text):
    text, title = next(
        (text, title) for text in part.texts for title in text.select(".theorem .admonition-title")
    )
    pages = range(starts[text["id"]], len(printed["book.pdf"].pages))
    assert any(squeezed(title.get_text()) in squeezed(page_text(number)) for number in pages)
    end = squeezed(part.texts[-1].select(".citation")[-1].get_text())[-30:]
    assert end in squeezed(page_text(len(printed["book.pdf"].pages)))


def test_contents_give_the_page_on_which_each_chapter_begins(part, starts, page_text):
    contents = squeezed("".join(page_text(number) for number in range(2, min(starts.values()))))
    for text in part.texts:
        title, number = squeezed(text.h1.get_text()), starts[text["id"]]
        assert f"{title}{number}" in contents
        assert title in squeezed(page_text(number))


def test_book_has_an_outline_and_tags(printed):
    book = printed["book.pdf"]
    assert len(book.outline) >= 3
    assert book.outline[0].title == "Why Neural Networks Beat Kernels"  # on two lines of the page
    assert "/StructTreeRoot" in book.trailer["/Root"]


def test_sheets_carry_their_titles_and_numbers(printed, rows):
    for row in (rows[0], rows[-1]):
        for version in ("", "-solutions"):
            pdf = printed[f"sheet-{row.number:02}{version}.pdf"]
            assert 1 <= len(pdf.pages) <= 30
            for number, page in enumerate(pdf.pages, start=1):
                text = page.extract_text()
                assert squeezed(f"Sheet {row.number}: {row.title}") in squeezed(text)
                assert str(number) in text.split()


def test_the_whole_book_fits_its_pages(needs_chromium, site):
    with printing.press(SITE) as machine:
        assert machine.typeset(printing.book(site)) == []
        assert machine.refused == []


def test_what_is_too_large_or_outside_is_reported(needs_chromium):
    wide = '<div style="width: 300mm" id="wide"></div><figure style="height: 300mm"></figure>'
    outside = '<img src="http://example.org/picture.png"><img src="/absent.png">'
    with printing.press(SITE) as machine:
        found = machine.typeset(
            printing._document("title", f"<article>{wide}{outside}</article>", "")
        )
        assert [re.match(r"<(\w+)", html)[1] for html in found] == ["div", "figure"]
        assert set(machine.refused) == {
            "http://example.org/picture.png",
            f"{browser.HOST}/absent.png",
        }


def test_a_text_that_ends_on_a_nearly_empty_page_is_set_tighter(needs_chromium):
    text = "<p>Ten words that fill a little less than a line.</p>"
    with printing.press(SITE) as machine:
        lengths = []
        for lines in (30, 35, 60):
            machine.typeset(printing._document("title", f"<article>{text * lines}</article>", ""))
            lengths.append(len(PdfReader(io.BytesIO(machine.pdf())).pages))
            tight = machine._page.locator("article.tight").count()
            assert tight == (lines == 35), lines
    assert lengths == [1, 1, 2]
