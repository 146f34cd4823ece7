/* One network, trained with several output scales from the same initial weights. */
(() => {
  "use strict";
  const { Panel, add, live, range, show } = window.featlearn;

  const how = "Turn the dial: the network is αf, trained to the same time from the same initial weights.";
  live("lazy", how, (frame, data) => {
    const plane = new Panel(frame.panels, {
      height: 300, width: 320, round: true, x: [-8, 8], y: [-8, 8], names: ["first input weight", "second input weight"],
      ticks: [[[-5], [0], [5]], [[-5], [0], [5]]], title: "Input weights of a hundred neurons, before and after training",
    });
    const values = new Panel(frame.panels, {
      height: 300, width: 320, x: [-Math.PI, Math.PI], y: [-4.6, 4.6], names: ["angle of x", "f(x) after training"],
      ticks: [[[-Math.PI, "−180°"], [0, "0°"], [Math.PI, "180°"]], [[-3], [0], [3]]], title: "The trained network and its linearisation",
    });
    const matrices = ["before", "after"].map((when) => new Panel(frame.panels, {
      width: 190, height: 190, round: true, x: [0, 6], y: [0, 6], ticks: [[], []], names: [`tangent kernel ${when}`], title: `Tangent kernel on the training points ${when} training`,
    }));
    const cells = matrices.map((panel) => data.kernel.map((row, i) => row.map((_, j) => add(panel.svg, "rect", {
      x: panel.x(j), y: panel.y(6 - i), width: panel.x(1) - panel.x(0), height: panel.y(0) - panel.y(1), class: "fl-cell", "aria-hidden": "true",
    }))));
    const fill = (which, matrix, top) => matrix.forEach((row, i) => row.forEach((value, j) => {
      cells[which][i][j].style.fillOpacity = Math.max(0, Math.min(1, value / top)).toFixed(3);
    }));
    const paths = [plane.curve("fl-blue fl-path"), plane.curve("fl-orange fl-path")];
    data.start.forEach(([x, y]) => plane.dot("fl-dot-faint", x, y, 1.8));
    const ends = data.start.map(([x, y]) => plane.dot("fl-dot-blue", x, y, 3));
    const grid = range(-Math.PI, Math.PI, data.stops[0].network.length);
    const network = values.curve("fl-green");
    const linear = values.curve("fl-ink fl-dashed");
    data.angles.forEach((angle, i) => values.dot("fl-dot-ink", angle, data.labels[i], 4));

    const state = { panels: [plane, values, ...matrices], grid };
    function draw(stop) {
      const run = data.stops[stop];
      run.end.forEach(([x, y], j) => {
        ends[j].setAttribute("class", run.positive[j] ? "fl-dot-orange" : "fl-dot-blue");
        ends[j].setAttribute("cx", plane.x(x).toFixed(1));
        ends[j].setAttribute("cy", plane.y(y).toFixed(1));
      });
      paths.forEach((path, sign) => path.setAttribute("d", run.end.map(([x, y], j) =>
        (run.positive[j] === sign ? plane.line([data.start[j][0], x], [data.start[j][1], y]) : "")).join("")));
      network.setAttribute("d", values.line(grid, run.network));
      linear.setAttribute("d", values.line(grid, run.linear));
      const top = Math.max(1, ...run.kernel.flat());
      fill(0, data.kernel, top);
      fill(1, run.kernel, top);
      const gap = Math.max(...run.network.map((value, i) => Math.abs(value - run.linear[i])));
      frame.says.textContent =
        `The weights moved by ${show(run.moved, 2)} times their size, the tangent kernel by ${show(run.changed, 2)} times its own. Largest gap to the linearisation: ${show(gap, 2)}.`;
      Object.assign(state, { stop, run, gap });
    }

    const name = (scale) => `α = ${scale < 1 ? `1/${1 / scale}` : scale}`;
    const dial = frame.slider("lazy … rich", { max: data.stops.length - 1, value: 0, text: (i) => name(data.stops[i].scale), change: draw });
    frame.legend([
      ["fl-dot-faint", "neuron before"], ["fl-dot-orange", "after, output weight positive"], ["fl-dot-blue", "negative"],
      ["fl-green", "network"], ["fl-ink fl-dashed", "linearisation"],
    ]);
    dial.update();
    frame.play(dial, 900);
    return state;
  }, { keep: true });
})();
