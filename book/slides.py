"""``make slides``: one deck of slides for each page, from the built site, as HTML and as PDF.

A deck shows what a lecturer shows: statements, pictures, questions, and then what to see. Proofs go
on the board. Numbers and formulas are the site's. Speaker notes (press ``s``) carry what the
instructor's plan says about a theorem or a figure, ideas of proofs, answers, and typical errors. A
cell with the tag ``no-slide`` is left out. The decks lie in ``_build/slides`` and work offline.
"""

from __future__ import annotations

import argparse
import copy
import html
import posixpath
import re
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import yaml
from bs4 import BeautifulSoup, NavigableString, Tag

from book import browser, maths, notebooks
from book.printing import files

HERE = Path(__file__).parent
SITE = notebooks.ROOT / "_build" / "html"
TARGET = notebooks.ROOT / "_build" / "slides"
PLAN = "chapters/appendix/instructor"
SKIPPED = ("Exercises", "Measured on this page", "Notes")
STATEMENTS = ("definition", "assumption", "proposition", "lemma", "theorem", "corollary")
TABLE = 1000  # characters of a table; a longer one stays on the page
TITLE = 120  # characters of a caption's first sentence, where it is the title
SEEN = 360  # characters of "What to see" that a slide holds; the rest is for the notes
DOCUMENT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="assets/reveal/reveal.css">
<link rel="stylesheet" href="assets/katex/katex.min.css">
<link rel="stylesheet" href="assets/slides.css">
<script defer src="assets/reveal/reveal.js"></script>
<script defer src="assets/reveal/notes.js"></script>
<script defer src="assets/slides.js"></script>
</head><body><div class="reveal"><div class="slides">
{slides}
</div></div></body></html>
"""
INDEX = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Slides</title>
<link rel="stylesheet" href="assets/slides.css"></head>
<body class="fl-index"><h1>Slides</h1>
<p>Keys: arrows and space move, <kbd>s</kbd> opens the speaker notes, <kbd>f</kbd> fills the screen,
<kbd>o</kbd> shows all slides.</p>
<ul>
{rows}</ul></body></html>
"""


@dataclass
class Slide:
    """One slide: what it shows, what a key press adds to it, and what the speaker sees."""

    kind: str
    head: str
    body: str
    notes: str = ""
    more: str = ""

    def html(self) -> str:
        """The slide as an element of the deck."""
        more = f'<div class="fragment fl-more">{self.more}</div>' if self.more else ""
        notes = f'<aside class="notes">{self.notes}</aside>' if self.notes else ""
        return (
            f'<section class="fl-{self.kind}"><p class="fl-head">{self.head}</p>'
            f'<div class="fl-fit">{self.body}{more}</div>{notes}</section>'
        )


def bold(tag: Tag) -> str:
    """The bold words that a paragraph begins with."""
    first = next((child for child in tag.children if str(child).strip()), None)
    is_bold = tag.name == "p" and isinstance(first, Tag) and first.name == "strong"
    return first.get_text().strip() if is_bold else ""


def inner(tag: Tag) -> str:
    """The contents of an element, without links, anchors and sections."""
    tag = copy.copy(tag)
    for section in tag.select("section"):
        section.unwrap()
    for link in tag.select(".headerlink"):
        link.decompose()
    for link in tag.select("a"):
        link.unwrap()
    for one in tag.select("[id]"):
        del one["id"]
    return tag.decode_contents()


class Plan:
    """What the instructor's plan says about theorems, figures and pages."""

    def __init__(self, article: Tag) -> None:
        self._said: dict[str, list[tuple[str, str]]] = {}
        self._weeks: list[tuple[str, str]] = []
        table = next(t for t in article.select("table") if t.th and t.th.get_text() == "week")
        rows = {row.td.get_text(): row.select("td")[1] for row in table.select("tbody tr")}
        for heading in article.select("h3"):
            week = re.match(r"(?:[\d.]+ )?Week (\d+):", heading.get_text())
            if not week:
                continue
            section = heading.parent
            for paragraph in section.select("p"):
                if bold(paragraph) in ("On the board.", "Run."):
                    self._read(paragraph, rows[week[1]].get_text())
            errors = next((p for p in section.select("p") if bold(p) == "Typical errors."), None)
            listed = errors.find_next("ul") if errors else None
            self._weeks.append((rows[week[1]].get_text(), str(inner(listed)) if listed else ""))

    def _read(self, paragraph: Tag, pages: str) -> None:
        """File each sentence, with the pages of its week, under the theorems and figures that it
        links to. A sentence that is nothing but a link says nothing.
        """
        current: list[str] = []
        for sentence in _split(paragraph):
            named = re.findall(r'href="[^"]*#((?:thm|prop|lem|cor|def|ass|fig)-[\w-]+)"', sentence)
            current = named or current
            said = re.sub(r"</?a\b[^>]*>", "", sentence)
            bare = re.fullmatch(r"[A-Z][a-z]+\.? [\d.]+\.", re.sub(r"<[^>]+>", "", said).strip())
            for label in [] if bare else current:
                self._said.setdefault(label, []).append((pages, said))

    def about(self, label: str, number: str) -> str:
        """The sentences that follow a reference to the label, in the weeks that treat the page with
        this number.
        """
        found = self._said.get(label, [])
        return " ".join(said for pages, said in found if _covers(pages, number))

    def errors(self, number: str) -> str:
        """The typical errors of the weeks that treat the page with this number, such as 1.2."""
        found = [errors for pages, errors in self._weeks if _covers(pages, number)]
        return "".join(f"<ul>{errors}</ul>" for errors in found)


def sentences(tag: Tag) -> list[str]:
    """The sentences of an element, as HTML in which every tag is closed, without links."""
    return _split(BeautifulSoup(inner(tag), "html.parser"))


def _split(tag: Tag) -> list[str]:
    parts = [""]
    for child in tag.children:
        pieces = [str(child)]
        if isinstance(child, NavigableString):
            pieces = re.split(r"(^\s+|(?<=[.?!])\s+)", html.escape(child, quote=False))
        for piece in pieces:
            if re.search(r"[.?!]\)?\s+$", _plain(parts[-1])):
                parts.append("")
            parts[-1] += piece
    return [part.strip() for part in parts if part.strip()]


def _plain(source: str) -> str:
    """The text of some HTML."""
    return re.sub(r"<[^>]+>", "", source)


def _covers(pages: str, number: str) -> bool:
    """Whether words such as "pages 1.2 to 1.5: …; page 6.1: …" or "chapter 2" name the page."""
    chapter, page = number.split(".")
    if re.search(rf"chapter {chapter}\b", pages):
        return True
    for first, last in re.findall(r"pages? (\d+\.\d+)(?: (?:to|and) (\d+\.\d+))?", pages):
        low, high = (one.split(".") for one in (first, last or first))
        if low[0] == chapter and int(low[1]) <= int(page) <= int(high[1]):
            return True
    return False


def _leaves(section: Tag) -> Iterator[tuple[str, Tag]]:
    """The elements of a page in order, each with the title of its section."""
    title = section.find(["h1", "h2", "h3"], recursive=False)
    name = re.sub(r'<span class="section-number">.*?</span>', "", inner(title)) if title else ""
    for child in section.find_all(recursive=False):
        if child.name == "section":
            yield from _leaves(child)
        elif child is not title:
            yield name, child


def deck(article: Tag, plan: Plan) -> list[Slide]:
    """The slides of a page."""
    top = article.find("section")
    number = top.h1.select_one(".section-number").get_text().strip(" .")
    first, *opening = top.find_all("p", recursive=False)
    answer = "".join(map(inner, opening[:1]))
    slides = [Slide("title", "", f"<h1>{inner(top.h1)}</h1><p>{inner(first)}</p>", answer)]
    shown, before = "", top.h1  # the last picture or table; the element before
    for head, leaf in _leaves(top):
        kinds = set(leaf.get("class", []))
        figure = leaf if leaf.name == "figure" else leaf.find("figure")
        table = leaf if leaf.name == "table" else leaf.find("table")
        if _plain(head) in SKIPPED or "tag_no-slide" in kinds:
            continue
        if "proof" in kinds and kinds & set(STATEMENTS):
            body = copy.copy(leaf)
            title = body.select_one(".admonition-title").extract()
            notes = _notes(plan.about(leaf["id"], number), *_lead(before))
            slides.append(Slide("statement", head, f"<h2>{inner(title)}</h2>{inner(body)}", notes))
        elif leaf.name == "p" and leaf.em and leaf.get_text().startswith("Idea."):
            slides[-1].notes += _notes(inner(leaf))
        elif figure:
            title, *rest = sentences(figure.select_one(".caption-text"))
            if title.startswith("Left") or len(_plain(title)) > TITLE:
                title, head, rest = head, "", [title, *rest]
            title = re.sub(r"\.((?:</span>)?)$", r"\1", title)
            shown = str(figure.img)
            notes = _notes(" ".join(rest), plan.about(figure["id"], number))
            slides.append(Slide("figure", head, f"<h2>{title}</h2>{shown}", notes))
        elif table and "fl-question" not in kinds and len(table.get_text()) <= TABLE:
            *earlier, last = _lead(before) or [""]
            shown = f"<p>{last}</p><table>{inner(table)}</table>"
            slides.append(Slide("table", head, shown, _notes(*earlier)))
        elif leaf.get_text() == "What to see." and shown:  # in the list after it
            items = [sentences(item) for item in leaf.find_next_sibling("ul").select("li > p")]
            seen = "".join(f"<li>{' '.join(item[:2])}</li>" for item in items)
            notes = _notes(*(" ".join(item) for item in items))
            slides.append(Slide("short", head, f"<h2>What to see</h2><ul>{seen}</ul>", notes))
        elif bold(leaf).startswith("What to see") and shown:
            if slides[-1].more or shown not in slides[-1].body:
                slides.append(Slide("figure", head, shown))
            slides[-1].more, rest = _seen(leaf)
            slides[-1].notes += _notes(rest)
        elif bold(leaf).startswith("Predict first"):
            slides.append(Slide("question", head, f"<p>{inner(leaf)}</p>"))
        elif "fl-question" in kinds:
            options = "".join(f"<li>{inner(option)}</li>" for option in leaf.select("summary"))
            told = "".join(
                f"<p><em>{inner(option.summary)}</em>: {inner(option.p)}</p>"
                for option in leaf.select("details")
            )
            slides.append(
                Slide("question", head, f"<p>{inner(leaf.p)}</p><ol>{options}</ol>", told)
            )
        elif head == "In short" and leaf.name == "ul":
            errors = plan.errors(number)
            notes = f"<p>Typical errors.</p>{errors}" if errors else ""
            slides.append(Slide("short", "", f"<h2>In short</h2><ul>{inner(leaf)}</ul>", notes))
        before = leaf
    return slides


def _lead(before: Tag) -> list[str]:
    """The sentences of the paragraph before something, if it leads there."""
    is_lead = before.name == "p" and not bold(before) and len(before.get_text()) > 10
    return sentences(before) if is_lead else []


def _seen(paragraph: Tag) -> tuple[str, str]:
    """What a slide says of "What to see", and the rest."""
    said = sentences(paragraph)
    fitting = sum(length <= SEEN for length in accumulate(len(_plain(one)) for one in said))
    while fitting > 2 and not re.search(r"[.?!]\)?$", _plain(said[fitting - 1])):
        fitting -= 1  # it goes on with a formula
    fitting = max(2, fitting)
    return f"<p>{' '.join(said[:fitting])}</p>", " ".join(said[fitting:])


def _notes(*paragraphs: str) -> str:
    return "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs if paragraph)


def page(folder: Path, name: str) -> Tag:
    """The article of a page of the site, without its code."""
    path = folder / f"{name}.html"
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there: run make book")
    text = maths.sources(path.read_text(encoding="utf-8"))
    article = re.search(r"<article.*</article>", text, re.DOTALL)
    without_code = re.sub(r"<pre>.*?</pre>", "", article[0], flags=re.DOTALL)  # most of the page
    return BeautifulSoup(without_code, "html.parser").article


def write(folder: Path, target: Path) -> list[Path]:
    """Write all decks and what they need; the paths of the decks."""
    toc = yaml.safe_load((notebooks.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    chapters = files(entry for part in toc["parts"] for entry in part["chapters"])
    names = [name for name in chapters if re.match(r"chapters/\d\d_\w+/\d_", name)]
    plan = Plan(page(folder, PLAN))
    shutil.rmtree(target, ignore_errors=True)
    assets = target / "assets"
    shutil.copytree(HERE / "reveal", assets / "reveal")
    shutil.copytree(folder / "_static" / "katex", assets / "katex")
    for source in (HERE / "slides.css", HERE / "slides.js"):
        shutil.copy(source, assets)
    written, rows = [], ""
    for name in names:
        article = page(folder, name)
        title = " ".join(article.h1.get_text().rstrip("#").split())
        slides = maths.typeset("\n".join(slide.html() for slide in deck(article, plan)))
        here = posixpath.dirname(name)
        for image in set(re.findall(r'src="([^"]*_images/[^"]+)"', slides)):
            (assets / "images").mkdir(exist_ok=True)
            shutil.copy(folder / posixpath.normpath(f"{here}/{image}"), assets / "images")
        slides = re.sub(r'src="[^"]*_images/', 'src="assets/images/', slides)
        path = target / f"{name.removeprefix('chapters/').replace('/', '-')}.html"
        path.write_text(DOCUMENT.format(title=html.escape(title), slides=slides), encoding="utf-8")
        written.append(path)
        rows += f'<li><a href="{path.name}">{html.escape(title)}</a></li>\n'
    index = INDEX.format(rows=rows)
    (target / "index.html").write_text(index, encoding="utf-8")
    return written


def to_pdf(decks: list[Path], chromium: Any) -> None:
    """Print the decks beside themselves, one slide per page."""
    tab = chromium.new_page(viewport={"width": 1280, "height": 720})
    site = browser.Folder(tab, decks[0].parent)
    for path in decks:
        site.open(f"{path.name}?print-pdf")
        tab.wait_for_selector(".print-pdf [data-fitted]", timeout=120_000)
        printed = tab.pdf(width="1280px", height="720px", print_background=True)
        path.with_suffix(".pdf").write_bytes(printed)
        if site.refused:
            raise ValueError(f"{path.name}: not there: {', '.join(site.refused)}")
        full = tab.eval_on_selector_all(".fl-fit", "boxes => boxes.map(b => b.dataset.fitted)")
        if "too much" in full:
            raise ValueError(f"{path.name}: slide {full.index('too much') + 1} is too full")
    tab.close()


def main(arguments: list[str] | None = None) -> int:
    """Write the decks, and print them if asked."""
    parser = argparse.ArgumentParser(prog="python -m book.slides", description=__doc__)
    parser.add_argument("--pdf", action="store_true", help="print them, too")
    options = parser.parse_args(arguments)
    try:
        decks = write(SITE, TARGET)
        if options.pdf:
            with browser.launch() as chromium:
                to_pdf(decks, chromium)
    except (FileNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{len(decks)} decks: {(TARGET / 'index.html').relative_to(notebooks.ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
