"""The data model, the network and the theorems of chapter 7."""

import math
from itertools import combinations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from featlearn import data, shi
from featlearn.shi import Net, Patterns, odd, structured_counts, uniform_counts


def rng(seed=0):
    return np.random.default_rng(seed)


def standard(D=20, k=5, **options):
    return Patterns(range(k), odd(k), D, structured_counts(k, odd(k)), **options)


label_sets = st.integers(2, 7).flatmap(
    lambda k: st.tuples(st.just(k), st.sets(st.integers(0, k), min_size=1, max_size=k))
)


@given(label_sets, st.floats(0, 1))
def test_structured_counts_are_balanced_and_correlated(case, weight):
    k, P = case
    law = structured_counts(k, P, weight)
    task = Patterns(range(k), P, k + 2, law)
    assert law.min() >= 0
    assert abs(law.sum() - 1) < 1e-12
    assert abs(task.balance) < 1e-12
    assert (
        abs(Patterns(range(k), P, k + 2, structured_counts(k, P, 1.0)).gamma) >= 1 / (2 * k) - 1e-12
    )


def test_the_standard_example():
    task = standard(D=100)
    assert abs(task.gamma - 0.25) < 1e-12
    assert abs(task.sigma - 5) < 1e-12
    expected = uniform_counts(5) / 2
    expected[[0, 5]] += 0.25
    torch.testing.assert_close(task.counts, expected, rtol=0, atol=1e-12)
    assert abs(standard(D=100, p0=0.2).sigma ** 2 - (5 / 4 + 95 * 0.16)) < 1e-9
    assert Patterns(range(5), odd(5), 100).gamma == pytest.approx(0, abs=1e-12)
    down = Patterns(range(3), {0}, 5, structured_counts(3, {0}))
    assert down.gamma < 0


@pytest.mark.parametrize("k", range(1, 9))
def test_the_structured_parity_correlates_positively(k):
    """For even k the two pairs of counts are equally far apart, and the first one is taken."""
    task = Patterns(range(k), odd(k), k + 2, structured_counts(k, odd(k), 1.0))
    largest = k if k % 2 else k - 1
    assert task.gamma == pytest.approx(largest / (2 * k))
    expected = torch.zeros(k + 1, dtype=torch.float64)
    expected[[0, largest]] = 0.5
    torch.testing.assert_close(task.counts, expected)
    assert Patterns(range(k), odd(k), k + 2, structured_counts(k, odd(k))).gamma > 0


def test_gamma_is_the_covariance_of_one_pattern_and_the_label():
    task = Patterns([3, 0, 2], {0, 2}, 6, [0.1, 0.2, 0.3, 0.4], p0=0.3)
    draw = task.sample(400_000, rng())
    y = draw.y.numpy()
    for j in task.A:
        assert np.cov(y, draw.phi[:, j])[0, 1] == pytest.approx(task.gamma, abs=0.006)
    for j in task.outside:
        assert np.cov(y, draw.phi[:, j])[0, 1] == pytest.approx(0, abs=0.006)
        assert draw.phi[:, j].mean() == pytest.approx(0.3, abs=0.005)
    assert draw.X.square().sum(1).mean().item() == pytest.approx(1, abs=0.01)
    torch.testing.assert_close(
        draw.X.mean(0), torch.zeros(6, dtype=torch.float64), rtol=0, atol=0.004
    )
    counts = draw.phi[:, [3, 0, 2]].sum(1).long()
    np.testing.assert_allclose(torch.bincount(counts) / len(counts), task.counts, atol=0.004)


def test_given_the_count_all_choices_are_equally_likely():
    draw = Patterns(range(4), {1}, 4, [0, 0, 1, 0, 0]).sample(60_000, rng())
    code = (draw.phi @ torch.tensor([1.0, 2, 4, 8], dtype=torch.float64)).long()
    share = torch.bincount(code, minlength=16) / 60_000
    pairs = [1 << i | 1 << j for i, j in combinations(range(4), 2)]
    np.testing.assert_allclose(share[pairs], 1 / 6, atol=0.008)
    assert share.sum() == pytest.approx(1)


def test_another_law_keeps_the_normalisation():
    task = Patterns(range(2), {2}, 4, [0.5, 0.0, 0.5])
    draw = task.sample(50, rng(), counts=[0.0, 0.0, 1.0])
    assert (draw.y == 1).all()
    torch.testing.assert_close(draw.X, task.inputs(draw.phi))
    assert draw.phi[:, :2].min() == 1


def test_dictionary_and_rotation():
    M = torch.as_tensor(np.linalg.qr(rng().standard_normal((30, 12)))[0])
    plain, rotated = standard(D=12), standard(D=12, M=M)
    draw, image = plain.sample(200, rng(1)), rotated.sample(200, rng(1))
    torch.testing.assert_close(image.X, draw.X @ M.T)
    net = shi.initialise(6, rotated, rng(2))
    seen = Net(net.W @ M, net.b, net.a)
    torch.testing.assert_close(net(image.X), seen(draw.X), rtol=0, atol=1e-12)
    large, small = shi.gradient(net, image.X, image.y), shi.gradient(seen, draw.X, draw.y)
    torch.testing.assert_close(large.W, small.W @ M.T, rtol=0, atol=1e-12)
    torch.testing.assert_close(
        shi.components(rotated, net.W, net.b, 0.2).along,
        shi.components(plain, seen.W, seen.b, 0.2).along,
    )
    torch.testing.assert_close(rotated.effective, M @ plain.effective)


@pytest.mark.parametrize("kind", shi.ACTIVATIONS)
def test_smoothing_is_an_average_over_noise(kind):
    z = torch.linspace(-1.5, 2.5, 17, dtype=torch.float64)
    xi = norm.ppf((np.arange(200_000) + 0.5) / 200_000) * 0.4
    raw = shi.activation(z[:, None] + torch.as_tensor(xi), 0.0, kind).mean(1)
    torch.testing.assert_close(shi.activation(z, 0.4, kind), raw, rtol=0, atol=1e-5)
    eps = 1e-6
    difference = (shi.activation(z + eps, 0.4, kind) - shi.activation(z - eps, 0.4, kind)) / (
        2 * eps
    )
    torch.testing.assert_close(shi.slope(z, 0.4, kind), difference, rtol=0, atol=1e-8)


def test_activations_without_noise():
    z = torch.tensor([-1.0, 0.25, 2.0], dtype=torch.float64)
    assert shi.activation(z).tolist() == [0, 0.25, 1]
    assert shi.slope(z).tolist() == [0, 1, 0]
    assert shi.activation(z, kind="relu").tolist() == [0, 0.25, 2]
    assert shi.slope(z, kind="relu").tolist() == [0, 1, 1]


def test_initialisation_is_antisymmetric_with_the_papers_scales():
    task = standard(D=400)
    net = shi.initialise(4000, task, rng())
    assert net(task.sample(50, rng(1)).X).abs().max() < 1e-9
    assert net.W.std().item() == pytest.approx(1 / 5, rel=0.01)
    assert net.b.std().item() == pytest.approx(1 / 25, rel=0.05)
    assert net.a.std().item() == pytest.approx(task.sigma**2 / (0.25 * 25), rel=0.05)
    flat = shi.initialise(10, Patterns(range(5), odd(5), 400), rng())
    torch.testing.assert_close(flat.a, shi.initialise(10, task, rng()).a)
    assert shi.initialise(3, task, rng(), kind="relu", dtype=torch.float32).W.dtype == torch.float32


def hinge(margin):
    return (1 - margin).clamp_min(0).mean()


@pytest.mark.parametrize("kind", shi.ACTIVATIONS)
def test_gradient_against_automatic_differentiation(kind):
    task = standard()
    draw = task.sample(80, rng())
    start = shi.random_net(4, 20, rng(1), sigma_w=1.0, sigma_b=0.3, sigma_a=1.0, kind=kind)
    leaves = [p.clone().requires_grad_(True) for p in (start.W, start.b, start.a + 0.3)]
    g = shi.activation(draw.X @ leaves[0].T + leaves[1], 0.3, kind) @ leaves[2]
    auto = torch.autograd.grad(hinge(draw.y * g), leaves)
    ours = shi.gradient(
        Net(*(p.detach() for p in leaves), kind=kind), draw.X, draw.y, noise_std=0.3
    )
    for expected, value in zip(auto, (ours.W, ours.b, ours.a), strict=True):
        torch.testing.assert_close(value, expected, rtol=0, atol=1e-13)


def test_two_steps():
    task = standard()
    first, second = task.sample(300, rng()), task.sample(300, rng(1))
    net = shi.initialise(10, task, rng(2))
    zero, one, two = shi.two_steps(net, first, second, noise_std=0.1, learning_rate=2.0)
    assert zero is net
    small = 1 / net.a.square().sum()
    torch.testing.assert_close(one.W, -small * shi.gradient(net, first.X, first.y, noise_std=0.1).W)
    assert torch.equal(one.a, net.a)
    g = shi.gradient(one, second.X, second.y, noise_std=0.1)
    torch.testing.assert_close(two.W, -2 * g.W)
    assert not two.a.any()
    assert torch.equal(one.b, net.b)
    assert torch.equal(two.b, net.b)
    torch.testing.assert_close(one.W[:10], -one.W[10:])


@pytest.mark.parametrize("kind", shi.ACTIVATIONS)
def test_the_kind_reaches_every_step(kind):
    task = standard()
    first, second = task.sample(200, rng()), task.sample(200, rng(1))
    net = shi.initialise(5, task, rng(2), kind=kind)
    stages = shi.two_steps(net, first, second, noise_std=0.1, learning_rate=2.0)
    assert [stage.kind for stage in stages] == [kind] * 3
    assert shi.gradient(net, first.X, first.y).kind == kind
    head = shi.train_head(stages[2], second.X, second.y, record=[0, 1, 3], learning_rate=0.1)
    assert head[2].kind == kind
    moved = (head[1].a - head[0].a).abs()
    torch.testing.assert_close(moved, torch.full((10,), 0.1).double(), atol=1e-6, rtol=0)


def test_a_batch_is_drawn_with_replacement():
    task = standard()
    draw = task.sample(50, rng())
    net = shi.random_net(3, 20, rng(1), sigma_w=0.5, sigma_b=0.2, sigma_a=0.5)
    rows = rng(2).integers(50, size=7)
    one = shi.train_all(net, draw.X, draw.y, record=[1], learning_rate=0.01, batch=7, rng=rng(2))[0]
    g = shi.gradient(net, draw.X[rows], draw.y[rows])
    for name in ("W", "b", "a"):
        moved, slope = getattr(one, name) - getattr(net, name), getattr(g, name)
        seen = slope.abs() > 1e-6  # the first step of Adam is the sign of the gradient
        torch.testing.assert_close(moved[seen], -0.01 * torch.sign(slope[seen]), rtol=0, atol=1e-3)
        assert seen.any()


def test_the_hinge_does_not_pull_at_margin_one():
    net = Net(torch.zeros(1, 2), torch.ones(1), torch.ones(1))  # g = 1 everywhere
    g = shi.gradient(net, torch.ones(3, 2), torch.tensor([1.0, 1.0, -1.0]))
    assert g.a.item() == pytest.approx(1 / 3)


def test_doors_take_arrays_and_single_precision():
    task = standard()
    draw = task.sample(30, rng(), dtype=torch.float32)
    net = shi.initialise(4, task, rng(1), dtype=torch.float32)
    labels = draw.y.numpy().astype(int)
    a = shi.gradient(net, draw.X.numpy(), labels)
    b = shi.gradient(net, draw.X, draw.y)
    torch.testing.assert_close(a.W, b.W)
    assert b.W.dtype == torch.float32
    torch.testing.assert_close(net.preactivation(draw.X.numpy()), net.preactivation(draw.X))
    assert shi.accuracy(draw.y.numpy(), labels) == 1
    double = shi.components(task, net.W.double(), net.b.double(), 0.1).along
    torch.testing.assert_close(shi.components(task, net.W.numpy(), net.b, 0.1).along, double)
    M = torch.as_tensor(np.linalg.qr(rng().standard_normal((40, 20)).astype(np.float32))[0])
    assert standard(M=M).sample(5, rng(), dtype=torch.float32).X.shape == (5, 40)
    assert Patterns(
        [0, 1], {1}, 4, np.array([0.3, 0.3, 0.4], dtype=np.float32)
    ).counts.sum() == pytest.approx(1)
    assert shi.activation(torch.tensor([1e8])).item() == 1


def test_components_do_not_depend_on_the_blocks():
    task = standard(D=30, p0=0.2)
    net = shi.initialise(40, task, rng())
    whole = shi.components(task, net.W, net.b, 0.02)
    for i in (0, 33):
        one = shi.components(task, net.W[i : i + 1], net.b[i : i + 1], 0.02)
        torch.testing.assert_close(one.along, whole.along[i : i + 1], rtol=0, atol=1e-14)
        torch.testing.assert_close(one.beta, whole.beta[i : i + 1], rtol=0, atol=1e-14)
    assert shi.step_bounds(standard(D=5), net.W[:, :5], 0.1)[1].shape == (80, 0)


def test_a_negative_correlation_gives_the_same_scales():
    down = Patterns(range(3), {0}, 20, structured_counts(3, {0}))
    up = Patterns(range(3), {3}, 20, structured_counts(3, {3}))
    assert down.gamma == pytest.approx(-up.gamma)
    torch.testing.assert_close(shi.initialise(5, down, rng()).a, shi.initialise(5, up, rng()).a)


def test_training_the_head_is_adam_on_the_features():
    task = standard()
    draw = task.sample(100, rng())
    net = shi.initialise(6, task, rng(1))
    kept = shi.train_head(net, draw.X, draw.y, record=[5, 0, 2], learning_rate=0.1)
    assert len(kept) == 3
    assert torch.equal(kept[0].a, net.a)
    a = net.a.clone().requires_grad_(True)
    adam = torch.optim.Adam([a], lr=0.1)
    for _ in range(5):
        adam.zero_grad()
        hinge(draw.y * (net.features(draw.X) @ a)).backward()
        adam.step()
    torch.testing.assert_close(kept[2].a, a.detach())
    assert torch.equal(kept[2].W, net.W)
    assert torch.equal(kept[2].b, net.b)


def test_training_all_layers_follows_the_rng_and_moves_everything():
    task = standard()
    draw = task.sample(100, rng())
    net = shi.initialise(6, task, rng(1), kind="relu")
    options = {"record": [0, 3], "learning_rate": 0.01, "batch": 10}
    start, end = shi.train_all(net, draw.X, draw.y, rng=rng(2), **options)
    again = shi.train_all(net, draw.X, draw.y, rng=rng(2), **options)[1]
    other = shi.train_all(net, draw.X, draw.y, rng=rng(3), **options)[1]
    assert torch.equal(start.W, net.W)
    assert end.kind == "relu"
    assert torch.equal(end.W, again.W)
    assert not torch.equal(end.W, other.W)
    for name in ("W", "b", "a"):
        assert not torch.equal(getattr(end, name), getattr(net, name))
    assert (end.a - net.a).abs().max() == pytest.approx(
        0.03, rel=0.2
    )  # Adam: learning rate × steps


@pytest.mark.parametrize("kind", shi.ACTIVATIONS)
def test_the_tangent_model_is_the_derivative_of_the_network(kind):
    task = standard()
    draw = task.sample(40, rng())
    net = shi.initialise(5, task, rng(1), kind=kind)
    half = Net(net.W[:5], net.b[:5], net.a[:5], kind=kind)
    change = shi.random_net(3, 20, rng(2), sigma_w=1.0, sigma_b=1.0, sigma_a=1.0)
    change = Net(change.W[:5], change.b[:5], change.a[:5])
    eps = 1e-7
    moved = Net(
        half.W + eps * change.W, half.b + eps * change.b, half.a + eps * change.a, kind=kind
    )
    tangent = shi.Tangent(half, change)(draw.X)
    torch.testing.assert_close((moved(draw.X) - half(draw.X)) / eps, tangent, rtol=0, atol=2e-5)


def test_training_is_adam_with_the_gradients_of_autograd():
    draw = standard().sample(60, rng())
    net = shi.random_net(3, 20, rng(1), kind="erf", sigma_w=0.5, sigma_b=0.2, sigma_a=0.5)
    options = {"record": [5], "learning_rate": 0.02}
    (end,) = shi.train_all(net, draw.X, draw.y, batch=30, rng=rng(2), **options)
    parameters = [part.clone().requires_grad_() for part in (net.W, net.b, net.a)]
    adam, batches = torch.optim.Adam(parameters, lr=0.02), rng(2)
    for _ in range(5):
        rows = batches.integers(60, size=30)
        adam.zero_grad()
        W, b, a = parameters
        output = shi.activation(draw.X[rows] @ W.T + b, kind="erf") @ a
        hinge(draw.y[rows] * output).backward()
        adam.step()
    for name, value in zip(("W", "b", "a"), parameters, strict=True):
        torch.testing.assert_close(getattr(end, name), value.detach(), rtol=0, atol=1e-12)


def test_training_the_tangent_model_is_adam_on_it():
    task = standard()
    draw = task.sample(100, rng())
    net = shi.initialise(8, task, rng(1), kind="erf")
    half = Net(net.W[:8], net.b[:8], net.a[:8], kind="erf")
    start, end = shi.train_tangent(half, draw.X, draw.y, record=[4, 0], learning_rate=0.01)
    assert start(draw.X).abs().max() == 0
    parameters = [torch.zeros_like(p).requires_grad_(True) for p in (half.W, half.b, half.a)]
    adam = torch.optim.Adam(parameters, lr=0.01)
    z = half.preactivation(draw.X)
    for _ in range(4):
        adam.zero_grad()
        W, b, a = parameters
        moved = shi.slope(z, kind="erf") * (draw.X @ W.T + b)
        output = moved @ half.a + shi.activation(z, kind="erf") @ a
        hinge(draw.y * output).backward()
        adam.step()
    for name, value in zip(("W", "b", "a"), parameters, strict=True):
        torch.testing.assert_close(getattr(end.change, name), value.detach(), rtol=0, atol=1e-12)


def test_accuracy_counts_zero_as_one_half():
    y = torch.tensor([1.0, -1, 1, -1])
    assert shi.accuracy(torch.tensor([2.0, -0.1, -1, 0]), y) == pytest.approx(0.625)


def test_cosines():
    W = torch.tensor([[3.0, 4.0], [0.0, -2.0]])
    torch.testing.assert_close(shi.cosines(W, torch.tensor([0.0, 5.0])), torch.tensor([0.8, -1.0]))
    torch.testing.assert_close(shi.cosines(W, W), torch.tensor([[1.0, -0.8], [-0.8, 1.0]]))


@given(label_sets, st.floats(0.1, 0.9))
def test_the_good_network_is_right_at_every_count(case, weight):
    k, P = case
    task = Patterns(range(k), P, k + 3, structured_counts(k, P, weight), p0=0.25)
    good = shi.good_network(task)
    phi = torch.tril(torch.ones(k + 1, k + 3, dtype=torch.float64), diagonal=-1)
    torch.testing.assert_close(good(task.inputs(phi)), task.labels, rtol=0, atol=1e-9)
    assert len(good.a) == 3 * (k + 1)
    assert good.a.abs().max().item() == pytest.approx(32 * k)
    expected = task.effective * task.sigma / (4 * math.sqrt(k))
    torch.testing.assert_close(good.W, expected.expand(3 * (k + 1), -1))


def test_components_against_samples_and_their_bounds():
    task = standard(D=40, p0=0.3)
    net = shi.initialise(70, task, rng())  # more than one block of neurons
    parts = shi.components(task, net.W, net.b, 0.1)
    draw = task.sample(200_000, rng(1))
    for i in (0, 69, 130):
        terms = draw.y[:, None] * draw.X * shi.slope(net.preactivation(draw.X)[:, i], 0.1)[:, None]
        error = (terms.mean(0) - parts.along[i]) / (terms.std(0) / len(terms) ** 0.5)
        assert error.abs().max() < 4.5
        background = draw.X[:, task.outside] @ net.W[i, task.outside] + net.b[i]
        assert parts.beta[i].item() == pytest.approx(
            shi.slope(background, 0.1).mean().item(), abs=0.004
        )
    relevant, outside = shi.step_bounds(task, net.W, 0.1)
    level = parts.beta[:, None] * task.gamma / task.sigma
    assert ((parts.along[:, :5] - level).abs() <= relevant).all()
    assert (parts.along[:, 5:].abs() <= outside).all()


@pytest.mark.parametrize(("w", "second"), [(-3.0, False), (-0.1, True)])
def test_step_bounds_by_hand(w, second):
    task = Patterns([1], {1}, 2, [0.5, 0.5], p0=0.2)  # φ₁ = ±½/σ̃, classes balanced
    relevant, outside = shi.step_bounds(task, [[2.0, w]], 0.5)
    steep, bend = 1 / (math.sqrt(2 * math.pi) * 0.5), 2 / (math.sqrt(2 * math.pi * math.e) * 0.25)
    variance = task.sigma**2
    assert relevant.item() == pytest.approx(steep * abs(w) * 0.25 / variance)
    curved = bend * abs(w) * 0.5 / task.sigma
    assert (curved < steep) == second
    assert outside.item() == pytest.approx(min(steep, curved) * 2 * 0.16 / variance)
    tilted = Patterns([1], {1}, 2, [0.4, 0.6], p0=0.2)
    assert shi.step_bounds(tilted, [[2.0, w]], 0.5)[1].item() == pytest.approx(
        steep * 2 * 0.16 / tilted.sigma**2
    )


def test_walsh_of_a_parity_is_one_coefficient():
    phi = ((torch.arange(32)[:, None] >> torch.arange(5)) & 1).double()
    chi = (2 * phi[:, [0, 3]] - 1).prod(1)
    hat = shi.walsh(torch.stack([chi, torch.ones(32, dtype=torch.float64)], dim=1))
    expected = torch.zeros(32, 2, dtype=torch.float64)
    expected[0b01001, 0] = expected[0, 1] = 1
    torch.testing.assert_close(hat, expected)


@pytest.mark.parametrize(("D", "k"), [(5, 0), (6, 1), (7, 3), (6, 6)])
def test_krawtchouk_is_the_sum_of_all_parities(D, k):
    values = shi.krawtchouk(D, k)
    for w in range(D + 1):
        signs = [1] * w + [-1] * (D - w)
        assert values[w] == sum(math.prod(signs[j] for j in A) for A in combinations(range(D), k))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Patterns([0, 0], {1}, 4), "A must hold different"),
        (lambda: Patterns([4], {1}, 4), "A must hold different"),
        (lambda: Patterns([], {1}, 4), "A must not be empty"),
        (lambda: Patterns([0, 1], {3}, 4), "P must hold"),
        (lambda: Patterns([0, 1], set(), 4), "P must not be empty"),
        (lambda: Patterns([0, 1], {0, 1, 2}, 4), "P must hold"),
        (lambda: Patterns([0, 1], {1}, 4, [0.5, 0.5]), "counts must be 3"),
        (lambda: Patterns([0, 1], {1}, 4, [0.5, 0.6, -0.1]), "counts must be 3"),
        (lambda: Patterns([0, 1], {1}, 4, p0=1.0), "p0 must lie"),
        (lambda: Patterns([0, 1], {1}, 4, M=torch.ones(5, 4)), "M must have 4 orthonormal"),
        (lambda: structured_counts(3, {1}, 1.5), "weight must be at most 1"),
        (lambda: Net(torch.ones(2, 3), torch.ones(3), torch.ones(2)), "W and b"),
        (lambda: shi.gradient(NET, X, 2 * Y), "y must hold labels"),
        (lambda: shi.gradient(NET, X[:, :2], Y), "X must have 3 columns"),
        (lambda: shi.activation(X, kind="tanh"), "kind must be one of"),
        (lambda: shi.train_head(NET, X, Y, record=[]), "record must not be empty"),
        (
            lambda: shi.components(standard(), torch.ones(2, 19), torch.ones(2), 0.1),
            "W must have 20",
        ),
        (
            lambda: shi.components(standard(), torch.ones(2, 20), torch.ones(2), 0.0),
            "noise_std must be greater",
        ),
        (lambda: shi.components(standard(), torch.ones(2, 20), torch.ones(3), 0.1), "W and b"),
        (
            lambda: shi.components(standard(), torch.ones(2, 20), torch.ones(2), 1e-7),
            "noise_std must be",
        ),
        (
            lambda: shi.random_net(2, 3, rng(), sigma_w=-1.0, sigma_b=1.0, sigma_a=1.0),
            "sigma_w must be",
        ),
        (
            lambda: shi.train_all(NET, X, Y, record=[1], learning_rate=0.1, batch=0, rng=rng()),
            "batch must be",
        ),
        (
            lambda: shi.two_steps(BLANK, DRAW, DRAW, noise_std=0.1, learning_rate=1.0),
            "head that is not zero",
        ),
        (lambda: shi.accuracy(Y, Y[:2]), "outputs and y"),
        (lambda: shi.accuracy(Y, [0.0, 1.0, 1.0, 0.0]), "y must hold labels"),
        (lambda: shi.cosines(X, torch.ones(2)), "v must have 3 columns"),
        (lambda: shi.cosines(0 * X, torch.ones(3)), "zero vector"),
        (lambda: NET.features(torch.ones(2, 4)), "X must have 3 columns"),
        (lambda: standard().inputs(torch.ones(4, 1)), "phi must have 20 columns"),
        (lambda: Patterns([0], {1}, 1, [0.0, 1.0]).inputs(torch.ones(1, 1)), "counts must vary"),
        (lambda: standard().sample(0, rng()), "n must be at least 1"),
        (lambda: shi.walsh(torch.ones(6, 1)), "power of two"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


NET = Net(torch.ones(2, 3), torch.zeros(2), torch.ones(2))
X, Y = torch.ones(4, 3), torch.tensor([1.0, -1.0, 1.0, 1.0])
BLANK, DRAW = Net(torch.ones(2, 3), torch.zeros(2), torch.zeros(2)), shi.Sample(X, Y)


def test_the_extract_of_mnist():
    digits = data.mnist()
    assert digits.train.shape == (6000, 784)
    assert digits.test.shape == (2000, 784)
    assert digits.train.dtype == torch.float32
    assert digits.train.min() == 0
    assert digits.train.max() == 1
    assert digits.train_digits[:6].tolist() == [5, 0, 4, 1, 9, 2]
    assert digits.test_digits[:6].tolist() == [7, 2, 1, 0, 4, 1]
    assert torch.bincount(digits.train_digits).min() > 500


def test_the_whole_of_mnist_comes_from_openml(monkeypatch):
    asked = []

    def fetch(name, **options):
        asked.append((name, options))
        images = np.zeros((70000, 4))
        images[60000:] = 255
        return images, np.array(["3"] * 60000 + ["8"] * 10000, dtype=object)

    monkeypatch.setattr(data, "fetch_openml", fetch)
    digits = data.mnist(whole=True)
    options = {"version": 1, "return_X_y": True, "as_frame": False, "parser": "liac-arff"}
    assert asked == [("mnist_784", options)]
    assert digits.train.shape == (60000, 4)
    assert digits.test.min() == 1
    assert set(digits.train_digits.tolist()) == {3}
    assert set(digits.test_digits.tolist()) == {8}


HUGE = 10**13


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: odd(10**11), "k must be at most"),
        (lambda: uniform_counts(10**11), "k must be at most"),
        (lambda: structured_counts(10**11, {1}), "k must be at most"),
        (lambda: structured_counts(2.5, {1}), "k must be an integer"),
        (lambda: structured_counts(3, None), "P must be a sequence"),
        (lambda: structured_counts(5000, {0}), "P must have, and leave out, a count"),
        (lambda: Patterns(None, {1}, 4), "A must be a sequence"),
        (lambda: Patterns([0, 1], {1}, HUGE), "D must be at most"),
        (lambda: standard().sample(HUGE, rng()), "n and D must be smaller"),
        (lambda: standard().sample(5, rng(), dtype=torch.float16), "dtype must be one of"),
        (lambda: standard().sample(5, rng(), device="abacus"), "device must name"),
        (lambda: standard().sample(5, None), "rng must be a numpy Generator"),
        (lambda: shi.Sample(X, Y[:2]), "X and y must have the same"),
        (lambda: shi.Sample(X, [0.0, 1.0, 1.0, 1.0]), "y must hold labels"),
        (lambda: shi.krawtchouk(10**5, 10**5), "D must be at most 10000"),
        (lambda: shi.step_bounds(standard(D=31, k=30), torch.ones(2, 31), 0.1), "k = 30"),
        (lambda: shi.components(standard(D=31, k=30), torch.ones(2, 31), [0, 0], 0.1), "k = 30"),
        (lambda: shi.components(standard(), torch.ones(2, 20), [0, 0], 1e-9), "noise_std must be"),
        (lambda: shi.components(standard(), torch.ones(2, 20), [0, 0], 5e-324), "noise_std must"),
        (lambda: shi.components(FIXED, torch.ones(2, 1), [0, 0], 0.1), "model must have patterns"),
        (lambda: shi.step_bounds(FIXED, torch.ones(2, 1), 0.1), "model must have patterns"),
        (lambda: shi.components(None, torch.ones(2, 20), [0, 0], 0.1), "model must be a Patterns"),
        (lambda: shi.good_network(None), "model must be a Patterns"),
        (lambda: shi.good_network(standard(), dtype=torch.int64), "dtype must be one of"),
        (lambda: shi.initialise(3, None, rng()), "model must be a Patterns"),
        (lambda: shi.initialise(HUGE, standard(), rng()), "pairs and d must be smaller"),
        (lambda: shi.initialise(3, standard(), rng(), kind=None), "kind must be one of"),
        (lambda: shi.gradient(None, X, Y), "net must be a Net"),
        (lambda: shi.gradient(NET, X, Y, noise_std=-1.0), "noise_std must be at least 0"),
        (
            lambda: shi.two_steps(NET, DRAW, DRAW, noise_std=0.1, learning_rate=0.0),
            "learning_rate must be greater",
        ),
        (
            lambda: shi.two_steps(NET, None, DRAW, noise_std=0.1, learning_rate=1.0),
            "first must be a Sample",
        ),
        (lambda: shi.train_head(NET, X, Y, record=[HUGE]), "record must be at most"),
        (lambda: shi.train_head(NET, X, Y, record=5), "record must be a sequence"),
        (
            lambda: shi.train_all(NET, X, Y, record=[1], learning_rate=0.1, batch=HUGE, rng=rng()),
            "batch must be smaller",
        ),
        (
            lambda: shi.step_bounds(standard(), torch.ones(2, 20), 1e-300),
            "noise_std must be larger",
        ),
        (
            lambda: shi.train_head(NET, X, Y, record=[9], learning_rate=1e38),
            "learning_rate must be smaller, got 1e[+]38: a step would overflow",
        ),
        (lambda: shi.Tangent(NET, None), "change must be a Net"),
        (lambda: shi.Tangent(NET, Net([[1.0]], [1.0], [1.0])), "net and change must have"),
        (lambda: shi.cosines(1e200 * X.double(), X[0]), "W and v must not hold a zero vector, nor"),
        (lambda: NET(torch.ones(2, 3, device="meta")), "X must be a dense tensor"),
        (lambda: NET(torch.ones(2, 3).to_sparse()), "X must be a dense tensor"),
        (lambda: NET(torch.ones(2, 3).half()), "X must be float32 or float64"),
        (lambda: NET(np.ma.masked_equal(np.eye(3), 1.0)), "X must not be a masked array"),
        (lambda: shi.walsh(None), "values must be an array of numbers"),
    ],
)
def test_bad_calls_are_refused_at_the_door(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


FIXED = Patterns([0], {1}, 1, [0.0, 1.0])


@pytest.mark.parametrize(("D", "k"), [(9, 4), (10, 12), (300, 140)])
def test_krawtchouk_is_its_sum_of_binomials(D, k):
    expected = [
        sum((-1) ** (k - i) * math.comb(w, i) * math.comb(D - w, k - i) for i in range(k + 1))
        for w in range(D + 1)
    ]
    assert shi.krawtchouk(D, k).tolist() == expected


def test_a_step_in_float32_may_be_refused_where_float64_is_not():
    draw, start = standard().sample(20, rng()), shi.initialise(3, standard(), rng())
    single = Net(start.W.float(), start.b.float(), start.a.float())
    options = {"noise_std": 0.1, "learning_rate": 1e60}
    assert torch.isfinite(shi.two_steps(start, draw, draw, **options)[2].W).all()
    with pytest.raises(ValueError, match="learning_rate must be smaller"):
        shi.two_steps(single, draw, draw, **options)
