"""Neurons as points of the plane."""

from __future__ import annotations

import numpy as np
import torch
from matplotlib.axes import Axes

from featlearn import validate
from featlearn.notebook import plot
from featlearn.validate import Array


def neuron_map(
    ax: Axes, W: Array, signs: Array, star: Array, title: str = "", *, size: int = 32
) -> None:
    """The rows of W (m, d) as dots of the plane, by `plot.cosine_map`, coloured by the signs (m,).

    Stars at plus and minus `star` (d,); the map is turned so that the line between them is level.
    """
    validate.instance(ax, "ax", Axes)
    validate.instance(title, "title", str)
    validate.integer(size, "size")
    W, star = validate.as_tensor(W, "W", 2).double(), validate.as_tensor(star, "star", 1).double()
    signs = validate.as_tensor(signs, "signs", 1)
    validate.columns(W, "W", len(star))
    validate.same_length(W, "W", signs, "signs")
    rows = torch.nn.functional.normalize(torch.cat([W, star[None], -star[None]]), dim=1)
    points = plot.cosine_map(rows @ rows.T).numpy()
    u, v = (points[-2] - points[-1]) / np.linalg.norm(points[-2] - points[-1])
    points = (points - points.mean(0)) @ np.array([[u, -v], [v, u]])
    tint = np.where(signs.cpu() > 0, plot.BLUE, plot.ORANGE)
    ax.scatter(points[:-2, 0], points[:-2, 1], s=18, c=tint, alpha=0.7, linewidths=0)
    ax.plot(*points[-2:].T, "*", ms=size, mfc="none", mec=plot.INK, mew=1.4)
    ax.set(xlim=(-1.4, 1.4), ylim=(-1.4, 1.4), xticks=[], yticks=[], aspect="equal", title=title)
