"""Sphinx extension: KaTeX sets the formulas when the book is built.

The pages carry formulas that stand when they are first painted, without a script. The files are
those of KaTeX 0.19.1; the Node.js that Playwright brings runs them.
"""

from __future__ import annotations

import html
import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from playwright._impl._driver import compute_driver_executable
from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math
from sphinx.util import logging

FORMULA = re.compile(
    r'(<(?:span|div) class="(?:[\w-]+ )*math[ "][^>]*>'
    r'(?:\s*<span class="eqno">(?:[^<]|<a .*?</a>)*</span>)?)'
    r"(\s*\\(?:\(|\[|begin)[^<]*)(?=</)",
    re.DOTALL,
)
SET = re.compile(r"<!--tex (.*?)-->.*?<!--/tex-->", re.DOTALL)
log = logging.getLogger(__name__)


@cache
def _katex() -> subprocess.Popen[str]:
    """KaTeX in a process of its own, which ends when this one does."""
    node, _ = compute_driver_executable()
    script = Path(__file__).parent / "katex" / "render.js"
    pipe = subprocess.PIPE
    return subprocess.Popen([node, script], stdin=pipe, stdout=pipe, encoding="utf-8", bufsize=1)


@cache
def rendered(source: str) -> str:
    r"""What KaTeX makes of ``\(...\)``, ``\[...\]`` or ``\begin...``."""
    tex = re.sub(r"^\\[(\[]|\\[)\]]$", "", source)
    katex = _katex()
    katex.stdin.write(json.dumps([tex, not source.startswith(r"\(")]) + "\n")
    said = json.loads(katex.stdout.readline())
    if "html" in said:
        return said["html"]
    log.warning("formula %s: %s", source, said["error"])
    why = html.escape(said["error"])
    return f'<span class="katex-error" title="{why}">{html.escape(source)}</span>'


def typeset(page: str) -> str:
    """The page with its formulas set; the source of each stays in a comment before it."""

    def formula(match: re.Match[str]) -> str:
        kept = match[2].replace("-", "&#45;")  # a comment ends at two hyphens
        shown = rendered(html.unescape(match[2].strip()))
        return f"{match[1]}<!--tex {kept}-->{shown}<!--/tex-->"

    pieces = (piece.partition("<!--tex ") for piece in page.split("<!--/tex-->"))
    return "<!--/tex-->".join(  # what is set already is long, and is not looked at again
        FORMULA.sub(formula, before) + mark + set for before, mark, set in pieces
    )


def sources(page: str) -> str:
    """A page of the site with the sources of its formulas, which are a fifth as long."""
    return SET.sub(lambda match: match[1].replace("&#45;", "-"), page)


def _set(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    if "body" in context and app.builder.name == "html":
        context["body"] = typeset(context["body"])


def _set_titles(app: Sphinx, exception: Exception | None) -> None:
    """Set the formulas in the lists of sections, which a page gets when all else is done."""
    if exception is not None or app.builder.name != "html":
        return
    for path in Path(app.outdir).rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        if (done := typeset(page)) != page:
            path.write_text(done, encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx. Its writer puts the sources of formulas into the pages."""
    app.setup_extension("sphinx.ext.mathjax")
    app.add_html_math_renderer("katex", (html_visit_math, None), (html_visit_displaymath, None))
    app.add_css_file("katex/katex.min.css")
    app.connect("html-page-context", _set, priority=790)  # after all that looks for sources
    app.connect("build-finished", _set_titles)
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": False}
