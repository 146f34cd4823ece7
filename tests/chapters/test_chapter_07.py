"""What chapter 7 writes out by hand is what the package computes."""

from itertools import product
from math import comb

import numpy as np
import pytest
import torch
from conftest import functions

from featlearn import shi
from featlearn.shi import Net, Patterns, odd, structured_counts


@pytest.fixture(scope="module")
def chapter():
    return functions(
        "07_shi", np=np, torch=torch, shi=shi, product=product, comb=comb, D=9, k=3, Net=Net
    )


def model(D=9, k=3, **options):
    return Patterns(range(k), odd(k), D, structured_counts(k, odd(k)), **options)


def test_the_sampler_has_the_law_of_the_package(chapter):
    phi, y = chapter["draw_by_hand"](200_000, np.random.default_rng(0))
    task = model()
    draw = task.sample(200_000, np.random.default_rng(1))
    for bits, labels in ((phi, y), (draw.phi.numpy(), draw.y.numpy())):
        counts = bits[:, :3].sum(axis=1).astype(int)
        np.testing.assert_allclose(np.bincount(counts) / len(counts), task.counts, atol=0.006)
        np.testing.assert_array_equal(labels, task.labels.numpy()[counts])
        np.testing.assert_allclose(bits[:, 3:].mean(axis=0), 0.5, atol=0.006)
        np.testing.assert_allclose(np.cov(bits[:, 3:].T), np.eye(6) / 4, atol=0.006)


def test_a_forgetting_step(chapter):
    task = model()
    net, draw = (
        shi.initialise(5, task, np.random.default_rng(0)),
        task.sample(60, np.random.default_rng(1)),
    )
    net = Net(10 * net.W, net.b, 3 * net.a.abs())  # g is not zero: some hinges do not pull
    assert 0 < (draw.y * net(draw.X, 0.2) < 1).double().mean() < 1
    W, b, a = chapter["forgetting_step"](net.W, net.b, net.a, draw.X, draw.y, 0.3, 0.2)
    ours = shi.step(net, draw.X, draw.y, learning_rate=0.3, lambda_w=1 / 0.6, noise_std=0.2)
    for hand, value in ((W, ours.W), (b, ours.b), (a, ours.a)):
        torch.testing.assert_close(hand, value, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "task", [model(), model(p0=0.3), Patterns([1, 4], {0}, 7, [0.2, 0.5, 0.3]), model(D=3)]
)
def test_components_by_enumeration(chapter, task):
    net = shi.initialise(4, task, np.random.default_rng(0))
    T = shi.components(task, net.W, net.b, 0.15).along
    for i in range(8):
        hand = chapter["components_by_enumeration"](task, net.W[i], net.b[i], 0.15)
        torch.testing.assert_close(T[i], hand, rtol=0, atol=1e-13)


def test_parities_by_hand(chapter):
    phi = ((torch.arange(64)[:, None] >> torch.arange(6)) & 1).double()
    f = torch.as_tensor(np.random.default_rng(0).standard_normal((64, 3)))
    sets = [tuple(j for j in range(6) if number >> j & 1) for number in range(64)]
    torch.testing.assert_close(
        shi.walsh(f), chapter["parities_by_hand"](f, sets, phi), rtol=0, atol=1e-13
    )


def test_the_dictionary_of_patches_is_orthonormal(chapter):
    chapter["TILES"], chapter["SIDE"] = 4, 5
    M = chapter["patches"](np.random.default_rng(0))
    torch.testing.assert_close(M.T @ M, torch.eye(16, dtype=torch.float64), rtol=0, atol=1e-12)
