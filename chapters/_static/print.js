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
