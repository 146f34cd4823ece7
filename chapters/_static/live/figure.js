/* Live figures: panels with axes, controls, and points that can be dragged or moved with the arrow keys.
   A figure replaces the still image of the page, and gives it back for print. */
(() => {
  "use strict";

  const SVG = "http://www.w3.org/2000/svg";
  const PHONE = matchMedia("(max-width: 600px)");
  const REACH = PHONE.matches ? 22 : 15; // how far from its middle a point can be taken, in units of the drawing
  const KEYS = {
    ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1], PageDown: [-10, 0], PageUp: [10, 0],
    Home: [-Infinity, 0], End: [Infinity, 0],
  };

  /* A new element at the end of `parent`; attributes that are undefined are left out. */
  function add(parent, name, attributes = {}, text) {
    const svg = name === "svg" || parent instanceof SVGElement;
    const element = svg ? document.createElementNS(SVG, name) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (value !== undefined) element.setAttribute(key, value);
    }
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }

  /* 0.025 → "0.025", 1200 → "1200", −3 → "−3" with the sign of mathematics. */
  const show = (value, digits = 3) =>
    (Number.isFinite(value) ? String(Number(value.toPrecision(digits))) : "∞").replace("-", "−");

  /* One panel: axes, ticks and labels in an SVG whose inside is addressed in the units of the data. */
  class Panel {
    constructor(parent, { width = 340, height = 270, x, y, log = "", ticks, names = [], title, role = "img", round = false }) {
      if (PHONE.matches && !round) height *= 0.62; // all panels and the controls on one screen
      const margin = { left: names[1] ? 50 : 32, right: 12, top: 14, bottom: names[0] ? 46 : 28 };
      this.svg = add(parent, "svg", { viewBox: `0 0 ${width} ${height}`, role, "aria-label": title, class: `fl-panel${round ? " fl-round" : ""}` });
      const most = !PHONE.matches || !round ? 100 : width < 200 ? 45 : 62; // per cent of the figure's width
      this.svg.style.flex = `${width} 1 ${0.75 * width}px`;
      this.svg.style.maxWidth = `min(${most}%, ${1.35 * width}px)`;
      const scale = ([low, high], from, to, logarithmic) => {
        const f = logarithmic ? Math.log : (value) => value;
        const to_screen = (value) => from + ((f(value) - f(low)) / (f(high) - f(low))) * (to - from);
        to_screen.back = (pixel) => low + ((pixel - from) / (to - from)) * (high - low);
        return to_screen;
      };
      this.x = scale(x, margin.left, width - margin.right, log.includes("x"));
      this.y = scale(y, height - margin.bottom, margin.top, log.includes("y"));
      this.inside = `fl-inside-${document.querySelectorAll("clipPath").length}`;
      const [left, top] = [this.x(x[0]), this.y(y[1])];
      const room = { x: left, y: top, width: this.x(x[1]) - left, height: this.y(y[0]) - top };
      add(add(this.svg, "clipPath", { id: this.inside }), "rect", room);
      this.handles = [];
      const axes = add(this.svg, "g", { class: "fl-axes", "aria-hidden": "true" });
      for (const [value, text = show(value)] of ticks[0]) {
        add(axes, "path", { d: `M${this.x(value)},${this.y(y[0])}V${this.y(y[1])}` });
        add(axes, "text", { x: this.x(value), y: this.y(y[0]) + 17, "text-anchor": "middle" }, text);
      }
      for (const [value, text = show(value)] of ticks[1]) {
        add(axes, "path", { d: `M${this.x(x[0])},${this.y(value)}H${this.x(x[1])}` });
        add(axes, "text", { x: this.x(x[0]) - 6, y: this.y(value) + 4, "text-anchor": "end" }, text);
      }
      const middle = [(margin.left + width - margin.right) / 2, (margin.top + height - margin.bottom) / 2];
      if (names[0]) add(axes, "text", { x: middle[0], y: height - 8, "text-anchor": "middle" }, names[0]);
      if (names[1]) {
        const turn = `translate(13 ${middle[1]}) rotate(-90)`;
        add(axes, "text", { transform: turn, "text-anchor": "middle" }, names[1]);
      }
    }

    /* An empty path, shown as far as the axes reach. */
    curve(kind) {
      return add(this.svg, "path", { class: `fl-curve ${kind}`, "clip-path": `url(#${this.inside})`, "aria-hidden": "true" });
    }

    line(xs, ys) {
      return xs.map((x, i) => `${i ? "L" : "M"}${this.x(x).toFixed(1)},${this.y(ys[i]).toFixed(1)}`).join("");
    }

    band(xs, low, high) {
      return `${this.line(xs, low)}${this.line(xs.slice().reverse(), high.slice().reverse()).replace("M", "L")}Z`;
    }

    dot(kind, x, y, radius = 3.5) {
      return add(this.svg, "circle", { class: kind, cx: this.x(x), cy: this.y(y), r: radius, "aria-hidden": "true" });
    }

    /* The position of a pointer in the units of the drawing. */
    at(event) {
      return new DOMPoint(event.clientX, event.clientY).matrixTransform(this.svg.getScreenCTM().inverse());
    }

    /* A point to drag. `drag` gets its new place in the units of the data; with `nudge`, keys move it, too. */
    handle(name, drag, nudge) {
      const role = nudge ? { tabindex: 0, role: "slider", "aria-label": name } : {};
      const group = add(this.svg, "g", { class: "fl-handle", ...role });
      add(group, "circle", { class: "fl-reach", r: REACH });
      add(group, "circle", { class: "fl-point", r: 6 });
      const handle = { group, drag, x: 0, y: 0 };
      if (this.handles.push(handle) === 1) this.#listen();
      group.addEventListener("keydown", (event) => {
        if (!(event.key in KEYS) || event.altKey || event.ctrlKey || event.metaKey) return;
        event.preventDefault();
        nudge(...KEYS[event.key]);
      });
      return handle;
    }

    place(handle, x, y, state = {}) {
      Object.assign(handle, { x: this.x(x), y: this.y(y) });
      handle.group.setAttribute("transform", `translate(${handle.x.toFixed(1)} ${handle.y.toFixed(1)})`);
      for (const [key, value] of Object.entries(state)) handle.group.setAttribute(`aria-${key}`, value);
    }

    /* The nearest point within reach is taken, and keeps its distance from the pointer. */
    #listen() {
      let held = null;
      this.svg.addEventListener("pointerdown", (event) => {
        const at = this.at(event);
        const far = (handle) => Math.hypot(handle.x - at.x, handle.y - at.y);
        const handle = this.handles.reduce((best, other) => (far(other) < far(best) ? other : best));
        if (event.button !== 0 || far(handle) > REACH) return;
        held = { handle, x: handle.x - at.x, y: handle.y - at.y };
        this.svg.setPointerCapture(event.pointerId);
        handle.group.focus({ preventScroll: true });
        event.preventDefault();
      });
      this.svg.addEventListener("pointermove", (event) => {
        if (!held) return;
        const at = this.at(event);
        held.handle.drag(this.x.back(at.x + held.x), this.y.back(at.y + held.y));
      });
      for (const end of ["pointerup", "pointercancel"]) this.svg.addEventListener(end, () => { held = null; });
    }
  }

  /* The frame of a live figure: the panels, their key, a line that says what is seen, the controls. It takes the place of
     the still picture, or stands below it if the picture shows more and the text speaks of it. */
  class Frame {
    constructor(figure, name, how, keep) {
      const stills = figure.querySelectorAll(":is(img, .fl-stack)");
      this.box = document.createElement("div");
      this.box.className = "fl-live";
      this.box.dataset.live = name;
      if (keep) Frame.text(figure).after(this.box);
      else {
        stills[0].before(this.box);
        for (const still of stills) still.classList.add("fl-still");
      }
      const says = add(this.box, "p", { class: "fl-how" });
      add(says, "strong", {}, "Try it.");
      says.append(` ${how}`);
      this.panels = add(this.box, "div", { class: "fl-panels" });
      this.key = add(this.box, "p", { class: "fl-legend" });
      this.says = add(this.box, "p", { class: "fl-says", role: "status" });
      this.controls = add(this.box, "div", { class: "fl-controls" });
    }

    /* Where what is said of the still picture ends: after its figure, or after the paragraph that says what to see. */
    static text(figure) {
      let next = (figure.closest(".cell") ?? figure).nextElementSibling;
      while (next?.matches(".cell")) next = next.nextElementSibling;
      return next?.textContent.startsWith("What to see") ? next : (figure.closest(".cell") ?? figure);
    }

    slider(name, { max, value, text, change, min = 0 }) {
      const label = add(this.controls, "label", {}, name);
      const input = add(label, "input", { type: "range", min, max, value, step: 1 });
      const output = add(label, "span", { class: "fl-value", "aria-hidden": "true" });
      const update = () => {
        const words = text(input.valueAsNumber);
        output.textContent = words;
        input.setAttribute("aria-valuetext", words);
        change(input.valueAsNumber);
      };
      input.addEventListener("input", update);
      return { input, update };
    }

    choice(name, options, change) {
      const label = add(this.controls, "label", {}, name);
      const select = add(label, "select");
      for (const [value, text] of options) add(select, "option", { value }, text);
      select.addEventListener("change", () => change(select.value));
    }

    button(name, press) {
      const button = add(this.controls, "button", { type: "button" }, name);
      button.addEventListener("click", press);
      return button;
    }

    /* The slider moves by itself to its end, once, when the figure is first seen; whoever takes a control stops it. */
    play({ input, update }, wait = 700) {
      let timer = 0;
      const set = (next) => {
        clearInterval(timer);
        timer = next;
        button.textContent = timer ? "Pause" : "Play";
        this.says.setAttribute("aria-live", timer ? "off" : "polite");
      };
      const step = () => {
        input.stepUp();
        update();
        if (input.valueAsNumber >= Number(input.max)) set(0);
      };
      const start = () => {
        if (input.valueAsNumber >= Number(input.max)) { input.value = input.min; update(); }
        set(setInterval(step, wait));
      };
      const button = this.button("Play", () => (timer ? set(0) : start()));
      this.controls.prepend(button);
      this.box.addEventListener("input", () => set(0));
      this.box.addEventListener("pointerdown", (event) => { if (event.target !== button) set(0); });
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
      const seen = new IntersectionObserver((entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        seen.disconnect();
        start();
      }, { threshold: 0.5 });
      seen.observe(this.box);
    }

    legend(entries) {
      for (const [kind, text] of entries) {
        const entry = add(this.key, "span");
        const sample = add(entry, "svg", { viewBox: "0 0 28 12", "aria-hidden": "true" });
        if (kind.startsWith("fl-dot")) add(sample, "circle", { class: kind, cx: 14, cy: 6, r: 4 });
        else add(sample, "path", { class: `fl-curve ${kind}`, d: /fl-(band|outline|bar|closed)/.test(kind) ? "M0,0H28V12H0Z" : "M0,6H28" });
        entry.append(` ${text}`);
      }
    }
  }

  /* Build the figure `fig-live-NAME`, in a copy on another page without its still; if anything fails, the still stays. */
  function live(name, how, build, { keep = false } = {}) {
    const figure = document.querySelector(`#fig-live-${name}, #picture-fig-live-${name}`);
    const data = JSON.parse(document.getElementById(`live-${name}`).textContent);
    const frame = new Frame(figure, name, how, keep && !figure.id.startsWith("picture-"));
    try {
      figure.live = build(frame, data);
    } catch (error) {
      frame.box.remove();
      for (const still of figure.querySelectorAll(".fl-still")) still.classList.remove("fl-still");
      throw error;
    }
  }

  const range = (low, high, count) => Array.from({ length: count }, (_, i) => low + ((high - low) * i) / (count - 1));

  Object.assign(window.featlearn, { add, show, Panel, live, range });
})();
