"""Sphinx extension: a search that finds words where they are explained.

Pagefind indexes the text of the pages, section by section and theorem by theorem, without code and
with formulas in plain characters. A term of the glossary, or one of its synonyms, brings its
definition first. Pages that are opened from the disk keep Sphinx's own search.
"""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from docutils import nodes
from pagefind.index import IndexConfig, PagefindIndex
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from book.site import plain

FOLDER = "pagefind"
GLOSSARY = "chapters/appendix/glossary"
SKIPPED = tuple(
    f"chapters/appendix/{name}"
    for name in ("api", "bibliography", "claims", "coverage", "theorems")
)
MUTE = (nodes.literal_block, nodes.math_block, nodes.raw, nodes.comment, nodes.image, nodes.table)


def _text(node: nodes.Node) -> str:
    """The text of `node`, without marks."""
    return html.escape(plain(node))


def _heading(level: int, id: str, text: str) -> str:
    return f'<h{level} id="{html.escape(id)}">{text}</h{level}>'


def simple(node: nodes.Node, numbers: dict[str, str], level: int = 1) -> Iterator[str]:
    """The headings, named blocks and paragraphs below `node`, as HTML without marks.

    `numbers`: of the sections and blocks, by their anchors; the empty one is the page.
    """
    for child in node.children:
        if isinstance(child, MUTE):
            continue
        if isinstance(child, nodes.container) and "fl-question" in child["classes"]:
            continue
        if isinstance(child, nodes.section) and isinstance(child[0], nodes.title):
            title, id = child[0], child["ids"][0]
            number = numbers.get(id if level > 1 else "", "")
            yield _heading(level, id, f"{number} {_text(title)}".strip())
            yield from simple(child, numbers, min(level + 1, 4))
        elif isinstance(child, nodes.Element) and "realtype" in child:
            number = numbers.get(child["label"], "")
            yield _heading(4, child["label"], f"{number} {_text(child[0])}".strip())
            yield from simple(child, numbers, 4)
        elif isinstance(child, nodes.paragraph | nodes.caption | nodes.term):
            yield f"<p>{_text(child)}</p>"
        elif isinstance(child, nodes.Element) and not isinstance(child, nodes.title):
            yield from simple(child, numbers, level)


def _numbers(env: BuildEnvironment, docname: str) -> dict[str, str]:
    """What the page prints before the names of its sections and blocks: "2.3.4", "Theorem 2.8"."""

    def joined(number: tuple[int, ...]) -> str:
        return ".".join(map(str, number))

    sections = env.toc_secnumbers.get(docname, {})
    blocks = env.toc_fignumbers.get(docname, {})
    return {
        anchor.removeprefix("#"): joined(number)
        for anchor, number in sections.items()
        if number  # the lowest have none
    } | {
        label: f"{kind.title()} {joined(number)}"
        for kind, numbers in blocks.items()
        for label, number in numbers.items()
    }


def _kept(app: Sphinx, docname: str) -> Path:
    """Where the text of a page is kept until it changes."""
    return Path(app.doctreedir, "search", f"{docname}.html")


def keep(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Keep what Pagefind reads of a page, with its references as they are printed."""
    if app.builder.name == "html":
        body = "".join(simple(doctree, _numbers(app.env, docname)))
        text = f'<!DOCTYPE html><html lang="en"><body data-pagefind-body>{body}</body></html>'
        _kept(app, docname).parent.mkdir(parents=True, exist_ok=True)
        _kept(app, docname).write_text(text, encoding="utf-8")


def terms(app: Sphinx) -> list[dict[str, Any]]:
    """The entries of the glossary: all names of a term, its anchor and its definition."""
    found = []
    page = app.env.get_and_resolve_doctree(GLOSSARY, app.builder)
    for item in page.findall(nodes.definition_list_item):
        names = [term for term in item.children if isinstance(term, nodes.term)]
        definition = item.next_node(nodes.definition)
        found.append({
            "names": [plain(term) for term in names],
            "url": f"{GLOSSARY}.html#{names[0]['ids'][0]}",
            "says": plain(definition),
        })  # fmt: skip
    return found


async def _write(pages: dict[str, str], folder: Path) -> None:
    async with PagefindIndex(config=IndexConfig(output_path=str(folder))) as index:
        for url, content in pages.items():
            await index.add_html_file(url=url, content=content)


def write(app: Sphinx, exception: Exception | None) -> None:
    """Index the pages and write the index into the site."""
    if exception is not None or app.builder.name != "html":
        return
    pages = {
        f"{docname}.html": _kept(app, docname).read_text(encoding="utf-8")
        for docname in sorted(app.env.found_docs)
        if docname.startswith("chapters/") and not docname.startswith(SKIPPED)
    }
    asyncio.run(_write(pages, Path(app.outdir, FOLDER)))


def ask(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the script and the glossary on the page of the search."""
    if page == "search" and app.builder.name == "html":
        entries = json.dumps(terms(app), separators=(",", ":")).replace("</", "<\\/")
        app.add_js_file(None, body=f"window.featlearnTerms = {entries};")
        app.add_js_file("search.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("doctree-resolved", keep, priority=900)
    app.connect("html-page-context", ask)
    app.connect("build-finished", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
