"""``python -m book.card``.

Draw the picture that a link to the site shows, from the logo and the title.
"""

from __future__ import annotations

import html

import yaml

from book import browser
from book.notebooks import ROOT

STATIC = ROOT / "chapters" / "_static"
SIZE = {"width": 1200, "height": 630}
PAGE = """<!DOCTYPE html><meta charset="utf-8"><style>
body { margin: 0; height: 630px; box-sizing: border-box; padding: 0 90px; display: flex; align-items: center; gap: 70px;
  background: #fff; border-bottom: 18px solid #2a86c7; font-family: "Liberation Sans", Arial, Helvetica, sans-serif; }
svg { width: 330px; flex: none; }
h1 { font-size: 76px; line-height: 1.12; margin: 0 0 34px; color: #14181e; }
p { font-size: 34px; line-height: 1.35; margin: 0; color: #48566b; }
</style>LOGO<div><h1>TITLE</h1><p>Executable lecture notes<br>in which every theorem is a test</p></div>"""


def main() -> None:
    """Write ``card.png`` next to the logo."""
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]
    logo = (STATIC / "logo.svg").read_text(encoding="utf-8")
    with browser.launch() as chromium:
        page = chromium.new_page(viewport=SIZE)
        page.set_content(PAGE.replace("LOGO", logo).replace("TITLE", html.escape(title)))
        page.screenshot(path=STATIC / "card.png")


if __name__ == "__main__":
    main()
