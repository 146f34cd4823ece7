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
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Tag
from pypdf import PdfReader

from book import browser
from book.exercises import POINTS

ROOT = Path(__file__).parents[1]
INSTRUCTOR = ROOT / "chapters" / "appendix" / "instructor.md"
# Tokens of code that paper shows in black: without their elements the book is typeset in half the time.
UNCOLOURED = re.compile(r'<span class="(?:n|nb|nn|p|o|w|mi|mf)">([^<]*)</span>')
LEFT_OUT = (
    "claims",
    "api",
)  # the scoreboard repeats the cards of the chapters; the reference is read beside code
SCREEN_ONLY = (
    "script, button, nav, .headerlink, .toctree-wrapper, .sd-summary-state-marker, .sd-stretched-link,"
    " details.hide > summary"
)

STYLE = """
@page { size: A4; margin: 24mm 25mm 23mm;
  @top-left { font: italic 9pt SERIF; color: #444; padding-top: 4mm; }
  @bottom-center { content: counter(page); font: 9.5pt SERIF; } }
@page title { @top-left { content: none; } @bottom-center { content: none; } }
* { box-sizing: border-box; }
html { color: #000; background: #fff; font: 10.5pt/1.42 SERIF; }
body { margin: 0; width: 160mm; hyphens: auto; overflow-wrap: break-word; }
a { color: inherit; text-decoration: none; }
p { margin: 0 0 .6em; orphans: 3; widows: 3; }
h1, h2, h3 { font-weight: 600; line-height: 1.2; hyphens: none; break-after: avoid; break-inside: avoid; }
h1 { font-size: 22pt; margin: 0 0 1em; } h2 { font-size: 14pt; margin: 1.5em 0 .6em; }
h3 { font-size: 11.5pt; margin: 1.3em 0 .5em; }
ul, ol { margin: 0 0 .6em; padding-left: 1.6em; } li > p { margin-bottom: .25em; }
code, pre { font-family: MONO; hyphens: none; } code { font-size: .84em; overflow-wrap: anywhere; }
pre { font-size: 8.3pt; line-height: 1.32; margin: 0; padding: 1.6mm 2mm; white-space: pre-wrap;
  overflow-wrap: anywhere; orphans: 3; widows: 3; }
.cell, div[class*=highlight-] { margin: .7em 0; } .cell div[class*=highlight-] { margin: 0; }
.cell_input pre, section > div[class*=highlight-] pre { background: #f6f6f4; border-left: .5mm solid #c8c8c0; }
.cell_output { margin-top: .4em; } .cell_output pre { border-left: .5mm solid #e4e4de; }
div.math { display: flex; flex-direction: row-reverse; align-items: center; margin: .7em 0; break-inside: avoid;
  break-before: avoid; }
div.math > mjx-container { flex: 1; margin: 0 !important; min-width: 0; } .eqno { padding-left: 1em; }
figure { margin: 1.1em 0; break-inside: avoid; text-align: center; }
img { max-width: 100%; max-height: 190mm; }
figcaption { font-size: 9.3pt; line-height: 1.35; text-align: left; margin-top: .3em; } figcaption p { margin: 0; }
.caption-number { font-weight: 600; }
.admonition { margin: .9em 0; padding: .1em 0 .1em 3.5mm; border-left: .7mm solid #555; }
.admonition > section > :last-child, .admonition > :last-child { margin-bottom: 0; }
.admonition-title { font-weight: 600; margin-bottom: .3em; break-after: avoid; break-inside: avoid; }
.admonition.note, .admonition.tip, .admonition.warning { border: .2mm solid #999; padding: 2.5mm 3.5mm;
  break-inside: avoid; }
.proof { border-color: #1d5c96; } .exercise { border-color: #8a5a00; } .solution { border-color: #bbb; }
.sd-dropdown { margin: .6em 0 .9em; } .sd-summary-title { float: left; margin: 0 .6em 0 0; font-style: italic; }
.sd-summary-title::after { content: "."; }
.sd-row { display: grid; grid-template-columns: 1fr 1fr; gap: 3mm; } .sd-card.docutils { border: .2mm solid #999;
  padding: 2mm 3mm; height: 100%; break-inside: avoid; } .sd-card-title { font-weight: 600; }
.sd-summary-content .sd-card-text:last-child, .sd-card-body p:last-child { margin-bottom: 0; }
table { border-collapse: collapse; font-size: 9.3pt; line-height: 1.3; margin: .8em 0; hyphens: none;
  font-variant-numeric: tabular-nums; }
thead { break-inside: avoid; } tr { break-inside: avoid; } caption { text-align: left; font-weight: 600; }
th, td { padding: .22em .9em .22em 0; text-align: left; vertical-align: top; border-bottom: .15mm solid #ccc; }
thead th { border-bottom: .25mm solid #000; } td p, th p { margin: 0; }
:is(td, th) code { overflow-wrap: normal; } td:first-child code { white-space: nowrap; }
.fl-totals :is(td, th + th) { text-align: right; } .fl-claims td:last-child { white-space: nowrap; }
.fl-claim { --verdict: #00734f; border: .15mm solid #ccc; border-left: .9mm solid var(--verdict); margin: 1.2mm 0;
  padding: 1mm 2.5mm; font-size: 9.2pt; line-height: 1.35; break-inside: avoid; }
.fl-claim.fl-open { --verdict: #8a5a00; } .fl-claim.fl-fails { --verdict: #b3261e; }
.fl-verdict { color: var(--verdict); font-weight: 700; } .fl-facts { font-size: .92em; color: #333; }
.fl-fact { display: inline-block; margin-right: 1.2em; } .fl-key { font-weight: 600; }
dl { margin: 0 0 .6em; } dd { margin: 0 0 .5em 6mm; } dt { break-after: avoid; } dt.sig { font: 8.6pt/1.35 MONO;
  padding-left: 6mm; text-indent: -6mm; overflow-wrap: anywhere; hyphens: none; }
.citation { margin-bottom: .5em; } .citation p { display: inline; } .rubric { font-weight: 600; }
.title { page: title; padding-top: 70mm; text-align: center; } .title h1 { font-size: 30pt; }
.title .note { margin: 90mm auto 0; width: 110mm; font-size: 9.3pt; color: #444; }
.contents { break-before: page; } .contents ul { list-style: none; padding: 0; }
.contents a { display: flex; gap: 1em; } .contents a > :last-child { margin-left: auto; min-width: 2em;
  text-align: right; }
.contents > ul > li { font-weight: 600; margin-top: .5em; break-inside: avoid-page; }
.contents ul ul { font-weight: 400; font-size: 9.6pt; padding-left: 5mm; } .contents ul li { break-after: auto; }
.sheet h1 { font-size: 18pt; margin-bottom: .3em; } .from { font-size: 9.3pt; color: #444; margin: 1.6em 0 -.4em;
  break-after: avoid; }
@media screen { article { content-visibility: hidden; } }  /* laid out once, after the maths, for print */
""".replace(
    "SERIF", '"Source Serif 4", Charter, "Liberation Serif", "Times New Roman", serif'
).replace("MONO", '"Liberation Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace')

FIT = """() => {
  const style = getComputedStyle, all = selector => [...document.querySelectorAll(selector)];
  const room = box => box.clientWidth - parseFloat(style(box).paddingLeft) - parseFloat(style(box).paddingRight);
  const shrink = (elements, width, space) => {  // first measure all, then change all: one layout instead of many
    const wide = elements.map(e => [e, 0.99 * space(e) / width(e)]).filter(([, scale]) => scale < 0.99);
    const sizes = wide.map(([e, scale]) => scale * parseFloat(style(e).fontSize));
    wide.forEach(([e], i) => { e.style.fontSize = sizes[i] + "px"; });
  };
  shrink(all("mjx-container[display]"), e => e.firstElementChild.offsetWidth, e => e.clientWidth);
  shrink(all("p > mjx-container:not([display])"), e => e.offsetWidth, e => room(e.parentElement));
  for (let round = 0; round < 3; round++) shrink(all("table"), e => e.offsetWidth, e => room(e.parentElement));
}"""
OVERFLOW = """() => {
  const right = document.body.getBoundingClientRect().right + 1, tall = 250 * 96 / 25.4;
  return [...document.querySelectorAll("body *")].filter(element => {
    const box = element.getBoundingClientRect();
    return box.right > right || (element.matches("figure, img, div.math, tr, .fl-claim") && box.height > tall);
  }).map(element => element.outerHTML.slice(0, 200));
}"""
NUMBER = """pages => { for (const link of document.querySelectorAll(".contents a"))
  link.lastChild.textContent = pages[link.hash.slice(1)]; }"""
NOTE = (
    "Printed from the site, with its numbers. Left out are the scoreboard, the reference of the package, and the"
    " code that the site keeps folded: it draws the figures and records the claims, and stands in the notebooks."
)


@dataclass(frozen=True)
class Sheet:
    """One row of the table of exercise sheets."""

    number: int
    title: str
    labels: tuple[str, ...]


def sheets(text: str) -> list[Sheet]:
    """The sheets in the table under ``## Exercise sheets`` of a page's source."""
    section = re.search(r"^## Exercise sheets\s*$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    rows = (
        [line.strip() for line in section[1].splitlines() if line.startswith("|")]
        if section
        else []
    )
    if len(rows) < 3:
        raise ValueError("text: there is no table under '## Exercise sheets'")
    found: dict[int, Sheet] = {}
    for row in rows[2:]:
        cells = re.fullmatch(
            r"\|\s*(\d+)\s*\|\s*([^|]*\S)\s*\|\s*(\{ref\}`[\w-]+`(?:,\s*\{ref\}`[\w-]+`)*)\s*\|",
            row,
        )
        if not cells:
            raise ValueError(
                f"row {row!r}: it must read | 1 | Title | {{ref}}`ex-one`, {{ref}}`ex-two` |"
            )
        number = int(cells[1])
        if number in found:
            raise ValueError(f"row {row!r}: there are two sheets with the number {number}")
        found[number] = Sheet(number, cells[2], tuple(re.findall(r"`([\w-]+)`", cells[3])))
    return list(found.values())


@dataclass(frozen=True)
class Exercise:
    """An exercise of the site, with its chapter's name and its solution."""

    chapter: str
    task: Tag
    solution: list[Tag]


@dataclass(frozen=True)
class Site:
    """The built site: the text of each page ready for paper, the exercises by label, the scripts
    for the maths.
    """

    folder: Path
    title: str
    author: str
    texts: list[Tag]
    exercises: dict[str, Exercise]
    scripts: str


def read(folder: Path, root: Path = ROOT) -> Site:
    """Read the site built in `folder` from the sources in `root`."""
    config = yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    pages = [toc["root"], *(page["file"] for part in toc["parts"] for page in part["chapters"])]
    pages = [page for page in pages if posixpath.basename(page) not in LEFT_OUT]
    texts, scripts = [], ""
    for page in pages:
        path = folder / f"{page}.html"
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there: run make book")
        soup = BeautifulSoup(UNCOLOURED.sub(r"\1", path.read_text(encoding="utf-8")), "html.parser")
        scripts = scripts or _mathjax(soup, page)
        texts.append(_for_paper(soup.article, page, pages))
    texts[0].h1.string = "About this book"
    exercises = {label: found for text in texts for label, found in _exercises(text)}
    return Site(folder, config["title"], config["author"], texts, exercises, scripts)


def _exercises(text: Tag) -> Iterator[tuple[str, Exercise]]:
    solutions = text.select(".solution")
    chapter = ("Chapter " if text.h1.select(".section-number") else "") + text.h1.get_text()
    for task in text.select(".exercise"):
        own = [
            solution
            for solution in solutions
            if solution.a and solution.a.get("href") == f"#{task['id']}"
        ]
        yield task["id"].split("--", 1)[1], Exercise(chapter, task, own)


def _mathjax(soup: BeautifulSoup, page: str) -> str:
    """The scripts that typeset the maths of `page`, without menus and the copy for screens.

    Empty if it has none.
    """
    options = soup.find("script", string=re.compile(r"window\.MathJax"))
    program = soup.find("script", src=re.compile("/mathjax/"))
    if not options or not program:
        return ""
    options.append("; (MathJax.options ??= {}).renderActions = {assistiveMml: [], addMenu: []}")
    program["src"] = _absolute(page, program["src"])
    return f"{options}{program}"


def _absolute(page: str, address: str) -> str:
    """The address relative to the site's root of what `page` calls `address`."""
    return posixpath.normpath(posixpath.join("/", posixpath.dirname(page), address))


def _anchor(page: str, fragment: str = "") -> str:
    """The id in the book of the page, or of an element on it."""
    return f"{posixpath.basename(page)}--{fragment}".removesuffix("--")


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


def _document(site: Site, title: str, body: str, style: str) -> str:
    return f"""<!DOCTYPE html>
<html lang="en" data-theme="light"><head><meta charset="utf-8"><title>{html.escape(title)}</title>
<link rel="stylesheet" href="/_static/pygments.css"><style>{STYLE}{style}</style>
{site.scripts}</head><body class="mathjax_ignore tex2jax_ignore">{body}</body></html>"""


def book(site: Site) -> str:
    """The book: title page, table of contents, all pages. The running head is the chapter's name."""
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
    body = f"""<section class="title"><h1>{html.escape(site.title)}</h1><p>{html.escape(site.author)}</p>
<p class="note">{NOTE}</p></section>
<nav class="contents"><h1>Contents</h1><ul>{entries}</ul></nav>"""
    return _document(site, site.title, body + "".join(map(str, site.texts)), style)


def _entry(id: str, heading: Tag) -> str:
    return f'<a href="#{id}"><span>{heading.decode_contents()}</span><span></span></a>'


def effort(task: Tag) -> tuple[int, int, bool]:
    """Points, minutes, and whether it may take longer, from the first italic line of an exercise."""
    line = task.em.get_text() if task.em else ""
    words = line.rstrip(".").split(" · ")
    points = [POINTS[word] for word in words if word in POINTS]
    time = re.fullmatch(r"(?:(\d+) minutes|an hour)( or more)?", words[-1])
    if len(points) != 1 or not time:
        raise ValueError(
            f"exercise {task['id']}: {line!r} must read like 'Derive · easy · core · 10 minutes.'"
        )
    return points[0], int(time[1] or 60), bool(time[2])


def sheet(site: Site, row: Sheet, *, solutions: bool) -> str:
    """One sheet: the exercises in the order of the table, each followed by its solution if
    `solutions`.
    """
    body, efforts = "", []
    for label in row.labels:
        if label not in site.exercises:
            near = difflib.get_close_matches(label, site.exercises, n=1)
            hint = f", did you mean {near[0]}?" if near else ""
            raise ValueError(
                f"sheet {row.number}: no exercise of the site has the label {label}{hint}"
            )
        exercise = site.exercises[label]
        efforts.append(effort(exercise.task))
        body += f'<p class="from">{exercise.chapter} · {efforts[-1][0]} points</p>{_unlinked(exercise.task)}'
        body += "".join(map(_unlinked, exercise.solution)) if solutions else ""
    points, minutes, longer = map(sum, zip(*efforts, strict=True))
    name = f"Sheet {row.number}: {row.title}" + (" · Solutions" if solutions else "")
    total = f"{len(efforts)} exercises · {minutes} minutes{' or more' if longer else ''} · {points} points"
    body = f'<article class="sheet"><h1>{html.escape(name)}</h1><p>{total}</p>{body}</article>'
    style = f"@page {{ @top-left {{ content: {_quoted(f'{site.title} · {name}')}; }} }}"
    return _document(site, f"{site.title} · {name}", body, style)


def _unlinked(tag: Tag) -> str:
    tag = copy.copy(tag)
    for link in tag.select("a"):
        link.unwrap()
    return str(tag)


def sheet_documents(site: Site, rows: list[Sheet]) -> dict[str, str]:
    """Both versions of each sheet, by the names of their files."""
    return {
        f"sheet-{row.number:02}{'-solutions' * solutions}.pdf": sheet(
            site, row, solutions=solutions
        )
        for row in rows
        for solutions in (False, True)
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
        self._site.documents["/"] = document
        self._page.emulate_media(media="screen", color_scheme="light")
        self._site.open("")
        self._page.evaluate("MathJax.startup.promise.then(() => null)")
        self._page.emulate_media(media="print")
        self._page.evaluate("document.body.offsetHeight && document.fonts.ready.then(() => null)")
        self._page.evaluate(FIT)
        return self._page.evaluate(OVERFLOW)

    def pdf(self) -> bytes:
        """What was typeset; the page numbers of a table of contents are read off a draft."""
        if self._page.query_selector(".contents"):
            draft = PdfReader(io.BytesIO(self._page.pdf(prefer_css_page_size=True, tagged=False)))
            places = draft.named_destinations.items()
            self._page.evaluate(
                NUMBER,
                {id.lstrip("/"): draft.get_destination_page_number(to) + 1 for id, to in places},
            )
        return self._page.pdf(
            prefer_css_page_size=True, print_background=True, outline=True, tagged=True
        )


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
            documents |= sheet_documents(site, sheets(INSTRUCTOR.read_text(encoding="utf-8")))
        write(documents, site, options.out)
    except (FileNotFoundError, ModuleNotFoundError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
