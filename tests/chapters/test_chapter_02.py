"""What chapter 2 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn import gp
from featlearn import random_features as rf


@pytest.fixture(scope="module")
def chapter():
    return functions("02_random_features", np=np, torch=torch, rf=rf, gp=gp)


def test_relu_features(chapter):
    X, features = (
        np.random.default_rng(0).standard_normal((5, 3)),
        rf.relu_features(7, 3, np.random.default_rng(1)),
    )
    np.testing.assert_allclose(chapter["relu_features"](X, features.W.numpy()), features(X))


def test_fourier_features(chapter):
    X, rng = np.random.default_rng(0).standard_normal((5, 3)), np.random.default_rng(1)
    features = rf.fourier_features(7, 3, rng, bandwidth=0.7)
    np.testing.assert_allclose(
        chapter["fourier_features"](X, features.W.numpy(), features.b.numpy()), features(X)
    )


def test_samples(chapter):
    """The same normal draws through the chapter's root and through the package's.

    Equal covariances.
    """
    A = np.random.default_rng(2).standard_normal((6, 6))
    for K in (A @ A.T, A[:, :2] @ A[:, :2].T):
        identity = type("Identity", (), {"standard_normal": lambda self, shape: np.eye(*shape)})()
        root = chapter["gp_samples"](K, len(K), identity).T
        ours = gp.covariance_root(K).numpy()
        np.testing.assert_allclose(root @ root.T, ours @ ours.T, atol=1e-10)
