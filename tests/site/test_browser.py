"""What a reader does on the site, in Chromium.

And that the audits of its pages find what is planted.
"""

import re

import audits
import pytest
from audits import BASE, PHONE, SITE
from bs4 import BeautifulSoup
from conftest import tab

from book import browser, maths, notebooks

ONE = "chapters/01_kernels/1_regression.html"
LIGHT = "chapters/appendix/coverage.html"  # has what every page has, and opens at once
FOCUS = """() => {
  const one = document.activeElement, style = getComputedStyle(one);
  const outline = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
  return {
    name: one.getAttribute("class") || one.textContent,
    seen: one.checkVisibility({visibilityProperty: true}) && one.getBoundingClientRect().width > 0,
    ring: outline || style.boxShadow !== "none",
  };
}"""


@pytest.fixture
def site(chromium):
    page = tab(chromium)
    yield browser.Folder(page, SITE, BASE)
    page.close()


def test_formulas_stand_without_scripts(chromium):
    page = tab(chromium, java_script_enabled=False)
    site = browser.Folder(page, SITE, BASE)
    site.open(ONE)
    formulas = page.locator("article .math")
    assert page.locator("article .math .katex").count() == formulas.count() > 100
    assert not any("katex" in file.name and file.suffix == ".js" for file in site.answered)
    page.close()


LAID_OUT = """() => [...document.querySelectorAll("article pre")].map(
  pre => [pre.checkVisibility({contentVisibilityAuto: true}), pre.scrollWidth > 0])"""


def test_loading_lays_out_no_section_that_is_far_away(site):
    site.open(ONE)
    laid_out, sized = zip(*site.page.evaluate(LAID_OUT), strict=True)
    assert laid_out == sized and not any(laid_out[len(laid_out) // 2 :]) and len(laid_out) > 20
    assert not site.page.evaluate("document.documentElement.classList.contains('fl-laid-out')")
    far = site.page.locator("article pre").nth(12)
    far.evaluate("pre => pre.closest('details')?.setAttribute('open', '')")
    far.evaluate("pre => { pre.textContent = 'x'.repeat(999); }")
    far.scroll_into_view_if_needed()
    site.page.wait_for_function("pre => pre.tabIndex === 0", arg=far.element_handle())


def test_a_formula_keeps_its_source_and_an_error_is_shown():
    inline = '<span class="math notranslate">\\(a-b &lt; c\\)</span>'
    numbered = (
        '<div class="math" id="e"><span class="eqno">(1)<a href="#e">#</a></span>\\[x\\]</div>'
    )
    shown = maths.typeset(inline + numbered)
    assert shown.count('class="katex"') == 2 and maths.sources(shown) == inline + numbered
    assert "katex-display" in shown and shown.index("eqno") < shown.index("katex-display")
    wrong = maths.typeset('<span class="math">\\(\\nosuch\\)</span>')
    assert "katex-error" in wrong and "Undefined control sequence: \\nosuch" in wrong


def test_search_finds_a_theorem_by_its_name(site):
    chapter = "chapters/02_random_features/3_ensemble.html"
    soup = BeautifulSoup((SITE / chapter).read_text(encoding="utf-8"), "html.parser")
    titles = [
        title.get_text()
        for title in soup.select(".proof .admonition-title")
        if not title.select(".math")
    ]
    name = max((re.search(r"\((.*)\)", title)[1] for title in titles if "(" in title), key=len)
    site.open("chapters/index.html")
    site.page.click(".search-button-field")
    site.page.keyboard.type(name)
    site.page.keyboard.press("Enter")
    places = site.page.locator(f"#fl-results a[href*='{chapter}#']")
    places.filter(has_text=name).first.click()
    site.page.wait_for_url(f"**/{chapter}#*")
    theorem = site.page.locator(".proof:target")
    assert name in theorem.inner_text() and theorem.is_visible()


def test_colab_button_is_in_its_menu(site):
    site.open(ONE)
    button = site.page.locator("a[href*='colab.research.google.com']", has_text="Colab").first
    assert not button.is_visible()
    site.page.click(".dropdown-launch-buttons button")
    assert button.is_visible()
    repository = notebooks.repository_url().removeprefix("https://github.com/")
    address = f"https://colab.research.google.com/github/{repository}/blob/colab/chapters/01_kernels/1_regression.ipynb"
    assert button.get_attribute("href") == address


@pytest.mark.parametrize(
    ("fold", "handle"),
    [("details.sd-dropdown", "summary"), ("div.solution.dropdown", "button.toggle-button")],
)
def test_proofs_and_solutions_open_with_the_mouse_and_the_keyboard(site, fold, handle):
    site.open(ONE)
    box = site.page.locator(f"article {fold}").first
    content, switch = box.locator("> :last-child"), box.locator(handle).first
    assert not content.is_visible()
    switch.click()
    content.wait_for(state="visible", timeout=5_000)
    switch.focus()
    for state in ("hidden", "visible"):
        site.page.keyboard.press("Enter")
        content.wait_for(state=state, timeout=5_000)


def test_keyboard_reaches_everything_and_shows_where_it_is(site):
    site.open(LIGHT)
    stops = []
    for _ in range(60):
        site.page.keyboard.press("Tab")
        stops.append(site.page.evaluate(FOCUS))
    assert [stop for stop in stops if not (stop["seen"] and stop["ring"])] == []
    names = " | ".join(stop["name"] for stop in stops)
    assert names.startswith("Skip to main content")
    for name in (
        "logo",
        "search-button-field",
        "reference internal",
        "primary-toggle",
        "theme-switch-button",
    ):
        assert name in names, name


STRUCTURE = "chapters/01_kernels/4_structure.html"
GLOSSARY_TERM = "article a[href$='glossary.html#term-single-index-model']"


@pytest.fixture(scope="module")
def offline(chromium):
    """A page of the site, opened from its file."""
    page = tab(chromium)
    page.goto((SITE / STRUCTURE).as_uri(), wait_until="domcontentloaded")
    return page


@pytest.mark.parametrize("way", ["hover", "focus"])
@pytest.mark.parametrize(
    ("link", "said"),
    [
        (GLOSSARY_TERM, "one unknown direction"),
        ("article a[href='#thm-latent']:not(.headerlink)", "Fixed features cannot find"),
        ("article a.internal[href*='bibliography.html#']", "["),
    ],
)
def test_a_link_shows_what_it_leads_to_without_a_server(offline, way, link, said):
    one = offline.locator(f"{link}:visible").first
    one.scroll_into_view_if_needed()
    getattr(one, way)()
    tip = offline.locator("#fl-tip")
    tip.get_by_text(said).first.wait_for(timeout=10_000)
    assert one.get_attribute("aria-describedby") == "fl-tip"
    assert tip.locator("a, [id]").count() == 0
    offline.keyboard.press("Escape")
    assert not tip.is_visible() and one.get_attribute("aria-describedby") is None
    one.blur()
    offline.mouse.move(0, 0)


def test_a_tip_shows_formulas_and_figures_of_another_page(site):
    there = "1_regression.html#"
    links = "".join(
        f"<p><a class='reference internal' href='{there}{id}'>{id}</a></p>"
        for id in ("equation-eq-dimension", "fig-live-lift")
    )
    text = (SITE / STRUCTURE).read_text(encoding="utf-8")
    site.documents[f"{BASE}{STRUCTURE}"] = text.replace("</h1>\n<p>", f"</h1>\n{links}<p>", 1)
    audits.settled(site, STRUCTURE)
    tip = site.page.locator("#fl-tip")
    for id, part in (("equation-eq-dimension", ".katex"), ("fig-live-lift", "figcaption")):
        site.page.focus(f"a[href='{there}{id}']")
        tip.locator(part).first.wait_for(timeout=10_000)
    picture = tip.locator("img")
    assert picture.evaluate("image => image.decode().then(() => image.naturalWidth)") > 300
    assert site.refused == [] and site.errors == []


def test_skip_link_leads_past_the_navigation(site):
    site.open(LIGHT)
    site.page.keyboard.press("Tab")
    site.page.keyboard.press("Enter")
    site.page.keyboard.press("Tab")
    assert site.page.evaluate("document.activeElement.closest('main') !== null")


def test_theme_answers_to_the_keyboard(site):
    site.open(LIGHT)
    site.page.focus(".theme-switch-button")
    themes = []
    for _ in range(3):
        site.page.keyboard.press("Enter")
        themes.append(site.page.evaluate("document.documentElement.dataset.mode"))
    assert sorted(themes) == ["auto", "dark", "light"]


@pytest.mark.parametrize("which", ["primary", "secondary"])
def test_sidebars_open_with_the_keyboard_on_a_phone(site, which):
    site.page.set_viewport_size(PHONE)
    site.open(LIGHT)
    sidebar = site.page.locator(f".bd-sidebar-{which}")
    assert not sidebar.is_visible()
    site.page.focus(f".{which}-toggle")
    site.page.keyboard.press("Enter")
    sidebar.wait_for(state="visible")


PLANTED = "chapters/appendix/planted.html"
# What is planted, what must be said of it, and what may be said besides.
FIRST = {
    "undefined macro": (
        r'<span class="math">\(\nosuch\)</span>',
        r"formula: .*Undefined .*\\nosuch",
        "color-contrast: .*katex-error",
    ),
    "formula left": (
        r"<p>Hence \(x = 1\).</p>",
        r"TeX is left in the text: Hence \\\(x = 1\\\)",
    ),
    "missing anchor": (
        '<p><a href="#nowhere">There</a></p>',
        "an anchor that is not there: .*#nowhere",
    ),
    "image without text": (
        '<img src="../../_static/favicon.svg">',
        "without alternative text: .*favicon",
        "image-alt",
    ),
    "outside script": (
        '<script src="https://example.org/a.js"></script>',
        "leaves the site: https://example.org/a.js",
    ),
    "missing file": ('<img src="absent.png" alt="A plot">', "file is not there: .*/absent.png"),
    "too wide": (
        '<div style="width: 900px">A wide box</div>',
        "pixels wide on a screen of 390: .*A wide box",
    ),
    "low contrast": (
        '<p style="color: #999; background: #fff">Faint</p>',
        "color-contrast: .*Faint",
    ),
    "pale formula": (
        r"<style>.pale .katex { color: #bbb; }</style>"
        r'<p class="pale"><span class="math">\(y\)</span></p>',
        "formula in a colour of its own",
        "color-contrast: .*katex",
    ),
    "formula cut off": (
        "<style>.low .katex-display { height: 1em; }</style>"
        r'<div class="low"><div class="math">\[\frac12\]</div></div>',
        "formula is cut off",
    ),
    "empty formula": (r'<p>So <span class="math">\(\)</span></p>', "formula is empty"),
    "hidden text": ('<p style="visibility: hidden">Gone</p>', "text is not shown: Gone"),
    "shut proof": (
        '<details onclick="event.preventDefault()"><summary>Proof</summary><p>Done.</p></details>',
        "does not open: Proof",
    ),
}
SECOND = {
    "formula lost": (
        '<p><span class="math">x</span></p>',
        "is not rendered: x",
        "2 formulas in the source, 1 on the page",
    ),
    "formula fewer": ("", "2 formulas in the source, 1 on the page"),
    "missing page": (
        '<p><a href="nowhere.html">There</a></p>',
        "a page that is not there: .*/nowhere.html",
    ),
    "console error": ('<script>console.error("trouble")</script>', "console: trouble"),
    "script error": ("<script>undefined.property</script>", "console: .*undefined"),
    "unreachable": (
        '<div style="overflow-x: auto"><div style="width: 1900px">Far</div></div>',
        "scrolls, but not with the keyboard: .*Far",
        "scrollable-region-focusable",
    ),
    "low contrast in the dark": (
        "<style>html[data-theme=dark] p.dusk { color: #333; }</style><p class='dusk'>Dusk</p>",
        "color-contrast: .*Dusk",
    ),
    "low contrast on a phone": (
        "<style>@media (max-width: 600px) { p.tiny { color: #bbb; } }</style>"
        "<p class='tiny'>Tiny</p>",
        "color-contrast: .*Tiny",
    ),
    "too wide in the dark": (
        "<style>html[data-theme=dark] .box { width: 1900px; }</style>"
        "<div class='box'>A wide box</div>",
        "pixels wide on a screen of 1280: .*A wide box",
        "pixels wide on a screen of 390: .*A wide box",
    ),
    "dollars left": (
        "<p>Hence $x$.</p>",
        r"TeX is left in the text: Hence \$x\$",
    ),
    "proof without height": (
        "<details><summary>Remark</summary>"
        '<div style="height: 0; overflow: hidden">Done.</div></details>',
        "does not open: Remark",
    ),
    "button without a name": ("<button></button>", "button-name: .*<button>"),
    "heavy": ("", "bytes: at most 100000"),
    "late picture": (
        '<section id="in-short"></section><div style="height: 3400px"></div><figure>Late</figure>',
        "first picture after 4.[0-9] screens",
    ),
}


def look(site, planted, known):
    """Visit a page of the site whose text is a title, a formula and what is planted."""
    page = (SITE / "chapters" / "appendix" / "notation.html").read_text(encoding="utf-8")
    soup = BeautifulSoup(page, "html.parser")
    title = r'<h1>Page</h1><p><span class="math">\(x\)</span></p>'
    article = maths.typeset(f'<article class="bd-article">{title}{planted}</article>')
    soup.article.replace_with(BeautifulSoup(article, "html.parser"))
    for contents in soup.select(".bd-sidebar-secondary, #jb-print-docs-body"):
        contents.decompose()
    site.documents[f"{BASE}{PLANTED}"] = str(soup)
    seen = audits.visit(site, PLANTED, known)
    return seen.faults + audits.dangling(site, {PLANTED: seen})


@pytest.fixture(scope="module")
def known(chromium):
    """The kinds of text on a page on which nothing is planted, and where nothing must be found."""
    page, kinds = tab(chromium), set()
    assert look(browser.Folder(page, SITE, BASE), "", kinds) == []
    page.close()
    return kinds


@pytest.mark.parametrize(("faults", "heaviest"), [(FIRST, audits.HEAVIEST), (SECOND, 100_000)])
def test_audits_name_all_that_is_planted_and_nothing_else(
    site, known, monkeypatch, faults, heaviest
):
    monkeypatch.setattr(audits, "HEAVIEST", heaviest)
    said = look(site, "".join(planted for planted, *_ in faults.values()), set(known))
    missed = [
        name
        for name, (_, must, *_) in faults.items()
        if not any(re.search(must, sentence) for sentence in said)
    ]
    assert missed == [], "\n".join(said)
    allowed = "|".join(pattern for _, *patterns in faults.values() for pattern in patterns)
    assert [sentence for sentence in said if not re.search(allowed, sentence)] == []
