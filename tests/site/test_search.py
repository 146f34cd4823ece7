"""The search: the queries that readers tried, and what it falls back to."""

import re
from urllib.parse import quote

import pytest
from audits import BASE, SITE
from conftest import tab

from book import browser

# What a reader looks for, and a page that must be among the first five places.
QUERIES = {
    "information exponent": "08_feature_learning_kernels/2_directions",
    "Gaussian process": "02_random_features/3_ensemble",
    "Hermite": "appendix/hermite",
    "NTK": "04_ntk/1_kernel",
    "lazy training": "03_wide_networks/2_lazy",
    "double descent": "02_random_features/2_enough",
    "muP": "08_feature_learning_kernels/3_scaling",
    "RKHS": "01_kernels/1_regression",
    "feature learning": "03_wide_networks/2_lazy",
    "sample complexity": "06_damian/2_samples",
}


@pytest.fixture(scope="module")
def ask(chromium):
    """A function that asks the search and returns title, address and text of each place."""
    page = tab(chromium)

    def asked(query):
        site = browser.Folder(page, SITE, BASE)
        page.goto(f"{browser.HOST}{BASE}search.html?q={quote(query)}")
        page.wait_for_function("document.documentElement.dataset.searched")
        assert not site.errors
        return page.evaluate(
            """[...document.querySelectorAll("#fl-results > li")].map(item => ({
              title: item.querySelector("a").textContent, url: item.querySelector("a").href,
              text: item.querySelector("p").textContent}))"""
        )

    yield asked
    page.close()


@pytest.mark.parametrize(("query", "wanted"), QUERIES.items())
def test_search_finds_where_a_word_is_explained(ask, query, wanted):
    places = ask(query)
    if query != "Hermite":
        assert "glossary.html#term-" in places[0]["url"], "the definition comes first"
    assert any(wanted in place["url"] for place in places[:5]), [p["url"] for p in places[:8]]
    for place in places:
        assert not re.search(r"\\[a-z]|\$|&\w+;|import ", place["text"]), place["text"]
    on_sections = [place for place in places if "#" in place["url"]]
    assert len(on_sections) > len(places) / 2
    assert len({place["url"] for place in places}) == len(places)


def test_a_place_is_on_its_page(ask):
    for place in ask("double descent")[:6]:
        path, _, anchor = place["url"].removeprefix(f"{browser.HOST}{BASE}").partition("#")
        assert not anchor or f'id="{anchor}"' in (SITE / path).read_text(encoding="utf-8"), place


def test_from_the_disk_the_other_search_answers(chromium):
    page = tab(chromium)
    page.goto((SITE / "search.html").as_uri() + "?q=kernel")
    page.locator("#search-results li").first.wait_for()
    assert page.locator("#fl-results").count() == 0
    page.close()
