/* A tuned kernel and a tuned network on n samples of |u·x|, u unknown; the runs were made beforehand. */
(() => {
  "use strict";
  const { Panel, live, show } = window.featlearn;
  const percent = (error) => `${show(100 * error, 2)}\u00a0%`;

  const how = "Move the samples or the dimension. Each dot is a new input and its prediction.";
  live("race", how, (frame, data) => {
    const left = new Panel(frame.panels, {
      x: [-3.1, 3.1], y: [-1.9, 4], names: ["z = u · x, the direction nobody knows", "prediction"],
      ticks: [[[-2], [0], [2]], [[-1], [0], [1], [2], [3]]], title: "Predictions of kernel and network against the hidden direction",
    });
    const right = new Panel(frame.panels, {
      x: [52, 1110], y: [4e-5, 2], log: "xy", names: ["samples n", "error"],
      ticks: [data.n.map((n) => [n]), [[1e-4, "0.0001"], [0.01], [1]]], title: "Errors of kernel and network against the number of samples",
    });
    const closed = right.curve("fl-closed");
    const truth = left.curve("fl-ink");
    const some = data.points[data.d[0]].z;
    const dots = { kernel: "fl-dot-blue", network: "fl-dot-orange" };
    const clouds = Object.entries(dots).map(([name, kind]) => [name, some.map(() => left.dot(`${kind} fl-cloud`, 0, 0, 2.6))]);
    const lines = { kernel: right.curve("fl-blue"), network: right.curve("fl-orange") };
    const bars = { kernel: right.curve("fl-blue fl-bars"), network: right.curve("fl-orange fl-bars") };
    const marks = Object.entries(dots).map(([name, kind]) => [name, right.dot(kind, 60, 1, 6)]);

    const state = { panels: [left, right] };
    let [n, d] = [data.n[0], data.d[0]];
    function draw() {
      const { z, g } = data.points[d];
      const runs = data.n.map((size) => data.runs[d][size]);
      const now = data.runs[d][n];
      const order = z.map((_, i) => i).sort((i, j) => z[i] - z[j]);
      truth.setAttribute("d", left.line(order.map((i) => z[i]), order.map((i) => g[i])));
      for (const [name, cloud] of clouds) {
        cloud.forEach((dot, i) => {
          dot.setAttribute("cx", left.x(z[i]).toFixed(1));
          dot.setAttribute("cy", left.y(Math.max(-1.9, Math.min(4, now[name].says[i]))).toFixed(1));
        });
      }
      const floor = data.bound[d].map((value) => Math.max(value, 4e-5));
      closed.setAttribute("d", right.band(data.fine, floor, floor.map(() => 4e-5)));
      for (const name of Object.keys(dots)) {
        lines[name].setAttribute("d", right.line(data.n, runs.map((run) => run[name].error[1])));
        bars[name].setAttribute("d", runs.map((run, i) => right.line([data.n[i], data.n[i]], [run[name].error[0], run[name].error[2]])).join(""));
      }
      for (const [name, mark] of marks) {
        mark.setAttribute("cx", right.x(n));
        mark.setAttribute("cy", right.y(now[name].error[1]));
      }
      frame.says.textContent =
        `${n} samples in ${d} dimensions: the kernel leaves ${percent(now.kernel.error[1])} of the variance, the network ${percent(now.network.error[1])}.`;
      Object.assign(state, { n, d, now });
    }

    const samples = frame.slider("samples", {
      max: data.n.length - 1, value: 0, text: (i) => String(data.n[i]), change: (i) => { n = data.n[i]; draw(); },
    });
    const dimension = frame.slider("dimension", {
      max: data.d.length - 1, value: data.d.indexOf(24), text: (i) => String(data.d[i]), change: (i) => { d = data.d[i]; draw(); },
    });
    frame.legend([
      ["fl-ink", "|z|, shifted and scaled"], ["fl-dot-blue", "kernel"], ["fl-dot-orange", "network"], ["fl-closed", "closed to fixed features"],
    ]);
    dimension.update();
    samples.update();
    frame.play(samples, 1400);
    return state;
  }, { keep: true });
})();
