"""What chapter 3 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions
from numpy.polynomial.hermite_e import hermegauss
from torch.func import jvp

from featlearn import wide
from featlearn.networks import Network


@pytest.fixture(scope="module")
def chapter():
    return functions(
        "03_wide_networks", np=np, torch=torch, jvp=jvp, hermegauss=hermegauss, wide=wide
    )


def test_forward(chapter):
    net = Network((3, 6, 4, 2), "tanh", 1.3, 0.4)
    theta = net.initialise(np.random.default_rng(0))
    X = np.random.default_rng(1).standard_normal((5, 3))
    pairs = [(theta[f"W{layer}"].numpy(), theta[f"b{layer}"].numpy()) for layer in (1, 2, 3)]
    by_hand = chapter["forward"](pairs, X, np.tanh, 1.3, 0.4)
    for ours, hand in zip(net.layers(theta, torch.as_tensor(X)), by_hand, strict=True):
        np.testing.assert_allclose(ours, hand, atol=1e-12)


def test_recursion(chapter):
    X = 0.5 * np.random.default_rng(2).standard_normal((4, 3))
    K = wide.NNGP(3, "tanh", 1.2, 0.3)(X)
    for i in range(4):
        for j in range(4):
            by_hand = chapter["nngp"](X[i], X[j], 3, np.tanh, 1.2, 0.3)
            assert by_hand == pytest.approx(K[i, j].item(), abs=1e-7)


def test_naive_relu_dual(chapter):
    x, y = torch.as_tensor(np.random.default_rng(3).standard_normal((2, 4)))
    assert chapter["naive"](x, y).item() == pytest.approx(4 * wide.NNGP(2)(x, y).item())


def test_linearise(chapter):
    net = Network((2, 7, 1), "erf", 1.2, 0.3)
    start, end = (net.initialise(np.random.default_rng(s)) for s in (0, 1))
    X = torch.as_tensor(np.random.default_rng(2).standard_normal((5, 2)))
    torch.testing.assert_close(
        chapter["linearise"](net, start)(end, X), wide.linearise(net, start)(end, X)
    )
