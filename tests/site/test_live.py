"""The live figures: their stored data, their scripts on the right pages, and their numbers against
the package's.
"""

import json
import math
import re
from decimal import ROUND_HALF_UP, Context, Decimal
from functools import cache

import numpy as np
import pytest
import torch
from audits import DESKTOP
from conftest import functions, tab

from book import browser, notebooks
from experiments import live_figures as live
from featlearn import damian, data, gp, linalg, networks, wide
from featlearn.ntk import NTK
from featlearn.seeding import stream

SITE = notebooks.ROOT / "_build" / "html"
STORED = data.load("live")
PAGES = {
    "circle": "chapters/04_ntk/2_training.html",
    "flow": "chapters/01_kernels/2_training.html",
    "width": "chapters/03_wide_networks/2_lazy.html",
    "neurons": "chapters/06_damian/2_samples.html",
    "race": "chapters/01_kernels/4_structure.html",
    "lift": "chapters/01_kernels/1_regression.html",
    "lazy": "chapters/03_wide_networks/2_lazy.html",
    "modes": "chapters/04_ntk/2_training.html",
    "staircase": "chapters/05_beyond_linearization/2_norms.html",
    "target": "chapters/06_damian/1_step.html",
}
COPIES = {"race": "chapters/index.html", "staircase": "chapters/05_beyond_linearization/index.html"}
KEPT = {
    "race",
    "lift",
    "lazy",
    "modes",
    "staircase",
    "target",
}  # with their still, which shows more
NEAREST = 0.2  # radians, the least distance of two points in the figure


def on_circle(angles):
    return torch.as_tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1))


# The data


def test_the_points_are_those_of_the_chapters():
    """To rounding: the last digit of a sine differs between processors."""
    for key in ("angles", "labels"):
        np.testing.assert_allclose(STORED["circle"][key], live.circle()[key], atol=1e-14)
    assert STORED["circle"]["scales"] == json.loads(json.dumps(live.SCALES))
    trig, problem = (functions("01_kernels", np=np)[name] for name in ("trig", "problem"))
    problem.__globals__["trig"] = trig
    x, _, y = problem(stream("ker-flow/figure"))
    for points in (STORED["flow"], live.flow()):
        np.testing.assert_allclose([points["x"], points["y"]], [x, y], atol=1e-14)


@pytest.mark.parametrize(("kind", "width"), [("relu", 16), ("erf", 64), ("erf mean-field", 32)])
def test_the_stored_ensembles_are_what_training_gives(kind, width):
    f, linear, gap = live.trained(kind, width)
    run = STORED["width"]["runs"][f"{kind}/{width}"]
    np.testing.assert_allclose(run["network"], f[:3, ::12], atol=2e-3)
    np.testing.assert_allclose(run["linear"], linear[:3, ::12], atol=2e-3)
    np.testing.assert_allclose(run["gap"], np.quantile(gap, [0.1, 0.5, 0.9]), rtol=0.02)


@pytest.mark.parametrize("kind", ["relu", "erf mean-field"])
def test_linearisations_are_trained_in_their_parameters(kind):
    """The tangent kernel's recursion against gradient descent on the linearised network itself."""
    members, width = 3, 32
    _, linear, _ = live.trained(kind, width, members=members, points=9)
    activation, scale = kind.split()[0], width**-0.5 if "mean-field" in kind else 1.0
    net = networks.Network((2, width, 1), activation, *live.SCALES[activation])
    theta0 = net.initialise(stream(f"live/width/{kind}/{width}"), members, dtype=torch.float32)
    f_lin, X = wide.linearise(net, theta0), on_circle(live.ANGLES)
    y = live.labels(live.ANGLES)
    *_, theta = networks.descent(f_lin, theta0, X, y, learning_rate=0.05, steps=60, scale=scale)
    points = on_circle(np.linspace(-np.pi, np.pi, 9)).float()
    np.testing.assert_allclose(linear, scale * f_lin(theta, points), atol=1e-4)


def test_the_stored_neurons_are_what_the_first_step_gives():
    stored, few = STORED["neurons"], live.neurons(ratios=(0.125, 0.25, 2.0, 32.0), sets=8)
    at = [stored["ratios"].index(q) for q in few["ratios"]]
    stops = [0, *(1 + i for i in at), -1]
    np.testing.assert_allclose([stored["arrows"][i] for i in stops], few["arrows"], atol=2e-3)
    np.testing.assert_allclose([stored["aligned"][i] for i in stops], few["aligned"], atol=2e-3)
    np.testing.assert_allclose([stored["alignment"][i] for i in at], few["alignment"], atol=2e-3)
    assert [stored["samples"][i] for i in at] == few["samples"] == [200, 400, 3200, 51200]
    assert np.square(stored["arrows"]).sum(axis=2).max() <= 1.003
    assert stored["aligned"][0] < 0.15 < 0.85 < stored["aligned"][-1]


# The pages


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_page_has_the_scripts_of_its_figures_alone(name, page):
    html = (SITE / page).read_text(encoding="utf-8")
    here = {one for one, place in PAGES.items() if place == page}
    first, second, *rest = re.findall(r'src="[^"]*_static/live/(\w+)\.js', html)
    assert (first, second, set(rest)) == ("numbers", "figure", here)
    embedded = re.search(rf'<script type="application/json" id="live-{name}">(.*?)</script>', html)
    assert json.loads(embedded[1]) == STORED.get(name, {})


def test_other_pages_have_none():
    for path in SITE.rglob("*.html"):
        if str(path.relative_to(SITE)) not in {*PAGES.values(), *COPIES.values()}:
            assert "_static/live/" not in path.read_text(encoding="utf-8"), path.name


# In the browser


@pytest.fixture(scope="module")
def context(chromium):
    """Of all tabs in which nothing plays by itself: they share what was loaded."""
    with chromium.new_context(viewport=DESKTOP, reduced_motion="reduce") as context:
        yield context


@pytest.fixture(scope="module")
def unscripted(chromium):
    """Of all tabs in which no script runs."""
    with chromium.new_context(viewport=DESKTOP, java_script_enabled=False) as context:
        yield context


@pytest.fixture
def page(context):
    page = tab(context)
    yield page
    page.close()


@cache
def short(name):
    """The page of a figure with no more of its article than the figure and the figure's data."""
    html = (SITE / PAGES[name]).read_text(encoding="utf-8")
    start, end = html.index('<article class="bd-article"'), html.index("</article>")
    figure = re.search(rf'<figure [^>]*id="fig-live-{name}">.*?</figure>', html[start:end], re.S)
    stored = re.search(rf'<script [^>]*id="live-{name}">.*?</script>', html[start:end], re.S)
    scripts = re.sub(  # another live figure of the page is missing here
        rf"<script [^>]*_static/live/(?!numbers|figure|{name}\.)\w+\.js[^>]*></script>",
        "",
        html[:start],
    )
    article = f'<article class="bd-article"><h1>Title</h1>{figure[0]}{stored[0]}'
    return scripts + article + html[end:]


def opened(page, name):
    """The page of a figure in short, which loads sooner."""
    site = browser.Folder(page, SITE)
    site.documents[f"/{PAGES[name]}"] = short(name)
    site.open(PAGES[name])
    return site


def figure(page, name):
    """Open the figure's page, and return a function that reads the figure's state."""
    site = opened(page, name)
    page.wait_for_function(f"document.getElementById('fig-live-{name}')?.live")
    page.add_style_tag(content="html { scroll-behavior: auto !important; }")
    assert not site.errors
    live = f"const live = document.getElementById('fig-live-{name}').live"
    return lambda expression: page.evaluate(f"(() => {{ {live}; return {expression}; }})()")


def expected(network, angles, labels, grid):
    """Means and standard deviations of the two laws, by the package."""
    kernel = NTK(network["depth"], network["activation"], network["sigmaW"], network["sigmaB"])
    X, y, points = on_circle(angles), torch.as_tensor(labels, dtype=torch.float64), on_circle(grid)
    mean, covariance = gp.after_training(kernel, X, y, points, initial=kernel.nngp)
    posterior = gp.GaussianProcess(kernel.nngp).fit(X, y)
    return {
        "ntk": {"mean": mean, "sd": covariance.diagonal().clamp_min(0).sqrt()},
        "nngp": {"mean": posterior.mean(points), "sd": posterior.variance(points).sqrt()},
    }


def assert_same_laws(found, network, angles, labels, grid):
    for law, parts in expected(network, angles, labels, grid).items():
        for part, values in parts.items():
            np.testing.assert_allclose(
                found[law][part], values, atol=1e-6, err_msg=f"{law} {part} {network}"
            )


def path(page, name, panel, kind):
    """The corners of the path of a kind in a panel, in pixels of the drawing, shape (n, 2)."""
    drawn = (
        page.locator(f"[data-live={name}] .fl-panel")
        .nth(panel)
        .locator(f"path.fl-curve[class='fl-curve {kind}']")
    )
    return np.array(re.findall(r"(-?[\d.]+),(-?[\d.]+)", drawn.get_attribute("d")), dtype=float)


def pixels(page, name, panel, x, y):
    """Where the panel draws these points.

    `test_axes_say_what_the_panels_draw` holds it to the ticks.
    """
    script = f"""([x, y]) => {{
      const drawing = document.getElementById("fig-live-{name}").live.panels[{panel}];
      return [x.map(drawing.x), y.map(drawing.y)];
    }}"""
    return np.array(page.evaluate(script, [np.array(x).tolist(), np.array(y).tolist()])).T


def assert_drawn(page, name, panel, kind, x, y):
    np.testing.assert_allclose(
        path(page, name, panel, kind), pixels(page, name, panel, x, y), atol=0.06, err_msg=kind
    )


def says(page, name):
    return page.locator(f"[data-live={name}] .fl-says").inner_text()


@pytest.mark.parametrize("name", PAGES)
def test_axes_say_what_the_panels_draw(page, name):
    figure(page, name)
    panels = page.evaluate(
        f"""[...document.querySelectorAll("[data-live={name}] .fl-panel")].map(panel =>
          [...panel.querySelectorAll(".fl-axes text")].map(text => [text.textContent,
            ...["text-anchor", "x", "y"].map(key => text.getAttribute(key))]))"""
    )
    for panel, texts in enumerate(panels):
        ticks = [(text.replace("−", "-"), *rest) for text, *rest in texts]
        for anchor, side in (("middle", 0), ("end", 1)):
            found = [
                (math.radians(float(text[:-1])) if "°" in text else float(text), float(at[side]))
                for text, kind, *at in ticks
                if kind == anchor and re.fullmatch(r"-?[\d.]+°?", text)
            ]
            values, places = np.array(found).reshape(-1, 2).T
            expected = pixels(page, name, panel, values, values)[:, side]
            np.testing.assert_allclose(places, expected + (0, 4)[side], atol=0.1)
            assert (np.diff(places) * (1, -1)[side] > 0).all()


def assert_figure_is_right(page, read):
    """The numbers are the package's, and the picture shows them."""
    network, points, grid = read("live.network"), read("live.points"), np.array(read("live.grid"))
    angles, labels = (np.array([point[key] for point in points]) for key in ("angle", "label"))
    assert_same_laws(read("live.law"), network, angles, labels, grid)
    laws = expected(network, angles, labels, grid)
    for law, mean, band in (
        ("ntk", "fl-blue", "fl-blue fl-band"),
        ("nngp", "fl-green fl-dashed", "fl-green fl-outline"),
    ):
        middle, half = laws[law]["mean"].numpy(), 1.96 * laws[law]["sd"].numpy()
        assert_drawn(page, "circle", 0, mean, grid, middle)
        edges = np.concatenate([middle - half, (middle + half)[::-1]])
        assert_drawn(page, "circle", 0, band, np.concatenate([grid, grid[::-1]]), edges)
    widest = [f"{laws[law]['sd'].max().item():.3g}" for law in ("ntk", "nngp")]
    assert says(page, "circle") == (
        f"Largest standard deviation: {widest[0]} after training, {widest[1]} for the posterior."
    )
    for panel, x, y in ((0, angles, labels), (1, np.cos(angles), np.sin(angles))):
        handles = (
            page.locator("[data-live=circle] .fl-panel").nth(panel).locator(".fl-handle").all()
        )
        places = [re.findall(r"-?[\d.]+", handle.get_attribute("transform")) for handle in handles]
        np.testing.assert_allclose(
            np.array(places, dtype=float), pixels(page, "circle", panel, x, y), atol=0.06
        )


def handle(page, panel, point):
    return page.locator("[data-live=circle] .fl-panel").nth(panel).locator(".fl-handle").nth(point)


def middle(page, panel, point):
    """The middle of a point on the screen."""
    handle(page, panel, point).scroll_into_view_if_needed()
    box = handle(page, panel, point).locator(".fl-point").bounding_box()
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(page, panel, point, right, down, start=(0, 0), button="left"):
    x, y = middle(page, panel, point)
    page.mouse.move(x + start[0], y + start[1])
    page.mouse.down(button=button)
    page.mouse.move(x + start[0] + right, y + start[1] + down, steps=4)
    page.mouse.up(button=button)


def test_circle_by_mouse(page):
    read = figure(page, "circle")
    assert_figure_is_right(page, read)
    before = read("live.points[1]")
    drag(page, 0, 1, -12, 60)
    after = read("live.points[1]")
    assert after["angle"] < before["angle"] and after["label"] < before["label"] - 0.3
    assert_figure_is_right(page, read)
    page.mouse.move(10, 10)
    assert read("live.points[1]") == after, "let go"
    drag(page, 0, 1, 0, 20, button="right")
    assert read("live.points[1]") == after, "the other button is the browser's"
    drag(page, 0, 1, 0, 1, start=(9, 0))
    assert read("live.points[1].angle") == pytest.approx(after["angle"], abs=0.02), (
        "no jump to the pointer"
    )


def test_circle_dragged_far_and_on_the_ring(page):
    read = figure(page, "circle")
    drag(page, 0, 2, 900, -900)
    assert read("live.points[2].label") == 2
    assert read("live.points[2].angle") == pytest.approx(math.pi)
    assert_figure_is_right(page, read)
    x, y = middle(page, 1, 4)
    ring = page.locator("[data-live=circle] .fl-ring").bounding_box()
    centre = ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2
    drag(page, 1, 4, centre[0] + 30 - x, centre[1] - 30 - y)
    assert read("live.points[4].angle") == pytest.approx(math.pi / 4, abs=0.03)
    assert_figure_is_right(page, read)


def test_circle_by_keys_and_controls(page):
    read = figure(page, "circle")
    before = read("live.points[1]")
    handle(page, 0, 1).focus()
    for key in ("ArrowRight", "ArrowUp", "PageUp", "ArrowDown", "ArrowUp", "Control+ArrowRight"):
        page.keyboard.press(key)
    moved = read("live.points[1]")
    assert moved["angle"] == pytest.approx(before["angle"] + 11 * math.pi / 90)
    assert moved["label"] == pytest.approx(before["label"] + 0.05)
    press = """key => {
      const event = new KeyboardEvent("keydown", {key, cancelable: true});
      return !document.activeElement.dispatchEvent(event);
    }"""
    assert page.evaluate(press, "ArrowUp") and page.evaluate(press, "ArrowDown"), (
        "the page does not scroll"
    )
    assert not page.evaluate(press, "Tab")
    degrees = round(math.degrees(moved["angle"]))
    assert (
        handle(page, 0, 1).get_attribute("aria-valuetext")
        == f"{degrees} degrees, label {moved['label']:.2f}"
    )
    assert handle(page, 0, 1).get_attribute("aria-valuenow") == str(degrees)
    assert handle(page, 1, 1).get_attribute("tabindex") is None

    page.keyboard.press("End")
    assert read("live.points[1].angle") == pytest.approx(math.pi)
    page.locator("[data-live=circle] input").fill("5")
    page.locator("[data-live=circle] select").select_option("erf")
    assert (read("live.network.depth"), read("live.network.activation")) == (5, "erf")
    assert_figure_is_right(page, read)
    page.get_by_role("button", name="Reset the points").click()
    assert [p["label"] for p in read("live.points")] == STORED["circle"]["labels"]
    assert_figure_is_right(page, read)


def gaps(angles):
    """The distances on the circle of each two of six points, shape (..., 30)."""
    angles = np.array(angles)
    distances = np.abs((angles[..., None] - angles[..., None, :] + np.pi) % (2 * np.pi) - np.pi)
    return distances[..., ~np.eye(6, dtype=bool)]


ANGLES = "live.points.map(point => point.angle)"
ROUND = """(() => {
  const press = () => document.activeElement.dispatchEvent(
    new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true, cancelable: true}));
  return Array.from({length: 180}, () => { press(); return live.points.map(p => p.angle); });
})()"""


def test_points_on_the_circle_keep_their_distance(page):
    read = figure(page, "circle")
    start = read(ANGLES)
    handle(page, 0, 0).focus()
    steps = read(ROUND)
    assert gaps(steps).min() >= NEAREST - 1e-6
    assert len({step[0] for step in steps}) > 100, "it moves"
    assert steps[-1][0] > start[0], "past all others, round the circle"

    x, y = middle(page, 0, 2)
    to = middle(page, 0, 1)
    drag(page, 0, 2, to[0] - x, to[1] - y)
    assert gaps(read(ANGLES)).min() == pytest.approx(NEAREST)
    assert_figure_is_right(page, read)
    label = read("live.points[1].label")
    drag(page, 0, 1, 0, -15)
    assert read("live.points[1].label") > label, (
        "the point that is pressed moves, not its neighbour"
    )


def test_a_finger_drags_a_point_and_does_not_scroll(chromium):
    context = chromium.new_context(
        viewport={"width": 390, "height": 844}, has_touch=True, is_mobile=True
    )
    page = context.new_page()
    read = figure(page, "circle")
    x, y = middle(page, 0, 4)
    before, place = read("live.points[4].label"), page.evaluate("scrollY")
    touch = context.new_cdp_session(page)
    for kind, up in (("touchStart", 0), *(("touchMove", step) for step in range(10, 81, 10))):
        points = [{"x": x, "y": y - up}]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    assert read("live.points[4].label") > before + 0.5
    assert page.evaluate("scrollY") == place
    context.close()


def test_the_laws_agree_for_any_points(page):
    """Random points, and six as close together as the figure allows, at every depth."""
    figure(page, "circle")
    rng, grid = stream("test/live-circle"), np.linspace(-np.pi, np.pi, 61)
    for activation, (sigma_w, sigma_b) in live.SCALES.items():
        for depth in range(2, 9):
            network = {
                "depth": depth,
                "activation": activation,
                "sigmaW": sigma_w,
                "sigmaB": sigma_b,
            }
            shares = rng.dirichlet(np.ones(6)) * (2 * np.pi - 6 * NEAREST) + NEAREST
            for angles in (np.cumsum(shares), 0.5 + NEAREST * np.arange(6)):
                labels = rng.uniform(-2, 2, 6)
                found = page.evaluate(
                    "([network, X, y, points]) => featlearn.posteriors(network, X, y, points)",
                    [
                        network,
                        on_circle(angles).tolist(),
                        labels.tolist(),
                        on_circle(grid).tolist(),
                    ],
                )
                assert_same_laws(found, network, angles, labels, grid)


def test_flow_by_sliders(page):
    read = figure(page, "flow")
    names = functions("01_kernels", np=np)
    x, y = (np.array(STORED["flow"][key]) for key in "xy")
    Phi, grid = names["trig"](x), np.array(read("live.grid"))
    path_of = linalg.SpectralPath(Phi @ Phi.T, y)
    np.testing.assert_allclose(
        read("live.eigenvalues"), path_of.eigenvalues.flip(0)[:20], rtol=1e-10
    )
    K_x = torch.as_tensor(names["trig"](grid) @ Phi.T)
    time, direction = page.locator("[data-live=flow] input").all()
    labels = (path_of.eigenvectors.T @ torch.as_tensor(y)).flip(0)[:20].abs().numpy()
    s = path_of.eigenvalues.flip(0)[:20].numpy()
    zero = pixels(page, "flow", 1, [1], [0])[0, 1]
    for stop in ("0", "7", "30", "60"):
        time.fill(stop)
        t = read("live.t")
        f = (K_x @ path_of.flow([t])[:, 0]).numpy()
        np.testing.assert_allclose(read("live.f"), f, atol=1e-6)
        np.testing.assert_allclose(np.sum(read("live.parts"), axis=0), f, atol=1e-6)
        assert_drawn(page, "flow", 0, "fl-blue", grid, f)
        heights = [
            float(bar.get_attribute("height"))
            for bar in page.locator("[data-live=flow] rect.fl-bar-done").all()
        ]
        tops = pixels(page, "flow", 1, labels, labels * -np.expm1(-s * t))[:, 1]
        np.testing.assert_allclose(heights, zero - tops, atol=0.06)
        half = int((-np.expm1(-s * t) > 0.5).sum())
        away = np.sqrt(np.mean((f - np.sin(grid) - 0.5 * np.sin(4 * grid)) ** 2))
        assert says(page, "flow") == (
            f"{half} of 20 directions are more than half learned. "
            f"Distance to the true function: {float(f'{away:.2g}'):g}."
        )
    assert t == pytest.approx(1000)
    time.fill("28")
    t = read("live.t")
    direction.focus()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    u = path_of.eigenvectors[:, -3]
    part = ((K_x @ u) * -np.expm1(-s[2] * t) / s[2] * (u @ torch.as_tensor(y))).numpy()
    np.testing.assert_allclose(read("live.parts[2]"), part, atol=1e-6)
    assert_drawn(page, "flow", 0, "fl-orange fl-dashed", grid, part)
    learned = f"{100 * -np.expm1(-s[2] * t):.3g}"
    assert says(page, "flow") == f"Direction 3, eigenvalue {s[2]:.3g}: {learned}\u00a0% learned."
    chosen = [
        bar.get_attribute("class") for bar in page.locator("[data-live=flow] rect.fl-bar").all()
    ]
    assert [i for i, name in enumerate(chosen) if "fl-chosen" in name] == [2]


@pytest.mark.parametrize(("kind", "width"), [("erf mean-field", 4096), ("relu", 8)])
def test_width_shows_the_stored_ensembles(page, kind, width):
    read, stored = figure(page, "width"), STORED["width"]
    slider = page.locator("[data-live=width] input")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight" if width == 4096 else "ArrowLeft")
    page.locator("[data-live=width] select").select_option(kind)
    assert (read("live.width"), read("live.kind")) == (width, kind)
    run = stored["runs"][f"{kind}/{width}"]
    grid = np.linspace(-np.pi, np.pi, 121)
    for colour, f, linear in zip(
        ("blue", "orange", "green"), run["network"], run["linear"], strict=True
    ):
        left = page.locator("[data-live=width] .fl-panel").first
        assert left.locator(f"path.fl-{colour}").count() == 2
        assert_drawn(page, "width", 0, f"fl-{colour}", grid, f)
        assert_drawn(page, "width", 0, f"fl-{colour} fl-dashed", grid, linear)
    low, median, high = np.array([stored["runs"][f"{kind}/{m}"]["gap"] for m in stored["widths"]]).T
    assert_drawn(page, "width", 1, "fl-blue", stored["widths"], median)
    there_and_back = np.concatenate([stored["widths"], stored["widths"][::-1]])
    assert_drawn(
        page, "width", 1, "fl-blue fl-band", there_and_back, np.concatenate([low, high[::-1]])
    )
    mark = page.locator("[data-live=width] .fl-dot-blue")
    place = [float(mark.get_attribute(key)) for key in ("cx", "cy")]
    np.testing.assert_allclose(
        place, pixels(page, "width", 1, [width], [run["gap"][1]])[0], atol=0.06
    )
    dots = page.locator("[data-live=width] .fl-panel").first.locator(".fl-dot-ink").all()
    places = [[float(dot.get_attribute(key)) for key in ("cx", "cy")] for dot in dots]
    angles = (live.ANGLES + np.pi) % (2 * np.pi) - np.pi
    np.testing.assert_allclose(
        places, pixels(page, "width", 0, angles, live.labels(angles)), atol=0.06
    )
    assert slider.get_attribute("aria-valuetext") == str(width)
    assert (
        says(page, "width")
        == f"Width {width}: the median gap of forty networks is {run['gap'][1]:.2g}."
    )


def test_neurons_turn(page):
    figure(page, "neurons")
    stored, slider = STORED["neurons"], page.locator("[data-live=neurons] input")
    mark = page.locator("[data-live=neurons] .fl-mark")
    last = len(stored["arrows"]) - 1
    for stop, (tips, aligned) in enumerate(zip(stored["arrows"], stored["aligned"], strict=True)):
        slider.fill(str(stop))
        shafts = np.stack([np.zeros((60, 2)), np.array(tips)], axis=1).reshape(-1, 2)
        assert_drawn(page, "neurons", 0, "fl-orange fl-arrows", *shafts.T)
        np.testing.assert_allclose(
            path(page, "neurons", 0, "fl-orange fl-heads")[::3],
            pixels(page, "neurons", 0, *np.array(tips).T),
            atol=0.06,
        )
        assert (
            f"these neurons: {float(f'{aligned:.2g}'):g}. For random directions it is 0.05."
            in says(page, "neurons")
        )
        assert mark.is_visible() == (0 < stop < last)
        if 0 < stop < last:
            ratio, n = stored["ratios"][stop - 1], stored["samples"][stop - 1]
            place = [float(mark.get_attribute(key)) for key in ("cx", "cy")]
            median = stored["alignment"][stop - 1][1]
            np.testing.assert_allclose(
                place, pixels(page, "neurons", 1, [ratio], [median])[0], atol=0.06
            )
            assert (
                slider.get_attribute("aria-valuetext")
                == f"n = {n}, n/d² ≈ {float(f'{ratio:.3g}'):g}"
            )
    assert slider.get_attribute("aria-valuetext") == "infinitely many samples"
    q = np.geomspace(0.125, 32, 60)
    assert_drawn(page, "neurons", 1, "fl-ink fl-dashed", q, 1 / (1 + np.pi / 2 / q))


@pytest.mark.parametrize("name", PAGES)
def test_the_still_serves_without_scripts_and_in_print(unscripted, page, name):
    plain = tab(unscripted)
    opened(plain, name)
    assert plain.locator(f"#fig-live-{name} img").is_visible()
    plain.close()
    figure(page, name)
    image, box = page.locator(f"#fig-live-{name} img"), page.locator(f"[data-live={name}]")
    assert box.is_visible() and image.is_visible() == (name in KEPT)
    page.emulate_media(media="print")
    assert image.is_visible() and not box.is_visible()


def test_a_figure_that_fails_leaves_the_still(page):
    page.add_init_script(
        "Object.defineProperty(Math, 'expm1', {value: () => { throw Error('broken'); }})"
    )
    site = opened(page, "flow")
    page.wait_for_load_state("load")
    assert site.errors == ["broken"]
    assert page.locator("#fig-live-flow img").is_visible()
    assert page.locator("[data-live=flow]").count() == 0


# The figures that stand with their stills


def show(value):
    """The number with two digits, as the figures write it: a half is rounded up."""
    return f"{float(Context(2, ROUND_HALF_UP).create_decimal(Decimal(float(value)))):g}"


def dots(page, name, panel, kind):
    """Where the visible dots of a kind are, in pixels of the drawing, shape (n, 2)."""
    script = f"""kind => [...document.querySelectorAll("[data-live={name}] .fl-panel")[{panel}]
      .querySelectorAll("circle")]
      .filter(dot => dot.getAttribute("class").startsWith(kind) && dot.style.display !== "none")
      .map(dot => ["cx", "cy"].map(key => Number(dot.getAttribute(key))))"""
    return np.array(page.evaluate(script, kind)).reshape(-1, 2)


def test_race_shows_the_stored_runs(page):
    figure(page, "race")
    stored, (samples, dimension) = STORED["race"], page.locator("[data-live=race] input").all()
    for i, d in enumerate(stored["d"]):
        dimension.fill(str(i))
        runs, points = stored["runs"][str(d)], stored["points"][str(d)]
        for j, n in enumerate(stored["n"]):
            samples.fill(str(j))
            now = runs[str(n)]
            for name, kind in (("kernel", "fl-dot-blue"), ("network", "fl-dot-orange")):
                at = np.clip(now[name]["says"], -1.9, 4)
                expected = pixels(page, "race", 0, points["z"], at)
                np.testing.assert_allclose(
                    dots(page, "race", 0, f"{kind} fl-cloud"), expected, atol=0.06
                )
                mark = pixels(page, "race", 1, [n], [now[name]["error"][1]])
                np.testing.assert_allclose(dots(page, "race", 1, kind), mark, atol=0.06)
            kernel, network = (show(100 * now[k]["error"][1]) for k in ("kernel", "network"))
            assert says(page, "race") == (
                f"{n} samples in {d} dimensions: the kernel leaves {kernel}\u00a0% "
                f"of the variance, the network {network}\u00a0%."
            )
        median = [runs[str(n)]["kernel"]["error"][1] for n in stored["n"]]
        assert_drawn(page, "race", 1, "fl-blue", stored["n"], median)


def test_the_stored_race_is_what_tuning_and_training_give():
    """One size again, tuning included; and what page 1.4 says of the race."""
    row = live._run(12, 60, 8, 120)
    for name, run in STORED["race"]["runs"]["12"]["60"].items():
        np.testing.assert_allclose(run["error"], row[name]["error"], rtol=0.05)
    for d, bound in STORED["race"]["bound"].items():
        if int(d) >= 24:
            runs = STORED["race"]["runs"][d]["960"]
            assert runs["network"]["error"][2] < bound[-1] < runs["kernel"]["error"][0]


def test_lift_counts_what_the_plane_separates(page):
    read = figure(page, "lift")
    stored = STORED["lift"]
    angle, y = np.array(stored["angle"]), np.array(stored["label"])
    radius = np.where(y > 0, 1, 0.5)
    X = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    height, tilt, lift = (
        page.get_by_label(name) for name in ("height of the plane", "tilt", "lift")
    )
    for h, t, s in ((32, 10, 20), (32, 10, 0), (30, 20, 0), (32, 14, 12), (0, 10, 0)):
        height.fill(str(h)), tilt.fill(str(t)), lift.first.fill(str(s))
        h, t, s = -1 + h / 20, -1 + t / 10, s / 20
        right = np.mean((s * (X**2).sum(axis=1) > h + t * X[:, 0]) == (y > 0))
        assert read("live.right") == pytest.approx(right)
        assert says(page, "lift").startswith(
            f"{float(f'{100 * right:.2g}'):g}\u00a0% of the points"
        )
        x1, x2 = path(page, "lift", 1, "fl-green").reshape(-1, 2).T
        (x0, y0), (ex, ey) = pixels(page, "lift", 1, [0, 1], [0, 1])
        x1, x2 = (x1 - x0) / (ex - x0), (x2 - y0) / (ey - y0)
        if len(x1):
            np.testing.assert_allclose(s * (x1**2 + x2**2), h + t * x1, atol=0.01)
    height.fill("32"), tilt.fill("10"), lift.first.fill("20")
    assert read("live.right") == 1, "the plane at 0.6 separates the lifted circles"


def test_lazy_turns_from_frozen_to_moved(page):
    figure(page, "lazy")
    stored, dial = STORED["lazy"], page.locator("[data-live=lazy] input")
    grid = np.linspace(-np.pi, np.pi, len(stored["stops"][0]["network"]))
    for stop, run in enumerate(stored["stops"]):
        dial.fill(str(stop))
        assert_drawn(page, "lazy", 1, "fl-green", grid, run["network"])
        assert_drawn(page, "lazy", 1, "fl-ink fl-dashed", grid, run["linear"])
        for positive, kind in ((1, "fl-dot-orange"), (0, "fl-dot-blue")):
            ends = np.array(run["end"])[np.array(run["positive"]) == positive]
            np.testing.assert_allclose(
                dots(page, "lazy", 0, kind), pixels(page, "lazy", 0, *ends.T), atol=0.06
            )
        assert f"moved by {show(run['moved'])} times" in says(page, "lazy")
    moved, changed = (
        np.array([run[key] for run in stored["stops"]]) for key in ("moved", "changed")
    )
    assert (np.diff(moved) > 0).all() and (np.diff(changed) > 0).all()
    assert moved[0] < 0.05 and changed[0] < 0.02 < 1 < changed[-1]


def test_the_stored_dial_is_what_training_gives():
    few, stored = live.lazy(scales=(1, 1 / 16)), STORED["lazy"]
    for run in few["stops"]:
        kept = next(one for one in stored["stops"] if one["scale"] == run["scale"])
        for key in ("network", "linear", "end", "kernel"):
            np.testing.assert_allclose(kept[key], run[key], atol=0.05, err_msg=key)


def test_modes_are_learned_one_after_the_other(page):
    figure(page, "modes")
    stored, time = STORED["modes"], page.locator("[data-live=modes] input")
    grid = np.linspace(0, 2 * np.pi, len(stored["f_kernel"][0]))
    for stop in range(0, len(stored["time"]), 4):
        time.fill(str(stop))
        assert_drawn(page, "modes", 1, "fl-purple", grid, stored["f_network"][stop])
        assert_drawn(page, "modes", 1, "fl-ink fl-dashed", grid, stored["f_kernel"][stop])
        learned = [f"{show(100 * (1 - left))}\u00a0%" for left in stored["network"][stop]]
        assert re.findall(r": (-?[\d.]+\u00a0%)", says(page, "modes").replace("−", "-")) == learned
    half = [np.argmax(np.array(stored["kernel"])[:, i] < 0.5) for i in range(3)]
    assert half == sorted(half) and len(set(half)) == 3
    np.testing.assert_allclose(stored["network"], stored["kernel"], atol=0.06)


def test_staircase_shows_the_stored_fractions(page):
    figure(page, "staircase")
    stored, samples = STORED["staircase"], page.locator("[data-live=staircase] input")
    for stop in range(len(stored["n"])):
        samples.fill(str(stop))
        for panel, name in enumerate(("kernel", "network")):
            bars = (
                page.locator("[data-live=staircase] .fl-panel")
                .nth(panel)
                .locator(".fl-bar-done")
                .all()
            )
            tops = [float(bar.get_attribute("y")) for bar in bars]
            values = np.clip(stored[name][stop], 0, 1.1)
            np.testing.assert_allclose(
                tops, pixels(page, "staircase", panel, [1, 2, 3, 4], values)[:, 1], atol=0.06
            )
    kernel, network, formula = (np.array(stored[name]) for name in ("kernel", "network", "formula"))
    np.testing.assert_allclose(kernel, formula, atol=0.12)
    # The kernel climbs stair by stair; the network has degree four when it has degree three.
    stairs = [np.argmax(kernel[:, k] > 0.5) for k in range(4)]
    assert stairs == sorted(set(stairs))
    assert np.argmax(network[:, 3] > 0.5) <= stairs[2]


def test_target_takes_one_step(page):
    read = figure(page, "target")
    *degrees, samples = page.locator("[data-live=target] input").all()
    for c, at in (([0, 4, 0, 0], 3), ([0, 0, 4, 0], 6), ([1, 2, 0, 3], 5), ([4, 0, 0, 0], 1)):
        samples.fill(str(at))
        for slider, value in zip(degrees, c, strict=True):
            slider.fill(str(value))
        n, d = read("live.n"), read("live.D")
        X = np.array(read("Array.from(live.X.slice(0, live.n * live.D))")).reshape(n, d)
        W = np.array(read("Array.from(live.W)")).reshape(-1, d)
        found = np.array(read("Array.from(live.G)")).reshape(-1, d)
        coefficients = [0, *(value / 4 for value in c)]
        y = np.polynomial.hermite_e.hermeval(
            X[:, 0], [v / math.sqrt(math.factorial(k)) for k, v in enumerate(coefficients)]
        )
        rest = damian.preprocess(X, y)[2]
        stepped = damian.first_step(np.ones(len(W)), W, X, rest, 0.5).numpy()
        np.testing.assert_allclose(found, stepped, atol=1e-10)
        aligned = read("live.alignment")
        if rest.abs().max() > 1e-9:
            u = np.eye(d)[:, :1]
            assert aligned == pytest.approx(damian.alignment(stepped, u))
            exponent = 1 + np.flatnonzero(c)[0]
            assert f"information exponent is {exponent}" in says(page, "target")
    X = np.array(read("Array.from(live.X)"))
    assert abs(X.mean()) < 0.01 and X.var() == pytest.approx(1, abs=0.02), "normal numbers"
    samples.fill("7"), degrees[0].fill("0"), degrees[1].fill("4")
    assert read("live.alignment") > 0.85, "degree two turns the neurons"
    degrees[1].fill("0"), degrees[2].fill("4")
    assert read("live.alignment") < 0.4, "degree three does not"


# Playing


def test_a_figure_plays_until_a_hand_comes(chromium):
    page = tab(chromium)
    figure(page, "modes")
    time, button = page.locator("[data-live=modes] input"), page.locator("[data-live=modes] button")
    page.locator("[data-live=modes]").scroll_into_view_if_needed()
    page.wait_for_function("document.querySelector('[data-live=modes] input').valueAsNumber > 1")
    assert button.inner_text() == "Pause"
    time.fill("5")
    assert button.inner_text() == "Play"
    page.wait_for_timeout(1200)
    assert time.input_value() == "5"
    button.click()
    page.wait_for_function("document.querySelector('[data-live=modes] input').valueAsNumber > 5")
    button.click()
    assert button.inner_text() == "Play"
    page.close()


def test_nothing_plays_where_motion_is_reduced(page):
    figure(page, "modes")
    page.wait_for_timeout(1200)
    assert page.locator("[data-live=modes] input").input_value() == "0"


@pytest.mark.parametrize(("name", "place"), COPIES.items())
def test_a_copy_on_another_page_stands_in_place_of_its_still(page, name, place):
    site = browser.Folder(page, SITE)
    site.open(place)
    page.wait_for_function(f"document.getElementById('picture-fig-live-{name}')?.live")
    copy = page.locator(f"#picture-fig-live-{name}")
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert copy.locator(".fl-live").is_visible() and not copy.locator("> img").is_visible()
        assert not copy.locator(".fl-stack").is_visible()
    assert not site.errors
