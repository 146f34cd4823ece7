/* Training points on the circle: the law of a trained wide network (Θ and Σ) and the posterior of Σ. */
(() => {
  "use strict";
  const { Panel, live, posteriors, range, show } = window.featlearn;
  const NEAREST = 0.2; // radians between two training points
  const STEP = Math.PI / 90; // of the arrow keys
  const TOP = 2; // the largest label
  const point = (angle) => [Math.cos(angle), Math.sin(angle)];
  const wrap = (angle) => angle - 2 * Math.PI * Math.round(angle / (2 * Math.PI));
  const apart = (angle, other) => Math.abs(wrap(angle - other));
  const within = (value, limit) => Math.max(-limit, Math.min(limit, value));

  const how =
    "Drag a point, on the curve or on the circle, or select it with Tab and use the arrow keys. Points stay 11° apart.";
  live("circle", how, (frame, data) => {
    const start = data.angles.map((angle, i) => ({ angle: wrap(angle), label: data.labels[i] }));
    let points = start.map((p) => ({ ...p }));
    const network = { depth: 8, activation: "relu" }; // where the two laws differ
    const grid = range(-Math.PI, Math.PI, 181);
    const at = grid.map(point);

    const quarters = [-1, -0.5, 0, 0.5, 1].map((turn) => [turn * Math.PI, `${show(turn * 180)}°`]);
    const main = new Panel(frame.panels, {
      x: [-Math.PI, Math.PI], y: [-2.6, 2.6], role: "group",
      ticks: [quarters, [[-2], [-1], [0], [1], [2]]], names: ["angle of x", "f(x)"],
      title: "Functions on the circle, unrolled",
    });
    const round = new Panel(frame.panels, {
      width: 170, height: 170, round: true, x: [-1.35, 1.35], y: [-1.35, 1.35], ticks: [[], []],
      title: "The training points on the circle",
    });
    const ring = range(-Math.PI, Math.PI, 91);
    round.curve("fl-ring").setAttribute("d", round.line(ring.map(Math.cos), ring.map(Math.sin)));
    const bands = { ntk: main.curve("fl-blue fl-band"), nngp: main.curve("fl-green fl-outline") };
    const curves = { ntk: main.curve("fl-blue"), nngp: main.curve("fl-green fl-dashed") };

    const free = (i, angle) => points.every((p, j) => j === i || apart(p.angle, angle) >= NEAREST - 1e-9);
    /* The free angle nearest to the one wanted: a kernel cannot tell two labels at one point apart. */
    const nearest = (i, angle) =>
      [angle, ...points.flatMap((p) => [wrap(p.angle - NEAREST), wrap(p.angle + NEAREST)])]
        .filter((other) => free(i, other))
        .reduce((best, other) => (apart(other, angle) < apart(best, angle) ? other : best));
    const move = (i, angle, label) => {
      points[i] = { angle: nearest(i, angle), label: within(label, TOP) };
      draw();
    };
    /* Keys jump over a neighbour. */
    const nudge = (i) => (right, up) => {
      if (!Number.isFinite(right)) return move(i, within(right, Math.PI), points[i].label);
      let angle = points[i].angle + right * STEP;
      while (right && !free(i, angle)) angle += Math.sign(right) * STEP;
      move(i, wrap(angle), points[i].label + 0.05 * up);
    };
    const name = (i) => `Point ${i + 1}: left and right change the angle, up and down the label`;
    const handles = points.map((_, i) => [
      main.handle(name(i), (angle, label) => move(i, within(angle, Math.PI), label), nudge(i)),
      round.handle(name(i), (x, y) => move(i, Math.atan2(y, x), points[i].label)),
    ]);

    const state = { panels: [main, round] };
    function draw() {
      const [sigmaW, sigmaB] = data.scales[network.activation];
      const X = points.map((p) => point(p.angle));
      const law = posteriors({ ...network, sigmaW, sigmaB }, X, points.map((p) => p.label), at);
      for (const [kind, { mean, sd }] of Object.entries(law)) {
        const edge = (sign) => mean.map((value, i) => value + sign * 1.96 * sd[i]);
        bands[kind].setAttribute("d", main.band(grid, edge(-1), edge(1)));
        curves[kind].setAttribute("d", main.line(grid, mean));
      }
      points.forEach(({ angle, label }, i) => {
        const degrees = Math.round((angle * 180) / Math.PI);
        const text = `${degrees} degrees, label ${label.toFixed(2)}`;
        main.place(handles[i][0], angle, label, { valuemin: -180, valuemax: 180, valuenow: degrees, valuetext: text });
        round.place(handles[i][1], ...point(angle));
      });
      const widest = (kind) => show(Math.max(...law[kind].sd));
      frame.says.textContent = `Largest standard deviation: ${widest("ntk")} after training, ${widest("nngp")} for the posterior.`;
      Object.assign(state, { network: { ...network, sigmaW, sigmaB }, points, grid, law });
    }

    const depth = frame.slider("layers", {
      min: 2, max: 8, value: 8, text: String, change: (value) => { network.depth = value; draw(); },
    });
    frame.choice("activation", [["relu", "ReLU"], ["erf", "erf"]], (value) => { network.activation = value; draw(); });
    frame.button("Reset the points", () => { points = start.map((p) => ({ ...p })); draw(); });
    frame.legend([
      ["fl-blue", "trained network (Θ and Σ)"], ["fl-blue fl-band", "its band"],
      ["fl-green fl-dashed", "posterior of Σ"], ["fl-green fl-outline", "its band"],
    ]);
    depth.update();
    return state;
  });
})();
