"""Sphinx extension of the book: the index of theorems, theorems as results of the search, the
scoreboard, claims and questions within a page, figures of other pages, what a link preview shows,
the book in short.

The address of the site follows from that of the repository, so ``_config.yml`` names the repository
alone.
"""

from __future__ import annotations

import html
import json
import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

from docutils import nodes
from docutils.statemachine import StringList
from nbformat import NotebookNode
from PIL import Image
from pybtex.plugin import register_plugin
from pybtex.style.formatting.plain import Style as PlainStyle
from pylatexenc.latex2text import LatexNodes2Text
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.domains import Domain, ObjType
from sphinx.domains.std import StandardDomain
from sphinx.environment import BuildEnvironment
from sphinx.util.docutils import SphinxDirective, SphinxRole
from sphinx.util.nodes import make_refnode

from book import notebooks, replication, scoreboard
from book.notebooks import CHAPTERS
from featlearn.notebook import claims

CARD = "_static/card.png"
KINDS = ("definition", "assumption", "proposition", "lemma", "theorem", "corollary")
PLAIN = LatexNodes2Text(math_mode="text")
SIMPLER = (  # what it would lose
    (r"\\\|", "‖"),
    (r"\\ne\b", "≠"),
    (r"\\[td]frac", r"\\frac"),
    (r"\\math(?:cal|bb)\s*", ""),
    (r"(\\(?:log|exp|sin|cos|min|max|sup))\s+(?=\w)", r"\1\\ "),
    (r"(?<=[\^_])\{([^{}]{2,})\}", r"{(\1)}"),
)
BRIEF = 100  # a description takes sentences until it has this many characters
REDIRECT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="refresh" content="0; url={page}">
<link rel="canonical" href="{address}">{tags}
</head><body><a href="{page}">{title}</a></body></html>
"""
MERGED = {"appendix/speed": "appendix/scale"}  # pages that became a part of another


def address(repository: str) -> str:
    """Where GitHub Pages serves the site of `repository`."""
    parts = urlsplit(repository).path.strip("/").split("/")
    if len(parts) != 2:
        raise ValueError(
            f"repository.url is {repository!r}: it must read https://github.com/OWNER/NAME"
        )
    return f"https://{parts[0]}.github.io/{parts[1]}/"


@cache
def without_tex(tex: str) -> str:
    """A short formula in plain characters.

    ``d^{p/2}`` becomes ``d^(p/2)``, ``\\Theta`` the Greek letter.
    """
    for written, meant in SIMPLER:
        tex = re.sub(written, meant, tex)
    return PLAIN.latex_to_text(tex)


def plain(node: nodes.Node) -> str:
    """The text of `node`, formulas in plain characters."""
    if isinstance(node, nodes.math):
        return without_tex(node.astext())
    if isinstance(node, nodes.raw):
        return ""
    return "".join(map(plain, node.children)) if node.children else node.astext()


@dataclass(frozen=True)
class Theorem:
    """A numbered block: its kind, its name as nodes, and its place."""

    label: str
    kind: str
    name: nodes.inline
    docname: str

    def number(self, env: BuildEnvironment) -> str:
        """The kind and the number, as the page shows them."""
        number = env.toc_fignumbers[self.docname][self.kind][self.label]
        return f"{self.kind.title()} {'.'.join(map(str, number))}"


def _name(title: nodes.title) -> nodes.inline:
    """The name without the brackets that the page puts around it."""
    name = nodes.inline("", "", *(child.deepcopy() for child in title.children))
    texts = list(name.findall(nodes.Text))
    texts[0].parent.replace(texts[0], nodes.Text(texts[0].lstrip().removeprefix("(")))
    last = list(name.findall(nodes.Text))[-1]
    last.parent.replace(last, nodes.Text(last.removesuffix(")")))
    return name


class TheoremDomain(Domain):
    """The numbered blocks of all pages; as objects of a domain they enter the search's index."""

    name = "theorem"
    label = "Theorems"
    object_types: ClassVar = {kind: ObjType(kind.title()) for kind in KINDS}
    initial_data: ClassVar = {"theorems": {}}
    data_version = 1

    @property
    def theorems(self) -> dict[str, Theorem]:
        return self.data["theorems"]

    def clear_doc(self, docname: str) -> None:
        for label in [
            label for label, theorem in self.theorems.items() if theorem.docname == docname
        ]:
            del self.theorems[label]

    def merge_domaindata(self, docnames: list[str], otherdata: dict[str, Any]) -> None:
        self.theorems.update(otherdata["theorems"])

    def process_doc(self, env: BuildEnvironment, docname: str, document: nodes.document) -> None:
        for node in document.findall(
            lambda node: isinstance(node, nodes.Element) and "realtype" in node
        ):
            label, kind = node["label"], node["realtype"]
            self.theorems[label] = Theorem(label, kind, _name(node[0]), docname)

    def get_objects(self) -> Iterator[tuple[str, str, str, str, str, int]]:
        for label, theorem in self.theorems.items():
            name = plain(theorem.name)
            yield name, name, theorem.kind, theorem.docname, label, 0

    def get_type_name(self, type: ObjType, primary: bool = False) -> str:
        return type.lname

    def resolve_any_xref(self, *_: Any) -> list[tuple[str, nodes.Element]]:
        return []


class _ReadOnce:
    """An environment whose pages are read from the disk once each; for those who only look."""

    def __init__(self, env: BuildEnvironment) -> None:
        self._env, self.get_doctree = env, cache(env.get_doctree)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)


class NumberedReferences(StandardDomain):
    """Sphinx reads the whole page that a reference by number leads to, for every reference.

    Here it reads each page once, which is a quarter of the time of a build.
    """

    def _resolve_numref_xref(self, env: BuildEnvironment, *arguments: Any) -> Any:
        if not hasattr(self, "_read_once"):
            self._read_once = _ReadOnce(env)
        return super()._resolve_numref_xref(self._read_once, *arguments)


class theorem_index(nodes.General, nodes.Element):
    """Stands for the index until all numbers are known."""


class TheoremIndex(SphinxDirective):
    """``{theorem-index} chapter`` or ``{theorem-index} name``.

    All numbered blocks of the book, in that order.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        if self.arguments[0] not in ("chapter", "name"):
            raise self.error(f"theorem-index: {self.arguments[0]!r} must be chapter or name")
        self.env.note_reread()
        return [theorem_index(by=self.arguments[0])]


class Lists:
    """The lists of all theorems, with links from the page `docname`."""

    def __init__(self, app: Sphinx, docname: str) -> None:
        self._app, self._env, self._docname = app, app.env, docname
        self._theorems = list(app.env.get_domain("theorem").theorems.values())

    def _link(self, page: str, anchor: str, *text: nodes.Node) -> nodes.reference:
        return make_refnode(
            self._app.builder, self._docname, page, anchor, [node.deepcopy() for node in text]
        )

    def _number(self, page: str) -> tuple[int, ...]:
        return self._env.toc_secnumbers.get(page, {}).get("", ())

    def _pages(self, above: str) -> Iterator[str]:
        """The pages below a page, in the order of the book."""
        for page in self._env.toctree_includes.get(above, []):
            yield page
            yield from self._pages(page)

    def by_chapter(self) -> list[nodes.Node]:
        """A list for each page, in the order of the book."""
        parts: list[nodes.Node] = []
        for page in self._pages(self._app.config.root_doc):
            found = [theorem for theorem in self._theorems if theorem.docname == page]
            if found:
                number = "".join(f"{part}. " for part in self._number(page))
                title = self._link(page, "", nodes.Text(number), *self._env.titles[page].children)
                parts += [
                    nodes.paragraph("", "", nodes.strong("", "", title)),
                    _listed(map(self._numbered, found)),
                ]
        return parts

    def _numbered(self, theorem: Theorem) -> list[nodes.Node]:
        number = nodes.Text(theorem.number(self._env))
        return [
            self._link(theorem.docname, theorem.label, number),
            nodes.Text(" "),
            theorem.name.deepcopy(),
        ]

    def by_name(self) -> list[nodes.Node]:
        """One list, in alphabetical order; articles do not count."""
        order = sorted(
            self._theorems,
            key=lambda theorem: re.sub(r"^(an?|the) ", "", plain(theorem.name).lower()),
        )
        return [_listed(map(self._named, order))]

    def _named(self, theorem: Theorem) -> list[nodes.Node]:
        page, number = theorem.docname, self._number(theorem.docname)
        place = nodes.Text(f"Chapter {number[0]}" if number else plain(self._env.titles[page]))
        middle = nodes.Text(f", {theorem.number(self._env)}, ")
        return [self._link(page, theorem.label, theorem.name), middle, self._link(page, "", place)]


def _listed(items: Iterable[list[nodes.Node]]) -> nodes.bullet_list:
    rows = [nodes.list_item("", nodes.paragraph("", "", *item)) for item in items]
    return nodes.bullet_list("", *rows, classes=["fl-theorems"])


def _fill_index(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    for index in list(doctree.findall(theorem_index)):
        lists = Lists(app, docname)
        index.replace_self(lists.by_name() if index["by"] == "name" else lists.by_chapter())


class figure_of(nodes.General, nodes.Element):
    """Stands for a figure of another page until that page is read."""


class FigureOf(SphinxDirective):
    """``{figure-of} PAGE LABEL``: a figure that the notebook PAGE draws, under another caption;
    without a caption, its picture alone.
    """

    required_arguments = 2
    has_content = True

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        page, label = self.arguments
        said, messages = self.parse_inline(" ".join(self.content))
        caption = [nodes.caption("", "", *said)] if said else []
        docname = posixpath.join(posixpath.dirname(self.env.docname), page)
        return [
            figure_of("", *caption, docname=docname, label=label),
            *messages,
        ]


def _fill_figures(app: Sphinx, doctree: nodes.document, _: str) -> None:
    for wanted in list(doctree.findall(figure_of)):
        figures = app.env.get_doctree(wanted["docname"]).findall(nodes.figure)
        found = next((one for one in figures if wanted["label"] in one["ids"]), None)
        if found is None:
            raise ValueError(f"{wanted['docname']} has no figure {wanted['label']}")
        image = next(iter(found.findall(nodes.image))).deepcopy()
        id = f"picture-{wanted['label']}"
        figure = nodes.figure("", image, *wanted.children, ids=[id])
        wanted.replace_self(figure if wanted.children else image)


class Scoreboard(SphinxDirective):
    """``{scoreboard}``: every claim that the chapters recorded, read when the page is built."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        folder = posixpath.dirname(self.env.docname)
        to_chapters = posixpath.relpath(CHAPTERS.name, folder) + "/"
        records, titles = scoreboard.collect(CHAPTERS), scoreboard.titles(CHAPTERS)
        board = scoreboard.as_html(records, titles, to_chapters)
        shown = f'<div class="output text_html">{board}</div>'
        # The classes of a cell's output: the tables look as those on the pages of notebooks.
        return [nodes.container("", nodes.raw("", shown, format="html"), classes=["cell_output"])]


@cache
def _claims(path: Path, changed: int) -> dict[str, claims.Claim]:
    """The claims recorded in a notebook as it was at the time `changed`, by id."""
    return {claim.id: claim for claim in claims.read(notebooks.load(path))}


def claim_of(page: str, id: str) -> claims.Claim:
    """A claim that the page, such as ``01_kernels/4_structure``, recorded."""
    path = CHAPTERS / f"{page}.ipynb"
    found = _claims(path, path.stat().st_mtime_ns) if path.is_file() else {}
    if id not in found:
        raise ValueError(f"{page} records no claim {id!r}: it has {', '.join(found)}")
    return found[id]


def brief(claim: claims.Claim) -> str:
    """Prediction and measurement in a few words, with signs of minus in place of hyphens."""
    return re.sub(r"(?<![\w.])-(?=\d)", "−", claim.brief())


@cache
def _replicated(page: str) -> dict[str, Any]:
    """What the current replication of a page says of each claim; nothing if there is none."""
    return (replication.current(page, CHAPTERS / f"{page}.ipynb") or {}).get("claims", {})


def margin_note(page: str, claim: claims.Claim) -> str:
    """What stands in the margin beside a claim: its kind, what it rejects, how often it held."""
    parts = [claim.kind.capitalize()]
    if claim.rival:
        parts.append(f"Rejected: {claim.rival}")
    if about := _replicated(page).get(claim.id):
        parts.append(f"Held under {about['held']} of {about['of']} fresh seeds")
    return ". ".join(parts) + "."


class ClaimRole(SphinxRole):
    """``{claim}`` with an id, or with ``page::id``: prediction and measurement within a sentence,
    linked to the table; on a wide screen what it rejects stands in the margin.
    """

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        here = posixpath.relpath(self.env.docname, CHAPTERS.name)
        *other, id = self.text.split("::", 1)
        page = other[0] if other else here
        there = f"{posixpath.relpath(page, posixpath.dirname(here))}.html" if other else ""
        try:
            claim = claim_of(page, id)
        except ValueError as error:
            message = self.inliner.reporter.error(str(error), line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        said, note = html.escape(brief(claim)), html.escape(margin_note(page, claim))
        shown = (
            f'<a class="fl-brief fl-{claim.verdict}" href="{there}#{claim.anchor}"'
            f' data-note="{note}">{said}</a>'
        )
        return [nodes.raw("", shown, format="html")], []


class ColabRole(SphinxRole):
    """``{colab}`` with a page: a button that opens its notebook on Colab."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        path = f"{CHAPTERS.name}/{self.text}"
        address = notebooks.on_colab(notebooks.repository_url(), path)
        button = nodes.reference("", "Open in Colab", refuri=address)
        button["classes"] += ["sd-btn", "sd-btn-outline-primary", "sd-text-wrap"]
        return [button], []


class Trust(SphinxDirective):
    """``{trust}``: in one line, how many claims hold and how often, from the records."""

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        said = scoreboard.trust(scoreboard.collect(CHAPTERS), CHAPTERS)
        made, messages = self.parse_inline(said)
        return [nodes.paragraph("", "", *made, classes=["fl-trust"]), *messages]


class InShort(SphinxDirective):
    """``{in-short} CHAPTER``: the lines under "In short" of all pages of a chapter, each list under
    a link to its page.
    """

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        self.env.note_reread()
        home = posixpath.dirname(self.env.docname)
        lines: list[str] = []
        for path in notebooks.lectures()[self.arguments[0]]:
            title, said = in_short(notebooks.load(path))
            page = posixpath.relpath(f"{CHAPTERS.name}/{notebooks.name(path)}.ipynb", home)
            lines += [f"**[{title}]({page})**", "", *said, ""]
        made = nodes.container(classes=["fl-in-short"])
        self.state.nested_parse(StringList(lines, self.env.docname), 0, made)
        return made.children


def in_short(notebook: NotebookNode) -> tuple[str, list[str]]:
    """The title of a page, and the items under its heading "In short"."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    title = re.search(r"^# (.+)$", text, re.MULTILINE)
    found = re.search(r"^## In short\n+((?:- .+\n?)+)", text, re.MULTILINE)
    if title is None or found is None:
        raise ValueError('a page needs a title and a list under the heading "## In short"')
    return title[1], found[1].splitlines()


class Question(SphinxDirective):
    """``{question} How many?``: options that answer when they are opened.

    The body is a list; an item reads ``[x] the right option: why`` or ``[ ] a wrong one: why not``.
    """

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        asked, messages = self.parse_inline(self.arguments[0])
        label = nodes.strong("", "Check yourself. ")
        made: list[nodes.Node] = [nodes.paragraph("", "", label, *asked), *messages]
        for is_right, option, why in options("\n".join(self.content)):
            sign, word = ("✓", "Right") if is_right else ("✗", "No")
            shown, _ = self.parse_inline(option)
            told, _ = self.parse_inline(f"{word}. {why}")
            made += [
                nodes.raw("", '<details class="fl-option"><summary>', format="html"),
                nodes.inline("", "", *shown),
                nodes.raw("", "</summary>", format="html"),
                nodes.paragraph("", "", nodes.Text(f"{sign} "), *told),
                nodes.raw("", "</details>", format="html"),
            ]
        return [nodes.container("", *made, classes=["fl-question"])]


def options(body: str) -> list[tuple[bool, str, str]]:
    """The options of a question: whether it is right, its text, why."""
    found = re.findall(r"^- \[([ x])\] (.+?): (.+)$", body, re.MULTILINE)
    if len(found) != len(body.strip().splitlines()) or [mark for mark, *_ in found].count("x") != 1:
        raise ValueError(
            "a question needs one line '- [x] option: why' and others '- [ ] option: why', got\n"
            + body
        )
    return [(mark == "x", option, why) for mark, option, why in found]


def description(doctree: nodes.document) -> str:
    """The first sentences of a page."""
    text = ""
    for paragraph in doctree.findall(nodes.paragraph):
        if isinstance(paragraph.parent, nodes.section):
            for sentence in re.split(r"(?<=[.?!])\s+", plain(paragraph).strip()):
                text = f"{text} {sentence}".strip()
                if len(text) >= BRIEF:
                    return text
    return text


def _describe(
    app: Sphinx, pagename: str, _: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    """Add what search engines and link previews show.

    The bare address of the site gets the same as the front page.
    """
    if doctree is None:
        return
    front = pagename == app.config.root_doc
    title = plain(app.env.titles[pagename])
    about = description(doctree) or title
    properties = {
        "og:title": title,
        "og:description": about,
        "og:type": "website" if front else "article",
        "og:url": context["pageurl"],
        "og:site_name": app.config.html_title,
        "og:image": app.config.html_baseurl + CARD,
        "og:image:width": "1200",
        "og:image:height": "630",
        "og:image:alt": app.config.html_title,
    }
    names = {"description": about, "twitter:card": "summary_large_image"}
    tags = "".join(
        f'\n    <meta {kind}="{name}" content="{html.escape(content)}" />'
        for kind, entries in (("property", properties), ("name", names))
        for name, content in entries.items()
    )
    context["metatags"] += tags
    if front:
        context["docstitle"] = ""  # the page's own title is the book's
        page = app.builder.get_target_uri(pagename)
        text = REDIRECT.format(
            title=html.escape(title), page=page, address=context["pageurl"], tags=tags
        )
        Path(app.outdir, "index.html").write_text(text, encoding="utf-8")


def _lighten(
    _: Sphinx, __: str, ___: str, context: dict[str, Any], ____: nodes.document | None
) -> None:
    """Leave Thebe out: the book does not run code on its pages, and the theme declares Thebe's
    constants twice.
    """
    for kind in ("css_files", "script_files"):
        context[kind] = [
            file
            for file in context[kind]
            if "thebe" not in f"{file.filename} {file.attributes}".lower()
        ]


def _keep_whole(
    _: Sphinx, __: str, ___: str, context: dict[str, Any], ____: nodes.document | None
) -> None:
    """Keep a formula and the punctuation after it on one line."""
    formula = r'<span class="math [^"]*">[^<]*</span>[.,;:!?)’”]+'
    context["body"] = re.sub(
        formula, r'<span class="fl-whole">\g<0></span>', context.get("body", "")
    )


def _thin_images(app: Sphinx, exception: Exception | None) -> None:
    """Save the figures with a palette of 256 colours.

    A third of the bytes, and no difference that the eye sees.
    """
    for path in Path(app.outdir, "_images").glob("*.png") if exception is None else ():
        with Image.open(path) as image:
            if image.mode != "P":
                colours = {"method": Image.Quantize.MAXCOVERAGE, "dither": Image.Dither.NONE}
                image.convert("RGB").quantize(256, **colours).save(path)


def _redirect(app: Sphinx, exception: Exception | None) -> None:
    """Old addresses lead on: a chapter that was one page leads to its folder, and an anchor on it
    to the page that has it now.
    """
    for folder in sorted(CHAPTERS.glob("0*/")) if exception is None else ():
        built = Path(app.outdir, CHAPTERS.name, folder.name)
        pages = sorted(built.glob("*.html"), key=lambda page: page.stem == "index")
        anchors = {
            id: f"{folder.name}/{page.name}"
            for page in pages
            for id in re.findall(r' id="([\w-]+)"', page.read_text(encoding="utf-8"))
        }
        script = (
            f"<script>const pages = {json.dumps(anchors)}, id = location.hash.slice(1);"
            "if (pages[id]) location.replace(pages[id] + location.hash);</script>"
        )
        page = f"{folder.name}/index.html"
        there = app.config.html_baseurl + f"{CHAPTERS.name}/{page}"
        text = REDIRECT.format(title=folder.name, page=page, address=there, tags=script)
        built.with_suffix(".html").write_text(text, encoding="utf-8")
    for old, new in MERGED.items() if exception is None else ():
        there = app.config.html_baseurl + f"{CHAPTERS.name}/{new}.html"
        page = f"{Path(new).name}.html"
        text = REDIRECT.format(title=Path(new).name, page=page, address=there, tags="")
        Path(app.outdir, CHAPTERS.name, f"{old}.html").write_text(text, encoding="utf-8")


def _configure(_: Sphinx, config: Config) -> None:
    config.html_baseurl = address(config.html_theme_options["repository_url"])
    config.html_theme_options["logo"] = {"text": config.html_title, "alt_text": "featlearn"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    # Known by name, the style of the references is not looked for among all packages, at each link.
    register_plugin("pybtex.style.formatting", "plain", PlainStyle, force=True)
    app.add_domain(TheoremDomain)
    app.add_domain(NumberedReferences, override=True)
    app.add_node(theorem_index)
    app.add_directive("theorem-index", TheoremIndex)
    app.add_node(figure_of)
    app.add_directive("figure-of", FigureOf)
    app.add_directive("scoreboard", Scoreboard)
    app.add_directive("question", Question)
    app.add_directive("trust", Trust)
    app.add_directive("in-short", InShort)
    app.add_role("claim", ClaimRole())
    app.add_role("colab", ColabRole())
    app.connect("config-inited", _configure)
    app.connect("doctree-resolved", _fill_index)
    app.connect("doctree-resolved", _fill_figures)
    app.connect("html-page-context", _describe)
    app.connect("html-page-context", _lighten, priority=900)
    app.connect("html-page-context", _keep_whole)
    app.connect("build-finished", _thin_images)
    app.connect("build-finished", _redirect)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
