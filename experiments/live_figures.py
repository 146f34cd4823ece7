"""The data behind the live figures of the site."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import vmap

from experiments import stored
from featlearn import damian, networks, wide
from featlearn.seeding import stream

TARGET = stored.DATA / "live.json"
SCALES = {"erf": (1.5, 0.3), "relu": (2**0.5, 0.3)}
ANGLES = 0.3 + np.arange(6) * np.pi / 3


def on_circle(angles: np.ndarray) -> Tensor:
    r"""The points $(\cos, \sin)$ of these angles, shape (n, 2)."""
    return torch.as_tensor(np.stack([np.cos(angles), np.sin(angles)], axis=1))


def circle() -> dict[str, Any]:
    """Six points on the circle and their labels, those of chapter 4."""
    return {"angles": ANGLES.tolist(), "labels": np.sin(ANGLES).tolist(), "scales": SCALES}


def labels(angles: np.ndarray) -> np.ndarray:
    r"""$3\sin2\beta$, which networks learn in `width`: chapter 3's target."""
    return 3 * np.sin(2 * angles)


def flow(n: int = 40) -> dict[str, Any]:
    """The points of chapter 1's figure on gradient flow."""
    rng = stream("ker-flow/figure")
    x = rng.uniform(0, 2 * np.pi, n)
    y = np.sin(x) + 0.5 * np.sin(4 * x) + 0.3 * rng.standard_normal(n)
    return {"x": x.tolist(), "y": y.tolist()}


def trained(
    kind: str,
    width: int,
    members: int = 40,
    points: int = 1441,
    step: float = 0.05,
    steps: int = 60,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """An ensemble at time 3 and its linearisations at `points` angles from -π to π, and the largest
    gap of each member there.
    """
    activation, mean_field = kind.removesuffix(" mean-field"), kind.endswith("mean-field")
    scale = width**-0.5 if mean_field else 1.0
    net = networks.Network((2, width, 1), activation, *SCALES[activation])
    X, y = on_circle(ANGLES).float(), torch.as_tensor(labels(ANGLES)).float()
    everywhere = torch.cat([X, on_circle(np.linspace(-np.pi, np.pi, points)).float()])
    theta0 = net.initialise(stream(f"live/width/{kind}/{width}"), members, dtype=torch.float32)
    *_, theta = networks.descent(net, theta0, X, y, learning_rate=step, steps=steps, scale=scale)
    linear = scale * net(theta0, everywhere)

    def kernel(at: networks.Parameters) -> Tensor:
        features = wide.tangent_features(net, at, everywhere)
        return features @ features[:6].T

    K = vmap(kernel, chunk_size=max(1, 4096 // width))(theta0)
    for _ in range(steps):
        linear = linear - step * (K @ (linear[:, :6] - y)[..., None])[..., 0]
    f = scale * net(theta, everywhere)
    gap = (f - linear).abs().amax(dim=1)
    return tuple(part.double().numpy() for part in (f[:, 6:], linear[:, 6:], gap))


def width(
    kinds: tuple[str, ...] = ("relu", "erf", "erf mean-field"),
    widths: tuple[int, ...] = tuple(2**k for k in range(3, 13)),
    shown: int = 3,
    every: int = 12,
) -> dict[str, Any]:
    """Networks and their linearisations after training.

    The curves of a few, and 10, 50 and 90 % quantiles of the gap of forty.
    """
    runs = {}
    for kind in kinds:
        for m in widths:
            f, linear, gap = trained(kind, m)
            runs[f"{kind}/{m}"] = {
                "network": np.round(f[:shown, ::every], 3).tolist(),
                "linear": np.round(linear[:shown, ::every], 3).tolist(),
                "gap": [float(f"{q:.3g}") for q in np.quantile(gap, [0.1, 0.5, 0.9])],
            }
    angles = (ANGLES + np.pi) % (2 * np.pi) - np.pi
    return {
        "angles": angles.tolist(),
        "labels": labels(angles).tolist(),
        "kinds": list(kinds),
        "widths": list(widths),
        "runs": runs,
    }


def neurons(
    d: int = 40,
    count: int = 60,
    ratios: tuple[float, ...] = tuple(2 ** (k / 2) for k in range(-6, 11)),
    sets: int = 8,
) -> dict[str, Any]:
    r"""Neurons $w_j/\|w_j\|$ in the plane of $S^*$, at the start and after one step on the first $n
    = q\,d^2$ samples, $q$ in `ratios`.

    The target is chapter 6's example of rank 2. With it, 10, 50 and 90 % quantiles of the alignment
    over `sets` data sets.
    """
    rng = stream("live/neurons")
    target = damian.LatentPolynomial.draw(d, damian.EXAMPLES[2], rng)
    a, W = damian.initialise(2 * count, d, rng)
    a, W = a[:count], W[:count]
    sample = target.sample(round(ratios[-1] * d * d), rng)

    def in_plane(weights: Tensor) -> list[list[float]]:
        aligned.append(round(damian.alignment(weights, target.U), 3))
        return np.round(
            ((weights / weights.norm(dim=1, keepdim=True)) @ target.U).numpy(), 3
        ).tolist()

    aligned: list[float] = []
    samples = [round(q * d * d) for q in ratios]
    stops = [in_plane(W)]
    for n in samples:
        X, y = sample.X[:n], sample.y[:n]
        stops.append(in_plane(damian.first_step(a, W, X, damian.preprocess(X, y)[2], 1.0)))
    rows = [
        [
            damian.step_alignment(
                d, n, damian.EXAMPLES[2], stream(f"live/neurons/{n}/{run}"), width=200
            )
            for n in samples
        ]
        for run in range(sets)
    ]
    quantiles = np.quantile(rows, [0.1, 0.5, 0.9], axis=0).T
    limit = in_plane(damian.population_gradient(target, W) * a[:, None])
    return {
        "d": d,
        "ratios": [float(f"{q:.4g}") for q in ratios],
        "samples": samples,
        "arrows": [*stops, limit],
        "aligned": aligned,
        "alignment": np.round(quantiles, 3).tolist(),
    }


def main(arguments: list[str]) -> int:
    """Compute the data of all live figures and write them."""
    options = stored.options("live-figures", "Compute the data of the live figures.", TARGET)
    target = options.parse_args(arguments).out
    figures = {figure.__name__: figure() for figure in (circle, flow, width, neurons)}
    stored.write(target, {**stored.origin("python -m experiments live-figures"), **figures})
    return 0
