"""Checks of the exercises of chapter 6."""

from __future__ import annotations

from itertools import product
from math import factorial, prod, sqrt

import numpy as np
import torch
from numpy.polynomial import hermite_e

from featlearn.checks import Answer, agree, check

Coefficients = dict[tuple[int, ...], float]


def _hermite(z: np.ndarray, derivative: int = 0) -> np.ndarray:
    """A derivative of the normalised Hermite polynomials h_0, …, h_4 at the points z, along the
    first axis.
    """
    series = hermite_e.hermeder(np.diag([factorial(k) ** -0.5 for k in range(5)]), derivative)
    return hermite_e.hermeval(z, series)


def _second_moment(coefficients: Coefficients, r: int) -> np.ndarray:
    """E[g(z) z zᵀ] for degrees up to 4, by a rule exact up to degree 7 in each coordinate."""
    t, weight = hermite_e.hermegauss(4)
    Z = np.array(list(product(t, repeat=r)))
    weight = np.array(list(product(weight / weight.sum(), repeat=r))).prod(axis=1)
    h = _hermite(Z)
    g = sum(
        c * np.prod([h[k, :, i] for i, k in enumerate(key)], axis=0)
        for key, c in coefficients.items()
    )
    return np.einsum("n,ni,nj->ij", weight * g, Z, Z)


def _hessian_at_zero(coefficients: Coefficients, r: int) -> np.ndarray:
    """∇²g(0), term by term."""
    H, h = (
        np.zeros((r, r)),
        [_hermite(np.zeros(()), derivative).tolist() for derivative in range(3)],
    )
    for (i, j), (key, c) in product(product(range(r), repeat=2), coefficients.items()):
        H[i, j] += c * prod(h[(at == i) + (at == j)][k] for at, k in enumerate(key))
    return H


@check("average_hessian(coefficients)")
def average_hessian(answer: Answer, rng: np.random.Generator) -> None:
    """E[∇²g] from Hermite coefficients against quadrature of g(z)(zzᵀ − I)."""

    def drawn(r: int, degrees: tuple[int, ...]) -> Coefficients:
        keys = [key for key in product(range(5), repeat=r) if sum(key) in degrees]
        return {keys[i]: float(rng.normal()) for i in rng.permutation(len(keys))}

    def truth(coefficients: Coefficients, r: int) -> np.ndarray:
        return _second_moment(coefficients, r) - coefficients.get((0,) * r, 0.0) * np.eye(r)

    r = 3
    full = drawn(r, (0, 1, 2, 3, 4))
    H, constant = truth(full, r), full[0, 0, 0]
    diagonal = np.diag(np.diag(H))
    off_diagonal = H - diagonal
    squares = sqrt(2) * np.diag(
        [sum(c for key, c in full.items() if key[i] == 2) for i in range(r)]
    )
    mistakes = {
        "the diagonal is too small: h₂ is normalised, and its second derivative is not 1.": diagonal
        / sqrt(2)
        + off_diagonal,
        "your polynomials are not normalised on the diagonal: h₂ = (z² − 1)/√2, not z² − 1.": sqrt(
            2
        )
        * diagonal
        + off_diagonal,
        "the second derivative of z² is 2, and this 2 is missing on the diagonal.": diagonal / 2
        + off_diagonal,
        "the diagonal is counted twice: for i = j the entries (i, j) and (j, i) are the same.": 2
        * diagonal
        + off_diagonal,
        "the entries beside the diagonal are half of what they should be. The factor ½ of "
        "Taylor's formula belongs to the quadratic form, where each pair appears twice.": diagonal
        + off_diagonal / 2,
        "the entries beside the diagonal are twice what they should be: one mixed term was "
        "counted for both orders.": (diagonal + 2 * off_diagonal),
        "the diagonal and the mixed terms need different factors: z₁z₂ is normalised as it "
        "is.": diagonal + sqrt(2) * off_diagonal,
        "only the part above the diagonal is filled: ∂₁∂₂ = ∂₂∂₁.": np.triu(H),
        "only the part below the diagonal is filled: ∂₁∂₂ = ∂₂∂₁.": np.tril(H),
        "only the diagonal is filled. Mixed terms such as z₁z₂ have a "
        "second derivative, too.": diagonal,
        "all terms with degree two in one variable are counted. The other factors have a mean: "
        "which?": off_diagonal + squares,
        "this is E[g(z) zzᵀ]. A constant has no curvature, but it is in your matrix.": H
        + constant * np.eye(r),
        "this is the Hessian at z = 0. Average it over z.": _hessian_at_zero(full, r),
        "this is the part of degree two of the Taylor series, ½zᵀHz: the matrix H is twice that.": H
        / 2,
    }
    otherwise = (
        "the values are wrong. Differentiate h₂(z₁) and h₁(z₁)h₁(z₂) twice by hand, and take the "
        "means."
    )
    agree(answer(full, shape=(r, r)), H, mistakes, otherwise)
    few: dict[tuple[int, ...], float]
    few = {(0, 0, 0, 0): 1.0, (1, 0, 0, 1): 0.7, (0, 2, 0, 0): -0.4, (2, 0, 0, 2): 0.9}
    several = (
        "it fails where most coefficients are absent: a missing key is a zero, and r is the "
        "length of the keys."
    )
    for coefficients, size in ((few, 4), (drawn(2, (1, 2, 3)), 2), (drawn(1, (0, 2, 4)), 1)):
        value = answer(coefficients, shape=(size, size), raised={KeyError: several})
        agree(value, truth(coefficients, size), {}, several)
    whole = {
        (2, 0, 0, 0, 0, 0): 1,
        (1, 0, 0, 0, 0, 1): 2,
        (0, 12, 0, 0, 0, 0): 1,
        (0, 0, 2, 2, 0, 0): 3,
    }
    H = np.zeros((6, 6))
    H[0, 0], H[0, 5], H[5, 0] = sqrt(2), 2, 2
    agree(
        answer(whole, shape=(6, 6)),
        H,
        {},
        "it is wrong for integer coefficients, six variables or terms of a high degree.",
    )
    flat = "a function without terms of degree two has the average Hessian zero."
    agree(
        answer(drawn(2, (0, 1, 3)), shape=(2, 2), raised={Exception: flat}),
        np.zeros((2, 2)),
        {},
        flat,
    )


@check("first_layer_gradient(W, b, a, X, y)")
def first_layer_gradient(answer: Answer, rng: np.random.Generator) -> None:
    """The gradient in the first layer against automatic differentiation of the loss."""
    m, d, n = (int(size) for size in rng.permutation([6, 9, 14]) + rng.integers(0, 2))
    W, b, a = (
        rng.normal(size=(m, d)),
        2 * rng.normal(size=m),
        rng.uniform(0.5, 2, m) * rng.choice([-1, 1], m),
    )
    X, y = rng.normal(size=(n, d)), 3 * rng.normal(size=n)
    W[0], b[0], a[0], a[1] = X[0], 1.0, 2.0, -1.5

    def truth(
        W: np.ndarray, b: np.ndarray, a: np.ndarray, X: np.ndarray, y: np.ndarray
    ) -> np.ndarray:
        weights = torch.tensor(W, requires_grad=True)
        bias, head, points, labels = (torch.tensor(part) for part in (b, a, X, y))
        f = torch.relu(points @ weights.T + bias) @ head
        return torch.autograd.grad((f - labels).square().mean(), weights)[0].numpy()

    z = X @ W.T + b
    hidden, gate = np.maximum(z, 0), 1.0 * (z > 0)
    f = hidden @ a

    def gradient(residual: np.ndarray, slope: np.ndarray, head: np.ndarray = a) -> np.ndarray:
        return 2 / n * (slope * residual[:, None] * head).T @ X

    right = truth(W, b, a, X, y)
    unbiased = np.maximum(X @ W.T, 0) @ a
    mistakes = {
        "the residual is missing: this takes the output for zero, as it is at the symmetric start "
        "only.": gradient(-y, gate),
        "the labels are missing: the residual is output minus label.": gradient(f, gate),
        "the sign is wrong everywhere: this is the direction of descent, or the residual is label "
        "minus output.": -right,
        "the factor a_j is missing: the second layer stands before each neuron.": gradient(
            f - y, gate, np.ones(m)
        ),
        "only the sign of a_j enters here. At the symmetric start that is all; in general it is "
        "not.": gradient(f - y, gate, np.sign(a)),
        "the factor 1/n is missing: the loss is a mean over the samples.": n * right,
        "the factor 2 is missing: the loss has no ½ before the square.": right / 2,
        "the factor 2/n is missing.": n / 2 * right,
        "you divide by the number of neurons; the mean is over the samples.": n / m * right,
        "the activation stands where its derivative should.": gradient(f - y, hidden),
        "the derivative of ReLU is missing: a neuron that is off has no gradient.": gradient(
            f - y, np.ones((n, m))
        ),
        "the biases are missing, in the output and in the derivative of ReLU.": gradient(
            unbiased - y, 1.0 * (X @ W.T > 0)
        ),
        "the biases are missing in the derivative of ReLU: which neurons are on?": gradient(
            f - y, 1.0 * (X @ W.T > 0)
        ),
        "the biases are missing in the output.": gradient(unbiased - y, gate),
        "the output lacks the second layer: it is a sum of the neurons "
        "with the factors a_j.": gradient(hidden.sum(axis=1) - y, gate),
        "the size of the residual is lost: its sign is the gradient of |f − y|, not of the "
        "square.": gradient(np.sign(f - y), gate) / 2,
    }
    otherwise = "the values are wrong. Compare one entry with a difference quotient of the loss."
    agree(answer(W, b, a, X, y, shape=(m, d)), right, mistakes, otherwise)
    other = rng.normal(size=(m, d))
    agree(
        answer(other, b, a, X, y, shape=(m, d)),
        truth(other, b, a, X, y),
        {},
        "it is right once and wrong for other weights on the same inputs.",
    )
    same = rng.normal(size=(3, 5, 5))
    near = same[0] @ np.diag([1, 1, 1, 1, 0])  # the last coordinate of w is free for the bias
    kinks = 1e-5 * rng.choice([-1, 1], 5) - np.diag(same[1] @ near.T)
    whole = np.array([[1, 2], [0, -1], [3, 1]])
    for inputs, why in (
        ((same[0], b[:5], a[:5], same[1], y[:5]), "if all sizes are equal"),
        ((near, kinks, a[:5], same[1], y[:5]), "where an input lies very close to a kink"),
        ((1e-8 * W, 1e-8 * b, a, X, y), "for tiny weights"),
        ((whole, np.array([1, 0, -1]), np.array([1, -2, 1]), X[:, :2], y), "for integer weights"),
    ):
        right = truth(*(np.asarray(part, dtype=float) for part in inputs))
        agree(
            answer(*inputs, shape=right.shape), right, {}, f"it is right in general, but not {why}."
        )
    turned = np.asfortranarray(X)
    agree(
        answer(W, b, a, turned, y, shape=(m, d)),
        truth(W, b, a, X, y),
        {},
        "it depends on how X lies in memory.",
    )
    alone = "it fails for a single neuron or a single sample. Sum over an axis that you name."
    for rows, neurons in (
        (slice(0, 1), slice(None)),
        (slice(None), slice(0, 1)),
        (slice(0, 1), slice(0, 1)),
    ):
        active, head = hidden[rows, neurons], a[neurons]
        residual = active @ np.abs(head) + rng.uniform(
            1, 3, len(active)
        )  # so large that no digits cancel
        inputs = W[neurons], b[neurons], head, X[rows], active @ head - residual
        value = answer(*inputs, shape=inputs[0].shape, raised={Exception: alone})
        agree(value, truth(*inputs), {}, alone)
