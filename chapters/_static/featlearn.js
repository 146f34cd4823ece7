const BOXES = "article :is(pre, figure, .katex-display, .fl-scroll, .pst-scrollable-table-container)";

// Sections that are far from the screen are not laid out (content-visibility in featlearn.css): they wait.
const laidOut = element => element.checkVisibility({contentVisibilityAuto: true});

// They have no size either: the theme asks every block of code for its own when the page has come, which would lay out all.
for (const size of ["scrollWidth", "clientWidth", "scrollHeight", "clientHeight"]) {
  const {get} = Object.getOwnPropertyDescriptor(Element.prototype, size);
  Object.defineProperty(Element.prototype, size, {configurable: true, get() { return laidOut(this) ? get.call(this) : 0; }});
}

// All is laid out where a place on the page is gone to: a link to a section, a search result, a page that one comes back to.
const layOut = () => document.documentElement.classList.add("fl-laid-out");
if (location.hash || performance.getEntriesByType("navigation")[0]?.type !== "navigate") layOut();
addEventListener("click", event => event.target.closest?.("a[href*='#']") && layOut(), true);

// What scrolls sideways can be reached with the keyboard, and fades where it goes on.
function reach(root) {
  for (const box of [...root.querySelectorAll(BOXES)].filter(laidOut)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
    const fade = () => box.classList.toggle("fl-more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
    fade();
    box.onscroll = fade;
  }
}

// A formula that is longer than a line may break.
function fold(root) {
  const formulas = [...root.querySelectorAll(".fl-whole")].filter(laidOut);
  for (const formula of formulas) formula.classList.remove("fl-long");
  const long = formulas.filter(formula =>
    formula.getBoundingClientRect().width > formula.closest("p, li, dd, td, figcaption, div").clientWidth);
  for (const formula of long) formula.classList.add("fl-long");
}

const settle = root => { fold(root); reach(root); };

addEventListener("DOMContentLoaded", () => {
  new ResizeObserver(() => settle(document)).observe(document.querySelector("main"));
  document.addEventListener("contentvisibilityautostatechange", event => event.skipped || settle(event.target), true);
  document.addEventListener("toggle", event => settle(event.target), true);
  // A button is called what it shows.
  for (const button of document.querySelectorAll(".search-button-field, details.hide > summary"))
    button.removeAttribute("aria-label");
  // The arrow that unfolds a chapter in the sidebar says what it unfolds.
  for (const arrow of document.querySelectorAll(".bd-sidebar-primary li > details > summary")) {
    const chapter = arrow.closest("li").querySelector("a");
    if (chapter) arrow.setAttribute("aria-label", `Pages of ${chapter.textContent.trim()}`);
  }
  // A list has items: the role that the bibliography's entries come with is no longer one.
  for (const entry of document.querySelectorAll("[role=doc-biblioentry]")) entry.setAttribute("role", "listitem");
});

// On paper the page is light, and proofs, hints and solutions are open; afterwards all is as it was.
(() => {
  const root = document.documentElement;
  let shut = [], theme = "";
  addEventListener("beforeprint", () => {
    shut = [...document.querySelectorAll("details.sd-dropdown:not([open])")];
    shut.forEach(details => { details.open = true; });
    theme = root.dataset.theme;
    root.dataset.theme = "light";
  });
  addEventListener("afterprint", () => {
    shut.forEach(details => { details.open = false; });
    root.dataset.theme = theme;
  });
})();
