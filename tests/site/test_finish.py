"""The finish of the site.

Index and search of theorems, link previews, citation, reading times, captions, first paint, print.
"""

import io
import json
import posixpath
import re
from functools import cache
from unicodedata import normalize  # some fonts have one character for fi
from urllib.parse import urlsplit

import pytest
import yaml
from bs4 import BeautifulSoup
from conftest import tab
from docutils import nodes
from PIL import Image
from pypdf import PdfReader

import featlearn
from book import browser, card, maths, notebooks, printing, scoreboard
from book import site as extension

ROOT = notebooks.ROOT
SITE = ROOT / "_build" / "html"
STATIC = notebooks.CHAPTERS / "_static"
CONFIG = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
PAGES = [TOC["root"], *printing.files(e for part in TOC["parts"] for e in part["chapters"])]
CHAPTERS = [e["file"] for e in TOC["parts"][0]["chapters"] if "sections" not in e]
FOLDERS = [e["file"] for e in TOC["parts"][0]["chapters"] if "sections" in e]
URL = notebooks.repository_url()
ADDRESS = extension.address(URL)
BLOCK = re.compile(r"^:{3,}\{prf:(\w+)\} *(.*)\n:label: ([\w-]+)", re.MULTILINE)


def parsed(page):
    path = SITE / f"{page}.html"
    if not path.is_file():
        pytest.fail("the site is not built: run make book")
    text = maths.sources(path.read_text(encoding="utf-8"))
    return BeautifulSoup(printing.UNCOLOURED.sub(r"\1", text), "html.parser")


soup = cache(parsed)


def blocks():
    """Page, kind and label of every numbered block in the sources."""
    for path in notebooks.paths():
        page = str(path.relative_to(ROOT).with_suffix(""))
        for cell in notebooks.load(path).cells:
            if cell.cell_type == "markdown":
                yield from ((page, kind, label) for kind, _, label in BLOCK.findall(cell.source))


def words(tag):
    return re.findall(r"[A-Za-z][\w’'-]*", tag.get_text(" "))


# Theorems


def test_index_lists_every_block_twice_and_links_to_it():
    found = [
        link["href"]
        for link in soup("chapters/appendix/theorems").select("ul.fl-theorems a[href*='#']")
    ]
    expected = [f"../{page.removeprefix('chapters/')}.html#{label}" for page, _, label in blocks()]
    expected = [link.replace("../appendix/", "") for link in expected]
    assert len(expected) > 80
    assert found[: len(expected)] == expected, "in the order of the book"
    assert sorted(found[len(expected) :]) == sorted(expected)


@cache
def by_id(page):
    """The elements of a page by their ids."""
    return {tag["id"]: tag for tag in soup(page).select("[id]")}


def test_index_shows_the_numbers_and_names_of_the_pages():
    by_chapter = soup("chapters/appendix/theorems").select("ul.fl-theorems")[:-1]
    for item in (item for part in by_chapter for item in part.select("li")):
        page, anchor = item.a["href"].split("#")
        page = posixpath.normpath(f"chapters/appendix/{page}").removesuffix(".html")
        title = by_id(page)[anchor].select_one(".admonition-title")
        number, name = title.get_text().split("(", 1)
        assert item.get_text().split() == [
            *number.split(),
            *name.rstrip().removesuffix(")").split(),
        ]


def test_index_sets_the_formulas_in_names():
    assert soup("chapters/appendix/theorems").select("ul.fl-theorems span.math")
    page = (SITE / "chapters/appendix/theorems.html").read_text(encoding="utf-8")
    formulas = len(soup("chapters/appendix/theorems").select(".math"))
    assert page.count("<!--tex ") == page.count('class="katex"') == formulas > 0


def test_index_by_name_is_in_order():
    names = [
        li.a.get_text()
        for li in soup("chapters/appendix/theorems").select("ul.fl-theorems")[-1].select("li")
    ]
    letters = [re.sub(r"^(an?|the) ", "", name.lower())[0] for name in names if name[0].isalpha()]
    assert letters == sorted(letters)


def test_search_knows_every_block_by_name():
    text = (SITE / "searchindex.js").read_text(encoding="utf-8")
    index = json.loads(text[text.index("{") : text.rindex("}") + 1])
    kinds = {
        number: kind
        for number, (domain, kind, _) in index["objnames"].items()
        if domain == "theorem"
    }
    found = [
        (index["docnames"][page], kinds[str(kind)], anchor, name)
        for prefix, objects in index["objects"].items()
        for page, kind, _, anchor, name in objects
        if str(kind) in kinds
    ]
    assert sorted(entry[:3] for entry in found) == sorted(blocks())
    for *_, name in found:
        assert not re.search(r"[\\${}]", name), name


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\dot\Sigma", "Σ\u0307"),
        (r"\mathcal F_{\Xi_0}", "F_(Ξ_0)"),
        (r"d^{p/2}", "d^(p/2)"),
        (r"t\to\infty", "t→∞"),
        (r"k^{2}", "k^2"),
    ],
)
def test_formulas_in_plain_characters(tex, text):
    assert extension.without_tex(tex) == text
    assert extension.plain(nodes.paragraph("", "At ", nodes.math("", tex))) == f"At {text}"


# What others see of the site


def test_address_follows_from_the_repository():
    assert extension.address("https://github.com/new/two") == "https://new.github.io/two/"
    with pytest.raises(ValueError, match="OWNER/NAME"):
        extension.address("https://github.com/two")


@pytest.mark.parametrize("page", PAGES)
def test_link_preview(page):
    head = soup(page).head
    tags = {
        tag.get("property") or tag.get("name"): tag["content"]
        for tag in head.select("meta[content]")
    }
    assert (
        tags["og:url"] == head.select_one("link[rel=canonical]")["href"] == f"{ADDRESS}{page}.html"
    )
    assert tags["og:site_name"] == CONFIG["title"]
    assert tags["og:title"] in soup(page).article.h1.get_text()
    assert tags["og:type"] == ("website" if page == TOC["root"] else "article")
    assert tags["twitter:card"] == "summary_large_image"
    picture = SITE / tags["og:image"].removeprefix(ADDRESS)
    assert picture.stat().st_size <= 60_000
    size = (int(tags["og:image:width"]), int(tags["og:image:height"]))
    assert Image.open(picture).size == size == tuple(card.SIZE.values())
    about = tags["description"]
    assert about == tags["og:description"]
    assert 50 <= len(about) <= 320 and about[-1] in ".?!" and not re.search(r"[\\${}]", about), (
        about
    )


def test_descriptions_differ():
    found = [soup(page).select_one("meta[name=description]")["content"] for page in PAGES]
    assert len(set(found)) == len(found)


def test_the_bare_address_shows_the_front_page():
    front, head = soup(TOC["root"]).head, soup("index").head
    for name in ("og:title", "og:description", "og:image", "og:url"):
        assert head.select_one(f"[property='{name}']") == front.select_one(f"[property='{name}']")
    assert front.title.get_text() == CONFIG["title"], "once"


def test_logo_and_icon_are_small_drawings_with_a_title():
    for name in ("logo.svg", "favicon.svg"):
        drawing = (STATIC / name).read_text(encoding="utf-8")
        assert "<title>" in drawing and "<script" not in drawing and len(drawing) < 2_000
    assert soup(TOC["root"]).select_one("a.navbar-brand").get_text(strip=True) == CONFIG["title"]


def test_citation_agrees_with_the_book():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert (
        citation["cff-version"] == "1.2.0"
        and citation["message"]
        and citation["type"] == "software"
    )
    assert citation["authors"] == [{"name": CONFIG["author"]}]
    assert citation["version"] == featlearn.__version__
    assert citation["repository-code"] == URL and citation["url"] == ADDRESS
    assert citation["license-url"].startswith(f"{URL}/") and citation["license-url"].endswith(
        "/LICENSE"
    )
    about = (notebooks.CHAPTERS / "appendix" / "about.md").read_text(encoding="utf-8")
    entry = dict(re.findall(r"^  (\w+) +?= \{+(.*?)\}+,?$", about, re.MULTILINE))
    assert entry["title"] == citation["title"] and citation["title"].startswith(CONFIG["title"])
    assert entry["author"] == CONFIG["author"]
    assert entry["year"] == str(citation["date-released"].year) == CONFIG["copyright"]
    assert entry["url"] == URL


# Chapters

NUMBERS = {"an": 1, "one": 1, "two": 2, "three": 3, "four": 4}
WORDS_PER_MINUTE = 110
TOLERANCE = 1.4  # between the time that a chapter states and the estimate


def minutes(tag):
    """An estimate of the time to read `tag`, which is used up.

    The call that records a claim counts as one line.
    """
    code = "\n".join(pre.get_text() for pre in tag.select(".highlight pre"))
    code = re.sub(r"^claims\.\w+\(.*?^\)", "claim", code, flags=re.MULTILINE | re.DOTALL)
    seconds = {
        "formula": 20 * len(tag.select("div.math")),
        "line of code": 4 * sum(bool(line.strip()) for line in code.splitlines()),
        "figure": 30 * len(tag.select("figure")),
        "claim": 10 * len(tag.select(".fl-claim")),
    }
    count = 2 * len(tag.select("span.math")) + sum(
        len(words(caption)) for caption in tag.select("figcaption")
    )
    for part in tag.select(".math, .highlight, .cell_output, .headerlink"):
        part.extract()
    return (count + len(words(tag))) / WORDS_PER_MINUTE + sum(seconds.values()) / 60


def reading_time(page):
    """The minutes for a page without its exercises, folded code and further reading.

    Proofs take twice the time.
    """
    text = parsed(page).article
    for section in text.select("#exercises, #further-reading, details.hide"):
        section.extract()
    proofs = [proof.extract() for proof in text.select("details.sd-dropdown")]
    return minutes(text) + 2 * sum(map(minutes, proofs))


def stated_time(page):
    """The minutes that the box at the start of a chapter states."""
    box = next(
        box
        for box in soup(page).select(".admonition.note")
        if "Before you start" in box.p.get_text()
    )
    assert [strong.get_text() for strong in box.select("li > p > strong, li > strong")] == [
        "You need",
        "Time",
        "Sources",
    ]
    time = re.search(r"Time: (?:(\d+) minutes|(\w+)( and a half)? hours?) to read", box.get_text())
    return int(time[1]) if time[1] else 60 * (NUMBERS[time[2]] + bool(time[3]) / 2)


@pytest.mark.parametrize("page", CHAPTERS)
def test_a_chapter_states_what_it_needs_and_how_long_it_takes(page):
    estimate = reading_time(page)
    assert estimate / TOLERANCE <= stated_time(page) <= estimate * TOLERANCE, (
        f"about {estimate:.0f} minutes"
    )


@pytest.mark.parametrize("page", FOLDERS)
def test_the_opening_of_a_chapter_says_how_long_its_pages_take(page):
    rows = [row.select("td") for row in soup(page).select("article table tbody tr")]
    assert len(rows) >= 2
    for title, _, minutes in rows:
        target = posixpath.join(posixpath.dirname(page), title.a["href"].removesuffix(".html"))
        estimate = reading_time(target)
        assert estimate / TOLERANCE <= int(minutes.get_text()) <= estimate * TOLERANCE, (
            f"{target}: about {estimate:.0f} minutes"
        )


@pytest.mark.parametrize("page", PAGES)
def test_captions_are_sentences_and_alternative_texts_say_something_else(page):
    for figure in soup(page).select("article figure"):
        caption = " ".join(figure.select_one(".caption-text").get_text().split())
        if not figure["id"].startswith("picture-"):  # a figure of another page has no number here
            number = figure.select_one(".caption-number").get_text()
            assert re.fullmatch(r"Fig\. [\d.]+\s*", number), figure["id"]
        assert caption[0].isupper() and caption.endswith("."), caption
        assert figure.img["alt"] != caption
    assert not [
        image["src"]
        for image in soup(page).select("article img")
        if not image.find_parent("figure") and not image.find_parent(class_="fl-chapters")
    ]


@pytest.mark.parametrize("page", PAGES)
def test_previous_and_next_follow_the_table_of_contents(page):
    place = PAGES.index(page)
    neighbours = {"left-prev": PAGES[place - 1 : place], "right-next": PAGES[place + 1 : place + 2]}
    for kind, expected in neighbours.items():
        links = soup(page).select(f"a.{kind}")
        found = [link.select_one(".prev-next-title").get_text() for link in links]
        titles = [soup(other).article.h1.get_text().removesuffix("#") for other in expected]
        assert ["".join(title.split()) for title in found] == [
            "".join(title.split()) for title in titles
        ]
        places = [(SITE / page).parent.joinpath(link["href"]).resolve() for link in links]
        assert places == [SITE / f"{other}.html" for other in expected]


# First paint


@pytest.mark.parametrize("page", PAGES)
def test_nothing_heavy_blocks_the_first_paint(page):
    for script in soup(page).head.select("script[src]"):
        waits = script.has_attr("defer") or script.has_attr("async")
        file = (SITE / page).parent / urlsplit(script["src"]).path
        assert waits or file.stat().st_size < 30_000, script["src"]
    assert "thebe" not in str(soup(page).head).lower()


# Paper

STATE = """[document.documentElement.dataset.theme,
  document.querySelectorAll("details.sd-dropdown:not([open])").length]"""


@pytest.fixture(scope="module")
def screen(chromium):
    """A dark page in the browser."""
    page = tab(chromium, color_scheme="dark")
    site = browser.Folder(page, SITE)
    site.open("chapters/appendix/hermite.html")
    return page


def test_paper_shows_proofs_and_nothing_of_the_screen(screen):
    pages = PdfReader(io.BytesIO(screen.pdf(format="A4"))).pages
    text = normalize("NFKC", "".join("".join(page.extract_text().split()) for page in pages))
    for proof in soup("chapters/appendix/hermite").select("details.sd-dropdown"):
        phrase = max(re.split(r"[^A-Za-z ,]", proof.select("p")[-1].get_text()), key=len)
        assert "".join(phrase.split()) in text, phrase
    for absent in ("Showcodecellsource", "Skiptomaincontent", "previous", "Ctrl+K"):
        assert absent not in text


def test_the_page_is_light_and_open_while_it_prints_and_as_before_after_that(screen):
    before = screen.evaluate(STATE)
    assert before[0] == "dark" and before[1] > 0
    screen.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert screen.evaluate(STATE) == ["light", 0]
    screen.evaluate("dispatchEvent(new Event('afterprint'))")
    assert screen.evaluate(STATE) == before


def test_the_front_page_shows_result_record_and_chapters():
    article = soup("chapters/index").article
    first = str(article).split("<h2", 1)[0]
    assert [part in first for part in ("<figure", "fl-brief", "sd-btn", "fl-trust")] == [True] * 4
    board = scoreboard.collect(notebooks.CHAPTERS)
    count = scoreboard.trust(board, notebooks.CHAPTERS).split("**")[1]
    assert article.select_one(".fl-trust").get_text().startswith(f"{count} measurements")
    entries = article.select(".fl-chapters .sd-card")
    assert len(entries) == len(notebooks.lectures())
    stated = [int(re.search(r"(\d+) minutes", entry.get_text())[1]) for entry in entries]
    for entry, minutes in zip(entries, stated, strict=True):
        assert entry.img["alt"]
        opening = posixpath.join("chapters", entry.a["href"].removesuffix(".html"))
        rows = soup(opening).select("article table tbody tr")
        assert minutes == sum(int(row.select("td")[2].get_text()) for row in rows), opening
    assert f"about {round(sum(stated) / 60)} hours of reading" in article.get_text()
