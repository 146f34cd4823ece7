"""The live figures: their stored data, their scripts on the right pages, and their numbers against the package's."""

import json
import math
import re

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn import data, gp, linalg
from featlearn.book import browser, live, notebooks
from featlearn.ntk import NTK
from featlearn.seeding import stream

SITE = notebooks.ROOT / "_build" / "html"
STORED = data.load("live")
PAGES = {
    "circle": "chapters/04_ntk.html",
    "flow": "chapters/01_kernels.html",
    "width": "chapters/03_wide_networks.html",
    "neurons": "chapters/06_damian.html",
}
NEAREST = 0.2  # radians, the least distance of two points in the figure


# The data


def test_the_points_are_those_of_the_chapters():
    assert STORED["circle"] == json.loads(json.dumps(live.circle()))
    assert STORED["flow"] == live.flow()
    trig, problem = (functions("01_kernels", np=np)[name] for name in ("trig", "problem"))
    problem.__globals__["trig"] = trig
    x, _, y = problem(stream("ker-flow/figure"))
    assert STORED["flow"] == {"x": x.tolist(), "y": y.tolist()}


@pytest.mark.parametrize(("kind", "width"), [("relu", 16), ("erf", 64), ("erf mean-field", 32)])
def test_the_stored_ensembles_are_what_training_gives(kind, width):
    f, linear, gap = live.trained(kind, width)
    run = STORED["width"]["runs"][f"{kind}/{width}"]
    np.testing.assert_allclose(run["network"], f[:4], atol=2e-3)
    np.testing.assert_allclose(run["linear"], linear[:4], atol=2e-3)
    np.testing.assert_allclose(run["gap"], np.quantile(gap, [0.1, 0.5, 0.9]), rtol=0.02)


def test_an_ensemble_that_does_not_move_is_its_linearisation():
    f, linear, gap = live.trained("erf", 8, members=3, steps=0)
    np.testing.assert_array_equal(f, linear)
    assert gap.max() == 0


def test_the_stored_neurons_are_what_the_first_step_gives():
    stored, few = STORED["neurons"], live.neurons(ratios=(0.125, 0.25, 2.0, 32.0), sets=1)
    at = [0, *(1 + stored["ratios"].index(q) for q in few["ratios"]), -1]
    np.testing.assert_allclose([stored["arrows"][i] for i in at], few["arrows"], atol=2e-3)
    lengths = np.square(stored["arrows"]).sum(axis=2)
    assert lengths.max() <= 1.003
    inside = lengths.mean(axis=1)
    assert inside[0] < 0.15 < 0.85 < inside[-1]


# The pages


@pytest.mark.parametrize(("name", "page"), PAGES.items())
def test_a_page_has_the_scripts_of_its_figures_alone(name, page):
    html = (SITE / page).read_text(encoding="utf-8")
    assert re.findall(r'src="[^"]*_static/live/(\w+)\.js', html) == ["numbers", "figure", name]
    embedded = re.search(rf'<script type="application/json" id="live-{name}">(.*?)</script>', html)
    assert json.loads(embedded[1]) == STORED[name]


def test_other_pages_have_none():
    for path in SITE.rglob("*.html"):
        if str(path.relative_to(SITE)) not in PAGES.values():
            assert "_static/live/" not in path.read_text(encoding="utf-8"), path.name


# In the browser


@pytest.fixture(scope="module")
def chromium(needs_chromium):
    with browser.launch() as running:
        yield running


@pytest.fixture
def page(chromium):
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


def opened(page, name):
    """The page of a figure, without its maths, which takes long to set."""
    site = browser.Folder(page, SITE)
    page.route("**/mathjax/**", lambda route: route.fulfill(body="", content_type="text/javascript"))
    site.open(PAGES[name])
    return site


def figure(page, name):
    """Open the figure's page, and return a function that reads the figure's state."""
    site = opened(page, name)
    page.wait_for_function(f"document.getElementById('fig-live-{name}')?.live")
    assert not site.errors
    return lambda expression: page.evaluate(
        f"(() => {{ const live = document.getElementById('fig-live-{name}').live; return {expression}; }})()"
    )


def on_circle(angles):
    return torch.as_tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1))


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
            np.testing.assert_allclose(found[law][part], values, atol=1e-6, err_msg=f"{law} {part} {network}")


def assert_figure_is_right(read):
    network, points = read("live.network"), read("live.points")
    angles, labels = ([point[key] for point in points] for key in ("angle", "label"))
    assert_same_laws(read("live.law"), network, np.array(angles), labels, np.array(read("live.grid")))


def test_circle_by_mouse_keys_and_controls(page):
    read = figure(page, "circle")
    assert_figure_is_right(read)
    assert read("live.network.depth") == 2

    handle = page.locator("#fig-live-circle .fl-panel").first.locator(".fl-handle").nth(1)
    handle.scroll_into_view_if_needed()
    before, box = read("live.points[1]"), handle.locator(".fl-point").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x - 12, y + 60, steps=4)
    page.mouse.up()
    after = read("live.points[1]")
    assert after["angle"] < before["angle"] and after["label"] < before["label"] - 0.3
    assert_figure_is_right(read)
    page.mouse.move(x + 50, y)
    assert read("live.points[1]") == after

    handle.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowUp")
    moved = read("live.points[1]")
    assert moved["angle"] == pytest.approx(after["angle"] + math.pi / 90)
    assert moved["label"] == pytest.approx(after["label"] + 0.05)
    degrees = round(math.degrees(moved["angle"]))
    assert handle.get_attribute("aria-valuetext") == f"{degrees} degrees, label {moved['label']:.2f}"

    on_ring = page.locator("#fig-live-circle .fl-panel").nth(1).locator(".fl-handle").first
    on_ring.focus()
    page.keyboard.press("ArrowUp")
    assert read("live.points[0].angle") == pytest.approx(0.3 + math.pi / 90)

    page.locator("#fig-live-circle input").fill("5")
    page.locator("#fig-live-circle select").select_option("erf")
    assert (read("live.network.depth"), read("live.network.activation")) == (5, "erf")
    assert_figure_is_right(read)
    page.get_by_role("button", name="Reset the points").click()
    assert [p["label"] for p in read("live.points")] == STORED["circle"]["labels"]
    assert_figure_is_right(read)


def test_points_on_the_circle_keep_their_distance(page):
    read = figure(page, "circle")
    page.locator("#fig-live-circle .fl-handle").first.focus()
    for _ in range(40):
        page.keyboard.press("ArrowRight")
    angles = np.array([p["angle"] for p in read("live.points")])
    gaps = np.abs((angles[:, None] - angles + np.pi) % (2 * np.pi) - np.pi)[~np.eye(6, dtype=bool)]
    assert NEAREST <= gaps.min() < NEAREST + math.pi / 90
    assert_figure_is_right(read)


def test_the_laws_agree_for_any_points(page):
    """Random points, and six as close together as the figure allows, at every depth."""
    figure(page, "circle")
    rng, grid = stream("test/live-circle"), np.linspace(-np.pi, np.pi, 61)
    for activation, (sigma_w, sigma_b) in live.SCALES.items():
        for depth in range(2, 9):
            network = {"depth": depth, "activation": activation, "sigmaW": sigma_w, "sigmaB": sigma_b}
            shares = rng.dirichlet(np.ones(6)) * (2 * np.pi - 6 * NEAREST) + NEAREST
            for angles in (np.cumsum(shares), 0.5 + NEAREST * np.arange(6)):
                labels = rng.uniform(-2, 2, 6)
                found = page.evaluate(
                    "([network, X, y, points]) => featlearn.posteriors(network, X, y, points)",
                    [network, on_circle(angles).tolist(), labels.tolist(), on_circle(grid).tolist()],
                )
                assert_same_laws(found, network, angles, labels, grid)


def test_flow_by_sliders(page):
    read = figure(page, "flow")
    names = functions("01_kernels", np=np)
    x, y = (np.array(STORED["flow"][key]) for key in "xy")
    Phi, grid = names["trig"](x), np.array(read("live.grid"))
    path = linalg.SpectralPath(Phi @ Phi.T, y)
    np.testing.assert_allclose(read("live.eigenvalues"), path.eigenvalues.flip(0)[:20], rtol=1e-10)
    K_x = torch.as_tensor(names["trig"](grid) @ Phi.T)
    time, direction = page.locator("#fig-live-flow input").all()
    for stop in ("0", "7", "30", "60"):
        time.fill(stop)
        t = read("live.t")
        np.testing.assert_allclose(read("live.f"), K_x @ path.flow([t])[:, 0], atol=1e-6)
        np.testing.assert_allclose(np.sum(read("live.parts"), axis=0), read("live.f"), atol=1e-12)
    assert t == pytest.approx(1000)
    direction.focus()
    page.keyboard.press("ArrowRight")
    assert read("live.direction") == 1
    s, u = path.eigenvalues[-1], path.eigenvectors[:, -1]
    part = (K_x @ u) * -torch.expm1(-s * t) / s * (u @ torch.as_tensor(y))
    np.testing.assert_allclose(read("live.parts[0]"), part, atol=1e-6)
    assert "Direction 1" in page.locator("#fig-live-flow .fl-says").inner_text()


def test_width_shows_the_stored_ensembles(page):
    read = figure(page, "width")
    slider = page.locator("#fig-live-width input")
    slider.focus()
    for _ in range(10):
        page.keyboard.press("ArrowRight")
    page.locator("#fig-live-width select").select_option("erf mean-field")
    assert (read("live.width"), read("live.kind")) == (4096, "erf mean-field")
    assert read("live.run") == STORED["width"]["runs"]["erf mean-field/4096"]
    assert slider.get_attribute("aria-valuetext") == "4096"


def test_neurons_turn(page):
    read = figure(page, "neurons")
    slider, inside = page.locator("#fig-live-neurons input"), []
    for stop in range(len(STORED["neurons"]["arrows"])):
        slider.fill(str(stop))
        assert read("live.tips") == STORED["neurons"]["arrows"][stop]
        inside.append(read("live.inside"))
    np.testing.assert_allclose(inside, np.square(STORED["neurons"]["arrows"]).sum(axis=2).mean(axis=1))
    assert slider.get_attribute("aria-valuetext") == "infinitely many samples"


@pytest.mark.parametrize("name", PAGES)
def test_the_still_serves_without_scripts_and_in_print(chromium, name):
    plain = chromium.new_page(java_script_enabled=False)
    opened(plain, name)
    assert plain.locator(f"#fig-live-{name} img").is_visible()
    plain.close()
    page = chromium.new_page()
    figure(page, name)
    image, box = page.locator(f"#fig-live-{name} img"), page.locator(f"#fig-live-{name} .fl-live")
    assert box.is_visible() and not image.is_visible()
    page.emulate_media(media="print")
    assert image.is_visible() and not box.is_visible()
    page.close()


def test_a_figure_that_fails_leaves_the_still(page):
    page.add_init_script("Object.defineProperty(Math, 'expm1', {value: () => { throw Error('broken'); }})")
    site = opened(page, "flow")
    page.wait_for_load_state("load")
    assert site.errors == ["broken"]
    assert page.locator("#fig-live-flow img").is_visible()
    assert page.locator("#fig-live-flow .fl-live").count() == 0
