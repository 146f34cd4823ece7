/* Networks of one hidden layer and their linearisations after training, by width; the ensembles were trained beforehand. */
(() => {
  "use strict";
  const { Panel, live, range, show } = window.featlearn;
  const NAMES = { relu: "ReLU", erf: "erf", "erf mean-field": "erf, mean-field scaling" };

  const how = "Move the width. Three networks start anew at each width; their linearisations start with them.";
  live("width", how, (frame, data) => {
    const { angles, labels, kinds, widths, runs } = data;
    const grid = range(-Math.PI, Math.PI, runs[`${kinds[0]}/${widths[0]}`].network[0].length);
    const left = new Panel(frame.panels, {
      x: [-Math.PI, Math.PI], y: [-4.3, 4.3], names: ["angle of x", "f(x) after training"],
      ticks: [[[-Math.PI, "−180°"], [0, "0°"], [Math.PI, "180°"]], [[-3], [0], [3]]],
      title: "Three trained networks and their linearisations",
    });
    const right = new Panel(frame.panels, {
      x: [6.5, 5000], y: [5e-3, 4], log: "xy", names: ["width", "largest gap on the circle"],
      ticks: [[[8], [64], [512], [4096, "4096"]], [[0.01], [0.1], [1]]],
      title: "The gap between network and linearisation against the width",
    });
    const quantile = (q, kind) => widths.map((m) => runs[`${kind}/${m}`].gap[q]);
    for (const kind of kinds) right.curve("fl-others").setAttribute("d", right.line(widths, quantile(1, kind)));
    const colours = ["fl-blue", "fl-orange", "fl-green"];
    const solid = colours.map((colour) => left.curve(colour));
    const dashed = colours.map((colour) => left.curve(`${colour} fl-dashed`));
    const reach = right.curve("fl-blue fl-band");
    const middle = right.curve("fl-blue");
    const mark = right.dot("fl-dot-blue", widths[0], 1, 6);
    angles.forEach((angle, i) => left.dot("fl-dot-ink", angle, labels[i], 4));

    const state = { grid, panels: [left, right] };
    let [kind, width] = [kinds[0], widths[0]];
    function draw() {
      const run = runs[`${kind}/${width}`];
      run.network.forEach((f, i) => solid[i].setAttribute("d", left.line(grid, f)));
      run.linear.forEach((f, i) => dashed[i].setAttribute("d", left.line(grid, f)));
      reach.setAttribute("d", right.band(widths, quantile(0, kind), quantile(2, kind)));
      middle.setAttribute("d", right.line(widths, quantile(1, kind)));
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
      ["fl-blue fl-band", "middle 80\u00a0% of forty networks"], ["fl-others", "the other kinds"],
    ]);
    slider.update();
    return state;
  });
})();
