"""``python -m book.printing``: the built site as a book on A4, and the exercise sheets, as PDF.

The pages of the site are put into one document, so every number is the site's; Chromium typesets
and prints it.
"""

from __future__ import annotations

import argparse
import copy
import difflib
import html
import io
import json
import os
import posixpath
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader

from book import browser, editions, maths
from book.exercises import about
from book.site import address

ROOT = Path(__file__).parents[1]
INSTRUCTOR = ROOT / "chapters" / "appendix" / "instructor.md"
# Tokens of code that paper shows in black: without their elements typesetting takes half the time.
UNCOLOURED = re.compile(r'<span class="(?:n|nb|nn|p|o|w|mi|mf)">([^<]*)</span>')
# The scoreboard repeats the cards of the chapters; the reference is read beside code.
LEFT_OUT = ("claims", "api")
ZERO = "sec-ins-zero"  # the end of the id of the section that is sheet 0
SCREEN_ONLY = (
    "script, button, nav, .headerlink, .toctree-wrapper, .sd-summary-state-marker,"
    " .sd-stretched-link, details.hide > summary"
)

NEARLY_EMPTY = 900  # characters of a page; a full one has three thousand
TIGHTER = ("tight", "tighter", "tightest")  # classes of the style sheet
STYLE = Path(__file__).with_name("print.css").read_text(encoding="utf-8")
SCRIPT = Path(__file__).with_name("print.js").read_text(encoding="utf-8")
HEAD = """<link rel="stylesheet" href="/_static/pygments.css">
<link rel="stylesheet" href="/_static/katex/katex.min.css">"""
NOTE = (
    "Printed from the site, with its numbers. Left out are the scoreboard, the reference of the"
    " package, and the code that the site keeps folded: it draws the figures and records the"
    " claims, and stands in the notebooks."
)


@dataclass(frozen=True)
class Sheet:
    """One row of the table of exercise sheets: the labels of the exercises of each part."""

    number: int
    title: str
    in_class: tuple[str, ...]
    at_home: tuple[str, ...] = ()
    further: tuple[str, ...] = ()

    @property
    def parts(self) -> dict[str, tuple[str, ...]]:
        """The parts by their headings; an empty one is left out."""
        parts = {"In class": self.in_class, "At home": self.at_home, "If you like": self.further}
        return {heading: labels for heading, labels in parts.items() if labels}

    @property
    def labels(self) -> tuple[str, ...]:
        """All exercises in order."""
        return tuple(label for labels in self.parts.values() for label in labels)


def _rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the table under a heading of a page's source, without its head."""
    section = re.search(rf"^## {heading}\s*$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = [line for line in section[1].splitlines() if line.startswith("|")] if section else []
    if len(rows) < 3:
        raise ValueError(f"text: there is no table under '## {heading}'")
    return [[cell.strip() for cell in row.strip().strip("|").split("|")] for row in rows[2:]]


def sheets(text: str) -> list[Sheet]:
    """The sheets in the table under ``## Exercise sheets`` of a page's source."""
    found: dict[int, Sheet] = {}
    for cells in _rows(text, "Exercise sheets"):
        listed = [re.findall(r"\{ref\}`([\w-]+)`", cell) for cell in cells[2:]]
        told = [", ".join(f"{{ref}}`{label}`" for label in labels) for labels in listed]
        if len(cells) != 5 or not cells[0].isdigit() or not cells[1] or told != cells[2:]:
            raise ValueError(
                f"row {' | '.join(cells)!r}: it must read | 1 | Title | {{ref}}`ex-one`, "
                "{ref}`ex-two` | {ref}`ex-three` | |"
            )
        number = int(cells[0])
        if number in found:
            raise ValueError(
                f"row {' | '.join(cells)!r}: there are two sheets with the number {number}"
            )
        found[number] = Sheet(number, cells[1], *map(tuple, listed))
    return list(found.values())


def projects(text: str) -> Sheet:
    """The open-ended exercises in the table under ``## Projects``, as a sheet without number."""
    labels = re.findall(r"\{ref\}`(ex-[\w-]+)`", str(_rows(text, "Projects")))
    return Sheet(0, "Projects", (), (), tuple(labels))


@dataclass(frozen=True)
class Exercise:
    """An exercise of the site: its page, with the chapter's name, and its solution."""

    page: str
    chapter: str
    task: Tag
    solution: list[Tag]


@dataclass(frozen=True)
class Site:
    """The built site: texts ready for paper, and exercises by label."""

    folder: Path
    title: str
    author: str
    texts: list[Tag]
    exercises: dict[str, Exercise]
    address: str


def read(folder: Path, root: Path = ROOT) -> Site:
    """Read the site built in `folder` from the sources in `root`."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = [toc["root"], *files(entry for part in toc["parts"] for entry in part["chapters"])]
    pages = [page for page in pages if posixpath.basename(page) not in LEFT_OUT]
    texts, exercises = [], {}
    for page in pages:
        path = folder / f"{page}.html"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: run make book")
        text = maths.sources(path.read_text(encoding="utf-8"))
        soup = BeautifulSoup(UNCOLOURED.sub(r"\1", text), "html.parser")
        texts.append(_for_paper(soup.article, page, pages))
        exercises |= dict(_exercises(texts[-1], page))
    texts[0].h1.string = "About this book"
    there = address(config["repository"]["url"])
    return Site(folder, config["title"], config["author"], texts, exercises, there)


def files(entries: Iterable[dict[str, Any]]) -> Iterator[str]:
    """The files of a table of contents, each before its sections."""
    for entry in entries:
        yield entry["file"]
        yield from files(entry.get("sections", []))


def _exercises(text: Tag, page: str) -> Iterator[tuple[str, Exercise]]:
    solutions = text.select(".solution")
    chapter = ("Chapter " if text.h1.select(".section-number") else "") + text.h1.get_text()
    for task in text.select(".exercise"):
        own = [
            solution
            for solution in solutions
            if solution.a and solution.a.get("href") == f"#{task['id']}"
        ]
        yield task["id"].split("--", 1)[1], Exercise(page, chapter, task, own)


def _absolute(page: str, address: str) -> str:
    """The address relative to the site's root of what `page` calls `address`."""
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(page), address))


def _anchor(page: str, fragment: str = "") -> str:
    """The id in the book of the page, or of an element on it."""
    name = page.removeprefix("chapters/").removeprefix("appendix/").replace("/", "-")
    return f"{name}--{fragment}".removesuffix("--")


def _for_paper(text: Tag, page: str, pages: list[str]) -> Tag:
    """Unfold proofs and solutions, leave folded code out, make ids and addresses those of one
    document.
    """
    for code in text.select("details.above-input"):
        if not code.find_parent(class_="solution"):
            code.decompose()
    for tag in text.select(SCREEN_ONLY):
        tag.decompose()
    for link in text.select(":is(h1, h2, h3) a"):
        link.unwrap()
    for tag in text.select("details, summary"):
        tag.name = {"details": "div", "summary": "p"}[tag.name]
    seen = set()
    for tag in text.select("[id]"):
        id = tag["id"]
        if id in seen:  # sphinx-proof gives one id to the bodies of all theorems
            del tag["id"]
        else:
            seen.add(id)
            tag["id"] = _anchor(page, id)
    text["id"] = _anchor(page)
    text["style"] = f"page: on-{text['id']}"
    for image in text.select("img"):
        image["src"] = _absolute(page, image["src"])
    for link in text.select("a[href]"):
        address = urlsplit(link["href"])
        target = (
            _absolute(page, address.path).strip("/").removesuffix(".html") if address.path else page
        )
        if not address.scheme and target in pages:
            link["href"] = "#" + _anchor(target, unquote(address.fragment))
        elif not address.scheme:
            link.unwrap()
    return text


def _quoted(text: str) -> str:
    """`text` as a string of CSS."""
    return json.dumps(text, ensure_ascii=False)


def _document(title: str, body: str, style: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
{HEAD}<style>{STYLE}{style}</style></head><body>{body}</body></html>"""


def book(site: Site) -> str:
    """The book: title page, table of contents, all pages with the chapter's name as head."""
    style, entries = "", ""
    for text in site.texts:
        style += (
            f"@page on-{text['id']} {{ @top-left {{ content: {_quoted(text.h1.get_text())}; }} }}\n"
        )
        entries += f"<li>{_entry(text['id'], text.h1)}<ul>"
        entries += "".join(
            f"<li>{_entry(h2.get('id') or h2.parent['id'], h2)}</li>" for h2 in text.select("h2")
        )
        entries += "</ul></li>\n"
    body = f"""<section class="title">
<h1>{html.escape(site.title)}</h1><p>{html.escape(site.author)}</p><p class="note">{NOTE}</p>
</section>
<nav class="contents"><h1>Contents</h1><ul>{entries}</ul></nav>"""
    return _document(site.title, body + "".join(map(str, site.texts)), style)


def _entry(id: str, heading: Tag) -> str:
    return f'<a href="#{id}"><span>{heading.decode_contents()}</span><span></span></a>'


def effort(task: Tag) -> tuple[int, int, bool]:
    """Points, minutes, and whether it may take longer, from the first line of an exercise."""
    try:
        found = about(task.em.get_text() if task.em else "")
    except ValueError as error:
        raise ValueError(f"exercise {task['id']}: {error}") from error
    return found.points, found.minutes, found.is_longer


def sheet(site: Site, row: Sheet, *, solutions: bool) -> str:
    """One sheet: its parts with the exercises in order, each with its solution if asked."""
    body = ""
    for heading, labels in row.parts.items():
        tasks, efforts = "", []
        for label in labels:
            if label not in site.exercises:
                near = difflib.get_close_matches(label, site.exercises, n=1)
                hint = f", did you mean {near[0]}?" if near else ""
                raise ValueError(
                    f"sheet {row.number}: no exercise of the site has the label {label}{hint}"
                )
            exercise = site.exercises[label]
            efforts.append(effort(exercise.task))
            there = f"{site.address}{exercise.page}.html#{label}"
            tasks += f'<p class="from">{exercise.chapter} · {efforts[-1][0]} points · '
            tasks += f'<a href="{there}">{there.removeprefix("https://")}</a></p>'
            tasks += _unlinked(exercise.task)
            tasks += "".join(map(_unlinked, exercise.solution)) if solutions else ""
        points, minutes, longer = map(sum, zip(*efforts, strict=True))
        time = f"{minutes} minutes{' or more' if longer else ''}"
        load = f"<small> · {time} · {points} points</small>"
        body += f"<h2>{heading}{load}</h2>{tasks}" if row.number else tasks
    name = f"Sheet {row.number}: {row.title}" if row.number else row.title
    name += " · Solutions" if solutions else ""
    blank = '<p class="blank"><span>Name</span><span>Date</span></p>' if not solutions else ""
    body = f'<article class="sheet">{blank}<h1>{html.escape(name)}</h1>{body}</article>'
    return _sheet_document(site, name, body)


def zero(site: Site) -> str:
    """Sheet 0: the section of the plan that sets students up, for paper."""
    (target,) = (tag for text in site.texts for tag in text.select(f"[id$={ZERO}]"))
    section = target if target.name == "section" else target.find_parent("section")
    name = section.h2.get_text()
    body = "".join(map(str, section.find_all(["p", "ol", "ul", "div"], recursive=False)))
    blank = '<p class="blank"><span>Name</span><span>Date</span></p>'
    there = f'<p class="from">The book: <a href="{site.address}">{site.address}</a></p>'
    body = f'<article class="sheet">{blank}<h1>{html.escape(name)}</h1>{there}{body}</article>'
    return _sheet_document(site, name, body)


def _sheet_document(site: Site, name: str, body: str) -> str:
    style = f"@page {{ @top-left {{ content: {_quoted(f'{site.title} · {name}')}; }} }}"
    return _document(f"{site.title} · {name}", body, style)


def _unlinked(tag: Tag) -> str:
    tag = copy.copy(tag)
    for link in tag.select("a"):
        link.unwrap()
    return str(tag)


def sheet_documents(site: Site, rows: list[Sheet]) -> dict[str, str]:
    """Both versions of each sheet, by the names of their files.

    The edition without solutions has one version only.
    """
    versions = (False,) if editions.edition() == "no" else (False, True)
    return {
        f"{f'sheet-{row.number:02}' if row.number else 'projects'}{'-solutions' * solutions}.pdf": (
            sheet(site, row, solutions=solutions)
        )
        for row in rows
        for solutions in versions
    }


class Press:
    """A page of the browser that typesets and prints.

    `refused` lists what it asked for outside the site's folder.
    """

    def __init__(self, page: Any, folder: Path) -> None:
        page.set_default_timeout(600_000)
        self._page, self._site = page, browser.Folder(page, folder)
        self.refused = self._site.refused

    def typeset(self, document: str) -> list[str]:
        """Lay `document` out and fit equations and tables into the column.

        What is larger than the page still.
        """
        self._site.documents["/"] = maths.typeset(document)
        self._page.emulate_media(media="screen", color_scheme="light")
        self._site.open("")
        self._page.emulate_media(media="print")
        self._page.evaluate("document.body.offsetHeight && document.fonts.ready.then(() => null)")
        self._page.add_script_tag(content=SCRIPT)
        self._page.evaluate("fit()")
        return self._page.evaluate("overflow()")

    def pdf(self) -> bytes:
        """What was typeset.

        A draft shows which texts end on a nearly empty page: these are set a little tighter. The
        page numbers of a table of contents are read off the last draft.
        """
        draft, starts = self._draft()
        for level in TIGHTER:
            if not (loose := self._loose(draft, starts)):
                break
            self._page.evaluate("([numbers, level]) => tighten(numbers, level)", [loose, level])
            draft, starts = self._draft()
        self._page.evaluate("pages => number(pages)", {id: at + 1 for id, at in starts.items()})
        return self._page.pdf(
            prefer_css_page_size=True, print_background=True, outline=True, tagged=True
        )

    def _draft(self) -> tuple[PdfReader, dict[str, int]]:
        """The document as it is now, and the pages of its anchors, from 0."""
        draft = PdfReader(io.BytesIO(self._page.pdf(prefer_css_page_size=True, tagged=False)))
        places = draft.named_destinations.items()
        return draft, {id.lstrip("/"): draft.get_destination_page_number(to) for id, to in places}

    def _loose(self, draft: PdfReader, starts: dict[str, int]) -> list[int]:
        """The numbers of the texts whose last page is not their first and nearly empty."""
        ids = self._page.eval_on_selector_all("article", "all => all.map(one => one.id)")
        firsts = [starts.get(id, 0) for id in ids] + [len(draft.pages)]
        return [
            number
            for number, (first, following) in enumerate(pairwise(firsts))
            if following - first > 1
            and len(draft.pages[following - 1].extract_text()) < NEARLY_EMPTY
        ]


@contextmanager
def press(folder: Path) -> Iterator[Press]:
    """A press for the site in `folder`."""
    with browser.launch() as chromium:
        yield Press(chromium.new_page(), folder)


def write(documents: dict[str, str], site: Site, folder: Path) -> None:
    """Print `documents` into `folder`, each file whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    with press(site.folder) as machine:
        for name, document in documents.items():
            if wrong := machine.typeset(document):
                raise ValueError(f"{name}: larger than the page: {wrong[0]}")
            if machine.refused:
                raise ValueError(f"{name}: not in the site's folder: {', '.join(machine.refused)}")
            part, content = folder / f"{name}.part", machine.pdf()
            part.write_bytes(content)
            os.replace(part, folder / name)
            print(f"{folder / name}: {len(PdfReader(io.BytesIO(content)).pages)} pages", flush=True)


def main(arguments: list[str] | None = None) -> int:
    """Print what the options ask for; 1 if something is missing or does not fit."""
    parser = argparse.ArgumentParser(prog="python -m book.printing", description=__doc__)
    parser.add_argument(
        "--site", type=Path, default=ROOT / "_build" / "html", help="folder of the built site"
    )
    parser.add_argument(
        "--out", type=Path, default=ROOT / "_build" / "pdf", help="folder for the PDFs"
    )
    parser.add_argument("--only", choices=("book", "sheets"), help="leave the other out")
    options = parser.parse_args(arguments)
    try:
        site = read(options.site)
        documents = {} if options.only == "sheets" else {"book.pdf": book(site)}
        if options.only != "book":
            plan = INSTRUCTOR.read_text(encoding="utf-8")
            documents |= {"sheet-00.pdf": zero(site)}
            documents |= sheet_documents(site, [*sheets(plan), projects(plan)])
        write(documents, site, options.out)
    except (FileNotFoundError, ModuleNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
