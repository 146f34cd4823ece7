"""Reading: where one stopped is remembered, figures are whole on a phone and dark in the dark."""

import re

import numpy as np
import pytest
from audits import BASE, PHONE, SITE
from bs4 import BeautifulSoup
from conftest import tab
from PIL import Image, ImageDraw

from book import browser, panels
from featlearn.notebook import plot

PAGE = "chapters/01_kernels/4_structure.html"
INVERT = np.array(  # hue-rotate(180deg) of the CSS filters specification
    [[-0.574, 1.43, 0.144], [0.426, 0.43, 0.144], [0.426, 1.43, -0.856]]
)
DARK = np.array([0x12, 0x12, 0x12]) / 255  # the page's background, through which pictures show


def luminance(colour):
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def in_the_dark(colour):
    """A colour of a figure as a dark page shows it: inverted, hues kept, on the page's ground."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    turned = np.clip(INVERT @ (1 - rgb), 0, 1)
    return 1 - (1 - turned) * (1 - DARK)


@pytest.mark.parametrize("colour", [*plot.CYCLE, plot.INK])
def test_colours_of_figures_stand_out_in_the_dark(colour):
    light, dark = luminance(in_the_dark(colour)), luminance(DARK)
    assert (light + 0.05) / (dark + 0.05) > 3, "what the guidelines ask of graphics"
    assert np.abs(in_the_dark("#ffffff") - DARK).max() < 1e-9


def test_a_dark_page_has_dark_figures(chromium):
    page = tab(chromium, color_scheme="dark")
    browser.Folder(page, SITE, BASE).open(PAGE)
    image = page.locator("figure#fig-live-race img").first
    image.scroll_into_view_if_needed()
    page.wait_for_timeout(300)
    image.screenshot(path=SITE.parent / "dark.png")
    with Image.open(SITE.parent / "dark.png") as shot:
        pixels = np.asarray(shot.convert("RGB"))
    assert np.median(pixels) < 40, "the ground is dark"
    assert (pixels.max(axis=2) > 180).mean() > 0.002, "and the ink is light"
    page.close()


# Panels


def drawing(*boxes, size=(1000, 300), lines=()):
    image = Image.new("RGB", size, "white")
    for left, right, colour in boxes:
        if lines and right - left > 200:  # a panel: lines across, and what is drawn in it
            for y in lines:
                ImageDraw.Draw(image).line((left, y, right, y), fill=colour)
            ImageDraw.Draw(image).rectangle((left, 280, right, 280), fill="black")
        else:
            ImageDraw.Draw(image).rectangle((left, 20, right, 280), fill=colour)
    return image


def test_panels_are_cut_between_their_labels():
    two = [(10, 30, "black"), (50, 480, "#ddd"), (520, 540, "black"), (560, 990, "#ddd")]
    assert panels.panels(drawing(*two)) == [[(10, 481)], [(520, 991)]]
    shared = [(10, 30, "black"), (50, 480, "#ddd"), (520, 990, "#ddd")]
    assert panels.panels(drawing(*shared, lines=(270,))) == [[(10, 481)], [(520, 991)]]
    assert panels.panels(drawing(*shared, lines=(80, 160))) == [[(10, 481)], [(10, 50), (520, 991)]]
    bar = [(10, 400, "#ddd"), (420, 440, "#d03030"), (450, 470, "black"), (560, 990, "#ddd")]
    assert panels.panels(drawing(*bar)) == [[(10, 471)], [(560, 991)]]
    assert panels.panels(drawing((10, 990, "#ddd"))) == []
    many = [(10 + 160 * i, 160 + 160 * i - 20, "#ddd") for i in range(6)]
    assert panels.panels(drawing(*many)) == []


def test_figures_are_whole_on_a_phone(chromium):
    page = tab(chromium, viewport=PHONE, has_touch=True, is_mobile=True)
    site = browser.Folder(page, SITE, BASE)
    for path in (PAGE, "chapters/03_wide_networks/1_initialisation.html"):
        site.open(path)
        cut = page.evaluate(
            """[...document.querySelectorAll("figure:has(img.fl-wide)")].map(figure => {
              const stack = figure.querySelector(".fl-stack");
              const shown = stack ? [...stack.children] : [figure.querySelector("img")];
              return {id: figure.id, pieces: shown.length,
                      over: figure.scrollWidth - figure.clientWidth,
                      right: Math.max(...shown.map(one => one.getBoundingClientRect().right))};
            })"""
        )
        assert cut
        for figure in cut:
            assert figure["over"] <= 1 and figure["right"] <= PHONE["width"], figure
        assert any(figure["pieces"] > 1 for figure in cut)
    page.close()


def test_a_stack_shows_the_whole_picture():
    soup = BeautifulSoup((SITE / PAGE).read_text(encoding="utf-8"), "html.parser")
    rows = soup.select(".fl-stack .fl-row")
    assert len(rows) == 3
    for row in rows:
        widths = [
            float(re.search(r"width:([\d.]+)%", one["style"])[1]) for one in row.select("span")
        ]
        assert sum(widths) == pytest.approx(100, abs=0.01)
    assert all(stack["aria-hidden"] == "true" for stack in soup.select(".fl-stack"))


# Where reading stopped


def test_reading_goes_on_where_it_stopped(chromium):
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    page = context.new_page()
    page.set_default_timeout(120_000)
    site = browser.Folder(page, SITE, BASE)
    site.open("chapters/index.html")
    start = page.get_by_role("link", name="Start reading")
    assert start.get_attribute("href").endswith("01_kernels/1_regression.html")
    site.open(PAGE)
    assert page.locator(".fl-resume").count() == 0
    page.evaluate(
        "document.getElementById('a-lower-bound-for-all-fixed-features').scrollIntoView()"
    )
    page.wait_for_function("JSON.parse(localStorage.getItem('featlearn-reading'))?.last")
    site.open(PAGE)
    link = page.locator(".fl-resume a")
    assert link.inner_text() == "Go on at 1.4.3. A lower bound for all fixed features"
    site.open("chapters/index.html")
    assert "Go on: 1.4. The structure" in page.locator("a", has_text="Go on:").inner_text()
    assert page.locator(".fl-read").count() == 0
    site.open(PAGE)
    page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    page.locator(".fl-read").first.wait_for(state="attached")
    assert "1.4" in page.locator("a:has(.fl-read)").first.inner_text()
    assert page.locator(".fl-read").first.inner_text().startswith("✓")
    site.open(PAGE)
    assert page.locator(".fl-resume").count() == 0, "a page that was read starts at its top"
    context.close()


@pytest.mark.parametrize("place", ["exam-questions", "four-lectures"])
def test_a_link_leads_to_its_section(chromium, place):
    page = tab(chromium)
    browser.Folder(page, SITE, BASE).open(f"chapters/appendix/instructor.html#{place}")
    page.wait_for_function(
        """id => { const {top} = document.getElementById(id).getBoundingClientRect();
                   return top > -5 && top < innerHeight / 2 }""",
        arg=place,
    )
    page.close()
