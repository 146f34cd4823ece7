/* Algorithm 1: each neuron as an arrow in the plane of S*, after one step on n samples; computed beforehand. */
(() => {
  "use strict";
  const { Panel, live, range, show } = window.featlearn;

  const how = "Move the number of samples. An arrow that reaches the circle lies in the hidden plane entirely.";
  live("neurons", how, (frame, data) => {
    const { d, ratios, samples, arrows, aligned, alignment } = data;
    const last = arrows.length - 1; // 0: the start; last: the mean of the gradient
    const left = new Panel(frame.panels, {
      height: 338, round: true, x: [-1.12, 1.12], y: [-1.12, 1.12], names: ["first hidden direction", "second hidden direction"],
      ticks: [[[-1], [0], [1]], [[-1], [0], [1]]], title: "Neurons as arrows in the hidden plane",
    });
    const right = new Panel(frame.panels, {
      height: 338, x: [0.11, 36], y: [0, 1], log: "x", names: ["n/d²", "alignment"],
      ticks: [[[0.125, "1/8"], [1], [4], [32]], [[0], [0.25], [0.5], [0.75], [1]]],
      title: "Alignment with the hidden plane against the number of samples",
    });
    const turn = range(0, 2 * Math.PI, 91);
    left.curve("fl-ring").setAttribute("d", left.line(turn.map(Math.cos), turn.map(Math.sin)));
    const shafts = left.curve("fl-orange fl-arrows");
    const heads = left.curve("fl-orange fl-heads");
    const fine = range(Math.log(0.125), Math.log(32), 60).map(Math.exp);
    right.curve("fl-ink fl-dashed").setAttribute("d", right.line(fine, fine.map((q) => 1 / (1 + Math.PI / 2 / q))));
    right.curve("fl-orange fl-bars").setAttribute("d", alignment.map(([low, , high], i) => right.line([ratios[i], ratios[i]], [low, high])).join(""));
    ratios.forEach((q, i) => right.dot("fl-dot-orange", q, alignment[i][1]));
    const mark = right.dot("fl-mark", 1, 0, 8);

    const arrow = ([x, y]) => {
      const [a, b] = [left.x(x), left.y(y)];
      const angle = Math.atan2(b - left.y(0), a - left.x(0));
      const wing = (side) => `${(a - 7 * Math.cos(angle + side)).toFixed(1)},${(b - 7 * Math.sin(angle + side)).toFixed(1)}`;
      return `M${a.toFixed(1)},${b.toFixed(1)}L${wing(0.4)}L${wing(-0.4)}Z`;
    };
    const state = { panels: [left, right] };
    function draw(stop) {
      const tips = arrows[stop];
      shafts.setAttribute("d", tips.map(([x, y]) => left.line([0, x], [0, y])).join(""));
      heads.setAttribute("d", tips.map(arrow).join(""));
      const measured = stop > 0 && stop < last;
      mark.style.display = measured ? "" : "none";
      if (measured) {
        mark.setAttribute("cx", right.x(ratios[stop - 1]));
        mark.setAttribute("cy", right.y(alignment[stop - 1][1]));
      }
      frame.says.textContent = `Alignment of these neurons: ${show(aligned[stop], 2)}. For random directions it is ${show(2 / d, 2)}.`;
      Object.assign(state, { stop, tips });
    }

    const text = (stop) => {
      if (stop === 0) return "before the step";
      if (stop === last) return "infinitely many samples";
      return `n = ${samples[stop - 1]}, n/d² ≈ ${show(ratios[stop - 1])}`;
    };
    const slider = frame.slider("samples", { max: last, value: 0, text, change: draw });
    frame.legend([
      ["fl-orange", `neurons, d = ${d}`], ["fl-dot-orange", "eight data sets: median, 10–90 %"],
      ["fl-ink fl-dashed", "the limit for large d"],
    ]);
    slider.update();
    frame.play(slider, 400);
    return state;
  });
})();
