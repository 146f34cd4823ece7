"""What chapter 7 writes out by hand is what the package computes, or what a sample shows."""

from itertools import combinations, product

import numpy as np
import pytest
import torch
from conftest import functions
from scipy.integrate import trapezoid
from scipy.stats import norm

from featlearn import shi
from featlearn.shi import Net, Patterns, Sample, odd, structured_counts


@pytest.fixture(scope="module")
def chapter():
    return functions(
        "07_shi",
        np=np,
        torch=torch,
        shi=shi,
        norm=norm,
        trapezoid=trapezoid,
        combinations=combinations,
        Net=Net,
        Patterns=Patterns,
        Sample=Sample,
        odd=odd,
        structured_counts=structured_counts,
        TILES=4,
        SIDE=5,
    )


def model(D=9, k=3, **options):
    return Patterns(range(k), odd(k), D, structured_counts(k, odd(k)), **options)


def test_two_steps_in_ten_lines(chapter):
    task, rng = model(), np.random.default_rng(0)
    net, first, second = shi.initialise(5, task, rng), task.sample(60, rng), task.sample(60, rng)
    hand = chapter["two_steps"](net, first, second, 0.2, 1.5)
    ours = shi.two_steps(net, first, second, noise_std=0.2, learning_rate=1.5)
    for W, stage in zip(hand, ours[1:], strict=True):
        torch.testing.assert_close(W, stage.W, rtol=0, atol=1e-12)


def components_by_enumeration(task, w, b, noise_std):
    """T_j of one neuron as a sum over all 2^D patterns."""
    phi = torch.tensor(list(product((0.0, 1.0), repeat=task.D)), dtype=torch.float64)
    count = phi[:, list(task.A)].sum(1).long()
    choices = torch.bincount(count, minlength=task.k + 1).double() / 2 ** (task.D - task.k)
    others = phi[:, task.outside]
    alone = others * task.p0 + (1 - others) * (1 - task.p0)
    weight = (task.counts / choices)[count] * alone.prod(1)
    x = task.inputs(phi)
    active = shi.slope(x @ w + b, noise_std)
    return ((weight * task.labels[count] * active)[:, None] * x).sum(0)


@pytest.mark.parametrize(
    "task", [model(), model(p0=0.3), Patterns([1, 4], {0}, 7, [0.2, 0.5, 0.3]), model(D=3)]
)
def test_components_are_sums_over_all_patterns(task):
    net = shi.initialise(4, task, np.random.default_rng(0))
    T = shi.components(task, net.W, net.b, 0.15).along
    for i in range(8):
        hand = components_by_enumeration(task, net.W[i], net.b[i], 0.15)
        torch.testing.assert_close(T[i], hand, rtol=0, atol=1e-13)


def test_lemma_6_contracts(chapter):
    """The second bound of Lemma 5 on step two, relative to step one."""
    task = model(D=12)
    net = shi.initialise(6, task, np.random.default_rng(1))
    one = shi.components(task, net.W, net.b, 0.2).along
    for eta in (1e-3, 1.0):
        W1 = eta * net.a[:, None] * one
        two = shi.components(task, W1, net.b, 0.2).along[:, 3:].abs()
        assert (two <= shi.step_bounds(task, W1, 0.2)[1] + 1e-15).all()


def test_the_dictionary_of_patches_is_orthonormal(chapter):
    M = chapter["patches"](np.random.default_rng(0))
    torch.testing.assert_close(M.T @ M, torch.eye(16, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("s", [0.1, 0.4, 2.0])
def test_the_accuracy_of_a_blurred_count(chapter, s):
    """Acc(s) against Bayes' rule on simulated counts."""
    task, rng = model(k=5), np.random.default_rng(0)
    counts = rng.choice(6, size=200_000, p=task.counts.numpy())
    t, y = counts + s * rng.standard_normal(len(counts)), task.labels.numpy()
    density = norm.pdf(t[:, None], np.arange(6), s) @ (task.counts.numpy() * y)
    assert chapter["best_accuracy"](task, s) == pytest.approx(
        (np.sign(density) == y[counts]).mean(), abs=0.004
    )


def test_the_blur_is_the_spread_around_the_count(chapter):
    task, rng = model(D=400, p0=0.2), np.random.default_rng(0)
    sample, fresh = task.sample(2000, rng), task.sample(5000, rng)
    v = (sample.y[:, None] * sample.X).mean(0)
    t = 3 * task.presence + task.sigma**2 / task.gamma * (fresh.X @ v)
    off = t - fresh.phi[:, :3].sum(1)
    assert off.std().item() == pytest.approx(chapter["blur"](task, 2000), rel=0.1)
    assert chapter["predicted"](task, 2000) == pytest.approx(
        chapter["best_accuracy"](task, chapter["blur"](task, 2000))
    )
    assert chapter["predicted"](Patterns(range(3), odd(3), 9), 100) == 0.5


def test_who_knows_the_dictionary_sorts(chapter):
    sample = model(D=40).sample(4000, np.random.default_rng(0))
    A, labels = chapter["sort_and_count"](sample, 3)
    assert set(A.tolist()) == {0, 1, 2}
    torch.testing.assert_close(labels, model().labels)


def test_the_whole_population_and_its_parities(chapter):
    bits, y, weight = chapter["population"](3, 8, (1, 4, 6))
    y, weight = y.double(), weight.double()
    assert weight.sum().item() == pytest.approx(1)
    phi = bits[:, [1, 4, 6]]
    gamma = (weight * y) @ phi - (weight @ y) * (weight @ phi)
    torch.testing.assert_close(gamma, torch.full((3,), 0.25).double(), rtol=0, atol=1e-6)
    chi = torch.as_tensor(chapter["parities"](bits, 3))
    torch.testing.assert_close(chi.T @ chi / 256, torch.eye(56).to(chi), rtol=0, atol=1e-12)
    assert (chi == y[:, None]).all(0).sum() == 1


def test_gradients_of_all_parities_at_once(chapter):
    powers = chapter["gradient_power"](2, 6, np.random.default_rng(0), neurons=2)
    task = Patterns(range(2), odd(2), 6)
    net = shi.initialise(2, task, np.random.default_rng(0))
    bits = ((torch.arange(64)[:, None] >> torch.arange(6)) & 1).double()
    for i, found in enumerate(powers):
        x = torch.nn.functional.pad(task.inputs(bits), (0, 1), value=1.0)
        f = shi.slope(x[:, :6] @ net.W[i] + net.b[i], 2**-1.5)[:, None] * x
        sums = [
            ((2 * bits[:, list(A)] - 1).prod(1)[:, None] * f).mean(0).square().sum()
            for A in combinations(range(6), 2)
        ]
        assert found == pytest.approx((sum(sums) / 15 / f.square().sum(1).mean()).item())


def test_the_hypothesis_that_needs_no_query_is_a_function_of_the_number_of_ones():
    bits = ((torch.arange(1024)[:, None] >> torch.arange(10)) & 1).double()
    chi = torch.stack([(2 * bits[:, list(A)] - 1).prod(1) for A in combinations(range(10), 3)])
    expected = torch.as_tensor(shi.krawtchouk(10, 3).astype(float))[bits.sum(1).long()]
    torch.testing.assert_close(chi.sum(0), expected)
