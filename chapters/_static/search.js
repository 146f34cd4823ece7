// The page of the search: the glossary's definition first, then sections and theorems that Pagefind finds.
// From the disk, where a page may load nothing, Sphinx's own results stay.
(async () => {
  "use strict";
  if (location.protocol === "file:") return;
  const query = new URLSearchParams(location.search).get("q")?.trim();
  const theirs = document.getElementById("search-results");
  if (!query || !theirs) return;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const same = (name) => name.toLowerCase().replace("\u00b5", "\u03bc");
  const term = window.featlearnTerms.find(({ names }) => names.map(same).includes(same(query)));

  const ours = Object.assign(document.createElement("ol"), { id: "fl-results" });
  const entry = (href, title, place, text) => {
    const item = ours.appendChild(document.createElement("li"));
    item.appendChild(Object.assign(document.createElement("a"), { href, textContent: title }));
    if (place) item.appendChild(Object.assign(document.createElement("span"), { className: "fl-place", textContent: place }));
    item.appendChild(Object.assign(document.createElement("p"), { innerHTML: text }));
  };
  const plain = (text) => Object.assign(document.createElement("p"), { textContent: text }).innerHTML;

  try {
    const pagefind = await import(new URL("pagefind/pagefind.js", root));
    await pagefind.options({ baseUrl: "/" });
    // All names of a term are asked for, its first name with the most weight.
    const asked = term ? [...new Set([...term.names, query])] : [query];
    const found = new Map();
    for (const [rank, name] of asked.entries()) {
      const whole = name.includes(" ") ? 3 : 1; // a phrase counts more than its words
      for (const words of whole > 1 ? [`"${name}"`, name] : [name]) {
        for (const result of (await pagefind.search(words)).results) {
          const score = result.score / (1 + rank) / (words === name ? whole : 1);
          if (!found.has(result.id) || found.get(result.id).score < score) found.set(result.id, { result, score });
        }
      }
    }
    const best = [...found.values()].sort((a, b) => b.score - a.score).slice(0, 12);
    const pages = await Promise.all(best.map(({ result }) => result.data()));
    if (term) entry(new URL(term.url, root).href, term.names[0], "glossary", plain(term.says));
    // A section that has the word in its name comes first; what is for lecturers last.
    const named = ({ title }) => asked.some((name) => title.toLowerCase().includes(name.toLowerCase()));
    const place = ({ url, sub_results }) => (/appendix\/instructor/.test(url) ? 2 : sub_results.some(named) ? 0 : 1);
    for (const page of pages.sort((a, b) => place(a) - place(b))) {
      if (term && page.url.includes("appendix/glossary")) continue;
      const weight = (part) => part.weighted_locations.reduce((sum, at) => sum + at.balanced_score, 0);
      const parts = page.sub_results.slice().sort((a, b) => named(b) - named(a) || weight(b) - weight(a)).slice(0, 2);
      for (const part of parts) {
        const url = new URL(part.url.replace(/^\//, ""), root);
        entry(url.href, part.title, part.title === page.meta.title ? "" : page.meta.title, part.excerpt);
      }
    }
    theirs.hidden = true;
    theirs.before(ours);
    const status = document.createElement("p");
    status.setAttribute("role", "status");
    status.textContent = ours.children.length ? `${ours.children.length} places for \u201c${query}\u201d` : `Nothing found for \u201c${query}\u201d.`;
    ours.before(status);
    document.documentElement.dataset.searched = "yes";
  } catch (error) {
    console.info("Sphinx's search is used", error);
  }
})();
