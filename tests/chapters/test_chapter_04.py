"""What chapter 4 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn import activations, networks
from featlearn.ntk import NTK, empirical_ntk, layer_kernels


@pytest.fixture(scope="module")
def chapter():
    return functions("04_ntk", np=np, torch=torch, activations=activations)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_kernels_by_layer(chapter, activation):
    net = networks.Network((3, 7, 6, 5, 1), activation, 1.3, 0.4)
    theta = net.initialise(np.random.default_rng(0))
    X = torch.as_tensor(np.random.default_rng(1).standard_normal((4, 3)))
    by_hand = chapter["kernels_by_layer"](net, theta, X)
    for hand, ours in zip(by_hand, layer_kernels(net, theta, X), strict=True):
        torch.testing.assert_close(hand, ours)


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_recursion(chapter, depth):
    X = np.random.default_rng(2).standard_normal((5, 3))
    kernel = NTK(depth, "relu", 1.3, 0.4)
    for hand, ours in zip(chapter["ntk"](X, depth, 1.3, 0.4), kernel.both(X), strict=True):
        np.testing.assert_allclose(hand, ours, rtol=1e-7)


def test_layers_of_the_limit(chapter):
    X = torch.as_tensor(np.random.default_rng(3).standard_normal((5, 3)))
    parts = chapter["layers_of_the_limit"](X, 4, "erf", 1.3, 0.4)
    torch.testing.assert_close(sum(parts), NTK(4, "erf", 1.3, 0.4)(X))


def test_two_kernels(chapter):
    net = networks.Network((3, 9, 1), "relu", 1.5)
    theta = net.initialise(np.random.default_rng(4))
    X = np.random.default_rng(5).standard_normal((4, 3))
    W, a = theta["W1"].numpy(), theta["W2"][0].numpy()
    by_hand = chapter["two_kernels"](
        X, W, a, 1.5 / 3**0.5, 1.5 / 3, lambda z: np.maximum(z, 0), lambda z: (z > 0) * 1.0
    )
    for hand, ours in zip(by_hand, layer_kernels(net, theta, X), strict=True):
        np.testing.assert_allclose(hand, ours, rtol=1e-12)


def test_jacobian(chapter):
    rng = np.random.default_rng(6)
    X, W, a = rng.standard_normal((5, 3)), rng.standard_normal((4, 3)), rng.standard_normal(4)
    J = chapter["jacobian"](W, a, X, lambda z: 1 - np.tanh(z) ** 2)
    module = torch.nn.Linear(3, 4, bias=False).double()
    module.weight.data = torch.as_tensor(W)

    class Tanh(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = module

        def forward(self, x):
            return torch.tanh(self.inner(x)) @ torch.as_tensor(a)

    np.testing.assert_allclose(J @ J.T, empirical_ntk(Tanh(), X).numpy(), rtol=1e-10)


def test_khatri_rao(chapter):
    X = np.random.default_rng(7).standard_normal((5, 3))
    rows = chapter["khatri_rao"](X)
    np.testing.assert_allclose(rows[2], np.kron(X[2], X[2]))
    np.testing.assert_allclose(rows @ rows.T, (X @ X.T) ** 2)


def test_gradient_descent_on_the_linear_model(chapter):
    rng = np.random.default_rng(8)
    J, b = rng.standard_normal((4, 6)), rng.standard_normal(4)
    losses, sigma = chapter["descend"](J, b, steps=20)
    step = (np.eye(4) - J @ J.T / sigma[0] ** 2) @ b
    assert losses[1] == pytest.approx(step @ step / 2)
    assert len(losses) == 21
