// What scrolls sideways can be reached with the keyboard. The theme does so for code alone.
const SCROLLS = ".bd-article :is(div.math, figure, .fl-scroll, .pst-scrollable-table-container)";

function reach() {
  for (const box of document.querySelectorAll(SCROLLS)) {
    if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
    else box.removeAttribute("tabindex");
  }
}

addEventListener("load", () => {
  const watch = new ResizeObserver(reach);
  for (const box of document.querySelectorAll(SCROLLS)) watch.observe(box);
});

// A button is called what it shows.
addEventListener("DOMContentLoaded", () => {
  for (const button of document.querySelectorAll(".search-button-field, details.hide > summary"))
    button.removeAttribute("aria-label");
});
