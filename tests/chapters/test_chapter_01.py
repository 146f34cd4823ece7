"""What chapter 1 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn import kernels, linalg


@pytest.fixture(scope="module")
def chapter():
    return functions("01_kernels", np=np, torch=torch, kernels=kernels, linalg=linalg)


@pytest.fixture
def system():
    rng = np.random.default_rng(0)
    Phi = rng.standard_normal((12, 5))
    return torch.as_tensor(Phi @ Phi.T), torch.as_tensor(rng.standard_normal(12))


def test_feature_map(chapter):
    X = np.random.default_rng(1).standard_normal((9, 2))
    np.testing.assert_allclose(
        chapter["phi"](X) @ chapter["phi"](X).T, kernels.Polynomial(2)(X).numpy(), atol=1e-12
    )


def test_gaussian(chapter):
    X, Y = np.random.default_rng(2).standard_normal((2, 7, 3))
    np.testing.assert_allclose(
        chapter["gaussian"](X, Y, 0.7), kernels.Gaussian(0.7)(X, Y).numpy(), atol=1e-12
    )


def test_least_norm(chapter, system):
    K, y = system
    torch.testing.assert_close(
        K @ chapter["least_norm"](K, y), K @ linalg.SpectralPath(K, y).minimum_norm()
    )


@pytest.mark.parametrize("t", [0.01, 1.0, 100.0])
def test_flow(chapter, system, t):
    K, y = system
    torch.testing.assert_close(K @ chapter["flow"](K, y, t), K @ linalg.SpectralPath(K, y).flow(t))


def test_richardson(chapter, system):
    K, y = system
    ours = linalg.richardson(lambda v: K @ v, y, 0.01, tolerance=1e-300, max_iterations=25).alpha
    torch.testing.assert_close(chapter["richardson"](K, y, 0.01, 25), ours)
    torch.testing.assert_close(K @ ours, K @ linalg.SpectralPath(K, y).descent(0.01, 25))


def test_best_line_by_brute_force(chapter):
    rng = np.random.default_rng(3)
    X, y = chapter["circles"](30, rng)
    best = 0.0
    for angle in np.linspace(0, np.pi, 90, endpoint=False):
        z = X @ [np.cos(angle), np.sin(angle)]
        for c in np.linspace(-1, 1, 81):
            right = np.mean(np.where(z > c, 1, -1) == y)
            best = max(best, right, 1 - right)
    assert chapter["best_line"](X, y) == pytest.approx(best)


def test_ridge_regression(chapter, system):
    K, y = system
    torch.testing.assert_close(
        chapter["ridge_regression"](K, y, 0.3), linalg.SpectralPath(K, y).ridge(0.3)
    )
