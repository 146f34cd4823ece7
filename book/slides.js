// Slides: reveal.js, and text that is as large as its slide allows.
(() => {
  const fit = slide => {
    const box = slide.querySelector(":scope > .fl-fit");
    if (!box || box.dataset.fitted) return;
    const isWide = part => part.scrollWidth > part.clientWidth + 1;
    const isFull = () => box.scrollHeight > box.clientHeight || [box, ...box.querySelectorAll(".katex-display")].some(isWide);
    let size = slide.matches(".fl-figure") ? 1.04 : 1.2;
    do box.style.fontSize = `${size -= 0.04}em`; while (isFull() && size > 0.65);
    box.dataset.fitted = isFull() ? "too much" : size.toFixed(2);
  };
  addEventListener("load", () => {
    const deck = new Reveal(document.querySelector(".reveal"), {
      width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c", controls: false,
      transition: "none", pdfSeparateFragments: false, plugins: [RevealNotes],
    });
    deck.on("slidechanged", event => fit(event.currentSlide));
    deck.on("pdf-ready", () => document.querySelectorAll(".slides section").forEach(fit));
    deck.initialize().then(() => /print-pdf/.test(location.search) || fit(deck.getCurrentSlide()));
    window.deck = deck;
  });
})();
