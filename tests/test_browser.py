"""What a reader does on the site, in Chromium; and that the audits of its pages find what is planted."""

import re

import pytest
import yaml
from audits import BASE, DESKTOP, PHONE, SITE, dangling, visit
from bs4 import BeautifulSoup

from featlearn.book import browser, notebooks

CHAPTERS = [path.relative_to(notebooks.ROOT).with_suffix(".html").as_posix() for path in notebooks.paths()]
ONE = "chapters/01_kernels.html"
FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one), box = one.getBoundingClientRect();
  const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return {name: one.className || one.innerText, seen: one.checkVisibility({visibilityProperty: true}) && box.width > 0,
    ring: ring || style.boxShadow !== "none"};
}"""


@pytest.fixture(scope="module")
def chromium(needs_chromium):
    with browser.launch() as running:
        yield running


@pytest.fixture
def site(chromium):
    page = chromium.new_page(viewport=DESKTOP)
    yield browser.Folder(page, SITE, BASE)
    page.close()


@pytest.fixture
def quick(site):
    """The site without MathJax, for what does not need formulas."""
    site.page.route("**/mathjax/**", lambda route: route.abort())
    return site


def test_text_is_painted_before_mathjax_arrives(site):
    site.page.route("**/mathjax/**", lambda route: None)
    site.page.goto(f"{browser.HOST}{BASE}{ONE}", wait_until="commit")
    site.page.wait_for_function("performance.getEntriesByName('first-contentful-paint').length", timeout=10_000)
    assert "Kernels" in site.page.inner_text("h1")
    assert site.page.locator("mjx-container").count() == 0


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_search_finds_a_theorem_by_its_name(quick, chapter):
    soup = BeautifulSoup((SITE / chapter).read_text(encoding="utf-8"), "html.parser")
    titles = [title.get_text() for title in soup.select(".proof .admonition-title") if not title.select(".math")]
    name = max((re.search(r"\((.*)\)", title)[1] for title in titles if "(" in title), key=len)
    quick.open("chapters/index.html")
    quick.page.click(".search-button-field")
    quick.page.keyboard.type(name)
    quick.page.keyboard.press("Enter")
    quick.page.click(f"#search-results a[href*='{chapter}']")
    quick.page.wait_for_url(f"**/{chapter}*")
    assert name in quick.page.inner_text("article")


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_colab_button_opens_the_notebook(quick, chapter):
    quick.open(chapter)
    quick.page.click(".dropdown-launch-buttons button")
    button = quick.page.locator("a:visible", has_text="Colab").first
    repository = notebooks.repository_url().removeprefix("https://github.com/")
    notebook = chapter.replace(".html", ".ipynb")
    assert button.get_attribute("href") == f"https://colab.research.google.com/github/{repository}/blob/colab/{notebook}"


def test_previous_and_next_lead_along_the_contents(quick):
    toc = yaml.safe_load((notebooks.ROOT / "_toc.yml").read_text(encoding="utf-8"))
    pages = [toc["root"], *(page["file"] for part in toc["parts"] for page in part["chapters"])]
    quick.open(f"{pages[0]}.html")
    for page in pages[1:]:
        quick.page.click("a.right-next")
        quick.page.wait_for_url(f"**/{page}.html")
    for page in reversed(pages[:-1]):
        quick.page.click("a.left-prev")
        quick.page.wait_for_url(f"**/{page}.html")


@pytest.mark.parametrize(
    ("fold", "handle"), [("details.sd-dropdown", "summary"), ("div.solution.dropdown", "button.toggle-button")]
)
def test_proofs_and_solutions_open_with_the_mouse_and_the_keyboard(quick, fold, handle):
    quick.open(ONE)
    box = quick.page.locator(f"article {fold}").first
    content, switch = box.locator("> :last-child"), box.locator(handle).first
    assert not content.is_visible()
    switch.click()
    assert content.is_visible()
    switch.focus()
    for visible in (False, True):
        quick.page.keyboard.press("Enter")
        quick.page.wait_for_timeout(50)
        assert content.is_visible() == visible


def test_keyboard_reaches_everything_and_shows_where_it_is(quick):
    quick.open(ONE)
    stops = []
    for _ in range(60):
        quick.page.keyboard.press("Tab")
        stops.append(quick.page.evaluate(FOCUS))
    assert [stop for stop in stops if not (stop["seen"] and stop["ring"])] == []
    names = " | ".join(stop["name"] for stop in stops)
    assert names.startswith("Skip to main content")
    for name in ("logo", "search-button-field", "reference internal", "primary-toggle", "theme-switch-button"):
        assert name in names, name


def test_skip_link_leads_past_the_navigation(quick):
    quick.open(ONE)
    quick.page.keyboard.press("Tab")
    quick.page.keyboard.press("Enter")
    quick.page.keyboard.press("Tab")
    assert quick.page.evaluate("document.activeElement.closest('main') !== null")


def test_theme_and_sidebars_answer_to_the_keyboard(quick):
    quick.open(ONE)
    quick.page.focus(".theme-switch-button")
    themes = []
    for _ in range(3):
        quick.page.keyboard.press("Enter")
        themes.append(quick.page.evaluate("document.documentElement.dataset.mode"))
    assert sorted(themes) == ["auto", "dark", "light"]
    quick.page.set_viewport_size(PHONE)
    for which in ("primary", "secondary"):
        sidebar = quick.page.locator(f".bd-sidebar-{which}")
        assert not sidebar.is_visible()
        quick.page.focus(f".{which}-toggle")
        quick.page.keyboard.press("Enter")
        sidebar.wait_for(state="visible")
        quick.open(ONE)


PLANTED = "chapters/appendix/planted.html"
FAULTS = {  # what is planted, and what must be said of it and of nothing else
    "undefined macro": (r'<span class="math">\(\nosuch\)</span>', r"formula : Undefined control sequence \\nosuch"),
    "formula left": (r'<p class="mathjax_ignore">Hence \(x = 1\).</p>', r"TeX is left in the text: Hence \\\(x = 1\\\)"),
    "formula lost": ('<p><span class="math">x</span></p>', "is not rendered: x|2 formulas in the source, 1 on the page"),
    "missing anchor": ('<p><a href="#nowhere">There</a></p>', "an anchor that is not there: .*#nowhere"),
    "missing page": ('<p><a href="nowhere.html">There</a></p>', "a page that is not there: .*/nowhere.html"),
    "image without text": ('<img src="../../_static/favicon.svg">', "without alternative text: .*favicon|image-alt"),
    "outside script": ('<script src="https://example.org/a.js"></script>', "leaves the site: https://example.org/a.js"),
    "missing file": ('<img src="absent.png" alt="A plot">', "file is not there: .*/absent.png"),
    "console error": ('<script>console.error("trouble")</script>', "console: trouble"),
    "script error": ("<script>undefined.property</script>", "console: .*undefined"),
    "too wide": ('<div style="width: 900px">A wide box</div>', "pixels wide on a screen of 390: .*A wide box"),
    "low contrast": ('<p style="color: #999; background: #fff">Faint</p>', "color-contrast: .*Faint"),
    "unreachable": (
        '<div style="overflow-x: auto"><div style="width: 1900px">Far</div></div>',
        "scrolls, but not with the keyboard: .*Far|scrollable-region-focusable",
    ),
    "button without a name": ("<button></button>", "button-name: .*<button>"),
    "shut proof": (
        '<details onclick="event.preventDefault()"><summary>Proof</summary><p>Done.</p></details>',
        "does not open: Proof",
    ),
    "too heavy": ('<img src="../../_static/heavy.png" alt="Noise">', "bytes without MathJax: at most 2000000"),
}


@pytest.mark.parametrize("fault", ["none", *FAULTS])
def test_audits_name_what_is_planted_and_nothing_else(site, fault):
    planted, message = FAULTS.get(fault, ("", None))
    soup = BeautifulSoup((SITE / "chapters" / "appendix" / "notation.html").read_text(encoding="utf-8"), "html.parser")
    article = f'<article class="bd-article"><h1>Page</h1><p><span class="math">\\(x\\)</span></p>{planted}</article>'
    soup.article.replace_with(BeautifulSoup(article, "html.parser"))
    for contents in soup.select(".bd-sidebar-secondary, #jb-print-docs-body"):
        contents.decompose()
    site.documents[f"{BASE}{PLANTED}"] = str(soup)
    site.page.route("**/heavy.png", lambda route: route.fulfill(body=bytes(2_000_000), content_type="image/png"))
    seen = visit(site, PLANTED)
    faults = seen.faults + dangling(site, {PLANTED: seen})
    assert [one for one in faults if message is None or not re.search(message, one)] == []
    assert bool(faults) == (message is not None)
