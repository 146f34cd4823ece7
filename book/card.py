"""``python -m book.card``.

Draw the picture that a link to the site shows, from the logo and the title.
"""

from __future__ import annotations

import html
from pathlib import Path

import yaml

from book import browser
from book.notebooks import ROOT

STATIC = ROOT / "chapters" / "_static"
SIZE = {"width": 1200, "height": 630}
PAGE = Path(__file__).with_name("card.html")


def main() -> None:
    """Write ``card.png`` next to the logo."""
    title = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["title"]
    logo = (STATIC / "logo.svg").read_text(encoding="utf-8")
    text = PAGE.read_text(encoding="utf-8")
    with browser.launch() as chromium:
        page = chromium.new_page(viewport=SIZE)
        page.set_content(text.replace("LOGO", logo).replace("TITLE", html.escape(title)))
        page.screenshot(path=STATIC / "card.png")


if __name__ == "__main__":
    main()
