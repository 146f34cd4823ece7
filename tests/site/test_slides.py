"""The decks of slides: what is on them, what the speaker sees, and what Chromium shows."""

import re

import pytest
from audits import SITE
from bs4 import BeautifulSoup
from pypdf import PdfReader

from book import maths, slides

PAGE = """<article><section><h1><span class="section-number">9.1. </span>A page</h1>
<p><strong>The question.</strong> Why?</p><p><strong>The answer.</strong> Therefore.</p>
<section><h2>First</h2>
<p>Before it. In words.</p>
<div class="proof theorem admonition" id="thm-one"><p class="admonition-title">Theorem 9.1</p>
<section class="theorem-content"><p>It holds.</p></section></div>
<p><em>Idea.</em> Obvious.</p><details class="sd-dropdown"><summary>Proof</summary>Long.</details>
<div class="cell {}"><figure id="fig-one"><img src="a.png"/><figcaption><span class="caption-text">
A curve. The dots are data.</span></figcaption></figure></div>
<p><strong>What to see.</strong> It rises. {}</p>
</section></section></article>"""
PLAN = """<article><table><thead><tr><th>week</th></tr></thead><tbody><tr><td>1</td>
<td>page 9.1</td></tr></tbody></table><section><h3>Week 1: All</h3>
<p><strong>On the board.</strong> <a href="x.html#thm-one">Theorem 9.1</a>. It is short.</p>
<p><strong>Run.</strong> <a href="x.html#fig-one">Figure</a>. Ask why.</p>
<p><strong>Typical errors.</strong></p><ul><li>To doubt it.</li></ul></section></article>"""


def article(source):
    return BeautifulSoup(source, "html.parser").article


def shown(page, plan=PLAN):
    return slides.deck(article(page), slides.Plan(article(plan)))


@pytest.fixture(scope="module")
def decks(tmp_path_factory):
    return slides.write(SITE, tmp_path_factory.mktemp("slides"))


@pytest.fixture(scope="module")
def texts(decks):
    return {
        path: BeautifulSoup(maths.sources(path.read_text(encoding="utf-8")), "html.parser")
        for path in decks
    }


def test_statement_picture_and_what_to_see():
    title, theorem, figure = shown(PAGE)
    assert "A page" in title.body and "Why?" in title.body and "Therefore." in title.notes
    assert "It holds." in theorem.body and "Proof" not in theorem.html()
    for said in ("It is short.", "In words.", "Obvious."):
        assert said in theorem.notes
    assert (
        "A curve" in figure.body and "It rises." in figure.more and "It rises." not in figure.body
    )
    assert "The dots are data." in figure.notes and "Ask why." in figure.notes


def test_what_is_too_long_goes_to_the_notes():
    *_, figure = shown(PAGE.format("", "Much. " * 100))
    assert "It rises." in figure.more and len(figure.more) < slides.SEEN + 100
    assert figure.notes.count("Much.") + figure.more.count("Much.") == 100


def test_a_cell_can_be_left_out():
    assert [slide.kind for slide in shown(PAGE.format("tag_no-slide", ""))] == [
        "title",
        "statement",
    ]


def test_errors_are_on_the_last_slide():
    short = "<section><h2>In short</h2><ul><li>All is well.</li></ul></section></section></article>"
    last = shown(PAGE.replace("</section></article>", short))[-1]
    assert "All is well." in last.body and "To doubt it." in last.notes


def test_sentences_keep_their_tags():
    text = '<p>One <em>two. Three</em> four. <span class="fl-whole"><b>K</b>.</span> Five?</p>'
    tag = BeautifulSoup(text, "html.parser").p
    assert slides.sentences(tag) == [
        "One <em>two. Three</em> four.",
        '<span class="fl-whole"><b>K</b>.</span>',
        "Five?",
    ]


def test_every_page_has_a_deck_with_its_statements_and_figures(decks, texts):
    pages = [path for path in (SITE / "chapters").glob("0*/*.html") if path.stem[0].isdigit()]
    assert len(decks) == len(pages) == 30
    for page in pages:
        text = texts[next(p for p in decks if p.stem == f"{page.parent.name}-{page.stem}")]
        source = slides.page(SITE, page.relative_to(SITE).with_suffix(""))
        for one in source.select("details, .exercise"):
            one.decompose()
        said = " ".join(text.get_text().split())
        for title in source.select(".proof .admonition-title"):
            assert " ".join(title.get_text().split()) in said, page
        for image in source.select("figure img"):
            assert text.select(f'img[src$="{image["src"].rsplit("/", 1)[1]}"]'), page
        assert text.select_one("section h1") and not text.select(
            "details, a[href], section section"
        )


def test_the_plan_is_in_the_speakers_notes(texts):
    notes = " ".join(note.get_text() for text in texts.values() for note in text.select("aside"))
    notes = " ".join(notes.split())
    plan = slides.page(SITE, slides.PLAN)
    weeks = [h for h in plan.select("h3") if re.search(r"Week \d+:", h.get_text())]
    assert len(weeks) == 12
    for week in weeks:
        errors = next(p for p in week.parent.select("p") if slides.bold(p) == "Typical errors.")
        for error in errors.find_next("ul").select("li"):
            assert " ".join(error.get_text().split()) in notes, week
        run = next(p for p in week.parent.select("p") if slides.bold(p) == "Run.")
        asked = [one for one in slides.sentences(run) if re.search(r"\bAsk\b", one)]
        for one in asked:
            question = " ".join(BeautifulSoup(one, "html.parser").get_text().split())
            assert question in notes, week


@pytest.fixture
def fullest(decks, texts):
    """The five decks with the longest slides."""
    return sorted(
        decks, key=lambda deck: max(len(s.get_text()) for s in texts[deck].select(".fl-fit"))
    )[-5:]


def test_what_is_printed_fits_and_needs_no_connection(chromium, fullest, texts):
    slides.to_pdf(fullest, chromium)
    for path in fullest:
        pages = PdfReader(path.with_suffix(".pdf")).pages
        assert len(pages) == len(texts[path].select("section"))
        assert not any(re.search(r"\\[(\[a-z]", page.extract_text()) for page in pages), "a formula"


def test_a_full_slide_is_named(chromium, fullest):
    path = fullest[0]
    text = path.read_text(encoding="utf-8")
    path.with_name("full.html").write_text(
        text.replace("<h1>", "<p>Much.</p>" * 30 + "<h1>"), encoding="utf-8"
    )
    with pytest.raises(ValueError, match=r"full\.html: slide 1 is too full"):
        slides.to_pdf([path.with_name("full.html")], chromium)


def test_site_must_be_built(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(slides, "SITE", tmp_path)
    monkeypatch.setattr(slides, "TARGET", tmp_path / "slides")
    assert slides.main([]) == 1
    assert "make book" in capsys.readouterr().err
