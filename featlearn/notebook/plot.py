"""One look for every figure: theory dashed, measurement as dots with an interval over seeds.

Colours are those of Okabe and Ito (purple from Tol), told apart by every common form of colour
blindness; each also has its own marker. Figures have a light background of their own, so they read
the same on a dark page, and type large enough to survive a phone.
"""

from __future__ import annotations

from typing import Any

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.rcsetup import cycler
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator
from scipy.stats import gmean
from sklearn.manifold import smacof
from torch import Tensor

from featlearn import validate
from featlearn.notebook.fits import PowerLaw, fit_power_law
from featlearn.validate import Array

BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#AA4499",
    "#E69F00",
    "#56B4E9",
)
CYCLE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY)
MARKERS = ("o", "s", "^", "D", "v", "P")
MOST_PANELS, TALLEST = 20, 100.0
MANY = 10  # runs: from here on a bar leaves out a tenth at each end
KERNEL, NETWORK, INK, FAINT = BLUE, VERMILION, "#222222", "#9a9a9a"


def style() -> None:
    """Set matplotlib's defaults for the session."""
    mpl.rcParams.update(
        {
            "figure.figsize": (6.4, 3.8),
            "figure.dpi": 140,
            "figure.facecolor": "white",
            "savefig.facecolor": "white",
            "figure.constrained_layout.use": True,
            "font.size": 12,
            "axes.titlesize": 12,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "axes.axisbelow": True,
            "axes.prop_cycle": cycler(color=CYCLE),
            "grid.color": "#e6e6e6",
            "grid.linewidth": 0.8,
            "legend.frameon": False,
            "legend.fontsize": 10.5,
            "lines.linewidth": 1.8,
            "lines.markersize": 5.5,
        }
    )


def panels(
    columns: int = 1, rows: int = 1, *, height: float = 3.7, **options: Any
) -> tuple[Figure, Any]:
    """`plt.subplots` at the book's width: 6.4 inches for one column, 9 for more.

    At most 20 columns and 20 rows of `height` inches, at most 100.
    """
    validate.integer(columns, "columns", at_most=MOST_PANELS)
    validate.integer(rows, "rows", at_most=MOST_PANELS)
    if validate.real(height, "height", above=0.1) > TALLEST:
        raise ValueError(f"height must be at most {TALLEST:g} inches, got {height!r}")
    width = 6.4 if columns == 1 else 9.0
    return plt.subplots(rows, columns, figsize=(width, height * rows), **options)


def _axes(ax: Axes) -> Axes:
    return validate.instance(ax, "ax", Axes)


def _legend(label: str | None) -> str | None:
    return None if label is None else validate.instance(label, "label", str)


def _colour(value: str) -> str:
    if not mpl.colors.is_color_like(value):
        raise ValueError(f"color must be a colour of matplotlib, got {value!r:.80}")
    return value


def _numbers(values: Array, name: str, ndim: int | tuple[int, ...]) -> np.ndarray:
    """`values` as a float64 array; NaN leaves a gap."""
    return validate.as_tensor(values, name, ndim, finite=False).detach().cpu().double().numpy()


def label(ax: Axes, x: str, y: str, title: str = "", *, log: str = "") -> None:
    """Name the axes; `log` is "", "x", "y" or "xy"."""
    validate.one_of(log, "log", ("", "x", "y", "xy"))
    for name, value in (("x", x), ("y", y), ("title", title)):
        validate.instance(value, name, str)
    _axes(ax).set(xlabel=x, ylabel=y, title=title)
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")


def ticks(ax: Axes, values: Array, axis: str = "x") -> None:
    """Label a logarithmic axis at these values and nowhere else, in plain numbers."""
    validate.one_of(axis, "axis", ("x", "y"))
    at = validate.as_tensor(values, "values", 1).tolist()
    side = _axes(ax).xaxis if axis == "x" else ax.yaxis
    side.set_major_locator(FixedLocator(at))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    side.set_minor_locator(NullLocator())


def theory(ax: Axes, x: Array, y: Array, label: str | None = "theory", color: str = INK) -> None:
    """A prediction: a dashed line through y at x, (k,) each; several for y of shape (k, m)."""
    x, y = _numbers(x, "x", (0, 1, 2)), _numbers(y, "y", (0, 1, 2))
    if x.shape[:1] != y.shape[:1]:
        raise ValueError(f"x and y must have one length, got shapes {x.shape} and {y.shape}")
    colour, legend = _colour(color), _legend(label)
    _axes(ax).plot(x, y, "--", linewidth=1.6, zorder=2, color=colour, label=legend)


def _seeds(x: Array, y: Array) -> tuple[np.ndarray, np.ndarray]:
    x, y = _numbers(x, "x", 1), _numbers(y, "y", 2)
    if y.shape[1:] != x.shape:
        raise ValueError(f"x and y must go together: y (seeds, {len(x)}), got {y.shape}")
    return x, y


def measured(
    ax: Axes,
    x: Array,
    y: Array,
    label: str | None = None,
    color: str = BLUE,
    marker: str = "o",
    line: bool = False,
) -> None:
    """A measurement: the median over seeds as dots, the 10–90 % range as bars (of fewer than ten
    seeds the whole range); y is (seeds, k).
    """
    x, y = _seeds(x, y)
    _draw(_axes(ax), x, y, np.median(y, axis=0), label, color, marker, validate.flag(line, "line"))


def _draw(
    ax: Axes,
    x: np.ndarray,
    y: np.ndarray,
    middle: np.ndarray,
    label: str | None,
    color: str,
    marker: str,
    line: bool,
) -> None:
    if not isinstance(marker, str) or marker not in mpl.lines.Line2D.markers:
        raise ValueError(f"marker must be a marker of matplotlib, got {marker!r:.80}")
    tails = [0.1, 0.9] if len(y) >= MANY else [0, 1]
    low, high = np.quantile(y, tails, axis=0)  # a mean may lie outside
    ax.errorbar(
        x,
        middle,
        yerr=[np.maximum(middle - low, 0), np.maximum(high - middle, 0)],
        fmt=marker + ("-" if line else ""),
        color=_colour(color),
        label=_legend(label),
        capsize=2.5,
        linewidth=1.2,
        zorder=3,
    )


def power_law(
    ax: Axes,
    x: Array,
    y: Array,
    label: str = "",
    color: str = BLUE,
    marker: str = "o",
    average: str = "mean",
) -> PowerLaw:
    """Dots at the averages that are fitted, bars as in `measured`, the fitted line, and its slope
    in the legend; returns the fit with its interval.
    """
    x, y = _seeds(x, y)
    fit = fit_power_law(x, y, average=average)
    value = f"slope {fit.exponent:.2f}".replace("-", "−")
    slope = f"{label}: {value}" if validate.instance(label, "label", str) else value
    middle = {"mean": np.mean, "median": np.median, "geometric": gmean}[average](y, axis=0)
    _draw(_axes(ax), x, y, middle, slope, color, marker, line=False)
    ax.plot(x, fit(x), color=color, linewidth=1.2, alpha=0.7, zorder=2)
    ax.set(xscale="log", yscale="log")
    return fit


def cosine_map(C: Array) -> Tensor:
    r"""Multidimensional scaling: points in the plane (n, 2) whose distances come close to
    $\sqrt{2-2C_{ij}}$, C (n, n) being cosines.

    Starts at the two leading coordinates of classical scaling and lowers the stress by
    scikit-learn's SMACOF; nothing random. The points are for a picture and on the CPU wherever C
    is.
    """
    C = validate.as_tensor(C, "C", 2)
    validate.square(C, "C")
    if len(C) < 2:
        raise ValueError("C must hold the cosines of at least two vectors")
    if not C.abs().max() <= 1 + 1e-3:
        raise ValueError("C must hold cosines, between -1 and 1")
    C = (C + C.T).double().cpu() / 2
    distances = (2 - 2 * C).clamp_min(0).sqrt()
    distances.fill_diagonal_(0)
    centred = C - C.mean(0) - C.mean(1, keepdim=True) + C.mean()
    values, vectors = torch.linalg.eigh(centred)
    start = vectors[:, -2:] * values[-2:].clamp_min(0).sqrt()
    points, _ = smacof(
        distances.numpy(),
        n_components=2,
        init=start.numpy(),
        n_init=1,
        max_iter=300,
        eps=1e-6,
        normalized_stress=False,
    )
    return torch.as_tensor(points)
