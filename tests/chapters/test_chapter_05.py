"""What chapter 5 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn.beyond import SignedNetwork, minimum_nuclear


@pytest.fixture(scope="module")
def chapter():
    return functions("05_beyond_linearization", np=np, torch=torch)


def test_least_nuclear(chapter):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((18, 6))
    y = X[:, 0] ** 2 - X[:, 1] * X[:, 2]
    hand = chapter["least_nuclear"](X, y, iterations=60)
    ours = minimum_nuclear(X, y, iterations=60, tolerance=1e-30)
    np.testing.assert_allclose(hand, ours, rtol=1e-8, atol=1e-8)


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
