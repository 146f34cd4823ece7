/* Networks of one hidden layer and their linearisations after training, by width; the ensembles were trained beforehand. */
(() => {
  "use strict";
  const { Panel, live, range, show } = window.featlearn;
  const NAMES = { relu: "ReLU", erf: "erf", "erf mean-field": "erf, mean-field scaling" };

  const how = "Move the width. Four networks start anew at each width; their linearisations start with them.";
  live("width", how, (frame, data) => {
    const { kinds, widths, runs } = data;
    const grid = range(-Math.PI, Math.PI, runs[`${kinds[0]}/${widths[0]}`].network[0].length);
    const [low, high] = [-1.6, 1.6];
    const left = new Panel(frame.panels, {
      x: [-Math.PI, Math.PI], y: [low, high], names: ["angle of x", "f(x) after training"],
      ticks: [[[-Math.PI, "−180°"], [0, "0°"], [Math.PI, "180°"]], [[-1], [0], [1]]],
      title: "Four trained networks and their linearisations",
    });
    const right = new Panel(frame.panels, {
      x: [6.5, 5000], y: [3e-4, 4], log: "xy", names: ["width", "largest gap on the circle"],
      ticks: [[[8], [64], [512], [4096, "4096"]], [[0.001], [0.01], [0.1], [1]]],
      title: "The gap between network and linearisation against the width",
    });
    const colours = ["fl-blue", "fl-orange", "fl-green", "fl-purple"];
    const solid = colours.map((colour) => left.curve(colour));
    const dashed = colours.map((colour) => left.curve(`${colour} fl-dashed`));
    const reach = right.curve("fl-blue fl-band");
    const middle = right.curve("fl-blue");
    const mark = right.dot("fl-dot-blue", widths[0], 1, 6);
    range(0, 5, 6).forEach((i) => {
      const angle = 0.3 + (i * Math.PI) / 3;
      left.dot("fl-dot-ink", angle > Math.PI ? angle - 2 * Math.PI : angle, Math.sin(angle), 4);
    });

    const clip = (values) => values.map((value) => Math.max(low, Math.min(high, value)));
    const state = {};
    let [kind, width] = [kinds[0], widths[0]];
    function draw() {
      const run = runs[`${kind}/${width}`];
      run.network.forEach((f, i) => solid[i].setAttribute("d", left.line(grid, clip(f))));
      run.linear.forEach((f, i) => dashed[i].setAttribute("d", left.line(grid, clip(f))));
      const quantile = (q) => widths.map((m) => runs[`${kind}/${m}`].gap[q]);
      reach.setAttribute("d", right.band(widths, quantile(0), quantile(2)));
      middle.setAttribute("d", right.line(widths, quantile(1)));
      mark.setAttribute("cx", right.x(width));
      mark.setAttribute("cy", right.y(run.gap[1]));
      frame.says.textContent = `Width ${width}: the median gap of forty networks is ${show(run.gap[1], 2)}.`;
      Object.assign(state, { kind, width, run });
    }

    const slider = frame.slider("width", {
      max: widths.length - 1, value: 1, text: (i) => String(widths[i]), change: (i) => { width = widths[i]; draw(); },
    });
    frame.choice("network", kinds.map((k) => [k, NAMES[k]]), (value) => { kind = value; draw(); });
    frame.legend([
      ["fl-dot-ink", "training points"], ["fl-blue", "network"], ["fl-blue fl-dashed", "its linearisation"],
      ["fl-blue fl-band", "middle 80 % of forty networks"],
    ]);
    slider.update();
    return state;
  });
})();
