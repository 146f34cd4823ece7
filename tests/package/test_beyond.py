"""featlearn.beyond against brute force.

Linear algebra on all entries, all signs, automatic differentiation.
"""

import itertools

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from featlearn import hermite, stream
from featlearn.beyond import (
    SignedNetwork,
    ThreeLayer,
    minimum_frobenius,
    minimum_nuclear,
    quadratic_form,
    whitener,
)


def draw(*shape, name="beyond"):
    return torch.as_tensor(stream(f"tests/{name}").standard_normal(shape))


def nuclear(M):
    return torch.linalg.eigvalsh(M).abs().sum(dim=-1)


def test_quadratic_form_is_the_double_sum():
    M, G = draw(4, 4), draw(3, 4, name="G")
    expected = [
        sum(G[n, i] * M[i, j] * G[n, j] for i in range(4) for j in range(4)) for n in range(3)
    ]
    torch.testing.assert_close(quadratic_form(M, G), torch.stack(expected))


def test_least_frobenius_is_least_squares_on_all_entries():
    G, y = draw(7, 4), draw(7, name="y")
    entries = torch.stack([torch.outer(g, g).flatten() for g in G])
    expected = torch.as_tensor(np.linalg.lstsq(entries.numpy(), y.numpy(), rcond=None)[0]).reshape(
        4, 4
    )
    torch.testing.assert_close(minimum_frobenius(G, y), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(("d", "n"), [(2, 1), (2, 2), (3, 4), (3, 5)])
def test_least_nuclear_norm_by_search_over_all_interpolants(d, n):
    G, y = draw(n, d, name=f"G{d}{n}"), draw(n, name=f"y{d}{n}")
    pairs = list(itertools.combinations_with_replacement(range(d), 2))
    basis = torch.zeros(len(pairs), d, d, dtype=torch.float64)
    for k, (i, j) in enumerate(pairs):
        basis[k, i, j] = basis[k, j, i] = 1.0
    rows = torch.stack([quadratic_form(B, G) for B in basis], dim=1).numpy()
    start, free = np.linalg.pinv(rows) @ y.numpy(), np.linalg.svd(rows)[2][n:]

    def norm(t):
        return float(nuclear(torch.einsum("k,kij->ij", torch.as_tensor(start + t @ free), basis)))

    starts = stream("tests/starts").standard_normal((20, len(free)))
    options = {"xatol": 1e-10, "fatol": 1e-12, "maxiter": 4000}
    best = min(minimize(norm, t, method="Nelder-Mead", options=options).fun for t in starts)
    M = minimum_nuclear(G, y, iterations=20_000, tolerance=1e-10)
    torch.testing.assert_close(quadratic_form(M, G), y, rtol=1e-8, atol=1e-8)
    assert abs(float(nuclear(M)) - best) < 1e-5 * best


def test_least_nuclear_norm_has_a_dual_certificate():
    """Weak duality: λ·y ≤ ‖M‖ for every λ with ‖Σ λ_i g_i g_iᵀ‖ ≤ 1, so that equality proves
    optimality.
    """
    G = draw(40, 10)
    y = G[:, 0] ** 2 - G[:, 1] ** 2
    M = minimum_nuclear(G, y, iterations=3000, tolerance=1e-12)
    s, U = torch.linalg.eigh(M)
    inside = torch.where(s.abs() > 1e-6, s.sign(), 0.0)
    assert inside.abs().sum() == 2

    def excess(free):
        """Operator norm off the range of M of the combinations that equal sign(M) on it."""
        weights = particular + free @ null
        return np.linalg.norm(Q.T @ np.einsum("n,ni,nj->ij", weights, G.numpy(), G.numpy()) @ Q, 2)

    P, Q = U[:, inside != 0].numpy(), U[:, inside == 0].numpy()
    on_range = np.stack([(np.outer(g, g) @ P).ravel() for g in G.numpy()], axis=1)
    wanted = ((U * inside) @ U.T).numpy() @ P
    particular = np.linalg.lstsq(on_range, wanted.ravel(), rcond=None)[0]
    null = np.linalg.svd(on_range)[2][np.linalg.matrix_rank(on_range) :]
    found = minimize(excess, np.zeros(len(null)), method="BFGS")
    assert np.abs(on_range @ particular - wanted.ravel()).max() < 1e-8
    assert found.fun < 1


def test_problems_in_a_batch_do_not_mix():
    G, y = draw(3, 12, 5), draw(3, 12, name="y")
    for solve in (
        minimum_frobenius,
        lambda G, y: minimum_nuclear(G, y, iterations=50, tolerance=1e-30),
    ):
        together = solve(G, y)
        for k in range(3):
            torch.testing.assert_close(together[k], solve(G[k], y[k]), rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimum_frobenius(draw(4, 3), draw(5)),
        lambda: minimum_nuclear(draw(4, 3), draw(4), iterations=0),
        lambda: minimum_nuclear(draw(4, 3), draw(4), tolerance=0.0),
        lambda: quadratic_form(draw(3, 2), draw(4, 3)),
        lambda: whitener(draw(4)),
        lambda: SignedNetwork(draw(4, 3), draw(3)),
        lambda: SignedNetwork(draw(4, 3), draw(4))(torch.zeros(4, 3), draw(5, 2)),
        lambda: list(
            SignedNetwork(draw(4, 3), draw(4)).descent(
                draw(5, 3), draw(4), learning_rate=1.0, steps=1
            )
        ),
        lambda: list(
            SignedNetwork(draw(4, 3), draw(4)).descent(
                draw(5, 3), draw(5), learning_rate=-1.0, steps=1
            )
        ),
        lambda: list(
            SignedNetwork(draw(4, 3), draw(4)).descent(
                draw(5, 3), draw(5), learning_rate=[1.0, 2.0], steps=1
            )
        ),
        lambda: SignedNetwork(draw(4, 3), draw(4))(draw(3), draw(5, 3)),
        lambda: SignedNetwork(draw(4, 3), draw(4))(draw(4, 3), draw(5, 3), np.ones(3)),
        lambda: SignedNetwork(draw(4, 3), draw(4)).mean(draw(4, 3), draw(2, 5, 3)),
        lambda: SignedNetwork(draw(4, 3), draw(4)).expected_loss(
            draw(4, 3), draw(5, 3), draw(5, 1)
        ),
        lambda: SignedNetwork.draw(4, 3, stream("tests/draw"), dtype=torch.int64),
        lambda: ThreeLayer(lambda X: X, iterations=-5).fit(draw(4, 3), draw(4)),
        lambda: ThreeLayer(lambda X: X, "operator").fit(draw(4, 3), draw(4)),
        lambda: SignedNetwork(draw(4, 3), draw(4)).descent(
            draw(5, 3), draw(4), learning_rate=1.0, steps=1
        ),
    ],
)
def test_wrong_input_is_refused(call):
    with pytest.raises(ValueError, match="must"):
        call()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: quadratic_form(draw(2, 3, 3), draw(4, 5, 3)), "M and G must have leading axes"),
        (lambda: quadratic_form(None, draw(5, 3)), "M must be an array of numbers"),
        (lambda: minimum_frobenius(draw(4, 3).to_sparse(), draw(4)), "G must be a dense tensor"),
        (lambda: whitener(draw(4, 3).to("meta")), "G must be a dense tensor"),
        (lambda: SignedNetwork.draw(10**13, 3, stream("tests/x")), "width, d and members must be"),
        (lambda: SignedNetwork.draw(4, 3, None), "rng must be a numpy Generator"),
        (lambda: SignedNetwork.draw(4, 3, stream("tests/x"), device="abacus"), "device must name"),
        (lambda: SignedNetwork(draw(4, 3), draw(4), activation=3), "activation must be"),
        (lambda: minimum_nuclear(1e200 * draw(4, 3), draw(4)), "G must have smaller entries"),
        (
            lambda: SignedNetwork(draw(4, 3), draw(4)).taylor(1e200 * draw(4, 3), draw(5, 3)),
            "V must be smaller",
        ),
        (
            lambda: SignedNetwork(draw(4, 3), draw(4)).descent(
                draw(5, 3), draw(5), learning_rate=1.0, steps=10**10
            ),
            "steps must be at most",
        ),
        (lambda: ThreeLayer(None).fit(draw(4, 3), draw(4)), "features must be callable"),
        (lambda: ThreeLayer(lambda X: X, whiten=3).fit(draw(4, 3), draw(4)), "whiten must be True"),
        (lambda: ThreeLayer(lambda X: X[0]).fit(draw(4, 3), draw(4)), r"features\(X\) must have"),
        (lambda: ThreeLayer(lambda X: None).fit(draw(4, 3), draw(4)), r"features\(X\) must be"),
        (lambda: ThreeLayer(lambda X: X).fit(draw(4), draw(4)), "X must have shape"),
        (
            lambda: ThreeLayer(lambda X: X).fit(draw(4, 3), draw(4)).predict(draw(5, 2)),
            r"features\(X\) must have 3 columns",
        ),
    ],
)
def test_bad_calls_are_refused_at_the_door(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_three_layers_keep_the_conventions_of_scikit_learn():
    model = ThreeLayer(lambda X: X, "operator", iterations=-5)
    assert model.get_params()["norm"] == "operator"
    assert clone(model).iterations == -5
    with pytest.raises(NotFittedError):
        model.predict(draw(5, 3))
    model.set_params(norm="frobenius", iterations=7)
    assert model.fit(draw(4, 3), draw(4)) is model


def small(m=6, d=4):
    rng = stream("tests/signed")
    net = SignedNetwork.draw(m, d, rng)
    return (
        net,
        torch.as_tensor(rng.standard_normal((m, d))),
        torch.as_tensor(rng.standard_normal((5, d))),
    )


@pytest.mark.parametrize("output", ["signs", "any"])
def test_mean_variance_and_loss_over_all_signs(output):
    net, V, X = small()
    net = net if output == "signs" else SignedNetwork(net.W, draw(6, name="a"))
    signs = torch.as_tensor(list(itertools.product([-1.0, 1.0], repeat=6)), dtype=torch.float64)
    outputs = torch.stack([net(V, X, z) for z in signs])
    torch.testing.assert_close(outputs.mean(dim=0), net.mean(V, X))
    torch.testing.assert_close(outputs.var(dim=0, correction=0), net.variance(V, X))
    expected = (outputs - X[:, 0]).square().mean() / 2 + 0.3 * V.norm(dim=1).pow(4).sum()
    torch.testing.assert_close(net.expected_loss(V, X, X[:, 0], penalty=0.3), expected)


def test_taylor_terms_are_derivatives_along_the_movement():
    net, V, X = small()

    def along(t):
        return net(t * V, X)

    first = torch.func.jacfwd(along)
    zero = torch.tensor(0.0, dtype=torch.float64)
    linear, quadratic = net.taylor(V, X)
    torch.testing.assert_close(linear, first(zero))
    torch.testing.assert_close(quadratic, torch.func.jacfwd(first)(zero) / 2)


@pytest.mark.parametrize("activation", [torch.nn.functional.softplus, "tanh"])
def test_descent_follows_automatic_gradients(activation):
    rng = stream("tests/descent")
    net = SignedNetwork.draw(6, 4, rng, activation=activation)
    X, y = torch.as_tensor(rng.standard_normal((5, 4))), torch.as_tensor(rng.standard_normal(5))
    signs = stream("tests/signs")
    expected = torch.zeros(6, 4, dtype=torch.float64)
    for V in net.descent(X, y, learning_rate=0.7, steps=4, penalty=0.05, rng=stream("tests/signs")):
        torch.testing.assert_close(V, expected)
        z = torch.as_tensor(signs.choice([-1.0, 1.0], (6,)))
        gradient = torch.func.grad(
            lambda at, z=z: (
                (net(at, X, z) - y).square().mean() / 2
                + 0.05 * at.square().sum(dim=1).square().sum()
            )
        )(expected)
        expected = expected - 0.7 * gradient


def test_members_of_an_ensemble_do_not_mix_and_take_their_own_steps():
    rng = stream("tests/members")
    net = SignedNetwork.draw(6, 4, rng, 3)
    X, y = (
        torch.as_tensor(rng.standard_normal((3, 5, 4))),
        torch.as_tensor(rng.standard_normal((3, 5))),
    )
    steps = torch.tensor([0.1, 0.4, 0.9], dtype=torch.float64)
    together = net.train(X, y, learning_rate=steps, steps=5)
    for k in range(3):
        alone = SignedNetwork(net.W[k], net.a[k]).train(
            X[k], y[k], learning_rate=steps[k].item(), steps=5
        )
        torch.testing.assert_close(together[k], alone)


def test_divergence_is_reported():
    net, _, X = small()
    with pytest.raises(ValueError, match=r"learning_rate = 1e[+]06: training diverges"):
        net.train(X, X[:, 0], learning_rate=1e6, steps=5, penalty=1.0)


def test_whitened_features_have_unit_covariance_and_dead_directions_vanish():
    G = draw(50, 4) @ draw(4, 4, name="mix")
    G = torch.cat([G, G[:, :1]], dim=1)
    white = G @ whitener(G)
    s = torch.linalg.eigvalsh(white.T @ white / 50)
    torch.testing.assert_close(
        s, torch.tensor([0.0, 1.0, 1.0, 1.0, 1.0], dtype=torch.float64), atol=1e-8, rtol=0
    )


def test_a_layer_over_raw_features_is_one_over_whitened_features():
    """W g = Ŵ ĝ for Ŵ = W Σ^{1/2}, so that the penalty on WΣ^{1/2} is the plain one on Ŵ."""
    G, W = draw(50, 4), draw(6, 4, name="W")
    s, U = torch.linalg.eigh(G.T @ G / 50)
    root = (U * s.sqrt()) @ U.T
    torch.testing.assert_close(W @ G.T, (W @ root) @ (G @ whitener(G)).T)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_whitening_finds_every_direction_and_no_other(dtype):
    A = draw(400, 60, name="wide") * draw(60, name="scales").exp()
    G = torch.cat([A, A @ draw(60, 1, name="last")], dim=1).to(dtype)
    white = G @ whitener(G)
    s = torch.linalg.eigvalsh(white.T @ white / 400)
    torch.testing.assert_close(s[1:], torch.ones_like(s[1:]), rtol=1e-2, atol=1e-2)
    few = draw(5, 30, name="few")
    assert whitener(few).abs().max() < 1e3


def features(X):
    return torch.cat([hermite.features(X, 0), hermite.features(X, 2)], dim=-1)


def test_three_layers_learn_a_fourth_power_and_the_kernel_does_not():
    X, T = draw(120, 6), draw(200, 6, name="test")
    risk = {}
    for norm in ("nuclear", "frobenius"):
        gap = ThreeLayer(features, norm).fit(X, X[:, 0] ** 4).predict(T) - T[:, 0] ** 4
        risk[norm] = float(gap.square().mean() / (T[:, 0] ** 4).var())
    assert risk["nuclear"] < 1e-3 < 0.05 < risk["frobenius"]


def test_frobenius_model_is_kernel_regression_with_the_squared_kernel():
    X, y, T = draw(30, 6), draw(30, name="y"), draw(8, 6, name="test")
    model = ThreeLayer(features, "frobenius").fit(X, y)
    G, test = features(X) @ model.H_, features(T) @ model.H_
    expected = (test @ G.T).square() @ torch.linalg.pinv((G @ G.T).square(), hermitian=True) @ y
    torch.testing.assert_close(model.predict(T), expected, rtol=1e-6, atol=1e-6)


def test_least_nuclear_norm_interpolates_even_if_stopped_early():
    G, y = draw(30, 10), draw(30, name="y")
    torch.testing.assert_close(
        quadratic_form(minimum_nuclear(G, y, iterations=2), G), y, rtol=1e-9, atol=1e-9
    )


def test_iteration_stops_when_every_problem_has_converged(monkeypatch):
    calls = []
    eigh = torch.linalg.eigh
    monkeypatch.setattr(torch.linalg, "eigh", lambda A: calls.append(1) or eigh(A))
    G = draw(2, 30, 10)
    y = torch.stack([torch.zeros(30), draw(30, name="y")])  # the first problem is solved at once
    counts = []
    for scale in (1.0, 1e-6):
        calls.clear()
        minimum_nuclear(G, scale * y, tolerance=1e-4)
        counts.append(len(calls))
    assert 1 < counts[0] == counts[1] < 500


def test_repeated_samples_and_more_samples_than_entries_are_least_squares():
    G, y = draw(20, 3), draw(20, name="y")
    entries = torch.stack([torch.outer(g, g).flatten() for g in G])
    expected = torch.as_tensor(np.linalg.lstsq(entries.numpy(), y.numpy(), rcond=None)[0]).reshape(
        3, 3
    )
    for solve in (minimum_frobenius, minimum_nuclear):
        torch.testing.assert_close(solve(G, y), expected, rtol=1e-9, atol=1e-9)


def test_start_has_unit_preactivations_and_random_signs():
    net = SignedNetwork.draw(4000, 25, stream("tests/draw"))
    assert net.W.var().item() == pytest.approx(1 / 25, rel=0.02)
    assert torch.equal(net.a.abs(), torch.ones_like(net.a))
    assert abs(net.a.mean().item()) < 0.1


def test_each_member_draws_its_own_signs():
    net = SignedNetwork(draw(6, 4).expand(3, 6, 4), torch.ones(3, 6).double())
    V = net.train(
        draw(5, 4, name="X"),
        draw(5, name="y"),
        learning_rate=0.5,
        steps=1,
        rng=stream("tests/signs"),
    )
    assert not torch.allclose(V[0], V[1])
    assert not torch.allclose(V[1], V[2])


def test_one_member_may_diverge():
    net = SignedNetwork.draw(6, 4, stream("tests/members"), 2)
    V = net.train(draw(5, 4), draw(5, name="y"), learning_rate=[0.1, 1e9], steps=30, penalty=1.0)
    assert torch.isfinite(V[0]).all()
    assert torch.isnan(V[1]).all()


def test_whitening_a_batch_does_not_mix():
    G = draw(2, 50, 4) * torch.tensor([1.0, 1e-9], dtype=torch.float64)[:, None, None]
    white = G @ whitener(G)
    torch.testing.assert_close(
        white.mT @ white / 50, torch.eye(4, dtype=torch.float64).expand(2, 4, 4)
    )


def test_whitening_and_options_reach_the_solver():
    X, y = draw(30, 5), draw(30, name="y")
    plain = ThreeLayer(lambda X: 3 * X, whiten=False, iterations=2).fit(X, y)
    torch.testing.assert_close(plain.M_, minimum_nuclear(3 * X, y, iterations=2))
    G = hermite.features(draw(20, 5), 2)
    short = ThreeLayer(lambda X: hermite.features(X, 2), whiten=False, iterations=2).fit(
        draw(20, 5), draw(20, name="y")
    )
    torch.testing.assert_close(short.M_, minimum_nuclear(G, draw(20, name="y"), iterations=2))
