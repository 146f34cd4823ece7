/* Training points on the circle: the law of a trained wide network (Θ and Σ) and the posterior of Σ. */
(() => {
  "use strict";
  const { Panel, handle, live, posteriors, range, show } = window.featlearn;
  const NEAREST = 0.2; // radians between two training points
  const TOP = 2; // the largest label
  const point = (angle) => [Math.cos(angle), Math.sin(angle)];
  const wrap = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));

  const how = "Drag a point, on the curve or on the circle, or select it with Tab and use the arrow keys.";
  live("circle", how, (frame, data) => {
    const start = data.angles.map((angle, i) => ({ angle: wrap(angle), label: data.labels[i] }));
    let points = start.map((p) => ({ ...p }));
    const network = { depth: 2, activation: "relu" };
    const grid = range(-Math.PI, Math.PI, 181);
    const at = grid.map(point);

    const quarters = [-1, -0.5, 0, 0.5, 1].map((turn) => [turn * Math.PI, `${Math.round(turn * 180)}°`.replace("-", "−")]);
    const main = new Panel(frame.panels, {
      x: [-Math.PI, Math.PI], y: [-2.6, 2.6], role: "group",
      ticks: [quarters, [[-2], [-1], [0], [1], [2]]], names: ["angle of x", "f(x)"],
      title: "Functions on the circle, unrolled",
    });
    const round = new Panel(frame.panels, {
      width: 170, height: 170, x: [-1.35, 1.35], y: [-1.35, 1.35], role: "group", ticks: [[], []],
      title: "The training points on the circle",
    });
    const ring = range(-Math.PI, Math.PI, 91);
    round.curve("fl-ring").setAttribute("d", round.line(ring.map(Math.cos), ring.map(Math.sin)));
    const bands = { ntk: main.curve("fl-blue fl-band"), nngp: main.curve("fl-green fl-band") };
    const curves = { ntk: main.curve("fl-blue"), nngp: main.curve("fl-green fl-dashed") };

    /* Points keep their distance: a kernel cannot tell two labels at one point apart. */
    const move = (i, angle, label) => {
      const free = points.every((p, j) => j === i || Math.abs(wrap(p.angle - angle)) >= NEAREST);
      if (free) points[i].angle = wrap(angle);
      points[i].label = Math.max(-TOP, Math.min(TOP, label));
      draw();
    };
    const step = (i) => (right, up) =>
      move(i, points[i].angle + (right * Math.PI) / 90, points[i].label + up * 0.05);
    const handles = points.map((_, i) => [
      handle(main, `Point ${i + 1}: angle and label`, {
        drag: (angle, label) => move(i, angle, label),
        nudge: step(i),
      }),
      handle(round, `Point ${i + 1} on the circle: angle`, {
        drag: (x, y) => move(i, Math.atan2(y, x), points[i].label),
        nudge: (right, up) => step(i)(right || up, 0),
      }),
    ]);

    const state = {};
    function draw() {
      const [sigmaW, sigmaB] = data.scales[network.activation];
      const X = points.map((p) => point(p.angle));
      const law = posteriors({ ...network, sigmaW, sigmaB }, X, points.map((p) => p.label), at);
      for (const [name, { mean, sd }] of Object.entries(law)) {
        const edge = (sign) => mean.map((value, i) => Math.max(-2.6, Math.min(2.6, value + sign * 1.96 * sd[i])));
        bands[name].setAttribute("d", main.band(grid, edge(-1), edge(1)));
        curves[name].setAttribute("d", main.line(grid, mean.map((value) => Math.max(-2.6, Math.min(2.6, value)))));
      }
      points.forEach(({ angle, label }, i) => {
        const degrees = Math.round((angle * 180) / Math.PI);
        const value = { low: -180, high: 180, now: degrees };
        handles[i][0].place(angle, label, { ...value, text: `${degrees} degrees, label ${label.toFixed(2)}` });
        handles[i][1].place(...point(angle), { ...value, text: `${degrees} degrees` });
      });
      const widest = Object.fromEntries(Object.entries(law).map(([name, { sd }]) => [name, Math.max(...sd)]));
      frame.says.textContent =
        `Largest standard deviation: ${show(widest.ntk)} after training, ${show(widest.nngp)} for the posterior.`;
      Object.assign(state, { network: { ...network, sigmaW, sigmaB }, points, grid, law });
    }

    const depth = frame.slider("layers", {
      min: 2, max: 8, value: 2, text: String, change: (value) => { network.depth = value; draw(); },
    });
    frame.choice("activation", [["relu", "ReLU"], ["erf", "erf"]], (value) => { network.activation = value; draw(); });
    frame.button("Reset the points", () => { points = start.map((p) => ({ ...p })); draw(); });
    frame.legend([
      ["fl-blue", "trained network (Θ and Σ): mean"], ["fl-blue fl-band", "± 1.96 standard deviations"],
      ["fl-green fl-dashed", "posterior of Σ: mean"], ["fl-green fl-band", "± 1.96 standard deviations"],
    ]);
    depth.update();
    return state;
  });
})();
