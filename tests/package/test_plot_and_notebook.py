"""Figures, glue, scale and progress bars."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch

from featlearn import data, notebook
from featlearn.notebook import maps, plot

mpl.use("Agg")


def luminance(colour):
    channels = np.array(mpl.colors.to_rgb(colour))
    linear = np.where(channels <= 0.03928, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def test_style_is_light_and_colours_are_visible_on_it():
    plot.style()
    assert mpl.rcParams["figure.facecolor"] == "white"
    for colour in plot.CYCLE:
        assert 1.05 / (luminance(colour) + 0.05) > 2
    assert len(set(plot.MARKERS)) == len(plot.CYCLE)


def test_theory_is_dashed_and_measurement_is_dots_with_intervals():
    fig, ax = plot.panels()
    plot.theory(ax, [1, 2], [1, 2])
    assert ax.lines[0].get_linestyle() == "--"
    y = np.array([[1.0, 2.0], [2.0, 3.0], [3.0, 4.0]])
    plot.measured(ax, [1, 2], y, "m")
    dots, _, bars = ax.containers[0]
    assert dots.get_ydata().tolist() == [2.0, 3.0]
    assert dots.get_linestyle() == "None"
    assert bars[0].get_segments()[0][:, 1].tolist() == [1.0, 3.0]  # of few, all
    many = np.random.default_rng(0).random((20, 2))
    plot.measured(ax, [1, 2], many)
    segment = ax.containers[1][2][0].get_segments()[0]
    np.testing.assert_allclose(segment[:, 1], np.quantile(many[:, 0], [0.1, 0.9]))
    plt.close(fig)


@pytest.mark.parametrize(
    ("average", "middle"), [("mean", 37.0), ("median", 10.0), ("geometric", 10.0)]
)
def test_the_dots_of_a_power_law_are_what_is_fitted(average, middle):
    fig, ax = plot.panels()
    x = np.array([1.0, 10, 100])
    plot.power_law(ax, x, np.outer([1.0, 10, 100], x**-0.5), average=average)
    np.testing.assert_allclose(ax.containers[0][0].get_ydata(), middle * x**-0.5)
    plt.close(fig)


def test_power_law_writes_the_slope():
    fig, ax = plot.panels(2)
    x = np.array([1.0, 10, 100])
    fit = plot.power_law(ax[0], x, np.tile(x**-0.5, (3, 1)), "error")
    assert fit.exponent == pytest.approx(-0.5)
    assert ax[0].get_legend_handles_labels()[1] == ["error: slope −0.50"]
    assert ax[0].get_xscale() == ax[0].get_yscale() == "log"
    plt.close(fig)


def test_plot_errors():
    fig, ax = plot.panels()
    with pytest.raises(ValueError, match="y must be 2-dimensional"):
        plot.measured(ax, [1, 2], [1, 2])
    with pytest.raises(ValueError, match=r"x and y must go together: y \(seeds, 2\)"):
        plot.measured(ax, [1, 2], [[1, 2, 3]])
    with pytest.raises(ValueError, match="x and y must have one length"):
        plot.theory(ax, [1, 2], [1, 2, 3])
    with pytest.raises(TypeError, match="ax must be a Axes"):
        plot.theory([ax], [1, 2], [1, 2])
    with pytest.raises(ValueError, match="color must be a colour"):
        plot.theory(ax, [1, 2], [1, 2], color="no colour")
    with pytest.raises(ValueError, match="marker must be a marker"):
        plot.measured(ax, [1, 2], [[1, 2]], marker="§")
    with pytest.raises(ValueError, match="C must hold cosines"):
        plot.cosine_map(2 * np.eye(3))
    for columns in (21, 10**5):
        with pytest.raises(ValueError, match="columns must be at most 20"):
            plot.panels(columns)
    with pytest.raises(ValueError, match="log must be one of"):
        plot.label(ax, "x", "y", log="z")
    with pytest.raises(ValueError, match="columns must be at least 1"):
        plot.panels(0)
    plt.close(fig)


def test_scale(monkeypatch):
    assert notebook.at_scale(1, 2) == 1
    monkeypatch.setenv("FEATLEARN_SCALE", "full")
    assert notebook.at_scale(1, 2) == 2
    monkeypatch.setenv("FEATLEARN_SCALE", "huge")
    with pytest.raises(
        ValueError, match="FEATLEARN_SCALE must be one of 'quick', 'full', got 'huge'"
    ):
        notebook.at_scale(1, 2)


def test_glue(monkeypatch):
    shown = []
    monkeypatch.setattr(notebook, "get_ipython", object)
    monkeypatch.setattr(
        notebook,
        "display",
        lambda bundle, raw, metadata: shown.append((bundle, metadata["scrapbook"])),
    )
    notebook.glue("a", 0.1234, ".2f")
    notebook.glue("b", np.int64(12345), ",")
    notebook.glue("c", "two cores")
    assert [next(iter(bundle.values())) for bundle, _ in shown] == ["≈0.12", "12,345", "two cores"]
    assert shown[0][1] == {"name": "a", "mime_prefix": "application/papermill.record/"}
    with pytest.raises(ValueError, match="name must not be empty"):
        notebook.glue("", 1)
    with pytest.raises(ValueError, match="fmt must fit the value"):
        notebook.glue("d", 0.5, "no format")
    with pytest.raises(ValueError, match="value must be finite"):
        notebook.glue("e", np.nan)
    with pytest.raises(TypeError, match="value must be a real number"):
        notebook.glue("f", [1.0])


def test_progress_is_silent_when_asked(monkeypatch, capsys):
    assert list(notebook.progress(range(3), "counting")) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FEATLEARN_PROGRESS", "on")
    assert list(notebook.progress(range(3), "counting")) == [0, 1, 2]
    assert "counting" in capsys.readouterr().err
    assert list(notebook.progress(range(3), "counting", show=False)) == [0, 1, 2]
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("FEATLEARN_PROGRESS", "perhaps")
    with pytest.raises(ValueError, match="FEATLEARN_PROGRESS must be one of"):
        notebook.progress(range(3))


def test_stored_results_say_where_they_come_from():
    stored = data.load("solvers")
    assert {"command", "commit", "machine", "seconds"} <= stored.keys()
    with pytest.raises(ValueError, match="name must be one of"):
        data.load("nothing")


def test_the_map_of_cosines_recovers_plane_angles():
    angles = torch.linspace(0, 6, 25, dtype=torch.float64)
    points = torch.stack([angles.cos(), angles.sin()], dim=1)
    flat = plot.cosine_map(points @ points.T)
    torch.testing.assert_close(
        torch.cdist(flat, flat), torch.cdist(points, points), rtol=0, atol=1e-4
    )


def test_the_map_of_cosines_has_less_stress_than_classical_scaling():
    points = torch.nn.functional.normalize(
        torch.as_tensor(np.random.default_rng(0).standard_normal((30, 8))), dim=1
    )
    C, distances = points @ points.T, torch.cdist(points, points)
    centred = C - C.mean(0) - C.mean(1, keepdim=True) + C.mean()
    values, vectors = torch.linalg.eigh(centred)
    start = vectors[:, -2:] * values[-2:].sqrt()
    flat = plot.cosine_map(C)
    stress = [(torch.cdist(x, x) - distances).square().sum() for x in (start, flat)]
    assert stress[1] < 0.8 * stress[0]
    torch.testing.assert_close(flat, plot.cosine_map(C))
    noisy = C.float() + 1e-7 * torch.triu(torch.ones(30, 30))
    assert torch.isfinite(plot.cosine_map(noisy)).all()


def test_the_map_of_neurons_is_level_and_has_every_dot():
    W = np.random.default_rng(0).standard_normal((9, 4))
    fig, ax = plot.panels()
    maps.neuron_map(ax, W, W[:, 0], W[0], "a title", size=20)
    (stars,), dots = ax.lines, ax.collections[0].get_offsets()
    assert stars.get_ydata()[0] == pytest.approx(stars.get_ydata()[1], abs=1e-9)
    assert stars.get_xdata()[0] > stars.get_xdata()[1]
    assert dots.shape == (9, 2)
    np.testing.assert_allclose(dots[0], stars.get_xydata()[0], atol=0.05)
    assert ax.get_title() == "a title"
    plt.close(fig)


@pytest.mark.parametrize(
    ("shape", "message"), [((1, 1), "at least two"), ((2, 3), "C must be square")]
)
def test_the_map_of_cosines_wants_a_square_matrix(shape, message):
    with pytest.raises(ValueError, match=message):
        plot.cosine_map(torch.ones(shape))
