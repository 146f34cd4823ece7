// Remembers in this browser, and nowhere else, which pages were read to their end and where reading stopped.
(() => {
  "use strict";
  const KEY = "featlearn-reading";
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const name = (url) => url.pathname.slice(root.pathname.length) || "index.html";
  const here = name(new URL(location.href));
  const recall = () => {
    try { return { read: {}, places: {}, ...JSON.parse(localStorage.getItem(KEY)) }; }
    catch { return { read: {}, places: {} }; }
  };
  const keep = (change) => {
    const memory = recall();
    change(memory);
    try { localStorage.setItem(KEY, JSON.stringify(memory)); } catch { /* a browser that keeps nothing */ }
  };

  const said = (heading) => heading.textContent.replace(/#$/, "").trim();

  // The pages of the sidebar that were read have a mark that is also heard.
  function mark() {
    const { read } = recall();
    for (const link of document.querySelectorAll(".bd-sidebar-primary nav a[href]")) {
      const done = read[name(new URL(link.href))];
      if (!done || link.querySelector(".fl-read")) continue;
      link.insertAdjacentHTML("beforeend", ' <span class="fl-read" title="read">✓<span class="visually-hidden"> read</span></span>');
    }
  }

  // Where reading stopped: the last heading above the middle of the screen.
  function watch(article) {
    const headings = [...article.querySelectorAll("section[id] > :is(h1, h2, h3)")];
    const end = headings.find((heading) => /^[\d.]*\s*(Exercises|Measured on this page|Notes)$/.test(said(heading)));
    let waiting = 0;
    addEventListener("scroll", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        const passed = headings.filter((heading) => heading.getBoundingClientRect().top < innerHeight / 2);
        const last = passed.at(-1);
        if (!last) return;
        const bottom = scrollY + innerHeight > document.documentElement.scrollHeight - 50;
        const done = bottom || (end && passed.includes(end));
        const place = { id: last.parentElement.id, title: said(last) };
        keep((memory) => {
          if (done) { memory.read[here] = true; delete memory.places[here]; }
          else if (last.tagName !== "H1") memory.places[here] = place;
          memory.last = { page: here, title: said(headings[0]), ...(done ? {} : { id: place.id }) };
        });
        if (done) mark();
      }, 400);
    }, { passive: true });
  }

  // A page that was left in the middle offers to go on there.
  function offer(article) {
    const place = recall().places[here];
    if (!place || location.hash || !document.getElementById(place.id)) return;
    const line = document.createElement("p");
    line.className = "fl-resume";
    const link = Object.assign(document.createElement("a"), { href: `#${place.id}`, textContent: `Go on at ${place.title}` });
    line.append(link);
    article.querySelector("h1").after(line);
  }

  // The front page goes on where reading stopped last.
  function front() {
    const { last } = recall();
    const start = [...document.querySelectorAll("a.btn, a.sd-btn")].find((button) => button.textContent.trim() === "Start reading");
    if (!last || !start) return;
    start.href = new URL(last.page + (last.id ? `#${last.id}` : ""), root).href;
    (start.querySelector("span") ?? start).textContent = `Go on: ${last.title}`;
  }

  addEventListener("DOMContentLoaded", () => {
    const article = document.querySelector("article.bd-article");
    mark();
    if (!article) return;
    if (here === "chapters/index.html" || here === "index.html") front();
    else if (/^chapters\/\d\d_/.test(here) && !/index\.html$/.test(here)) { offer(article); watch(article); }
  });
})();
