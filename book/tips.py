"""Sphinx extension: what a link leads to, shown while the pointer or the keyboard is on it.

For each page it writes ``_tips/PAGE.js`` with the terms, theorems, equations, figures and entries
of the bibliography that are on it; ``tips.js`` loads it when a reader first points at a link to
that page. A script and not JSON, so that it works from the disk, too.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bs4 import BeautifulSoup, Comment
from docutils import nodes
from sphinx.application import Sphinx

from book import maths

FOLDER = "_tips"
STARTS = re.compile(  # of a theorem, a reference, an equation, a term or a figure
    r'<(?P<tag>div|dt|figure)(?= )(?=[^>]* id="(?P<id>[^"]+)")'
    r'(?=[^>]*class="(?:proof |citation")|[^>]* id="(?:equation|term)-|(?<=<figure))'
)


def element(text: str, start: int, tag: str) -> str:
    """The element that begins at `start` in `text`, to its closing tag."""
    depth = 0
    for found in re.compile(rf"<(/?){tag}\b").finditer(text, start):
        depth += -1 if found[1] else 1
        if depth == 0:
            return text[start : text.index(">", found.end()) + 1]
    raise ValueError(f"<{tag}> is not closed: {text[start : start + 80]!r}")


def targets(body: str) -> Iterator[tuple[str, str]]:
    """The id and the HTML of everything on a page that a tip can show; of a term its definition."""
    for found in STARTS.finditer(body):
        start, tag = found.start(), found["tag"]
        if tag == "dt":
            start, tag = body.index("<dd>", start), "dd"
        yield found["id"], element(body, start, tag)


def bare(text: str, page: str) -> str:
    """The HTML without links, ids and comments; files are named from the root of the site."""
    soup = BeautifulSoup(text, "html.parser")
    for tag in soup.select("a.headerlink, script"):
        tag.decompose()
    for tag in soup.find_all("a"):
        tag.unwrap()
    for tag in soup.find_all(id=True):
        del tag["id"]
    for image in soup.find_all("img"):
        image["src"] = posixpath.normpath(posixpath.join(posixpath.dirname(page), image["src"]))
    for comment in soup.find_all(string=lambda string: isinstance(string, Comment)):
        comment.extract()
    return str(soup)


def _write(
    app: Sphinx, pagename: str, _: str, context: dict[str, Any], doctree: nodes.document | None
) -> None:
    if doctree is None:
        return
    path = Path(app.outdir, FOLDER, f"{pagename}.js")
    tips = {
        id: re.sub("<!--.*?-->", "", maths.typeset(bare(text, pagename)), flags=re.DOTALL)
        for id, text in targets(context["body"])
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    text = f"tips({json.dumps(pagename)}, {json.dumps(tips, ensure_ascii=False, indent=0)});\n"
    path.write_text(text, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_js_file("tips.js", loading_method="defer")
    # after all that changes the body but for its formulas, which are long when they are set
    app.connect("html-page-context", _write, priority=785)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
