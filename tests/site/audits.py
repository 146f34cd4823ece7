"""What a page of the site must be, seen in Chromium. Each audit says in words what is wrong."""

import gzip
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urldefrag

import axe_playwright_python

from book import browser, notebooks

SITE = notebooks.ROOT / "_build" / "html"
BASE = "/" + notebooks.repository_url().rsplit("/", 1)[1] + "/"  # the site's path at its host
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HEAVIEST = 2_000_000  # bytes on the wire
AUDITS = Path(__file__).with_name("audits.js").read_text(encoding="utf-8")
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")

COLOURS = ["color-contrast", "link-in-text-block"]
STRUCTURE = {
    "rules": {"label-content-name-mismatch": {"enabled": True}}
    | {rule: {"enabled": False} for rule in COLOURS}
}


@dataclass(frozen=True)
class Visit:
    """What one page showed: faults, targets on it, addresses it links to, weight in bytes."""

    faults: list[str]
    ids: set[str]
    links: list[str]
    weight: int


def settled(site: browser.Folder, path: str) -> None:
    """Open a page and wait for its formulas."""
    site.open(path)
    site.page.evaluate("document.fonts.ready.then(() => null)")
    site.page.add_style_tag(
        content=".bd-article section { content-visibility: visible !important; }"
    )
    site.page.evaluate(AUDITS)


def size(page, viewport: dict) -> None:
    """Give the page this size, and wait until its scripts have seen it."""
    if page.viewport_size != viewport:
        page.set_viewport_size(viewport)
        page.wait_for_function("width => innerWidth === width", arg=viewport["width"])
        page.evaluate("audits.resting()")


def audit(page, *names: str) -> list[str]:
    """What the audits of audits.js with these names say."""
    return page.evaluate(f"[{', '.join(f'...audits.{name}()' for name in names)}]")


def show(page, theme: str) -> None:
    """Press the theme's button until it shows `theme`."""
    if not page.evaluate("theme => audits.shows(theme)", theme):
        raise ValueError(f"the theme's button never shows {theme}")


def colours(page, known: set[str]) -> list[str]:
    """What axe says of the colours of the texts whose kinds are not `known`, which then are.

    Axe looks at a page on which nothing else is: it is slow on a whole chapter.
    """
    kinds = page.evaluate_handle("audits.kinds()")
    new = [kind for kind in kinds.evaluate("kinds => [...kinds.keys()]") if kind not in known]
    if not new:
        return []
    known.update(new)
    chosen = kinds.evaluate_handle("(kinds, names) => names.map(name => kinds.get(name))", new)
    restore = chosen.evaluate_handle("chosen => audits.alone(chosen)")
    context = chosen.evaluate_handle("include => ({include})")
    faults = page.evaluate("audits.violations", [context, {"runOnly": COLOURS}])
    restore.evaluate("restore => restore()")
    return faults


def requests(site: browser.Folder) -> list[str]:
    """What the page asked for in vain, and what its console says."""
    outside = [
        f"request leaves the site: {url}"
        for url in site.refused
        if not url.startswith(browser.HOST + site.base)
    ]
    absent = [
        f"file is not there: {url}"
        for url in site.refused
        if url.startswith(browser.HOST + site.base)
    ]
    failures = [error for error in site.errors if not error.startswith("Failed to load resource")]
    return outside + absent + [f"console: {error}" for error in failures]


@cache
def sent(file: Path) -> int:
    """Bytes of a file as a host sends it: text compressed."""
    content = file.read_bytes()
    packed = file.suffix in (".png", ".jpg", ".woff2")
    return len(content if packed else gzip.compress(content, 6))


def weight(site: browser.Folder) -> int:
    """Bytes of all files sent."""
    return sum(sent(file) for file in set(site.answered))


def visit(site: browser.Folder, path: str, known: set[str]) -> Visit:
    """Open the page once and look at it at both widths, folded and open, light and dark.

    Kinds of text that are `known` from other pages or views have had their colours looked at: axe
    is slow.
    """
    page, faults = site.page, []
    page.emulate_media(reduced_motion="reduce")  # colours are looked at when they have arrived
    page.set_viewport_size(PHONE)
    settled(site, path)
    served = page.evaluate("fetch(location.href).then(answer => answer.text())")
    sources = len(re.findall(r'class="[^"]*\bmath\b[^"]*"', served))
    rendered = page.locator(".katex, .katex-error").count()
    if sources != rendered:
        faults.append(f"{sources} formulas in the source, {rendered} on the page")
    faults += audit(page, "formulas", "images", "overflow", "hidden", "pale", "late")
    ids = page.evaluate("[...document.querySelectorAll('[id], a[name]')].map(e => e.id || e.name)")
    links = page.evaluate(
        "[...document.querySelectorAll('a[href]')]"
        ".map(a => new URL(a.getAttribute('href'), document.baseURI).href)"
    )
    faults += audit(page, "unfold", "cut")
    faults += page.evaluate("audits.eventually('unreachable')")
    show(page, "dark")
    faults += audit(page, "overflow", "pale")
    faults += requests(site)  # of the whole page: its scripts miss what is thinned out
    page.evaluate("audits.thin()")  # a formula that fits a phone fits a desktop
    size(page, DESKTOP)
    faults += audit(page, "overflow", "hidden")
    page.evaluate(AXE)
    faults += page.evaluate("audits.violations", [None, STRUCTURE])
    for viewport, theme in ((DESKTOP, "dark"), (DESKTOP, "light"), (PHONE, "light")):
        page.set_viewport_size(viewport)
        show(page, theme)
        faults += audit(page, "overflow") + colours(page, known)
    heavy = weight(site)
    if heavy > HEAVIEST:
        faults.append(f"{heavy} bytes: at most {HEAVIEST}")
    said = [f"{path}: {fault}" for fault in dict.fromkeys(faults)]
    return Visit(said, set(ids), links, heavy)


def dangling(site: browser.Folder, visits: dict[str, Visit]) -> list[str]:
    """The links of the pages visited that lead to no file of the site, or to no element of its
    page.
    """
    faults, start = [], browser.HOST + site.base
    for path, seen in visits.items():
        for link in dict.fromkeys(seen.links):
            address, fragment = urldefrag(link)
            if not link.startswith(browser.HOST):
                continue
            target = unquote(address.removeprefix(start).split("?")[0])
            if not address.startswith(start) or (
                target not in visits and not (site.folder / target).is_file()
            ):
                faults.append(f"{path}: link to a page that is not there: {link}")
            elif (
                fragment not in ("", "top")
                and target in visits
                and unquote(fragment) not in visits[target].ids
            ):
                faults.append(f"{path}: link to an anchor that is not there: {link}")
    return faults
