/* One gradient step on a target of one direction with chosen Hermite coefficients, run here and now. */
(() => {
  "use strict";
  const { Panel, live, range, show } = window.featlearn;
  const [D, NEURONS, MOST] = [20, 60, 6400];
  const RATIOS = [1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8, 16]; // n/d²

  /* Standard normal numbers that are the same on every visit. */
  function normals(count, seed = 7) {
    let a = seed;
    const uniform = () => {
      a = (a + 0x6d2b79f5) | 0;
      let t = Math.imul(a ^ (a >>> 15), 1 | a);
      t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
      return (((t ^ (t >>> 14)) >>> 0) + 0.5) / 4294967296;
    };
    return Float64Array.from({ length: count }, () => Math.sqrt(-2 * Math.log(uniform())) * Math.cos(2 * Math.PI * uniform()));
  }

  /* Σ cₖ Heₖ(z)/√k! for k = 1 … 4. */
  const target = (c, z) => {
    const z2 = z * z;
    return c[0] * z + (c[1] * (z2 - 1)) / Math.SQRT2 + (c[2] * z * (z2 - 3)) / Math.sqrt(6) + (c[3] * (z2 * z2 - 6 * z2 + 3)) / Math.sqrt(24);
  };

  /* Labels without their constant and their linear part, as Algorithm 1 takes them. */
  function preprocess(X, y, n) {
    const mean = y.reduce((sum, value) => sum + value, 0) / n;
    const beta = new Float64Array(D);
    for (let i = 0; i < n; i++) for (let k = 0; k < D; k++) beta[k] += (y[i] * X[i * D + k]) / n;
    return y.map((value, i) => {
      let rest = value - mean;
      for (let k = 0; k < D; k++) rest -= X[i * D + k] * beta[k];
      return rest;
    });
  }

  /* For each neuron the mean of y x over the points with w·x ≥ 0: minus the gradient, up to a factor. */
  function step(X, y, W, n) {
    const G = new Float64Array(NEURONS * D);
    for (let j = 0; j < NEURONS; j++) {
      for (let i = 0; i < n; i++) {
        let pre = 0;
        for (let k = 0; k < D; k++) pre += W[j * D + k] * X[i * D + k];
        if (pre >= 0) for (let k = 0; k < D; k++) G[j * D + k] += (y[i] * X[i * D + k]) / n;
      }
    }
    return G;
  }

  const how = "Choose the target by its Hermite coefficients, and the number of samples. The step is computed in your browser.";
  live("target", how, (frame) => {
    const left = new Panel(frame.panels, {
      height: 338, round: true, x: [-1.12, 1.12], y: [-1.12, 1.12], names: ["along u", "across u"],
      ticks: [[[-1], [0], [1]], [[-1], [0], [1]]], title: "Neurons of length one before and after the step",
    });
    const right = new Panel(frame.panels, {
      x: [-2.8, 2.8], y: [-3, 4.5], names: ["z = u · x", "the target"],
      ticks: [[[-2], [0], [2]], [[-2], [0], [2], [4]]], title: "The target as a function of the hidden direction",
    });
    const turn = range(0, 2 * Math.PI, 91);
    left.curve("fl-ring").setAttribute("d", left.line(turn.map(Math.cos), turn.map(Math.sin)));
    const paths = left.curve("fl-orange fl-path");
    const before = range(1, NEURONS, NEURONS).map(() => left.dot("fl-dot-faint", 0, 0, 2.2));
    const after = before.map(() => left.dot("fl-dot-orange", 0, 0, 3.5));
    const curve = right.curve("fl-ink");
    const X = normals(MOST * D);
    const W = normals(NEURONS * D, 11);
    /* A neuron of length one: its part along u, and the rest with the sign of its second coordinate. */
    const place = (V, j) => {
      const row = V.subarray(j * D, (j + 1) * D);
      const size = Math.hypot(...row) || 1;
      const along = row[0] / size;
      return [along, Math.sign(row[1] || 1) * Math.sqrt(Math.max(0, 1 - along * along))];
    };
    const grid = range(-2.8, 2.8, 121);
    const state = { panels: [left, right], X, W, D };
    const c = [0, 1, 0, 0];
    let n = 400;
    function draw() {
      const y = preprocess(X, Float64Array.from({ length: n }, (_, i) => target(c, X[i * D])), n);
      const G = step(X, y, W, n);
      let [along, size] = [0, 0];
      paths.setAttribute("d", after.map((dot, j) => {
        const [from, to] = [place(W, j), place(G, j)];
        for (const [one, at] of [[before[j], from], [dot, to]]) {
          one.setAttribute("cx", left.x(at[0]).toFixed(1));
          one.setAttribute("cy", left.y(at[1]).toFixed(1));
        }
        return left.line([from[0], to[0]], [from[1], to[1]]);
      }).join(""));
      for (let j = 0; j < NEURONS; j++) {
        along += G[j * D] ** 2;
        for (let k = 0; k < D; k++) size += G[j * D + k] ** 2;
      }
      curve.setAttribute("d", right.line(grid, grid.map((z) => target(c, z))));
      const exponent = c.findIndex((value) => value !== 0) + 1;
      const alignment = size ? along / size : 0;
      frame.says.textContent = exponent
        ? `Alignment after the step: ${show(alignment, 2)}; chance is ${show(1 / D)}. The target's information exponent is ${exponent}; H has rank ${c[1] ? 1 : 0}.`
        : "The target is zero: choose a coefficient.";
      Object.assign(state, { c: c.slice(), n, y, G, alignment });
    }
    const sliders = c.map((value, i) => frame.slider(`degree ${i + 1}`, {
      max: 4, value: 4 * value, text: (k) => show(k / 4), change: (k) => { c[i] = k / 4; draw(); },
    }));
    const samples = frame.slider("samples", {
      max: RATIOS.length - 1, value: 3, text: (i) => `${RATIOS[i] < 1 ? `d²/${1 / RATIOS[i]}` : `${RATIOS[i]} d²`} = ${RATIOS[i] * D * D}`,
      change: (i) => { n = RATIOS[i] * D * D; draw(); },
    });
    frame.legend([["fl-dot-faint", `${NEURONS} neurons before, d = ${D}`], ["fl-dot-orange", "after the step"], ["fl-ink", "the target"]]);
    for (const slider of [...sliders, samples]) slider.update();
    return state;
  }, { keep: true });
})();
