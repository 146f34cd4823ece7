"""Sphinx extension of the live figures: it puts their scripts and data on the pages.

A live figure is a figure of a notebook whose label is ``fig-live-NAME``. Its image is the still
that print and Colab show; on the site ``chapters/_static/live/NAME.js`` takes its place or stands
below it.
``experiments/live_figures.py`` computes the data.
"""

from __future__ import annotations

import json
import re
from typing import Any

from sphinx.application import Sphinx

from featlearn import data

COPIES = ("chapters/index", "chapters/05_beyond_linearization/index")  # of figures of other pages
SHARED = ("numbers.js", "figure.js")


def scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Put the scripts and the data of the live figures on `page` on it, and on no other page."""
    copied = "picture-" if page in COPIES else ""
    found = re.findall(rf'<figure[^>]* id="{copied}fig-live-(\w+)"', context.get("body", ""))
    names = dict.fromkeys(found)
    if not names:
        return
    app.add_css_file("live/live.css")
    for file in (*SHARED, *(f"{name}.js" for name in names)):
        app.add_js_file(f"live/{file}", loading_method="defer")
    figures = data.load("live")
    for name in names:
        text = json.dumps(figures.get(name, {}), separators=(",", ":")).replace("</", "<\\/")
        context["body"] += f'\n<script type="application/json" id="live-{name}">{text}</script>'


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("html-page-context", scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
