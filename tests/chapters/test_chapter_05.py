"""What chapter 5 writes out by hand is what the package computes, and what its theorems say."""

import itertools

import numpy as np
import pytest
import torch
from conftest import functions
from scipy.optimize import minimize

from featlearn import harmonics
from featlearn.beyond import SignedNetwork


@pytest.fixture(scope="module")
def chapter():
    return functions("05_beyond_linearization", np=np, torch=torch, harmonics=harmonics)


@pytest.mark.parametrize(("d", "n"), [(2, 1), (2, 2), (3, 4), (3, 5)])
def test_least_nuclear_norm_by_search_over_all_interpolants(chapter, d, n):
    rng = np.random.default_rng(10 * d + n)
    X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
    basis = []
    for i, j in itertools.combinations_with_replacement(range(d), 2):
        B = np.zeros((d, d))
        B[i, j] = B[j, i] = 1
        basis.append(B)
    rows = np.array([[x @ B @ x for B in basis] for x in X])
    start, free = np.linalg.pinv(rows) @ y, np.linalg.svd(rows)[2][n:]

    def norm(t):
        M = np.einsum("k,kij->ij", start + t @ free, np.array(basis))
        return np.abs(np.linalg.eigvalsh(M)).sum()

    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}
    starts = rng.standard_normal((20, len(free)))
    best = min(minimize(norm, t, method="Nelder-Mead", options=options).fun for t in starts)
    A = np.einsum("ni,nj->nij", X, X)
    M, gap = chapter["least_nuclear"](A, y, iterations=20_000, tolerance=1e-10)
    np.testing.assert_allclose(np.einsum("nij,ij->n", A, M), y, atol=1e-8)
    assert np.abs(np.linalg.eigvalsh(M)).sum() == pytest.approx(best, rel=1e-5)
    assert abs(gap) < 1e-6


def test_the_gap_says_when_the_solver_has_not_converged(chapter):
    rng = np.random.default_rng(1)
    G = rng.standard_normal((20, 8, 8))
    A = (G + G.transpose(0, 2, 1)) / 2
    found = [chapter["least_nuclear"](A, A[:, 0, 0], iterations=k) for k in (3, 3000)]
    norms = [np.abs(np.linalg.eigvalsh(M)).sum() for M, _ in found]
    least = norms[1]
    for norm, (_, gap) in zip(norms, found, strict=True):
        assert norm / (1 + gap) <= least * (1 + 1e-6)  # the certificate is a lower bound
    assert found[0][1] > 1e-3 > found[1][1]


def test_signed_training(chapter):
    rng = np.random.default_rng(1)
    net = SignedNetwork.draw(9, 4, rng)
    X, y = rng.standard_normal((7, 4)), rng.standard_normal(7)
    hand = chapter["signed_training"](
        net.W.numpy(), net.a.numpy(), X, y, 0.4, 25, 0.01, np.random.default_rng(2)
    )
    ours = net.train(X, y, learning_rate=0.4, steps=25, penalty=0.01, rng=np.random.default_rng(2))
    np.testing.assert_allclose(hand, ours, rtol=1e-9, atol=1e-12)


def test_signs_on_the_gradient_only_are_another_algorithm(chapter):
    rng = np.random.default_rng(1)
    W, a, X = rng.standard_normal((9, 4)), rng.choice([-1.0, 1.0], 9), rng.standard_normal((7, 4))
    runs = [
        chapter["signed_training"](W, a, X, X[:, 0], 0.4, 5, 0.0, np.random.default_rng(2), forward)
        for forward in (True, False)
    ]
    assert np.abs(runs[0] - runs[1]).max() > 1e-3


def test_the_mean_of_a_cubic_network_is_its_second_order_term(chapter):
    rng = np.random.default_rng(3)
    net = SignedNetwork.draw(8, 5, rng, activation=chapter["cube"])
    V, X = rng.standard_normal((8, 5)), rng.standard_normal((6, 5))
    np.testing.assert_allclose(net.mean(V, X), net.taylor(V, X)[1], rtol=1e-10)


def fourth_over_bound(V, a):
    """The sum of fourth powers over 8(‖M₊‖² + ‖M₋‖²), nuclear norms."""
    s = np.linalg.eigvalsh(V.T @ (a[:, None] * V) / (2 * len(V) ** 0.5))
    return np.sum(np.sum(V**2, axis=1) ** 2) / (8 * (s[s > 0].sum() ** 2 + s[s < 0].sum() ** 2))


def test_fourth_powers_are_a_nuclear_norm():
    rng = np.random.default_rng(4)
    a = np.repeat([1.0, -1.0], 10)
    ratios = [
        fourth_over_bound(rng.standard_normal((20, 4)) * rng.standard_normal((20, 1)), a)
        for _ in range(200)
    ]
    assert min(ratios) >= 1
    m, s = 10_000, np.array([3.0, 1.0, -2.0, -0.5])  # the construction of the proof
    V, a = [], []
    for sign in (1, -1):
        part = s * sign > 0
        for k in np.flatnonzero(part):
            neurons = round(m / 2 * abs(s[k]) / np.abs(s[part]).sum())
            V += [np.eye(4)[k] * (2 * m**0.5 * abs(s[k]) / neurons) ** 0.5] * neurons
            a += [float(sign)] * neurons
    assert len(V) == m
    assert fourth_over_bound(np.array(V), np.array(a)) == pytest.approx(1, abs=1e-3)


def test_the_f2_norm_of_a_quadratic_function():
    rng = np.random.default_rng(5)
    d = 7
    X, B = rng.standard_normal((100, d)), rng.standard_normal((d, d))
    G = X @ X.T
    K = (2 * G**2 + np.outer(G.diagonal(), G.diagonal())) / (d * (d + 2))  # E (w·x)²(w·x')²
    inverse = np.linalg.pinv(K, rcond=1e-12, hermitian=True)
    for M in (B + B.T, np.eye(d)):
        y = np.einsum("ni,ij,nj->n", X, M, X)
        norm = d / 2 * ((d + 2) * np.sum(M * M) - np.trace(M) ** 2)
        assert y @ inverse @ y == pytest.approx(norm, rel=1e-6)


def test_the_budget_of_a_kernel(chapter):
    chapter["RIDGE"], chapter["DEGREES"] = 1e-3, np.arange(16)
    from scipy.special import hyp0f1

    chapter["hyp0f1"] = hyp0f1
    X = harmonics.sphere(40, 6, np.random.default_rng(6)) / 6**0.5
    K = np.exp(X @ X.T)
    spent = sum(harmonics.harmonic_dimension(6, q) * chapter["learned"](X, q) for q in range(13))
    assert spent == pytest.approx(np.trace(np.linalg.solve(K + 1e-3 * np.eye(40), K)), rel=1e-6)
