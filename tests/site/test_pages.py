"""Every page of the site in Chromium, at both widths, light and dark: all audits, all links."""

from functools import cache

import pytest
from audits import BASE, SITE, dangling, visit
from conftest import tab

from book import browser

PAGES = sorted(
    path.relative_to(SITE).as_posix()
    for path in SITE.rglob("*.html")
    if "_static" not in path.parts
    and 'http-equiv="refresh"' not in path.read_text(encoding="utf-8")
)


@pytest.fixture(scope="module")
def site(chromium):
    if not PAGES:
        pytest.fail("the site is not built: run make book")
    return browser.Folder(tab(chromium), SITE, BASE)


@pytest.fixture(scope="module")
def seen(site):
    """What a page showed, looked at once."""
    known = set()
    return cache(lambda path: visit(site, path, known))


@pytest.mark.parametrize("path", PAGES)
def test_page_is_without_fault(seen, path):
    assert not seen(path).faults, "\n".join(seen(path).faults)


def test_links_and_anchors_resolve(seen, site):
    visits = {path: seen(path) for path in PAGES}
    assert sum(len(one.links) for one in visits.values()) > 1000
    assert dangling(site, visits) == []


def test_the_address_of_the_site_leads_to_the_front_page(site):
    site.open("index.html")
    site.page.wait_for_url("**/chapters/index.html")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("01_kernels.html", "01_kernels/index.html"),
        ("01_kernels.html#thm-latent", "01_kernels/4_structure.html#thm-latent"),
        ("01_kernels.html#claim-ker-flow-order", "01_kernels/2_training.html#claim-ker-flow-order"),
    ],
)
def test_the_addresses_of_a_chapter_that_was_one_page_lead_on(site, old, new):
    site.open(f"chapters/{old}")
    site.page.wait_for_url(f"**/chapters/{new}")
