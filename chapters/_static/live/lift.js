/* Two circles, lifted by the feature x₁² + x₂², and a plane to tilt. */
(() => {
  "use strict";
  const { Panel, live, range, show } = window.featlearn;
  const VIEW = [0.5, 0.35]; // how far the floor is turned, and seen from above, in radians

  const how = "Lift the points, then move and tilt the plane. Below it a point counts as inner, above it as outer.";
  live("lift", how, (frame, data) => {
    const points = data.angle.map((angle, i) => {
      const radius = data.label[i] > 0 ? 1 : 0.5;
      return { x: radius * Math.cos(angle), y: radius * Math.sin(angle), label: data.label[i] };
    });
    const space = new Panel(frame.panels, {
      height: 300, round: true, x: [-1.85, 1.85], y: [-1.1, 1.9], ticks: [[], []], names: ["height: lift · (x₁² + x₂²)"], title: "The points in three dimensions, and a plane",
    });
    const floor = new Panel(frame.panels, {
      height: 300, width: 310, round: true, x: [-1.5, 1.5], y: [-1.5, 1.5], names: ["x₁", "x₂"],
      ticks: [[[-1], [0], [1]], [[-1], [0], [1]]], title: "The same points from above, and where the plane cuts",
    });
    const seen = (x, y, z) => {
      const [along, away] = [x * Math.cos(VIEW[0]) - y * Math.sin(VIEW[0]), x * Math.sin(VIEW[0]) + y * Math.cos(VIEW[0])];
      return [along, z * Math.cos(VIEW[1]) + away * Math.sin(VIEW[1])];
    };
    const path = (corners) => corners.map((at, i) => {
      const [x, y] = seen(...at);
      return `${i ? "L" : "M"}${space.x(x).toFixed(1)},${space.y(y).toFixed(1)}`;
    }).join("");
    const square = [[-1.3, -1.3], [1.3, -1.3], [1.3, 1.3], [-1.3, 1.3]];
    space.curve("fl-ring").setAttribute("d", `${path(square.map(([x, y]) => [x, y, 0]))}Z`);
    const stems = space.curve("fl-stems");
    const below = points.map(({ label }) => space.dot(label > 0 ? "fl-dot-blue" : "fl-dot-orange", 0, 0, 3.5));
    const plane = space.curve("fl-green fl-band");
    const above = points.map(({ label }) => space.dot(label > 0 ? "fl-dot-blue" : "fl-dot-orange", 0, 0, 3.5));
    points.forEach(({ x, y, label }) => floor.dot(label > 0 ? "fl-dot-blue" : "fl-dot-orange", x, y, 3.5));
    const wrong = floor.curve("fl-ink fl-wrong");
    const cut = floor.curve("fl-green");

    const state = { panels: [space, floor] };
    const now = { lift: 0, height: 0.6, tilt: 0 };
    /* The curve s(x² + y²) = h + tx on the floor: a circle, or a line if nothing is lifted. */
    function boundary({ lift: s, height: h, tilt: t }) {
      if (s === 0) return t === 0 ? [] : [[-h / t, -2], [-h / t, 2]];
      const radius = Math.sqrt(Math.max(h / s + (t / (2 * s)) ** 2, 0));
      return range(0, 2 * Math.PI, 121).map((turn) => [t / (2 * s) + radius * Math.cos(turn), radius * Math.sin(turn)]);
    }
    function draw() {
      const { lift, height, tilt } = now;
      const outer = points.map(({ x, y }) => lift * (x * x + y * y) > height + tilt * x);
      points.forEach(({ x, y }, i) => {
        const [at, up] = seen(x, y, lift * (x * x + y * y));
        for (const [dots, shown] of [[above, outer[i]], [below, !outer[i]]]) {
          dots[i].setAttribute("cx", space.x(at).toFixed(1));
          dots[i].setAttribute("cy", space.y(up).toFixed(1));
          dots[i].style.display = shown ? "" : "none";
        }
      });
      stems.setAttribute("d", points.map(({ x, y }) => path([[x, y, 0], [x, y, lift * (x * x + y * y)]])).join(""));
      plane.setAttribute("d", `${path(square.map(([x, y]) => [x, y, height + tilt * x]))}Z`);
      const edge = boundary(now);
      cut.setAttribute("d", edge.length ? floor.line(edge.map(([x]) => x), edge.map(([, y]) => y)) : "");
      const missed = points.filter(({ label }, i) => outer[i] !== label > 0);
      wrong.setAttribute("d", missed.map(({ x, y }) => floor.line([x - 0.07, x + 0.07], [y - 0.07, y + 0.07])).join(""));
      const right = 1 - missed.length / points.length;
      frame.says.textContent = `${show(100 * right, 2)}\u00a0% of the points are on their side. No line in the plane reaches more than two thirds on average.`;
      Object.assign(state, { ...now, right });
    }
    const part = (name, key, low, high, start, steps) => frame.slider(name, {
      max: steps, value: Math.round(((start - low) / (high - low)) * steps), text: (i) => show(low + ((high - low) * i) / steps, 2),
      change: (i) => { now[key] = low + ((high - low) * i) / steps; draw(); },
    });
    const lift = part("lift", "lift", 0, 1, 0, 20);
    part("height of the plane", "height", -1, 1, 0.6, 40).update();
    part("tilt", "tilt", -1, 1, 0, 20).update();
    frame.legend([["fl-dot-blue", "outer"], ["fl-dot-orange", "inner"], ["fl-green fl-band", "the plane, and where it cuts"], ["fl-ink fl-wrong", "on the wrong side"]]);
    lift.update();
    frame.play(lift, 150);
    return state;
  }, { keep: true });
})();
