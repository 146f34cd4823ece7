/* What a kernel and a network learn of degrees 1 to 4 from n samples; the runs were made beforehand. */
(() => {
  "use strict";
  const { Panel, add, live, show } = window.featlearn;

  const how = "Move the number of samples. Each bar is the fraction of one degree that is learned.";
  live("staircase", how, (frame, data) => {
    const degrees = data.sizes.map((_, i) => i + 1);
    const [kernel, network] = ["kernel", "network"].map((name) => new Panel(frame.panels, {
      height: 240, x: [0.3, 4.7], y: [0, 1.1], names: [`degree: ${name}`, "fraction learned"],
      ticks: [degrees.map((k) => [k]), [[0], [0.5], [1]]], title: `Fraction of each degree that the ${name} learns`,
    }));
    const bars = (panel) => degrees.map((k) => [
      add(panel.svg, "rect", { x: panel.x(k - 0.32), width: panel.x(0.64) - panel.x(0), y: panel.y(1), height: panel.y(0) - panel.y(1), class: "fl-bar" }),
      add(panel.svg, "rect", { x: panel.x(k - 0.32), width: panel.x(0.64) - panel.x(0), class: "fl-bar-done" }),
    ][1]);
    const drawn = { kernel: bars(kernel), network: bars(network) };
    const theory = kernel.curve("fl-ink fl-dashed");

    const state = { panels: [kernel, network] };
    function draw(stop) {
      for (const [name, panel] of [["kernel", kernel], ["network", network]]) {
        data[name][stop].forEach((value, i) => {
          const top = panel.y(Math.max(0, Math.min(1.1, value)));
          drawn[name][i].setAttribute("y", top.toFixed(1));
          drawn[name][i].setAttribute("height", (panel.y(0) - top).toFixed(1));
        });
      }
      theory.setAttribute("d", data.formula[stop].map((value, i) => kernel.line([i + 0.6, i + 1.4], [value, value])).join(""));
      const said = (name) => data[name][stop].map((value) => show(Math.max(0, value), 2)).join(", ");
      frame.says.textContent = `n = ${data.n[stop]}. Learned of degrees 1 to 4: by the kernel ${said("kernel")}; by the network ${said("network")}.`;
      Object.assign(state, { stop, n: data.n[stop] });
    }
    const text = (i) => `${data.n[i]} = d^${show(data.powers[i])}`;
    const samples = frame.slider("samples", { max: data.n.length - 1, value: 0, text, change: draw });
    frame.legend([["fl-bar-done fl-bar", `learned, d = ${data.d}, mean of several runs`], ["fl-ink fl-dashed", "the kernel's formula"]]);
    samples.update();
    frame.play(samples, 900);
    return state;
  }, { keep: true });
})();
