"""What a page of the site must be, seen in Chromium. Each audit says in words what is wrong."""

import gzip
import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urldefrag

import axe_playwright_python

from book import browser, notebooks

SITE = notebooks.ROOT / "_build" / "html"
BASE = "/" + notebooks.repository_url().rsplit("/", 1)[1] + "/"  # the site's path at its host
DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
HEAVIEST = 2_000_000  # bytes on the wire, MathJax apart
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")

FORMULAS = r"""() => {
  const faults = [...document.querySelectorAll("mjx-merror, [data-mjx-error]")].map(error =>
    `formula ${error.closest(".math")?.id ?? ""}: ${error.dataset.mjxError ?? error.textContent}`);
  for (const source of document.querySelectorAll(".math"))
    if (!source.querySelector("mjx-container")) faults.push(`formula is not rendered: ${source.textContent.slice(0, 80)}`);
  for (const formula of document.querySelectorAll("mjx-math")) {
    if (formula.textContent.includes("???")) faults.push(`formula with a reference to nothing: ${formula.textContent}`);
    if (!formula.childElementCount) faults.push(`formula is empty, after: ${formula.closest("p")?.textContent.slice(0, 80)}`);
  }
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode())
    if (/\\[(\[]|\$[^$\n]*\$|\\[a-z]+\{/i.test(text.data) && !text.parentElement.closest("pre, code, script, style, .math"))
      faults.push(`TeX is left in the text: ${text.data.trim().slice(0, 80)}`);
  return faults;
}"""
IMAGES = """() => [...document.images]
  .filter(image => !image.alt.trim() && !image.closest("a")?.textContent.trim())
  .map(image => `image without alternative text: ${image.getAttribute("src")}`)"""
UNFOLD = """() => {
  const folded = fold => fold.matches("details:not([open]), .toggle-hidden");
  const folds = [...document.querySelectorAll("details, .admonition.toggle")].filter(folded);
  for (const fold of folds) (fold.querySelector("summary") ?? fold.querySelector(".toggle-button")).click();
  return folds.filter(fold => folded(fold) || fold.lastElementChild.getBoundingClientRect().height < 5)
    .map(fold => `does not open: ${fold.innerText.slice(0, 80)}`);
}"""
OVERFLOW = """() => {
  const page = document.scrollingElement, width = page.clientWidth;
  if (page.scrollWidth <= width) return [];
  const right = element => element.getBoundingClientRect().right;
  const aside = style => style.overflowX !== "visible" || style.position === "fixed";
  const clipped = element => element && (aside(getComputedStyle(element)) || clipped(element.parentElement));
  const wide = [...document.querySelectorAll("body *")].filter(e => right(e) > width + 0.5 && !clipped(e.parentElement));
  return [`${page.scrollWidth} pixels wide on a screen of ${width}: ${wide.at(-1)?.outerHTML.slice(0, 120)}`];
}"""
UNREACHABLE = """() => [...document.querySelectorAll("main :not(mjx-container *)")]
  .filter(box => box.scrollWidth > box.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(box).overflowX)
    && box.checkVisibility() && box.tabIndex < 0 && !box.querySelector("a[href], button, [tabindex='0']"))
  .map(box => `scrolls, but not with the keyboard: ${box.outerHTML.slice(0, 120)}`)"""
CUT = """() => [...document.querySelectorAll("span.math")].filter(box => {
    const formula = box.querySelector("mjx-math");
    return formula?.checkVisibility() && getComputedStyle(box).overflowX === "hidden"
      && formula.getBoundingClientRect().right > box.getBoundingClientRect().right + 2;
  }).map(box => `formula is cut off: ${box.textContent.slice(0, 80)}`)"""
HIDDEN = """() => [...document.querySelectorAll("article :is(h1, h2, h3, p, figure)")]
  .filter(text => text.closest("details, .toggle-hidden") === null && !text.matches(".fl-live *") && text.textContent.trim()
    && !text.checkVisibility({visibilityProperty: true, opacityProperty: true}))
  .map(text => `text is not shown: ${text.textContent.trim().slice(0, 80)}`)"""
# A formula has the colour of its text.
PALE = """() => [...document.querySelectorAll("mjx-container")]
  .filter(formula => getComputedStyle(formula).color !== getComputedStyle(formula.closest(".math").parentElement).color)
  .map(formula => `formula in a colour of its own: ${formula.textContent.slice(0, 80)}`)"""
# For axe: a word in place of formulas after the first twenty, whose markup is MathJax's own, and of the tokens of
# code the first of each class. All of a chapter would take minutes.
THIN = """() => {
  const seen = new Set();
  for (const token of document.querySelectorAll(".highlight pre span"))
    if (seen.size === seen.add(token.className).size) token.replaceWith(...token.childNodes);
  for (const formula of [...document.querySelectorAll("mjx-container")].slice(20)) formula.replaceWith("formula");
}"""
VIOLATIONS = """([context, options]) => axe.run(context ?? document, {resultTypes: ["violations"], preload: false, ...options})
  .then(({violations}) => violations.filter(({id, impact}) => /serious|critical/.test(impact) || id === "region")
    .flatMap(({id, help, nodes}) => nodes.map(node =>
      `${id}: ${help}: ${node.html.slice(0, 160)} ${(node.any[0] ?? node.all[0] ?? node.none[0]).message}`)))"""
COLOURS = ["color-contrast", "link-in-text-block"]
STRUCTURE = {
    "rules": {"label-content-name-mismatch": {"enabled": True}}
    | {rule: {"enabled": False} for rule in COLOURS}
}
# Of all texts with the same chain of tags and classes, the same colours and the same type one is looked at.
KINDS = """() => {
  const kinds = new Map(), known = new Map([[null, ""]]);
  const kind = e => {
    if (!known.has(e)) {
      const {color, backgroundColor, opacity} = getComputedStyle(e);
      known.set(e, `${kind(e.parentElement)}>${e.tagName}.${e.getAttribute("class")} ${color} ${backgroundColor} ${opacity}`);
    }
    return known.get(e);
  };
  for (const element of document.querySelectorAll("body *"))
    if ([...element.childNodes].some(node => node.nodeType === 3 && node.data.trim()) && element.checkVisibility()) {
      const {fontSize, fontWeight} = getComputedStyle(element), name = `${kind(element)} ${fontSize} ${fontWeight}`;
      if (!kinds.has(name)) kinds.set(name, element);
    }
  return kinds;
}"""


@dataclass(frozen=True)
class Visit:
    """What one page showed: its faults, the targets on it, the addresses it links to, its weight."""

    faults: list[str]
    ids: set[str]
    links: list[str]
    weight: int


def settled(site: browser.Folder, path: str) -> None:
    """Open a page and wait for its formulas."""
    site.open(path)
    site.page.evaluate("window.MathJax?.startup?.promise?.then(() => null)")
    site.page.evaluate("document.fonts.ready.then(() => null)")


def pause(page) -> None:
    """Give the page's scripts the time to see that something changed: the theme's wait 0.3 seconds."""
    page.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 400)))")


def size(page, viewport: dict) -> None:
    """Give the page this size."""
    if page.viewport_size != viewport:
        page.set_viewport_size(viewport)
        pause(page)


def show(page, theme: str) -> None:
    """Press the theme's button until it shows `theme`."""
    for _ in range(3):
        if page.evaluate("document.documentElement.dataset.mode") == theme:
            return
        page.evaluate("document.querySelector('.theme-switch-button').click()")
    raise ValueError(f"the theme's button never shows {theme}")


def colours(page, known: set[str]) -> list[str]:
    """What axe says of the colours of the texts whose kinds are not `known`, to which they are
    added.
    """
    kinds = page.evaluate_handle(KINDS)
    new = [kind for kind in kinds.evaluate("kinds => [...kinds.keys()]") if kind not in known]
    known.update(new)
    chosen = kinds.evaluate_handle(
        "(kinds, names) => ({include: names.map(name => kinds.get(name))})", new
    )
    return page.evaluate(VIOLATIONS, [chosen, {"runOnly": COLOURS}]) if new else []


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


def weight(site: browser.Folder) -> int:
    """Bytes of all files sent, MathJax apart, as a host sends them: text compressed."""
    files = {file for file in site.answered if "mathjax" not in file.parts}
    packed = (".png", ".jpg", ".woff2")
    return sum(
        len(f.read_bytes() if f.suffix in packed else gzip.compress(f.read_bytes(), 6))
        for f in files
    )


def visit(site: browser.Folder, path: str, known: set[str]) -> Visit:
    """Open the page once and look at it at both widths, folded and open, light and dark.

    Kinds of text that are `known` from other pages or views have had their colours looked at: axe
    is slow.
    """
    page, faults = site.page, []
    page.emulate_media(reduced_motion="reduce")  # colours are looked at when they have arrived
    page.set_viewport_size(DESKTOP)
    settled(site, path)
    served = page.evaluate("fetch(location.href).then(answer => answer.text())")
    sources = len(re.findall(r'class="[^"]*\bmath\b[^"]*"', served))
    rendered = page.locator("mjx-container").count()
    if sources != rendered:
        faults.append(f"{sources} formulas in the source, {rendered} on the page")
    faults += page.evaluate(FORMULAS) + page.evaluate(IMAGES) + page.evaluate(OVERFLOW)
    ids = set(
        page.evaluate(
            "[...document.querySelectorAll('[id], a[name]')].map(element => element.id || element.name)"
        )
    )
    links = page.evaluate(
        "[...document.querySelectorAll('a[href]')].map(a => new URL(a.getAttribute('href'), document.baseURI).href)"
    )
    size(page, PHONE)
    faults += page.evaluate(OVERFLOW) + page.evaluate(HIDDEN) + page.evaluate(UNFOLD)
    pause(page)
    faults += page.evaluate(UNREACHABLE) + page.evaluate(CUT)
    for theme in ("dark", "light"):
        show(page, theme)
        faults += page.evaluate(PALE)
    page.evaluate(THIN)
    page.evaluate(AXE)
    faults += page.evaluate(VIOLATIONS, [None, STRUCTURE])
    for viewport, theme in (
        (PHONE, "dark"),
        (PHONE, "light"),
        (DESKTOP, "light"),
        (DESKTOP, "dark"),
    ):
        size(page, viewport)
        show(page, theme)
        faults += page.evaluate(OVERFLOW)
        if (viewport, theme) != (
            PHONE,
            "dark",
        ):  # whose colours are those of the others, and axe is slow
            faults += colours(page, known)
    heavy = weight(site)
    if heavy > HEAVIEST:
        faults.append(f"{heavy} bytes without MathJax: at most {HEAVIEST}")
    return Visit(
        [f"{path}: {fault}" for fault in dict.fromkeys(faults + requests(site))], ids, links, heavy
    )


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
