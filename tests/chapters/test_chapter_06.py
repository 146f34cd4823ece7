"""What chapter 6 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn import damian, hermite
from featlearn.damian import LatentPolynomial, mixture


@pytest.fixture(scope="module")
def chapter():
    return functions("06_damian", np=np, torch=torch, hermite=hermite)


def test_algorithm_1(chapter):
    f = LatentPolynomial.draw(6, mixture(3), np.random.default_rng(0))
    train, valid = (
        f.sample(300, np.random.default_rng(1), 0.3),
        f.sample(80, np.random.default_rng(2)),
    )
    rng = np.random.default_rng(3)
    a, W = (part.numpy() for part in damian.initialise(40, 6, rng))
    b = rng.standard_normal(40)
    hand, first = chapter["algorithm1"](train.X.numpy(), train.y.numpy(), a, W, b, 1.3, 1e-2)
    ours = damian.algorithm1(
        train.X,
        train.y,
        valid,
        np.random.default_rng(3),
        width=40,
        learning_rate=1.3,
        ridges=[1e-2],
    )
    np.testing.assert_allclose(first, ours.W, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(hand(valid.X.numpy()), ours(valid.X), rtol=1e-7, atol=1e-7)


def test_spectral_estimate_and_singular_vector(chapter):
    rng = np.random.default_rng(5)
    X, u = torch.as_tensor(rng.standard_normal((4000, 6))), torch.eye(6).double()[2]
    for sign in (1, -1):
        y = sign * ((X @ u) ** 2).clamp(max=4)
        assert (chapter["spectral_estimate"](X, y) @ u).abs() > 0.98
    rest = chapter["without_linear"](X, 3 + X @ u + (X @ u) ** 2)
    assert (X.T @ rest).abs().max() < 1e-8
    assert abs(rest.sum()) < 1e-8
    W = torch.outer(torch.arange(5.0), torch.tensor([3.0, 4.0])).double()
    expected = torch.tensor([0.6, 0.8]).double()
    torch.testing.assert_close(chapter["leading"](W).abs(), expected, rtol=1e-6, atol=1e-6)


def test_what_a_wide_layer_knows():
    """E_w[ĝĝᵀ] = ββᵀ/4 + B²/(2π) + R, by many neurons."""
    rng = np.random.default_rng(6)
    X, y = rng.standard_normal((40, 3)), rng.standard_normal(40)
    W = rng.standard_normal((400_000, 3))
    G = (X @ W.T >= 0).T.astype(float) @ (y[:, None] * X) / 40
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    rho = np.clip(unit @ unit.T, -1, 1)
    beta, B = y @ X / 40, (unit * y[:, None]).T @ X / 40
    Y = y[:, None] * X
    R = Y.T @ (np.arcsin(rho) - rho) @ Y / (2 * np.pi * 40**2)
    expected = np.outer(beta, beta) / 4 + B @ B / (2 * np.pi) + R
    np.testing.assert_allclose(G.T @ G / len(W), expected, atol=1e-3)


def test_the_learner_that_asks_for_sums(chapter):
    for tau in (0.1, 0.3):
        k = int(np.ceil(1 / tau**2)) - 1  # 1/√k > τ for orthogonal members
        assert chapter["queries_needed"](np.eye(1000), tau) == -(-1000 // k)


def test_gradient_by_quadrature(chapter):
    f = LatentPolynomial.draw(7, mixture(4), np.random.default_rng(0))
    W = torch.as_tensor(np.random.default_rng(1).standard_normal((5, 7)))
    W = W / W.norm(dim=1, keepdim=True)
    for bias in (0.0, 0.4):
        hand = torch.stack([chapter["gradient_by_quadrature"](f, w, bias) for w in W])
        torch.testing.assert_close(hand, damian.population_gradient(f, W, bias), rtol=0, atol=1e-12)


def test_hessian_by_differentiation(chapter):
    for terms in damian.EXAMPLES.values():
        f = LatentPolynomial.draw(5, terms, np.random.default_rng(0))
        torch.testing.assert_close(
            chapter["hessian_by_differentiation"](f), f.hessian, rtol=0, atol=1e-12
        )


def test_formula_for_capped_labels(chapter):
    z = np.random.default_rng(0).standard_normal(2_000_000)
    T = np.minimum((z**3 - 3 * z) ** 2 / 6, 3)
    ratio = T.var() / np.mean(T * (z**2 - 1)) ** 2
    expected = 1 / (1 + np.pi / 2 * ratio / np.array([1.0, 4.0]))
    np.testing.assert_allclose(chapter["capped_limit"](3, [1.0, 4.0]), expected, atol=0.005)
