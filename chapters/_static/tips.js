// What a link leads to, shown while the pointer or the keyboard is on it: a term's definition, a theorem, an equation, a
// figure, a reference. It closes with Escape, and stays open while the pointer is on it.
(() => {
  const KINDS = "dt[id^=term-], .proof, [id^=equation-], figure, .citation";
  const WAIT = 250; // milliseconds until it opens, and until it closes
  const root = new URL(document.documentElement.dataset.content_root || "./", location);
  const known = {}, loading = {};
  const box = document.createElement("div");
  let at = null, timer = 0;
  box.id = "fl-tip";
  box.role = "tooltip";
  box.hidden = true;

  window.tips = (page, found) => { known[page] = found; };

  function load(page) {
    return loading[page] ??= new Promise(done => {
      const script = document.createElement("script");
      script.src = new URL(`_tips/${page}.js`, root);
      script.onload = script.onerror = () => done(known[page] ?? {});
      document.head.append(script);
    });
  }

  // The content for a link: a copy from this page, or what the other page says about itself.
  async function content(link) {
    const url = new URL(link.href), id = decodeURIComponent(url.hash.slice(1));
    if (url.pathname === location.pathname) {
      const target = document.getElementById(id);
      if (!target?.matches(KINDS)) return [];
      const copy = (target.matches("dt") ? target.nextElementSibling : target).cloneNode(true);
      copy.querySelectorAll("a.headerlink").forEach(mark => mark.remove());
      copy.querySelectorAll("a").forEach(a => a.replaceWith(...a.childNodes));
      for (const one of [copy, ...copy.querySelectorAll("[id]")]) one.removeAttribute("id");
      return [copy];
    }
    if (!url.href.startsWith(root.href)) return [];
    const page = decodeURIComponent(url.href.slice(root.href.length)).replace(/\.html#.*/, "");
    const holder = document.createElement("template");
    holder.innerHTML = (await load(page))[id] ?? "";
    for (const image of holder.content.querySelectorAll("img"))
      image.src = new URL(image.getAttribute("src"), root);
    return [...holder.content.childNodes];
  }

  function place() {
    const link = at.getBoundingClientRect(), gap = 6, height = box.offsetHeight, width = box.offsetWidth;
    const above = link.bottom + gap + height > innerHeight && link.top - gap - height > 0;
    const left = Math.max(8, Math.min(link.left, document.documentElement.clientWidth - width - 8));
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${(above ? link.top - gap - height : link.bottom + gap) + scrollY}px`;
  }

  async function show(link) {
    const parts = await content(link);
    if (at !== link || !parts.length) return;
    box.replaceChildren(...parts);
    box.hidden = false;
    link.setAttribute("aria-describedby", box.id);
    place();
    await Promise.all([...box.querySelectorAll("img")].map(image => image.decode().catch(() => {})));
    if (at === link) place();
  }

  function hide() {
    clearTimeout(timer);
    at?.removeAttribute("aria-describedby");
    at = null;
    box.hidden = true;
  }

  function enter(event) {
    const link = event.target.closest?.("article a.reference.internal[href*='#'], #fl-tip");
    if (link === box || (link && link === at)) clearTimeout(timer);
    else if (link) {
      hide();
      at = link;
      link.removeAttribute("title"); // the browser's own tip would stand over this one
      timer = setTimeout(show, event.type === "focusin" ? 0 : WAIT, link);
    }
  }

  function leave(event) {
    if (!at || (event.type === "mouseout" && at === document.activeElement)) return;
    clearTimeout(timer);
    timer = setTimeout(hide, WAIT);
  }

  document.body.append(box);
  for (const name of ["mouseover", "focusin"]) document.addEventListener(name, enter);
  for (const name of ["mouseout", "focusout"]) document.addEventListener(name, leave);
  document.addEventListener("keydown", event => { if (event.key === "Escape") hide(); });
  addEventListener("beforeprint", hide);
})();
