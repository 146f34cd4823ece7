/* Training a wide network and its tangent kernel on three frequencies; the runs were made beforehand. */
(() => {
  "use strict";
  const { Panel, live, range, show } = window.featlearn;
  const COLOURS = ["blue", "green", "orange"];

  const how = "Move the time. Dots are networks, lines the kernel.";
  live("modes", how, (frame, data) => {
    const { time, frequencies } = data;
    const last = time.at(-1);
    const left = new Panel(frame.panels, {
      x: [time[1], last], y: [0, 1.05], log: "x", names: ["time", "fraction left"],
      ticks: [[[0.1], [1], [10]], [[0], [0.5], [1]]], title: "What is left of each frequency against time",
    });
    const right = new Panel(frame.panels, {
      x: [0, 2 * Math.PI], y: [-2.6, 3.6], names: ["angle β", "f(x) so far"],
      ticks: [[[0, "0°"], [Math.PI, "180°"], [2 * Math.PI, "360°"]], [[-2], [0], [2]]], title: "The function at this time",
    });
    const at = range(1, time.length - 1, time.length - 1);
    frequencies.forEach((_, i) => {
      left.curve(`fl-${COLOURS[i]} fl-dashed`).setAttribute("d", left.line(at.map((j) => time[j]), at.map((j) => data.kernel[j][i])));
      at.forEach((j) => left.dot(`fl-dot-${COLOURS[i]}`, time[j], data.network[j][i], 2.5));
    });
    const marks = frequencies.map((_, i) => left.dot(`fl-dot-${COLOURS[i]}`, time[1], 1, 6));
    const grid = range(0, 2 * Math.PI, data.f_kernel[0].length);
    const network = right.curve("fl-purple");
    const kernel = right.curve("fl-ink fl-dashed");
    data.angles.forEach((angle, i) => right.dot("fl-dot-ink", angle, data.y[i], 3.5));

    const state = { panels: [left, right], grid };
    function draw(stop) {
      marks.forEach((mark, i) => {
        mark.style.display = stop ? "" : "none";
        mark.setAttribute("cx", left.x(time[Math.max(stop, 1)]));
        mark.setAttribute("cy", left.y(Math.max(0, data.network[stop][i])));
      });
      network.setAttribute("d", right.line(grid, data.f_network[stop]));
      kernel.setAttribute("d", right.line(grid, data.f_kernel[stop]));
      const parts = frequencies.map((k, i) => `cos ${k > 1 ? k : ""}β: ${show(100 * (1 - data.network[stop][i]), 2)}\u00a0%`);
      frame.says.textContent = `Time ${show(time[stop], 2)}. The networks have learned of ${parts.join(", ")}.`;
      Object.assign(state, { stop });
    }
    const slider = frame.slider("time", { max: time.length - 1, value: 0, text: (i) => show(time[i], 2), change: draw });
    frame.legend([
      ...frequencies.map((k, i) => [`fl-dot-${COLOURS[i]}`, `cos ${k > 1 ? k : ""}β, median of five networks`]),
      ["fl-purple", "one network"], ["fl-ink fl-dashed", "kernel"], ["fl-dot-ink", "labels"],
    ]);
    slider.update();
    frame.play(slider, 500);
    return state;
  }, { keep: true });
})();
