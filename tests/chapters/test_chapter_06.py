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
    ridges = np.array([1e-4, 1e-2, 1.0])
    arrays = (part.numpy() for part in (train.X, train.y, valid.X, valid.y))
    hand = chapter["one_step_network"](*arrays, 40, 1.3, ridges, np.random.default_rng(3))
    ours = damian.algorithm1(
        train.X,
        train.y,
        valid,
        np.random.default_rng(3),
        width=40,
        learning_rate=1.3,
        ridges=ridges,
    )
    np.testing.assert_allclose(hand(valid.X.numpy()), ours(valid.X), rtol=1e-8, atol=1e-8)


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
