"""The built site, as files. What needs a browser is in test_pages.py and test_browser.py."""

import re
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from nbformat.v4 import new_notebook
from sphinx.util.matching import Matcher

from book import notebooks
from book.site import in_short
from featlearn.notebook import claims

SITE = notebooks.ROOT / "_build" / "html"
URL = notebooks.repository_url()
LOADS = dict.fromkeys(
    ("script", "img", "iframe", "source", "video", "audio", "embed"), ("src", "srcset", "poster")
)
LOADS["object"] = ("data",)
NAMES = (
    "canonical",
    "index",
    "search",
    "next",
    "prev",
    "author",
    "copyright",
    "license",
    "top",
)  # links that load nothing


class Page(HTMLParser):
    """Links, anchors and loaded files of one page."""

    def __init__(self, path):
        super().__init__()
        self.links, self.ids, self.loads = [], set(), []
        self.text = path.read_text(encoding="utf-8")
        self.feed(self.text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.ids |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        if tag == "a" and attrs.get("href"):
            self.links.append(attrs["href"])
        self.loads += [attrs[key] for key in LOADS.get(tag, ()) if attrs.get(key)]
        if tag == "link" and attrs.get("rel") not in NAMES:
            self.loads.append(attrs["href"])


@cache
def page(path):
    return Page(path)


@pytest.fixture(scope="module", autouse=True)
def built():
    if not (SITE / "index.html").is_file():
        pytest.fail("the site is not built: run make book")


def pages():
    return sorted(p for p in SITE.rglob("*.html") if "_static" not in p.parts) or [
        Path("not built")
    ]


@pytest.fixture(params=pages(), ids=lambda p: p.name)
def path(request):
    return request.param


def test_nothing_is_loaded_from_outside(path):
    outside = [url for url in page(path).loads if urlsplit(url).scheme or url.startswith("//")]
    assert outside == []


def test_no_style_sheet_reaches_outside():
    for sheet in (SITE / "_static").rglob("*.css"):
        assert not re.search(
            r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text(encoding="utf-8")
        ), sheet.name


def test_loaded_files_exist(path):
    base = SITE if path.name == "404.html" else path.parent
    for url in page(path).loads:
        local = urlsplit(url).path
        if path.name == "404.html":
            local = local.removeprefix(f"/{URL.rsplit('/', 1)[1]}/")
        assert (base / unquote(local)).is_file(), url


def test_no_directive_is_left_raw(path):
    text = re.sub(r"<(script|style|pre|code)\b.*?</\1>", "", page(path).text, flags=re.DOTALL)
    assert not re.search(r"\{(prf|eq|ref|numref|cite|glue|doc)[:}]|^:::", text, re.MULTILINE)


@pytest.mark.parametrize("notebook", notebooks.paths(), ids=lambda p: p.stem)
def test_colab_button_and_claim_cards(notebook):
    relative = notebook.relative_to(notebooks.ROOT)
    built = page(SITE / relative.with_suffix(".html"))
    colab = f"https://colab.research.google.com/github/{URL.removeprefix('https://github.com/')}/blob/colab/{relative}"
    assert colab in built.links
    for claim in claims.read(notebooks.load(notebook)):
        assert "claim-" + claim.id.replace(".", "-") in built.ids


def test_front_page_not_found_page_and_licences():
    assert "chapters/index.html" in (SITE / "index.html").read_text(encoding="utf-8")
    assert "This page is not here" in (SITE / "404.html").read_text(encoding="utf-8")
    footer = page(SITE / "chapters" / "index.html").text
    assert "MIT licence" in footer and "CC BY 4.0" in footer


def test_what_tests_leave_behind_is_no_page():
    """Caches hold Markdown files of their own; the next build must not take them for pages."""
    config = yaml.safe_load((notebooks.ROOT / "_config.yml").read_text(encoding="utf-8"))
    excluded = Matcher(config["exclude_patterns"])
    for path in (
        ".pytest_cache/README.md",
        ".hypothesis/a/b.md",
        ".venv/lib/x/README.md",
        "featlearn.egg-info/a.txt",
    ):
        assert excluded(path), path


def test_the_book_in_short_has_the_last_lines_of_every_page():
    text = page(SITE / "chapters/appendix/summary.html").text
    lectures = [path for pages in notebooks.lectures().values() for path in pages]
    for path in lectures:
        title, said = in_short(notebooks.load(path))
        assert f'href="../{notebooks.name(path)}.html"' in text and title in text
        assert 3 <= len(said) <= 6
    items = text[text.index("<article") : text.index("</article>")].count("<li>")
    assert items == sum(len(in_short(notebooks.load(path))[1]) for path in lectures)


def test_a_page_without_last_lines_is_named():
    with pytest.raises(ValueError, match="In short"):
        in_short(new_notebook())
