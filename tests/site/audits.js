// What tests/site/audits.py asks of a page. An audit returns sentences that say what is wrong.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const start = (text, length = 80) => (text ?? "").trim().slice(0, length);
  const style = element => getComputedStyle(element);
  const box = element => element.getBoundingClientRect();

  const formulas = () => {
    const faults = all(".katex-error").map(error => `formula: ${error.title}`);
    for (const source of all(".math"))
      if (!source.matches(".katex-error") && !source.querySelector(".katex, .katex-error"))
        faults.push(`formula is not rendered: ${start(source.textContent)}`);
    for (const formula of all(".katex-html"))
      if (!formula.childElementCount)
        faults.push(`formula is empty, after: ${start(formula.closest("p")?.textContent)}`);
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let text = texts.nextNode(); text; text = texts.nextNode())
      if (/\\[(\[]|\$[^$\n]*\$|\\[a-z]+\{/i.test(text.data)
          && !text.parentElement.closest("pre, code, script, style, .math"))
        faults.push(`TeX is left in the text: ${start(text.data)}`);
    return faults;
  };

  const images = () => [...document.images]
    .filter(image => !image.alt.trim() && !image.closest("a")?.textContent.trim())
    .map(image => `image without alternative text: ${image.getAttribute("src")}`);

  const unfold = () => {
    const folded = fold => fold.matches("details:not([open]), .toggle-hidden");
    const folds = all("details, .admonition.toggle").filter(folded);
    for (const fold of folds)
      (fold.querySelector("summary") ?? fold.querySelector(".toggle-button")).click();
    return folds.filter(fold => folded(fold) || box(fold.lastElementChild).height < 5)
      .map(fold => `does not open: ${start(fold.innerText)}`);
  };

  const overflow = () => {
    const page = document.scrollingElement, width = page.clientWidth;
    if (page.scrollWidth <= width) return [];
    const aside = ({overflowX, position}) => overflowX !== "visible" || position === "fixed";
    const clipped = element =>
      element && (aside(style(element)) || clipped(element.parentElement));
    const wide = all("body *")
      .filter(element => box(element).right > width + 0.5 && !clipped(element.parentElement));
    const which = wide.at(-1)?.outerHTML.slice(0, 120);
    return [`${page.scrollWidth} pixels wide on a screen of ${width}: ${which}`];
  };

  const unreachable = () => all("main :not(.katex *)")
    .filter(element => element.scrollWidth > element.clientWidth + 1
      && /auto|scroll/.test(style(element).overflowX) && element.checkVisibility()
      && element.tabIndex < 0 && !element.querySelector("a[href], button, [tabindex='0']"))
    .map(element => `scrolls, but not with the keyboard: ${element.outerHTML.slice(0, 120)}`);

  const cut = () => all(".katex-display")
    .filter(formula => formula.scrollHeight > formula.clientHeight)
    .map(formula => `formula is cut off: ${start(formula.textContent)}`);

  const hidden = () => all("article :is(h1, h2, h3, p, figure)")
    .filter(text => text.closest("details, .toggle-hidden") === null
      && !text.matches(".fl-live *") && text.textContent.trim()
      && !text.checkVisibility({visibilityProperty: true, opacityProperty: true}))
    .map(text => `text is not shown: ${start(text.textContent)}`);

  // A formula has the colour of its text.
  const pale = () => all(".katex")
    .filter(formula =>
      style(formula).color !== style(formula.closest(".math").parentElement).color)
    .map(formula => `formula in a colour of its own: ${start(formula.textContent)}`);

  // A lecture, which has a summary, shows its first picture within four screens of a phone.
  const late = () => {
    const figure = document.getElementById("in-short") && all("article figure")[0];
    const screens = figure ? (box(figure).top + scrollY) / innerHeight : 0;
    return screens > 4 ? [`first picture after ${screens.toFixed(1)} screens`] : [];
  };

  const after = milliseconds => new Promise(done => setTimeout(done, milliseconds));

  // Wait until the theme's scripts, which take 0.3 seconds, have seen the page's new size.
  let resized = -Infinity;
  addEventListener("resize", () => { resized = performance.now(); });
  const resting = async () => { while (performance.now() < resized + 400) await after(20); };

  // Press the theme's button until it shows the theme; whether it does.
  const shows = theme => {
    const showing = () => document.documentElement.dataset.mode === theme;
    for (let press = 0; press < 2 && !showing(); press++)
      document.querySelector(".theme-switch-button").click();
    return showing();
  };

  // What an audit says as soon as it says nothing, or after two seconds.
  const eventually = async name => {
    for (const end = performance.now() + 2000; ;) {
      const faults = audits[name]();
      if (!faults.length || performance.now() > end) return faults;
      await after(50);
    }
  };

  // For axe: a word in place of formulas after the first twenty, whose markup is KaTeX's own,
  // and of the tokens of code the first of each class. All of a chapter would take minutes.
  const thin = () => {
    const seen = new Set();
    for (const token of all(".highlight pre span"))
      if (seen.size === seen.add(token.className).size) token.replaceWith(...token.childNodes);
    for (const formula of all(".katex").slice(20)) formula.replaceWith("formula");
  };

  const violations = async ([context, options]) => {
    const found = await axe.run(
      context ?? document, {resultTypes: ["violations"], preload: false, ...options});
    const serious = found.violations.filter(
      ({id, impact}) => /serious|critical/.test(impact) || id === "region");
    const says = node => (node.any[0] ?? node.all[0] ?? node.none[0]).message;
    return serious.flatMap(({id, help, nodes}) =>
      nodes.map(node => `${id}: ${help}: ${node.html.slice(0, 160)} ${says(node)}`));
  };

  // One element for all texts that look the same: their colour and what they stand on, their
  // type, and for links what tells them from the text around them.
  const kinds = () => {
    const found = new Map(), known = new Map([[null, ""]]);
    const ground = element => {
      if (!known.has(element)) {
        const {backgroundColor, backgroundImage, opacity} = style(element);
        const clear = backgroundColor === "rgba(0, 0, 0, 0)" && backgroundImage === "none";
        const above = ground(element.parentElement);
        const own = clear && opacity === "1" ? "" : `${backgroundColor} ${backgroundImage} ${opacity}`;
        const opaque = /^rgb\(/.test(backgroundColor) && backgroundImage === "none";
        known.set(element, opaque && opacity === "1" ? own : above + own);
      }
      return known.get(element);
    };
    const kind = element => {
      const link = element.closest("a"), {color} = style(element);
      const around = link && `${style(link).textDecorationLine} ${style(link.parentElement).color}`;
      return `${color} on ${ground(element)} in ${around}`;
    };
    for (const element of all("body :not(.katex *)")) {
      const texts = [...element.childNodes].filter(node => node.nodeType === 3);
      if (!texts.some(text => text.data.trim()) || !element.checkVisibility()) continue;
      const {fontSize, fontWeight} = style(element);
      const name = `${kind(element)} ${fontSize} ${fontWeight}`;
      if (!found.has(name)) found.set(name, element);
    }
    return found;
  };

  // Leave on the page what holds a chosen element, and return a function that restores the rest.
  const alone = chosen => {
    const away = [];
    const prune = parent => {
      for (const child of parent.querySelectorAll(":scope > :not(style, link, script)"))
        if (!chosen.some(element => child.contains(element))) {
          const place = document.createComment("");
          child.replaceWith(place);
          away.push([place, child]);
        } else if (!chosen.includes(child) && !child.matches("figure, pre, svg, table"))
          prune(child);
    };
    prune(document.body);
    return () => { for (const [place, child] of away.reverse()) place.replaceWith(child); };
  };

  window.audits = {formulas, images, unfold, overflow, unreachable, cut, hidden, pale, late, resting,
    shows, eventually, thin, violations, kinds, alone};
})();
