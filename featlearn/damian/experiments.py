r"""The experiments of chapter 6, one run of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from torch import Tensor

from featlearn import linalg, validate
from featlearn.damian.algorithm import (
    TwoLayer,
    _data,
    _even,
    algorithm1,
    alignment,
    first_step,
    fit_head,
    fixed_features,
    fraction_learned,
    initialise,
    preprocess,
)
from featlearn.damian.target import LARGEST_NOISE, LatentPolynomial, Sample, mixture
from featlearn.validate import Array


def clipped_square(y: Array, cap: float = 3.0) -> Tensor:
    r"""$\min(y^2, \text{cap})$ less its mean: a label whose average Hessian is not zero."""
    square = validate.as_tensor(y, "y", 1).square().clamp(max=validate.real(cap, "cap", above=0))
    return square - square.mean()


def compare_methods(
    d: int,
    n: int,
    rng: np.random.Generator,
    *,
    p: int = 4,
    kernel: Callable[..., Tensor] | None = None,
    points: int = 2048,
    device: str | torch.device = "cpu",
) -> np.ndarray:
    r"""One run of the sample-complexity experiment on `mixture(p)`: rows Algorithm 1, random
    features, kernel; columns risk, fraction learned of $h_2$, of $h_p$.

    Algorithm 1 keeps a fifth of the n samples to choose $\lambda$. The other two train on all of
    them and have $\lambda$ chosen on the test set, which is in their favour. Without `kernel` there
    are two rows.
    """
    n, points = validate.integer(n, "n", at_least=2), validate.integer(points, "points")
    if kernel is not None:
        validate.function(kernel, "kernel")
    target = LatentPolynomial.draw(d, mixture(p), rng, device)
    test, sample = target.stratified(points, rng), target.sample(n, rng)
    train, kept = sample.split(len(sample.y) * 4 // 5)
    outputs = [
        algorithm1(train.X, train.y, kept, rng)(test.X),
        fixed_features(sample.X, sample.y, test, rng)(test.X),
    ]
    if kernel is not None:
        outputs.append(kernel_predictions(kernel, sample.X, sample.y, test))
    parts = [target.part([k])(test.X) for k in (2, p)]
    return np.array(
        [
            [test.risk(f).item(), *(fraction_learned(f, test, part) for part in parts)]
            for f in outputs
        ]
    )


def kernel_predictions(
    kernel: Callable[..., Tensor],
    X: Array,
    y: Array,
    test: Sample,
    ridges: Sequence[float] = (1e-6, 1e-4, 1e-3),
) -> Tensor:
    r"""Kernel ridge regression at the test points, in float32.

    Of all `ridges`, times n and the mean of $k(x, x)$, and of zero, what has least risk there.
    """
    validate.function(kernel, "kernel")
    validate.instance(test, "test", Sample)
    X, y = (part.float() for part in _data(X, y))
    ridges = [validate.real(r, "ridges", at_least=0) for r in validate.sequence(ridges, "ridges")]
    K = validate.as_tensor(kernel(X), "kernel(X)", 2)
    K_test = validate.as_tensor(kernel(test.X.float(), X), "kernel(test.X, X)", 2)
    if K.shape != (len(y), len(y)) or K_test.shape != (len(test.y), len(y)):
        raise ValueError(
            f"kernel must return matrices of shape {(len(y), len(y))} and "
            f"{(len(test.y), len(y))}, got {tuple(K.shape)} and {tuple(K_test.shape)}"
        )
    unit = len(y) * K.diagonal().mean().item()
    outputs = [K_test @ linalg.cholesky_solve(K, y, ridge * unit) for ridge in ridges]
    outputs.append(torch.zeros_like(outputs[0]))
    return outputs[int(torch.stack([test.risk(f) for f in outputs]).argmin())]


def transfer(
    d: int,
    n: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    p: int = 3,
    width: int = 500,
    points: int = 1024,
    device: str | torch.device = "cpu",
) -> np.ndarray:
    r"""One run of the transfer experiment: risks on $h_p(u\cdot x)$ after training a head on N
    samples, for each N of `sizes`.

    The first layer took its step on n samples of `mixture(p)`; for n = 0 it is random. $\lambda$ is
    chosen on the test set.
    """
    sizes, points = validate.integers(sizes, "sizes"), validate.integer(points, "points")
    n, device = validate.integer(n, "n", at_least=0), validate.device(device)
    width = _even(width) if n else validate.integer(width, "width")
    validate.size(width * validate.integer(d, "d"), "width and d")
    source = LatentPolynomial.draw(d, mixture(p), rng, device)
    target = LatentPolynomial(source.U, {(p,): 1.0})
    if n:
        a, W = initialise(width, d, rng, device)
        sample = source.sample(n, rng)
        W = first_step(a, W, sample.X, preprocess(sample.X, sample.y)[2], math.sqrt(d) / 2)
    else:
        W = torch.as_tensor(rng.standard_normal((width, d)) / math.sqrt(d), device=device)
    b, zero = torch.as_tensor(rng.standard_normal(width)).to(W), torch.zeros_like(W[0])
    network = TwoLayer(W, b, torch.zeros_like(b), zero[0], zero, 0.0)
    test, fresh = target.stratified(points, rng), target.sample(max(sizes), rng)
    heads = [fit_head(network, fresh.X[:N], fresh.y[:N], test) for N in sizes]
    return np.array([test.risk(head(test.X)).item() for head in heads])


def step_alignment(
    d: int,
    n: int,
    terms: Mapping[tuple[int, ...], float],
    rng: np.random.Generator,
    *,
    width: int = 400,
    noise_std: float = 0.0,
    label: Callable[[Tensor], Tensor] | None = None,
    device: str | torch.device = "cpu",
) -> float:
    """`alignment` after the first step on n samples of the polynomial with these terms.

    `label` transforms the labels before anything else.
    """
    if label is not None:
        validate.function(label, "label")
    validate.integer(n, "n")
    noise_std = validate.real(noise_std, "noise_std", at_least=0)
    if noise_std > LARGEST_NOISE:
        raise ValueError(f"noise_std must be at most {LARGEST_NOISE:g}, got {noise_std:g}")
    target = LatentPolynomial.draw(d, terms, rng, device)
    a, W = initialise(width, d, rng, device)
    sample = target.sample(n, rng, noise_std)
    y = sample.y
    if label is not None:
        y = validate.as_tensor(label(y), "label(y)", 1)
        validate.same_length(y, "label(y)", sample.X, "X")
    return alignment(first_step(a, W, sample.X, preprocess(sample.X, y)[2], 1.0), target.U)
