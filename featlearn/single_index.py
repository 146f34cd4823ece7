r"""Single-index targets $f^*(x) = g(u\cdot x)$ on the sphere; how kernels and networks learn them.

The three links of chapter 1: $z^2$, $|z|$, and the polynomial of degree four that is orthogonal to
all of lower degree; each is shifted and scaled to mean 0 and variance 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from featlearn import harmonics, linalg, validate
from featlearn.kernels import Kernel, _evaluate
from featlearn.networks import TwoLayerEnsemble
from featlearn.validate import Array

LINKS = ("z²", "|z|", "degree 4")
Link = Callable[[np.ndarray], np.ndarray]
LARGEST = 1e9  # networks are trained in float32


def link(name: str, d: int) -> Link:
    r"""$g$ with mean 0 and variance 1 for $z = u\cdot x$, x uniform on the sphere of radius
    $\sqrt d$.

    Parameters
    ----------
    name : {"z²", "|z|", "degree 4"}
        Which link. The last one is $\sqrt{N(d, 4)}\,P_4(z/\sqrt d)$ with the Gegenbauer polynomial
        $P_4$.
    d
        The dimension of x, at least 3.
    """
    validate.one_of(name, "name", LINKS)
    d = validate.integer(d, "d", at_least=3)
    if name == "z²":
        return lambda z: (z**2 - 1) / math.sqrt(2 * (d - 1) / (d + 2))
    if name == "|z|":
        mean = math.sqrt(d / math.pi) * math.exp(math.lgamma(d / 2) - math.lgamma((d + 1) / 2))
        return lambda z: (np.abs(z) - mean) / math.sqrt(1 - mean**2)
    size = math.sqrt(harmonics.harmonic_dimension(d, 4))
    return lambda z: size * harmonics.gegenbauer(4, z / math.sqrt(d), d)


def draw(
    g: Link, d: int, n: int, runs: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """For each run a random direction, n points of the sphere and their labels: U of shape
    (runs, d), X of shape (runs, n, d), y of shape (runs, n).
    """
    validate.function(g, "g")
    d, n, runs = (validate.integer(v, name) for v, name in ((d, "d"), (n, "n"), (runs, "runs")))
    validate.size(runs * n * d, "runs, n and d")
    U = harmonics.sphere(runs, d, rng) / math.sqrt(d)
    X = harmonics.sphere(runs * n, d, rng).reshape(runs, n, d)
    y = validate.as_tensor(g(np.einsum("rnd,rd->rn", X, U)), "g(z)", 2)
    if y.shape != (runs, n):
        raise ValueError(f"g(z) must have the shape of z, {(runs, n)}, got {tuple(y.shape)}")
    return U, X, y.numpy()


def _runs(X: Array, y: Array, names: tuple[str, str]) -> tuple[Tensor, Tensor]:
    """Inputs (runs, n, d) and their labels (runs, n), in float64."""
    points = validate.as_tensor(X, names[0], 3).double()
    labels = validate.as_tensor(y, names[1], 2).double()
    if labels.shape != points.shape[:2]:
        raise ValueError(
            f"{names[1]} must have shape {tuple(points.shape[:2])} to go with {names[0]}, "
            f"got {tuple(labels.shape)}"
        )
    for values, name in ((points, names[0]), (labels, names[1])):
        if values.abs().max() > LARGEST:
            raise ValueError(f"{name} must have entries of size at most {LARGEST:g}")
    return points, labels


def kernel_errors(
    kernel: Kernel, ridges: Array, X: Array, y: Array, X_test: Array, y_test: Array
) -> Tensor:
    """Test errors of kernel ridge regression with a constant, as fractions of the variance of the
    test labels, shape (runs, ridges).

    One eigendecomposition serves all ridges.
    """
    validate.function(kernel, "kernel")
    ridges = validate.as_tensor(ridges, "ridges", 1)
    if not (ridges >= 0).all():
        raise ValueError(f"ridges must not be negative, got {ridges.min():g}")
    points, labels = _runs(X, y, ("X", "y"))
    new, truth = _runs(X_test, y_test, ("X_test", "y_test"))
    if len(points) != len(new) or points.shape[2] != new.shape[2]:
        raise ValueError(
            f"X_test must have {len(points)} runs in {points.shape[2]} dimensions, "
            f"got shape {tuple(new.shape)}"
        )
    errors = []
    for x, t, x_new, t_new in zip(points, labels, new, truth, strict=True):
        alpha = linalg.SpectralPath(_evaluate(kernel, x), t - t.mean()).ridge(ridges)
        fitted = _evaluate(kernel, x_new, x) @ alpha + t.mean()
        errors.append(_fraction(fitted, t_new[:, None]))
    return torch.stack(errors)


def _fraction(fitted: Tensor, truth: Tensor) -> Tensor:
    """What is left of the variance of the columns of `truth` after those of `fitted`."""
    variance = truth.var(dim=0, correction=0)
    if not (variance > 0).all():
        raise ValueError("y_test must not be constant: errors are fractions of its variance")
    return (fitted - truth).square().mean(dim=0) / variance


def train(X: Array, y: Array, **options: Any) -> TwoLayerEnsemble:
    """One two-layer ReLU network for each run, all weights trained on X (runs, n, d) and y
    (runs, n), in float32.

    `options` are those of `networks.TwoLayerEnsemble`.
    """
    points, labels = _runs(X, y, ("X", "y"))
    return TwoLayerEnsemble(**options).fit(points.float(), labels)


def network_errors(net: TwoLayerEnsemble, X_test: Array, y_test: Array) -> Tensor:
    """Test errors of trained networks, as fractions of the variance of the test labels, shape
    (runs,).
    """
    check_is_fitted(validate.instance(net, "net", TwoLayerEnsemble))
    new, truth = _runs(X_test, y_test, ("X_test", "y_test"))
    runs, _, d = net.theta_["W1"].shape
    if (len(new), new.shape[2]) != (runs, d):
        raise ValueError(
            f"X_test must have {runs} runs in {d} dimensions, got shape {tuple(new.shape)}"
        )
    return _fraction(net.predict(new.float()).double().T, truth.T)


def alignment(net: TwoLayerEnsemble, U: Array) -> Tensor:
    r"""$\sum_ja_j^2(w_j\cdot u)^2/\sum_ja_j^2\|w_j\|^2$ for each network: the fraction of its
    weights, counted as they enter the output, that lies along u; shape (runs,).
    """
    check_is_fitted(validate.instance(net, "net", TwoLayerEnsemble))
    aW = (net.theta_["W1"] * net.theta_["W2"].mT).detach().double()
    U = validate.as_tensor(U, "U", 2).double()
    if U.shape != (len(aW), aW.shape[2]):
        raise ValueError(
            f"U must have shape {(len(aW), aW.shape[2])} to go with net, got {tuple(U.shape)}"
        )
    along = torch.einsum("rmd,rd->rm", aW, U).square().sum(dim=1)
    return along / aW.square().sum(dim=(1, 2))
