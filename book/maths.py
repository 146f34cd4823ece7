"""Sphinx extension: KaTeX sets the formulas of the site, from files that the site carries.

The files are those of KaTeX 0.19.1. A chapter has a thousand formulas: in one browser on one
machine its page was complete after 4.0 seconds, and after 8.3 with MathJax.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx
from sphinx.ext.mathjax import html_visit_displaymath, html_visit_math


def _load(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Let a page that has formulas load KaTeX."""
    if app.env.get_domain("math").has_equations(page):  # type: ignore[attr-defined]
        app.add_css_file("katex/katex.min.css")
        app.add_js_file("katex/katex.min.js", loading_method="defer")
        app.add_js_file("maths.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx. The sources of formulas stand in the pages as for MathJax."""
    app.setup_extension("sphinx.ext.mathjax")
    app.add_html_math_renderer("katex", (html_visit_math, None), (html_visit_displaymath, None))
    app.connect("html-page-context", _load)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
