"""Sphinx extension: KaTeX sets the formulas when the book is built.

The pages carry formulas that stand when they are first painted, without a script. The files are
those of KaTeX 0.19.1; V8 runs them (mini-racer).
"""

from __future__ import annotations

import html
import re
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

from py_mini_racer import JSEvalException, MiniRacer
from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math
from sphinx.util import logging

KATEX = Path(__file__).parent / "katex" / "katex.min.js"
FORMULA = re.compile(
    r'(<(?:span|div) class="(?:[\w-]+ )*math[ "][^>]*>(?:\s*<span class="eqno">.*?</a></span>)?)'
    r"(\s*\\(?:\(|\[|begin)[^<]*)(?=</)",
    re.DOTALL,
)
SET = re.compile(r"<!--tex (.*?)-->.*?<!--/tex-->", re.DOTALL)
log = logging.getLogger(__name__)


def _with_katex() -> MiniRacer:
    engine = MiniRacer()
    engine.eval(KATEX.read_text(encoding="utf-8"))
    engine.eval(
        "var rendered = (tex, displayMode) =>"
        " katex.renderToString(tex, {displayMode, strict: false})"
    )
    return engine


@cache
def _engine() -> MiniRacer:
    """Made in a thread of its own: it takes the event loop that it finds, which may end before."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(_with_katex).result()


@cache
def rendered(source: str) -> str:
    r"""What KaTeX makes of ``\(...\)``, ``\[...\]`` or ``\begin...``."""
    tex = re.sub(r"^\\[(\[]|\\[)\]]$", "", source)
    try:
        return _engine().call("rendered", tex, not source.startswith(r"\("))
    except JSEvalException as error:
        said = re.search(r"ParseError: .*", str(error))
        why = said[0] if said else str(error)
        log.warning("formula %s: %s", source, why)
        return f'<span class="katex-error" title="{html.escape(why)}">{html.escape(source)}</span>'


def typeset(page: str) -> str:
    """The page with its formulas set; the source of each stays in a comment before it."""

    def formula(match: re.Match[str]) -> str:
        kept = match[2].replace("-", "&#45;")  # a comment ends at two hyphens
        shown = rendered(html.unescape(match[2].strip()))
        return f"{match[1]}<!--tex {kept}-->{shown}<!--/tex-->"

    return FORMULA.sub(formula, page)


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
    return {"version": "2", "parallel_read_safe": True, "parallel_write_safe": True}
