"""featlearn.damian against brute force.

Automatic gradients, quadrature, plain averages over many samples, gradient descent.
"""

import math
from itertools import product

import numpy as np
import pytest
import torch
from scipy.integrate import quad

from experiments import full_damian
from featlearn import damian, data, linalg, stream
from featlearn.damian import LatentPolynomial, Sample, TwoLayer, algorithm, experiments, mixture

TARGETS = {
    **{f"rank {r}": terms for r, terms in damian.EXAMPLES.items()},
    "low degrees": {(0, 0): 0.3, (1, 0): -0.5, (0, 2): 0.4, (2, 1): 0.7},
}


def rng(name="damian"):
    return stream(f"tests/{name}")


def draw(*shape, name="damian"):
    return torch.as_tensor(rng(name).standard_normal(shape))


def grid(r, points=8):
    t, w = np.polynomial.hermite_e.hermegauss(points)
    nodes = torch.as_tensor(np.array(list(product(t, repeat=r))))
    weights = torch.as_tensor(np.array([np.prod(ws) for ws in product(w / w.sum(), repeat=r)]))
    return nodes, weights


@pytest.fixture(params=TARGETS, ids=str)
def target(request):
    return LatentPolynomial.draw(7, TARGETS[request.param], rng(request.param))


# --- the target ----------------------------------------------------------------------------------


def test_a_polynomial_by_hand():
    U = torch.eye(4, dtype=torch.float64)[:, [2, 0]]
    f = LatentPolynomial(U, {(2, 0): 0.6, (1, 3): 0.8})
    X = draw(9, 4)
    z1, z2 = X[:, 2], X[:, 0]
    expected = 0.6 * (z1**2 - 1) / math.sqrt(2) + 0.8 * z1 * (z2**3 - 3 * z2) / math.sqrt(6)
    torch.testing.assert_close(f(X), expected)
    assert (f.d, f.r, f.degree) == (4, 2, 4)
    torch.testing.assert_close(f.part([4])(X), 0.8 * z1 * (z2**3 - 3 * z2) / math.sqrt(6))


def test_squared_coefficients_are_the_second_moment(target):
    nodes, weights = grid(target.r)
    moment = (weights * target.latent(nodes).square()).sum().item()
    assert moment == pytest.approx(sum(c * c for c in target.terms.values()), abs=1e-12)


def test_hessian_is_the_mean_of_second_derivatives(target):
    nodes, weights = grid(target.r, 4)
    each = torch.stack([torch.autograd.functional.hessian(target.latent, z) for z in nodes])
    mean = torch.einsum("n,nij->ij", weights, each)
    torch.testing.assert_close(target.latent_hessian, mean, rtol=0, atol=1e-12)
    torch.testing.assert_close(target.hessian, target.U @ mean @ target.U.T, rtol=0, atol=1e-12)


def test_kappa():
    assert [
        LatentPolynomial.draw(5, t, rng()).kappa for t in damian.EXAMPLES.values()
    ] == pytest.approx([1, 1, 1])
    third = LatentPolynomial.draw(6, damian.EXAMPLES[3], rng()).latent_hessian
    assert (math.sqrt(3) * torch.linalg.eigvalsh(third)).tolist() == pytest.approx([-1, 1, 1])
    assert LatentPolynomial.draw(5, {(2,): 1.0}, rng()).kappa == pytest.approx(math.sqrt(0.5))
    assert LatentPolynomial.draw(5, {(2, 0): 1e-12, (0, 2): 2e-12}, rng()).kappa < 1e13
    assert LatentPolynomial.draw(5, {(2, 0): 0.6, (0, 2): -0.003}, rng()).kappa == pytest.approx(
        1 / 0.006
    )
    for terms in ({(3,): 1.0}, {(2, 0): 1.0, (0, 3): 1.0}):
        assert LatentPolynomial.draw(5, terms, rng()).kappa == math.inf


def test_draws_are_random_subspaces_and_keep_the_precision_of_the_inputs():
    first, second = (LatentPolynomial.draw(6, {(1, 1): 1.0}, rng(name)) for name in ("a", "b"))
    assert (first.U - second.U).abs().max() > 0.1 and first.U.abs().min() > 0
    torch.testing.assert_close(first.U.T @ first.U, torch.eye(2).double())
    assert first(draw(3, 6).float()).dtype == torch.float32


def test_smoothed_is_the_mean_over_a_shift(target):
    nodes, weights = grid(target.r)
    S = draw(3, target.r, name="shift").requires_grad_()
    G, slope = target.smoothed(S)
    mean = torch.stack([(weights * target.latent(nodes + s)).sum() for s in S])
    torch.testing.assert_close(G.sum(dim=0), mean, rtol=1e-10, atol=1e-10)
    for k in range(target.degree + 1):
        if G[k].requires_grad:
            (expected,) = torch.autograd.grad(G[k].sum(), S, retain_graph=True)
            torch.testing.assert_close(slope[k], expected, rtol=1e-10, atol=1e-10)
    doubled = target.smoothed(2 * S.detach())[0]
    torch.testing.assert_close(
        doubled, G.detach() * 2.0 ** torch.arange(target.degree + 1)[:, None].double()
    )


def test_samples_have_the_law_of_the_model():
    f = LatentPolynomial.draw(6, mixture(3), rng())
    s = f.sample(40_000, rng("law"), noise_std=0.5)
    noise = s.y - f(s.X)
    assert set(np.round(noise.unique().numpy(), 9)) == {-0.5, 0.5}
    assert abs(noise.mean()) < 0.01
    torch.testing.assert_close(s.X.T @ s.X / 40_000, torch.eye(6).double(), rtol=0, atol=0.03)
    assert torch.equal(s.weights, torch.full_like(s.y, 1 / 40_000))


@pytest.mark.parametrize("r", [1, 2, 3])
def test_stratified_points_see_the_tails(r):
    f = LatentPolynomial.draw(8, damian.EXAMPLES[r], rng())
    moments = [
        (s := f.stratified(2048, rng(f"tails/{k}"))).risk(torch.zeros(2048)).item()
        for k in range(5)
    ]
    assert moments == pytest.approx([1] * 5, abs=0.005 if r == 1 else 0.08)
    torch.testing.assert_close(f(s.X), s.y)
    assert s.mean(s.X).abs().max() < 0.12
    assert s.mean(s.X.square()).sub(1).abs().max() < 0.15
    assert s.weights.sum().item() == pytest.approx(1)
    other = f.stratified(2048, rng("tails/other"))
    assert (other.y.sort().values - s.y.sort().values).abs().max() > 1e-4


def test_sample_risk_mean_and_split():
    s = Sample(draw(4, 2), torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor([0.1, 0.2, 0.3, 0.4]))
    assert s.risk(torch.zeros(4)).item() == pytest.approx(0.1 + 0.8 + 2.7 + 6.4)
    torch.testing.assert_close(
        s.risk(torch.stack([s.y, s.y + 1], dim=1)), torch.tensor([0.0, 1.0]).double()
    )
    assert s.mean(s.y).item() == pytest.approx(3.0)
    first, rest = s.split(1)
    assert first.weights.tolist() == [1.0] and rest.weights.tolist() == pytest.approx(
        [2 / 9, 3 / 9, 4 / 9]
    )
    torch.testing.assert_close(torch.cat([first.X, rest.X]), s.X)
    torch.testing.assert_close(torch.cat([first.y, rest.y]), s.y)


# --- the population gradient ---------------------------------------------------------------------


@pytest.mark.parametrize("bias", [0.0, -0.8, 1.3])
def test_relu_coefficients(bias):
    def coefficient(k):
        he = np.polynomial.hermite_e.HermiteE.basis(k)
        return quad(
            lambda z: (z + bias) * he(z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), -bias, 12
        )[0]

    expected = [coefficient(k) for k in range(7)]
    assert damian.relu_coefficients(6, bias).tolist() == pytest.approx(expected, abs=1e-9)
    assert damian.relu_coefficients(0, bias).shape == (1,)


@pytest.mark.parametrize("bias", [0.0, 0.6])
def test_series_and_quadrature_agree(target, bias):
    W = draw(40, 7, name="rows")
    W = W[(W / W.norm(dim=1, keepdim=True) @ target.U).norm(dim=1) < 0.97]
    exact, terms = (
        damian.population_gradient(target, W, bias),
        damian.gradient_terms(target, W, bias),
    )
    assert terms.shape == (target.degree + 1, len(W), 7)
    torch.testing.assert_close(terms.sum(dim=0), exact, rtol=0, atol=1e-9)
    torch.testing.assert_close(damian.gradient_terms(target, 5 * W, bias), terms)


@pytest.mark.parametrize("bias", [0.0, 0.6])
def test_both_are_the_mean_over_samples(bias):
    f = LatentPolynomial.draw(4, {(1, 0): 0.4, (1, 1): 0.6, (0, 3): 0.5}, rng())
    W = draw(3, 4, name="rows")
    unit = W / W.norm(dim=1, keepdim=True)
    X = torch.as_tensor(rng("mean").standard_normal((1_000_000, 4)))
    mean = ((X @ unit.T + bias >= 0) * f(X)[:, None]).T @ X / len(X)
    torch.testing.assert_close(
        damian.gradient_terms(f, W, bias).sum(dim=0), mean, rtol=0, atol=0.012
    )


def test_rows_across_and_along_the_subspace():
    f = LatentPolynomial(torch.eye(5, dtype=torch.float64)[:, :1], {(1,): 1.0, (2,): 0.5})
    across, along = torch.eye(5)[2:3], torch.eye(5)[:1]
    torch.testing.assert_close(
        damian.population_gradient(f, across),
        damian.gradient_terms(f, across).sum(dim=0),
        rtol=0,
        atol=1e-12,
    )
    with pytest.raises(ValueError, match="W must not have a row almost in"):
        damian.population_gradient(f, along)
    near = torch.tensor([[math.sqrt(1 - 0.15**2), 0.15, 0, 0, 0]], dtype=torch.float64)
    gap = damian.population_gradient(f, near) - damian.gradient_terms(f, near).sum(dim=0)
    assert gap.abs().max() < 1e-10
    nearer = torch.tensor([[math.sqrt(1 - 0.05**2), 0.05, 0, 0, 0]], dtype=torch.float64)
    with pytest.raises(ValueError, match="W must not have a row almost in"):
        damian.population_gradient(f, nearer)
    with pytest.raises(ValueError, match="W must not have a row of zeros"):
        damian.gradient_terms(f, 0 * along)


def test_the_first_term_is_the_hessian():
    f = LatentPolynomial.draw(6, mixture(4), rng())
    W = draw(5, 6, name="rows")
    unit = W / W.norm(dim=1, keepdim=True)
    torch.testing.assert_close(
        damian.gradient_terms(f, W)[1], unit @ f.hessian / math.sqrt(2 * math.pi)
    )


# --- Algorithm 1 ---------------------------------------------------------------------------------


def test_start_is_paired_and_zero():
    a, W = damian.initialise(12, 5, rng())
    assert (
        torch.equal(a[6:], -a[:6]) and torch.equal(W[6:], W[:6]) and set(a.tolist()) == {-1.0, 1.0}
    )
    assert (torch.relu(draw(50, 5) @ W.T) @ a).abs().max() < 1e-12
    assert damian.initialise(20_000, 5, rng())[1].var().item() == pytest.approx(0.2, rel=0.03)


def test_preprocessing():
    X, y = draw(30, 4), draw(30, name="y")
    alpha, beta, residual = damian.preprocess(X, y)
    torch.testing.assert_close(alpha, y.mean())
    torch.testing.assert_close(beta, (y[:, None] * X).mean(dim=0))
    torch.testing.assert_close(residual, y - y.mean() - X @ (y[:, None] * X).mean(dim=0))


@pytest.mark.parametrize("decay", [None, 0.0, 0.7])
@pytest.mark.parametrize("biased", [False, True])
def test_first_step_is_a_gradient_step_on_the_loss(decay, biased, monkeypatch):
    monkeypatch.setattr(algorithm, "BLOCK", 7)
    a, W = damian.initialise(10, 4, rng())
    X, y = draw(23, 4), draw(23, name="y")
    b = draw(5, name="b").repeat(2) if biased else torch.zeros(10).double()
    leaf = W.clone().requires_grad_()
    loss = ((torch.relu(X @ leaf.T + b) @ a) - y).square().mean()
    (gradient,) = torch.autograd.grad(loss, leaf)
    expected = W - 0.4 * (gradient + (1 / 0.4 if decay is None else decay) * W)
    torch.testing.assert_close(
        damian.first_step(a, W, X, y, 0.4, decay, b if biased else 0.0), expected
    )


def test_head_is_the_limit_of_gradient_descent():
    net = TwoLayer(
        draw(6, 3, name="W"),
        draw(6, name="b"),
        torch.zeros(6).double(),
        torch.tensor(0.2).double(),
        draw(3, name="beta"),
        0.0,
    )
    X, y = draw(40, 3), draw(40, name="y")
    F, ridge, a = net.features(X), 0.3, torch.zeros(6).double()
    for _ in range(3000):
        a = a - 0.05 * (2 / 40 * F.T @ (F @ a - y) + ridge * a)
    fitted = damian.fit_head(net, X, y, Sample(X, y, torch.full((40,), 1 / 40)), [ridge])
    torch.testing.assert_close(fitted.a, a, rtol=1e-8, atol=1e-8)
    torch.testing.assert_close(fitted(X), 0.2 + X @ net.beta + F @ a, rtol=1e-8, atol=1e-8)
    assert fitted.ridge == ridge and fitted.W is net.W


def test_validation_chooses_the_ridge():
    f = LatentPolynomial.draw(5, mixture(3), rng())
    train, valid = f.sample(120, rng("train"), 0.5), f.sample(60, rng("valid"), 0.5)
    best = damian.algorithm1(train.X, train.y, valid, rng("weights"), width=40)
    each = [
        damian.algorithm1(train.X, train.y, valid, rng("weights"), width=40, ridges=[r])
        for r in damian.RIDGES
    ]
    risks = [valid.risk(net(valid.X)).item() for net in each]
    assert best.ridge == damian.RIDGES[int(np.argmin(risks))]
    torch.testing.assert_close(
        best(valid.X), each[int(np.argmin(risks))](valid.X), rtol=1e-6, atol=1e-6
    )


def test_algorithm1_keeps_precision_and_takes_numpy():
    f = LatentPolynomial.draw(5, mixture(3), rng())
    train, valid = f.sample(100, rng("train")), f.sample(50, rng("valid"))
    double = damian.algorithm1(
        train.X.numpy(), train.y.numpy(), valid, rng("weights"), width=20, ridges=[1e-3]
    )
    single = damian.algorithm1(
        train.X.float(), train.y.float(), valid, rng("weights"), width=20, ridges=[1e-3]
    )
    assert single.W.dtype == single.a.dtype == torch.float32
    torch.testing.assert_close(single(valid.X).double(), double(valid.X.numpy()), rtol=0, atol=0.02)


def test_a_neuron_on_the_fence_counts_as_active():
    X, y = draw(5, 3), draw(5, name="y")
    step = damian.first_step([1.0], torch.zeros(1, 3), X, y, 1.0)
    torch.testing.assert_close(step[0], 2 / 5 * X.T @ y)


def test_default_step_is_half_the_root_of_d():
    f = LatentPolynomial.draw(9, mixture(3), rng())
    train, valid = f.sample(100, rng("train")), f.sample(50, rng("valid"))
    nets = [
        damian.algorithm1(train.X, train.y, valid, rng("w"), width=20, learning_rate=step)
        for step in (None, 1.5)
    ]
    torch.testing.assert_close(nets[0].W, nets[1].W)


def test_fixed_features_do_not_look_at_the_labels():
    X, y = draw(30, 4), draw(30, name="y")
    valid = Sample(X, y, torch.full((30,), 1 / 30))
    nets = [damian.fixed_features(X, labels, valid, rng("w"), width=15) for labels in (y, -3 * y)]
    assert torch.equal(nets[0].W, nets[1].W) and torch.equal(nets[0].b, nets[1].b)
    wide = damian.fixed_features(X, y, valid, rng("w"), width=8000, ridges=[1.0])
    assert (wide.W.var().item(), wide.b.var().item()) == pytest.approx((0.25, 1.0), rel=0.06)
    assert nets[0].W.shape == (15, 4) and nets[0].alpha == 0 and not nets[0].beta.any()


def test_algorithm1_learns_what_fixed_features_do_not():
    f = LatentPolynomial.draw(10, mixture(4), rng("learn"))
    train, valid, test = (
        f.sample(2000, rng("train")),
        f.sample(500, rng("valid")),
        f.stratified(1024, rng("test")),
    )
    risks = [
        test.risk(method(train.X, train.y, valid, rng("weights"), width=300)(test.X)).item()
        for method in (damian.algorithm1, damian.fixed_features)
    ]
    assert risks[0] < 0.2 < 0.4 < risks[1]


# --- ridge regression on features ----------------------------------------------------------------


@pytest.mark.parametrize("n, m", [(30, 8), (8, 30), (10, 10)])
def test_feature_ridge_solves_the_normal_equations(n, m):
    Phi, y, ridges = draw(n, m), draw(n, name="y"), [1e-4, 0.1, 10.0]
    expected = [
        torch.linalg.solve(Phi.T @ Phi / n + r * torch.eye(m).double(), Phi.T @ y / n)
        for r in ridges
    ]
    torch.testing.assert_close(
        linalg.feature_ridge(Phi, y, ridges), torch.stack(expected, dim=1), rtol=1e-8, atol=1e-10
    )


def test_feature_ridge_in_single_precision_is_as_good():
    X = draw(600, 2)
    Phi = torch.relu(X @ draw(2, 150, name="W") + draw(150, name="b"))
    y = X[:, 0] ** 2
    losses = []
    for dtype in (torch.float32, torch.float64):
        a = linalg.feature_ridge(Phi.to(dtype), y.to(dtype), [1e-6])[:, 0]
        assert a.dtype == dtype
        losses.append((Phi @ a.double() - y).square().mean().item())
    assert losses[0] == pytest.approx(losses[1], rel=0.1)


def test_ridges_run_from_almost_none_to_the_zero_head():
    assert len(damian.RIDGES) == 23 and list(damian.RIDGES) == sorted(damian.RIDGES)
    assert (damian.RIDGES[0], damian.RIDGES[-1]) == pytest.approx((1e-7, 1e4))


def test_feature_ridge_checks_its_input():
    with pytest.raises(ValueError, match="ridges must be positive"):
        linalg.feature_ridge(draw(4, 2), draw(4), [0.0])
    with pytest.raises(ValueError, match="Phi and y must have the same number of rows"):
        linalg.feature_ridge(draw(4, 2), draw(5), [1.0])


# --- alignment -----------------------------------------------------------------------------------


def test_alignment():
    U = torch.eye(4)[:, :2]
    assert damian.alignment(torch.tensor([[3.0, 0, 4, 0], [0, 0, 0, 5]]), U) == pytest.approx(
        9 / 50
    )
    assert damian.alignment(U.T, U) == pytest.approx(1)


@pytest.mark.parametrize(
    "terms, noise",
    [
        (mixture(3), 0.0),
        (mixture(3), 2.0),
        (damian.EXAMPLES[3], 0.0),
        ({(0,): 2.0, (2,): 1.0}, 0.0),
        ({(1,): 2.0, (2,): 1.0}, 0.0),
    ],
)
def test_expected_alignment(terms, noise):
    d, n = 24, 8 * 24**2
    found = [
        damian.step_alignment(d, n, terms, rng(f"aligned/{k}"), noise_std=noise) for k in range(40)
    ]
    f = LatentPolynomial.draw(d, terms, rng())
    W = damian.initialise(4000, d, rng())[1]
    predicted = damian.expected_alignment(f, [n, 10 * n], W, noise)
    assert np.mean(found) == pytest.approx(predicted[0], abs=0.03)
    assert predicted[1] > predicted[0]


@pytest.mark.parametrize(
    "low, inside, outside", [({}, 0, 0), ({(0,): 2.0}, 4, 4), ({(1,): 2.0}, 8, 4)]
)
def test_expected_alignment_of_pure_noise(low, inside, outside):
    d, terms = 9, {(3,): 1.0, **low}
    f, W = LatentPolynomial.draw(d, terms, rng()), damian.initialise(50, d, rng())[1]
    top = (7 + inside) / 4
    expected = top / (top + (1 + outside) * (d - 1) / 4 - 1 / (2 * math.pi))
    np.testing.assert_allclose(damian.expected_alignment(f, [3, 700], W), expected, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_expected_alignment_tends_to_the_formula(noise):
    d = 2000
    f, W = LatentPolynomial.draw(d, mixture(3), rng()), damian.initialise(1000, d, rng())[1]
    n = 3 * d * d
    expected = 1 / (1 + math.pi / 2 * (1 + noise**2) * d * d / n)
    assert damian.expected_alignment(f, n, W, noise) == pytest.approx(expected, abs=0.01)


# --- experiments ---------------------------------------------------------------------------------


def test_clipped_labels_and_learned_fractions():
    y = torch.tensor([0.0, 1.0, -2.0]).double()
    torch.testing.assert_close(
        damian.clipped_square(y), torch.tensor([0.0, 1.0, 3.0]).double() - 4 / 3
    )
    f = LatentPolynomial.draw(4, mixture(4), rng())
    test = f.stratified(4096, rng("share"))
    parts = [f.part([k])(test.X) for k in (2, 4)]
    assert damian.fraction_learned(
        0.7 * parts[0] + 0.2 * parts[1], test, parts[0]
    ) == pytest.approx(0.7, abs=0.02)
    assert damian.fraction_learned(
        0.7 * parts[0] + 0.2 * parts[1], test, parts[1]
    ) == pytest.approx(0.2, abs=0.02)


def test_kernel_predictions_choose_the_best_ridge_or_zero():
    def linear(X, Y=None):
        return X @ (X if Y is None else Y).T + 1

    X = draw(40, 3)
    test = Sample(
        draw(30, 3, name="T"), draw(30, 3, name="T").sum(dim=1), torch.full((30,), 1 / 30)
    )
    assert test.risk(damian.kernel_predictions(linear, X, X.sum(dim=1), test)) < 1e-3
    assert not damian.kernel_predictions(linear, X, -X.sum(dim=1), test).any()


def test_compare_methods_and_transfer():
    def linear(X, Y=None):
        return X @ (X if Y is None else Y).T + 1

    assert damian.compare_methods(5, 60, rng("trial"), kernel=linear, points=128).shape == (3, 3)
    assert damian.compare_methods(5, 60, rng("trial"), points=128).shape == (2, 3)
    pretrained = damian.transfer(6, 2000, [16, 256], rng("transfer"), width=100)
    random = damian.transfer(6, 0, [16, 256], rng("transfer"), width=100)
    assert pretrained.shape == (2,) and pretrained[1] < 0.3 < random[1]


def test_compare_methods_gives_each_method_its_samples(monkeypatch):
    target, seen = LatentPolynomial.draw(5, mixture(4), rng("trial")), {}

    def method(name):
        def fit(X, y, validation, rng, **options):
            seen[name] = len(y), len(validation.y)
            return target.part([2])

        return fit

    for name in ("algorithm1", "fixed_features"):
        monkeypatch.setattr(experiments, name, method(name))
    found = damian.compare_methods(5, 60, rng("trial"))
    assert seen == {"algorithm1": (48, 12), "fixed_features": (60, 2048)}
    np.testing.assert_allclose(found, [[0.5, 1, 0]] * 2, atol=0.02)


@pytest.mark.parametrize("n", [0, 50])
def test_transfer_hands_on_the_layer_and_the_samples(n, monkeypatch):
    seen = []

    def head(network, X, y, validation):
        seen.append((network.W, len(y)))
        return lambda X: torch.zeros(len(X)).double()

    monkeypatch.setattr(experiments, "fit_head", head)
    risks = damian.transfer(6, n, [4, 9], rng("handed"), width=4000)
    assert [size for _, size in seen] == [4, 9] and risks == pytest.approx([1, 1], abs=0.02)
    if n == 0:
        assert seen[0][0].var().item() == pytest.approx(1 / 6, rel=0.05)
    else:
        same = rng("handed")
        f, (a, W) = LatentPolynomial.draw(6, mixture(3), same), damian.initialise(4000, 6, same)
        s = f.sample(n, same)
        expected = damian.first_step(a, W, s.X, damian.preprocess(s.X, s.y)[2], math.sqrt(6) / 2)
        torch.testing.assert_close(seen[0][0], expected)


def test_the_ridge_of_a_kernel_is_relative_to_its_trace():
    def linear(X, Y=None):
        return X @ (X if Y is None else Y).T + 1

    X, T = draw(40, 3), draw(30, 3, name="T")
    K, test = linear(X), Sample(T, T.sum(dim=1), torch.full((30,), 1 / 30))
    weights = torch.linalg.solve(K + 0.1 * K.trace() * torch.eye(40), X.sum(dim=1))
    found = damian.kernel_predictions(linear, X, X.sum(dim=1), test, [0.1])
    torch.testing.assert_close(found.double(), linear(T, X) @ weights, rtol=0, atol=1e-3)


def test_one_sample_makes_a_layer_of_rank_one():
    f = LatentPolynomial.draw(6, mixture(3), rng())
    a, W = damian.initialise(40, 6, rng())
    s = f.sample(1, rng("one"))
    W = damian.first_step(a, W, s.X, damian.preprocess(s.X, s.y)[2], 1.0)
    assert torch.linalg.matrix_rank(W) == 1


def test_a_transformed_label_aligns():
    plain, clipped = (
        np.median(
            [
                damian.step_alignment(20, 6400, {(3,): 1.0}, rng(f"label/{k}"), label=label)
                for k in range(5)
            ]
        )
        for label in (None, damian.clipped_square)
    )
    assert clipped > 0.8 > 0.4 > plain


def test_the_full_run_at_a_small_size(monkeypatch):
    monkeypatch.setattr(full_damian, "SEEDS", range(2))
    monkeypatch.setattr(full_damian, "KERNEL_LIMIT", 40)
    aligned = full_damian.alignment([4], [2, 8])["runs"]
    assert list(aligned) == ["1/4", "2/4", "3/4"] and np.shape(aligned["3/4"]) == (2, 2)
    labels = full_damian.transformed([4], [4])["runs"]
    assert list(labels) == ["3/4", "6/4"] and np.shape(labels["6/4"]) == (2, 1, 2)
    runs = full_damian.sample_complexity([4], [40, 80])["runs"]["4"]
    assert [[len(run) for run in row] for row in runs] == [[3, 2], [3, 2]]
    moved = full_damian.transfer([4], [8, 16])
    assert moved["sizes"] == [8, 16] and set(moved["runs"]) == {
        f"4/{n}" for n in ("0", "1", "d", "d^2", "16d^2", "d^3")
    }
    assert full_damian.rounded({"a": [0.123456, 7]}) == {"a": [0.123, 7]}


def test_stored_results():
    stored = data.load("damian")
    assert stored["command"] == "make full" and len(stored["commit"]) >= 7 and stored["seeds"] == 20
    assert max(stored["sample_complexity"]["dims"]) == max(stored["transfer"]["dims"]) == 100
    aligned = np.median(stored["alignment"]["runs"]["1/100"], axis=0)
    assert np.all(np.diff(aligned) > 0) and aligned[-1] > 0.85


# --- errors name the argument --------------------------------------------------------------------

EYE = torch.eye(4, dtype=torch.float64)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: LatentPolynomial(2 * EYE[:, :1], {(2,): 1.0}), "U must have orthonormal columns"),
        (
            lambda: LatentPolynomial(1.001 * EYE[:, :1], {(2,): 1.0}),
            "U must have orthonormal columns",
        ),
        (lambda: LatentPolynomial(EYE[:, :1], {}), "terms must not be empty"),
        (lambda: LatentPolynomial.draw(4, {}, rng()), "terms must not be empty"),
        (lambda: LatentPolynomial(EYE[:, :2], {(2,): 1.0}), "terms must be indexed by 2 degrees"),
        (lambda: LatentPolynomial(EYE[:, :1], {(-1,): 1.0}), "terms must be indexed by 1 degrees"),
        (lambda: LatentPolynomial(EYE[:, :1], {(1.5,): 1.0}), "terms must be indexed by 1 degrees"),
        (lambda: LatentPolynomial.draw(1, {(1, 1): 1.0}, rng()), "d must be at least 2"),
        (
            lambda: LatentPolynomial(EYE[:, :1], {(2,): 1.0})(torch.zeros(3, 5)),
            "X must have 4 columns",
        ),
        (
            lambda: LatentPolynomial(EYE[:, :1], {(2,): 1.0}).latent(torch.zeros(3, 2)),
            "Z must have 1 columns",
        ),
        (
            lambda: LatentPolynomial(EYE[:, :1], {(2,): 1.0}).smoothed(torch.zeros(3, 2)),
            "S must have 1 columns",
        ),
        (
            lambda: LatentPolynomial(EYE[:, :1], {(2,): 1.0}).sample(3, rng(), noise_std=-1.0),
            "noise_std must be at least 0",
        ),
        (lambda: damian.mixture(2), "p must be at least 3"),
        (lambda: damian.initialise(7, 3, rng()), "width must be even"),
        (
            lambda: damian.preprocess(EYE, torch.zeros(3)),
            "X and y must have the same number of rows",
        ),
        (
            lambda: damian.first_step(torch.ones(2), EYE, EYE, torch.ones(4), 1.0),
            "a and W must have the same",
        ),
        (
            lambda: damian.first_step(torch.ones(4), EYE, EYE, torch.ones(4), 0.0),
            "learning_rate must be greater than 0",
        ),
        (
            lambda: damian.first_step(torch.ones(4), EYE, EYE, torch.ones(4), 1.0, b=torch.ones(3)),
            "b must be a number or have shape",
        ),
        (
            lambda: damian.first_step(
                torch.ones(4), EYE, EYE, torch.ones(4), 1.0, weight_decay=-1.0
            ),
            "weight_decay must be at least 0",
        ),
        (lambda: damian.alignment(EYE, torch.eye(3)), "W must have as many columns"),
        (lambda: damian.alignment(0 * EYE, EYE), "W must not be zero"),
        (
            lambda: damian.population_gradient(
                LatentPolynomial(EYE[:, :1], {(2,): 1.0}), torch.ones(2, 3)
            ),
            "W must have 4",
        ),
        (
            lambda: damian.expected_alignment(LatentPolynomial(EYE[:, :1], {(1,): 1.0}), 9, EYE),
            "target must have degree",
        ),
        (
            lambda: damian.expected_alignment(LatentPolynomial(EYE[:, :1], {(2,): 1.0}), 0, EYE),
            "n must be at least 1",
        ),
        (
            lambda: Sample(EYE, torch.ones(4), torch.ones(4)),
            "weights must not be negative and must sum to one",
        ),
        (
            lambda: Sample(EYE, torch.ones(4), torch.tensor([2.0, -1, 0, 0])),
            "weights must not be negative",
        ),
        (lambda: Sample(EYE, torch.ones(4), torch.ones(2) / 2), "y and weights must have the same"),
        (
            lambda: Sample(EYE, torch.ones(4), torch.ones(4) / 4).risk(torch.ones(1)),
            "predictions and y must have",
        ),
        (
            lambda: Sample(EYE, torch.ones(4), torch.ones(4) / 4).mean(torch.ones(3)),
            "values and y must have",
        ),
        (lambda: Sample(EYE, torch.ones(3), torch.ones(4) / 4), "X and y must have the same"),
        (
            lambda: Sample(EYE, torch.ones(4), torch.ones(4) / 4).split(4),
            "first must lie between 1 and 3",
        ),
        (lambda: damian.transfer(5, 10, [-1], rng()), "sizes must be at least 1"),
        (
            lambda: TwoLayer(EYE, EYE[0], EYE[0], EYE[0, 0], EYE[0], 0.0)(torch.ones(2, 3)),
            "X must have 4 columns",
        ),
        (lambda: damian.clipped_square(EYE[0], cap=0.0), "cap must be greater than 0"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()


F = LatentPolynomial(EYE[:, :1], {(2,): 1.0})
EVEN = Sample(EYE, torch.ones(4), torch.ones(4) / 4)
LAYERS = TwoLayer(EYE, EYE[0], EYE[0], EYE[0, 0], EYE[0], 0.0)
HUGE = 10**13


def linear_kernel(X, Y=None):
    return X @ (X if Y is None else Y).T


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: damian.alignment(EYE, 2 * EYE), "U must have orthonormal columns"),
        (lambda: damian.alignment(1e200 * EYE, EYE), "W must not be zero, nor so large"),
        (lambda: damian.fraction_learned(EYE[0], EVEN, 0 * EYE[0]), "component must not be zero"),
        (
            lambda: damian.fraction_learned(EYE[0], EVEN, 1e200 * EYE[0]),
            "component must not be zer",
        ),
        (lambda: damian.algorithm1(1e200 * EYE, EYE[0], EVEN, rng(), width=4), "X, y and learning"),
        (lambda: damian.fixed_features(1e200 * EYE, EYE[0], EVEN, rng(), width=4), "X must be sma"),
        (lambda: damian.fit_head(LAYERS, 1e200 * EYE, EYE[0], EVEN), "X and network must be smal"),
        (lambda: F(1e200 * EYE), "X must be smaller"),
        (lambda: F.latent([[1e200]]), "Z must be smaller"),
        (lambda: damian.mixture(HUGE), "p must be at most 1000"),
        (lambda: damian.expected_alignment(F, 9, EYE, 1e300), "noise_std must be at most"),
        (lambda: damian.step_alignment(5, 9, mixture(3), rng(), noise_std=1e300), "noise_std must"),
        (
            lambda: damian.step_alignment(5, 9, mixture(3), rng(), label=lambda y: y[:3]),
            r"label\(y\) and X must have the same number of rows",
        ),
        (
            lambda: damian.kernel_predictions(linear_kernel, EYE, EYE[0], EVEN, [-1.0]),
            "ridges must be at least 0",
        ),
        (
            lambda: TwoLayer(EYE, EYE[0], EYE[0], EYE[0, 0], EYE[0], math.nan),
            "ridge must be finite",
        ),
        (lambda: damian.fraction_learned([1.0], EVEN, EYE[0]), "predictions and test.y must have"),
        (lambda: damian.fraction_learned(EYE[0], EVEN, [1.0]), "component and test.y must have"),
        (lambda: damian.fraction_learned(EYE[0], None, EYE[0]), "test must be a Sample"),
        (lambda: damian.relu_coefficients(400, 1.0), "degree must be at most 304"),
        (lambda: damian.relu_coefficients(10**10), "degree must be at most 303"),
        (lambda: damian.gradient_terms(LatentPolynomial(EYE[:, :1], {(900,): 1.0}), EYE), "degree"),
        (lambda: damian.gradient_terms(F, 1e200 * EYE), "W must not have a row of zeros, nor"),
        (lambda: damian.gradient_terms(None, EYE), "target must be a LatentPolynomial"),
        (lambda: damian.expected_alignment(3, 9, EYE), "target must be a LatentPolynomial"),
        (lambda: LatentPolynomial(EYE[:, :1], None), "terms must be a Mapping"),
        (lambda: LatentPolynomial.draw(4, [2], rng()), "terms must be a Mapping"),
        (lambda: LatentPolynomial(EYE[:, :1], {2: 1.0}), "terms must be indexed by 1 degrees"),
        (lambda: LatentPolynomial.draw(4, {2: 1.0}, rng()), "terms must be indexed"),
        (lambda: LatentPolynomial(EYE[:, :1], {(HUGE,): 1.0}), "terms must have degrees up to"),
        (lambda: F.part([3]), "degrees must name degrees of some terms"),
        (lambda: F.part(2), "degrees must be a sequence"),
        (lambda: F.sample(HUGE, rng()), "n must be smaller"),
        (lambda: F.stratified(HUGE, rng()), "n must be smaller"),
        (lambda: LatentPolynomial.draw(HUGE, mixture(3), rng()), "d must be at most"),
        (lambda: LatentPolynomial.draw(4, mixture(3), None), "rng must be a numpy Generator"),
        (lambda: LatentPolynomial.draw(4, mixture(3), rng(), "abacus"), "device must name"),
        (lambda: damian.initialise(HUGE + HUGE % 2, 3, rng()), "width and d must be smaller"),
        (lambda: damian.fixed_features(EYE, EYE[0], EVEN, rng(), width=HUGE), "width must be sma"),
        (lambda: damian.algorithm1(EYE, EYE[0], None, rng(), width=4), "validation must be a"),
        (lambda: damian.fit_head(None, EYE, EYE[0], EVEN), "network must be a TwoLayer"),
        (lambda: TwoLayer(EYE, EYE[0], EYE[0], EYE[0, 0], EYE[0, :3], 0.0), "beta must have 4"),
        (lambda: TwoLayer(EYE, EYE[0, :1], EYE[0], EYE[0, 0], EYE[0], 0.0), "W and b must have"),
        (lambda: LAYERS(torch.eye(4, device="meta")), "X must be a dense tensor"),
        (lambda: LAYERS(torch.eye(4).to_sparse()), "X must be a dense tensor"),
        (lambda: damian.clipped_square(np.ma.masked_equal([1.0, 2.0], 2.0)), "y must not be a mas"),
        (lambda: damian.compare_methods(5, 1, rng()), "n must be at least 2"),
        (lambda: damian.compare_methods(5, 9, rng(), kernel=3), "kernel must be callable"),
        (lambda: damian.compare_methods(5, 9, rng(), points=0), "points must be at least 1"),
        (lambda: damian.kernel_predictions(None, EYE, EYE[0], EVEN), "kernel must be callable"),
        (
            lambda: damian.kernel_predictions(lambda X, Y=None: X[:1], EYE, EYE[0], EVEN),
            "kernel must return matrices of shape",
        ),
        (lambda: damian.step_alignment(5, 9, mixture(3), rng(), label=3), "label must be callable"),
        (lambda: damian.transfer(5, 0, [4], rng(), width=HUGE), "width and d must be smaller"),
    ],
)
def test_bad_calls_are_refused_at_the_door(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_the_last_coefficients_that_float64_holds():
    """For b = 0, c_k = ±(k - 3)!!/√(2π) for even k; the limit lies where that overflows."""
    c = damian.relu_coefficients(302)
    assert torch.isfinite(c).all()
    odd_numbers = range(299, 0, -2)
    assert abs(c[302].item()) == pytest.approx(math.prod(map(float, odd_numbers)) / 6.2831853**0.5)
    with pytest.raises(ValueError, match="degree must be at most 303, got 304"):
        damian.relu_coefficients(304)


def test_smoothing_a_power_whose_factorial_leaves_float64():
    G, slope = LatentPolynomial(EYE[:, :1], {(180,): 1.0}).smoothed([[0.9]])
    log = 180 * math.log(0.9) - math.lgamma(181) / 2
    assert math.log(G[180].item()) == pytest.approx(log)
    assert (slope[180] / G[180]).item() == pytest.approx(180 / 0.9)


def test_an_orthonormal_basis_in_single_precision_is_accepted():
    U = torch.linalg.qr(draw(400, 3, name="U").float())[0]
    assert damian.alignment(U.T.double(), U) == pytest.approx(1, abs=1e-5)
