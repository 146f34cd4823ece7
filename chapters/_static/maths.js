// Set the formulas inside `root` with KaTeX. Each stands in an element of the class math, as \(...\), \[...\] or
// \begin...; the number of an equation stands beside it.
function typeset(root) {
  for (const formula of root.querySelectorAll(".math")) {
    const source = [...formula.childNodes].find(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    const text = source?.data.trim() ?? "";
    if (!/^\\(\(|\[|begin)/.test(text)) continue; // it is set already, or is none
    const holder = document.createElement("span"), displayMode = !text.startsWith("\\(");
    try {
      katex.render(text.replace(/^\\[(\[]|\\[)\]]$/g, ""), holder, {displayMode, strict: false});
      source.replaceWith(...holder.childNodes);
    } catch (error) { // its source stays
      formula.classList.add("katex-error");
      formula.title = error.message;
    }
  }
}

typeset(document);
