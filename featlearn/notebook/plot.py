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
from sklearn.manifold import smacof
from torch import Tensor

from featlearn import validate
from featlearn.notebook.claims import PowerLaw, fit_power_law

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
    """`plt.subplots` at the book's width: 6.4 inches for one column, 9 for more."""
    validate.integer(columns, "columns")
    validate.integer(rows, "rows")
    width = 6.4 if columns == 1 else 9.0
    return plt.subplots(rows, columns, figsize=(width, height * rows), **options)


def label(ax: Axes, x: str, y: str, title: str = "", *, log: str = "") -> None:
    """Name the axes; `log` is "", "x", "y" or "xy"."""
    validate.one_of(log, "log", ("", "x", "y", "xy"))
    ax.set(xlabel=x, ylabel=y, title=title)
    if "x" in log:
        ax.set_xscale("log")
    if "y" in log:
        ax.set_yscale("log")


def ticks(ax: Axes, values: Any, axis: str = "x") -> None:
    """Label a logarithmic axis at these values and nowhere else, in plain numbers."""
    validate.one_of(axis, "axis", ("x", "y"))
    side = ax.xaxis if axis == "x" else ax.yaxis
    side.set_major_locator(FixedLocator(list(values)))
    side.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    side.set_minor_locator(NullLocator())


def theory(ax: Axes, x: Any, y: Any, label: str | None = "theory", color: str = INK) -> None:
    """A prediction: a dashed line."""
    ax.plot(np.asarray(x), np.asarray(y), "--", color=color, label=label, linewidth=1.6, zorder=2)


def _seeds(x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if y.ndim != 2 or y.shape[1:] != x.shape:
        raise ValueError(f"y must have shape (seeds, {len(x)}), got {y.shape}")
    return x, y


def measured(
    ax: Axes,
    x: Any,
    y: Any,
    label: str | None = None,
    color: str = BLUE,
    marker: str = "o",
    line: bool = False,
) -> None:
    """A measurement: the median over seeds as dots, the 10–90 % range as bars; y is (seeds, k)."""
    x, y = _seeds(x, y)
    low, middle, high = np.quantile(y, [0.1, 0.5, 0.9], axis=0)
    fmt = marker + ("-" if line else "")
    bars = [middle - low, high - middle]
    ax.errorbar(
        x,
        middle,
        yerr=bars,
        fmt=fmt,
        color=color,
        label=label,
        capsize=2.5,
        linewidth=1.2,
        zorder=3,
    )


def power_law(
    ax: Axes,
    x: Any,
    y: Any,
    label: str = "",
    color: str = BLUE,
    marker: str = "o",
    average: str = "mean",
) -> PowerLaw:
    """Dots, the fitted line, and its slope in the legend; returns the fit with its interval."""
    x, y = _seeds(x, y)
    fit = fit_power_law(x, y, average=average)
    value = f"slope {fit.exponent:.2f}".replace("-", "−")
    slope = f"{label}: {value}" if label else value
    measured(ax, x, y, slope, color, marker)
    ax.plot(x, fit(x), color=color, linewidth=1.2, alpha=0.7, zorder=2)
    ax.set(xscale="log", yscale="log")
    return fit


def cosine_map(C: Any) -> Tensor:
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
