/* Gradient flow: the function at time t, and how much of each eigen-direction is learned. */
(() => {
  "use strict";
  const { Panel, add, flow, live, range, show, sum } = window.featlearn;
  const LAST = 60; // stops of the time slider, from 10⁻³ to 10³
  const time = (stop) => (stop === 0 ? 0 : 10 ** (-3 + (6 * (stop - 1)) / (LAST - 1)));

  const how = "Move the time. Then choose one eigen-direction and watch its share of the function grow.";
  live("flow", how, (frame, data) => {
    const grid = range(0, 2 * Math.PI, 201);
    const path = flow(data.x, data.y, grid);
    const size = path.eigenvalues.length;
    const left = new Panel(frame.panels, {
      x: [0, 2 * Math.PI], y: [-2.4, 2.4], names: ["x", "f(x) at time t"],
      ticks: [[[0], [Math.PI, "π"], [2 * Math.PI, "2π"]], [[-2], [-1], [0], [1], [2]]],
      title: "Noisy labels and the function that gradient flow has reached",
    });
    const right = new Panel(frame.panels, {
      x: [0.3, size + 0.7], y: [0, Math.max(...path.labels.map(Math.abs)) * 1.05],
      names: ["eigen-direction, largest eigenvalue first", "size of the labels in it"],
      ticks: [[[1], [5], [10], [15], [20]], [[0], [1], [2], [3], [4]].filter(([v]) => v <= Math.max(...path.labels.map(Math.abs)))],
      title: "The labels in each eigen-direction, and the share that is learned",
    });
    data.x.forEach((x, i) => left.dot("fl-dot-faint", x, data.y[i]));
    const truth = grid.map((x) => Math.sin(x) + 0.5 * Math.sin(4 * x));
    left.curve("fl-ink fl-thin").setAttribute("d", left.line(grid, truth));
    const part = left.curve("fl-orange fl-dashed");
    const curve = left.curve("fl-blue");
    const bars = path.labels.map((label, i) => {
      const [x, width] = [right.x(i + 0.62), right.x(1.76) - right.x(1)];
      const bar = (kind) => add(right.svg, "rect", { class: kind, x, width, "aria-hidden": "true" });
      const [whole, done] = [bar("fl-bar"), bar("fl-bar-done")];
      whole.setAttribute("y", right.y(Math.abs(label)));
      whole.setAttribute("height", right.y(0) - right.y(Math.abs(label)));
      return { whole, done };
    });

    const state = { eigenvalues: path.eigenvalues, labels: path.labels, grid, panels: [left, right] };
    let [t, direction] = [0, 0];
    function draw() {
      const parts = path.parts(t);
      const f = sum(parts);
      curve.setAttribute("d", left.line(grid, f));
      part.setAttribute("d", direction ? left.line(grid, parts[direction - 1]) : "");
      bars.forEach(({ whole, done }, i) => {
        const height = (1 - Math.exp(-path.eigenvalues[i] * t)) * Math.abs(path.labels[i]);
        done.setAttribute("y", right.y(height));
        done.setAttribute("height", right.y(0) - right.y(height));
        whole.classList.toggle("fl-chosen", i === direction - 1);
      });
      const away = Math.sqrt(f.reduce((total, value, i) => total + (value - truth[i]) ** 2, 0) / grid.length);
      const half = path.eigenvalues.filter((s) => s * t >= Math.LN2).length;
      const learned = direction ? 100 * (1 - Math.exp(-path.eigenvalues[direction - 1] * t)) : 0;
      frame.says.textContent = direction
        ? `Direction ${direction}, eigenvalue ${show(path.eigenvalues[direction - 1])}: ${show(learned)}\u00a0% learned.`
        : `${half} of ${size} directions are more than half learned. Distance to the true function: ${show(away, 2)}.`;
      Object.assign(state, { t, direction, f, parts });
    }

    const clock = frame.slider("time", {
      max: LAST, value: 28, text: (stop) => show(time(stop), 2), change: (stop) => { t = time(stop); draw(); },
    });
    const which = frame.slider("direction", {
      max: size, value: 0, text: (i) => (i ? String(i) : "all"), change: (i) => { direction = i; draw(); },
    });
    frame.legend([
      ["fl-dot-faint", "labels"], ["fl-ink fl-thin", "the true function"], ["fl-blue", "the function"], ["fl-orange fl-dashed", "the part of the chosen direction"],
      ["fl-bar-done", "learned"], ["fl-bar", "not yet learned"], ["fl-bar fl-chosen", "chosen"],
    ]);
    which.update();
    clock.update();
    return state;
  });
})();
