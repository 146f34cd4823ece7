"""What chapter 4 writes out by hand is what the package computes."""

import numpy as np
import pytest
import torch
from conftest import functions
from scipy.special import eval_legendre

from featlearn import activations, kernels, networks
from featlearn.ntk import NTK, empirical_ntk, layer_kernels


@pytest.fixture(scope="module")
def chapter():
    turn = 2 * np.pi * np.arange(64) / 64
    nodes, weights = np.polynomial.legendre.leggauss(400)
    gamma = np.pi / 2 * (nodes + 1)
    of_page_three = {
        "N": 64,
        "circle": np.stack([np.cos(turn), np.sin(turn)], axis=1),
        "gamma": gamma,
        "weights": weights,
        "arc": np.stack([np.cos(gamma), np.sin(gamma), 0 * gamma], axis=1),
        "eval_legendre": eval_legendre,
    }
    pages = functions("04_ntk", np=np, torch=torch, activations=activations)
    pages.update(of_page_three)
    return pages


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


def test_gradient_descent_on_the_linear_model(chapter):
    rng = np.random.default_rng(8)
    J, b = rng.standard_normal((4, 6)), rng.standard_normal(4)
    losses = list(chapter["losses"](J, b, 20))
    step = (np.eye(4) - J @ J.T / np.linalg.norm(J, 2) ** 2) @ b
    assert losses[1] == pytest.approx(step @ step / 2)
    assert len(losses) == 21


def test_the_limit_kernel_of_the_inner_weights(chapter):
    X = np.random.default_rng(9).standard_normal((5, 7))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    last, both = NTK(2, "tanh").both(7**0.5 * X)
    np.testing.assert_allclose(chapter["K_infinity"](X, X), both - last, rtol=1e-10)


def test_training_of_the_inner_weights(chapter):
    rng = np.random.default_rng(10)
    X, y = rng.standard_normal((4, 3)), rng.standard_normal(4)
    (W, a), (after, _), *_ = chapter["train"](X, y, 6, rng, eta=0.1, steps=2)
    weights = torch.as_tensor(W).requires_grad_()
    f = torch.tanh(torch.as_tensor(X) @ weights.T) @ torch.as_tensor(a) / 6**0.5
    assert f.detach().abs().max() < 1e-12
    (f - torch.as_tensor(y)).square().sum().div(2).backward()
    np.testing.assert_allclose(after, W - 0.1 * weights.grad.numpy(), rtol=1e-10)


def test_spectra_of_the_linear_kernel(chapter):
    linear = kernels.Polynomial(1)
    on_circle, on_sphere = (chapter[f"{name}_spectrum"](linear) for name in ("circle", "sphere"))
    np.testing.assert_allclose(on_circle[:4], [0, 1 / 2, 0, 0], atol=1e-12)
    np.testing.assert_allclose(on_sphere[:4], [0, 1 / 3, 0, 0], atol=1e-12)
