"""Random features, their limits, and training of ensembles."""

import pickle

import numpy as np
import pytest
import torch

from featlearn import kernels, linalg
from featlearn import random_features as rf


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("family", "limit"),
    [
        (lambda p, g: rf.fourier_features(p, 3, g, bandwidth=1.4), kernels.Gaussian(1.4)),
        (lambda p, g: rf.relu_features(p, 3, g), rf.ArcCosine()),
    ],
)
def test_many_features_are_the_kernel(family, limit):
    X = rng(1).standard_normal((6, 3))
    torch.testing.assert_close(family(400_000, rng()).kernel(X), limit(X), atol=0.05, rtol=0.02)


def test_kernel_is_that_of_the_features():
    X, Y = rng(2).standard_normal((2, 5, 3))
    features = rf.relu_features(7, 3, rng())
    torch.testing.assert_close(features.kernel(X, Y), features(X) @ features(Y).T / 7)
    assert torch.equal(features.kernel(X), features.kernel(X, X))


def test_arc_cosine_on_known_angles():
    X = np.array([[2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]])
    K = rf.ArcCosine()(X)
    wanted = np.array(
        [[4, 6 / np.pi, 0, 0], [6 / np.pi, 9, 3 / np.pi, 0], [0, 3 / np.pi, 1, 0], [0, 0, 0, 0]]
    )
    np.testing.assert_allclose(K, wanted, atol=1e-14)


def test_training_is_gradient_descent_of_chapter_one():
    features, X, y = (
        rf.fourier_features(30, 2, rng()),
        rng(3).standard_normal((6, 2)),
        rng(4).standard_normal(6),
    )
    theta = torch.as_tensor(rng(5).standard_normal((4, 30)))
    end = rf.train(features(X), y, theta, learning_rate=0.2, steps=25)
    X_new = rng(6).standard_normal((3, 2))
    for start, got in zip(theta, end @ features(X_new).T / np.sqrt(30), strict=True):
        f0 = features(X) @ start / np.sqrt(30)
        alpha = linalg.SpectralPath(features.kernel(X), torch.as_tensor(y) - f0).descent(0.2, 25)
        wanted = features(X_new) @ start / np.sqrt(30) + features.kernel(X_new, X) @ alpha
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=0)
    untrained = rf.train(features(X), y, theta, learning_rate=0.2, steps=0)
    assert torch.equal(untrained, theta)
    assert untrained is not theta
    assert (
        rf.train(features(X).float(), y, theta, learning_rate=0.2, steps=1).dtype == torch.float32
    )


def test_precision_follows_the_input():
    features = rf.fourier_features(5, 2, rng())
    assert features(np.zeros((1, 2), dtype=np.float32)).dtype == torch.float32
    assert features.kernel(torch.zeros(2, 2), np.ones((1, 2))).dtype == torch.float64


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: rf.fourier_features(0, 2, rng()), ValueError, "n_features must be at least 1"),
        (
            lambda: rf.fourier_features(5, 2, rng(), bandwidth=0),
            ValueError,
            "bandwidth must be greater",
        ),
        (
            lambda: rf.fourier_features(10**9, 10**9, rng()),
            ValueError,
            "n_features and d must be smaller",
        ),
        (
            lambda: rf.FeatureMap(np.ones((3, 2)), np.ones(1), torch.cos),
            ValueError,
            "W and b must have the same number of rows",
        ),
        (
            lambda: rf.FeatureMap(np.ones((3, 2)), np.ones(3), None),
            TypeError,
            "activation must be callable",
        ),
        (
            lambda: rf.RandomFeatures(5, "tanh").fit(np.ones((3, 2))),
            ValueError,
            "kind must be one of",
        ),
        (lambda: rf.relu_features(5, 2, 0), TypeError, "rng must be a numpy Generator"),
        (
            lambda: rf.relu_features(5, 2, rng())(np.zeros((3, 4))),
            ValueError,
            "X must have 2 columns",
        ),
        (
            lambda: rf.relu_features(5, 2, rng()).kernel(np.zeros((3, 2)), np.zeros((3, 4))),
            ValueError,
            "X and Y must have the same dimension",
        ),
        (
            lambda: rf.train(
                np.full((3, 2), 9.0), np.ones(3), np.ones((4, 2)), learning_rate=10, steps=200
            ),
            ValueError,
            "training diverges with learning_rate=10",
        ),
        (
            lambda: rf.train(
                np.ones((3, 2)), np.ones(3), np.ones((4, 5)), learning_rate=1, steps=1
            ),
            ValueError,
            "theta must have 2 columns",
        ),
        (
            lambda: rf.train(
                np.ones((3, 2)), np.ones(4), np.ones((4, 2)), learning_rate=1, steps=1
            ),
            ValueError,
            "Phi and y",
        ),
        (
            lambda: rf.train(
                np.ones((3, 2)), np.ones(3), np.ones((4, 2)), learning_rate=0, steps=1
            ),
            ValueError,
            "learning_rate must be",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_feature_maps_can_be_pickled_and_compared():
    features = rf.fourier_features(5, 2, rng())
    copy = pickle.loads(pickle.dumps(features))
    assert torch.equal(copy(np.eye(2)), features(np.eye(2)))
    assert features == features and copy != features
