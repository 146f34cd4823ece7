/* What the press does to a page before it prints it; Playwright calls these by name. */

/* Shrink formulas and tables until they fit the column. Screen readers, too, read what is drawn. */
function fit() {
  const style = getComputedStyle, all = selector => [...document.querySelectorAll(selector)];
  const room = box => box.clientWidth - parseFloat(style(box).paddingLeft) - parseFloat(style(box).paddingRight);
  const shrink = (elements, width, space) => {  // first measure all, then change all: one layout instead of many
    const wide = elements.map(e => [e, 0.99 * space(e) / width(e)]).filter(([, scale]) => scale < 0.99);
    const sizes = wide.map(([e, scale]) => scale * parseFloat(style(e).fontSize));
    wide.forEach(([e], i) => { e.style.fontSize = sizes[i] + "px"; });
  };
  all(".katex-html").forEach(formula => formula.removeAttribute("aria-hidden"));
  shrink(all(".katex-display"), e => e.querySelector(".katex-html").offsetWidth, e => e.clientWidth);
  shrink(all("p span.math .katex-html"), e => e.offsetWidth, e => room(e.closest("p")));
  for (let round = 0; round < 3; round++) shrink(all("table"), e => e.offsetWidth, e => room(e.parentElement));
}

/* What is larger than the page still. */
function overflow() {
  const right = document.body.getBoundingClientRect().right + 1, tall = 250 * 96 / 25.4;
  return [...document.querySelectorAll("body :not(.katex-html *)")].filter(element => {
    const box = element.getBoundingClientRect();
    return box.right > right || (element.matches("figure, img, div.math, tr, .fl-claim") && box.height > tall);
  }).map(element => element.outerHTML.slice(0, 200));
}

/* Set some texts, by their numbers, a little tighter. */
function tighten(numbers, level) {
  const texts = document.querySelectorAll("article");
  for (const number of numbers) texts[number].classList.add(level);
}

/* Fill in the page numbers of the table of contents, by the ids of the entries. */
function number(pages) {
  for (const link of document.querySelectorAll(".contents a"))
    link.lastChild.textContent = pages[link.hash.slice(1)];
}
