"""featlearn.beyond against brute force.

Linear algebra on all entries, all signs, automatic differentiation.
"""

import itertools

import numpy as np
import pytest
import torch

from featlearn import harmonics, stream
from featlearn.beyond import (
    SignedNetwork,
    harmonic,
    minimum_frobenius,
    whitener,
)


def draw(*shape, name="beyond"):
    return torch.as_tensor(stream(f"tests/{name}").standard_normal(shape))


def test_least_frobenius_is_least_squares_on_all_entries():
    G, y = draw(7, 4), draw(7, name="y")
    entries = torch.stack([torch.outer(g, g).flatten() for g in G])
    expected = torch.as_tensor(np.linalg.lstsq(entries.numpy(), y.numpy(), rcond=None)[0]).reshape(
        4, 4
    )
    torch.testing.assert_close(minimum_frobenius(G, y), expected, rtol=1e-9, atol=1e-9)


def test_problems_in_a_batch_do_not_mix():
    G, y = draw(3, 12, 5), draw(3, 12, name="y")
    together = minimum_frobenius(G, y)
    for k in range(3):
        torch.testing.assert_close(together[k], minimum_frobenius(G[k], y[k]), rtol=1e-7, atol=1e-7)


def test_harmonic_is_orthonormal_and_rotates_with_its_axis():
    d = 5
    X = harmonics.sphere(400_000, d, stream("tests/sphere"))
    Y = torch.stack([harmonic(p, X) for p in range(5)])
    torch.testing.assert_close(
        Y @ Y.T / len(X), torch.eye(5, dtype=torch.float64), atol=0.02, rtol=0
    )
    x = torch.as_tensor(X[:7])
    torch.testing.assert_close(harmonic(1, x), x[:, 0])
    cosine = x[:, 0] / d**0.5  # P_2(t) = (d t² − 1)/(d − 1), N(5, 2) = 14
    torch.testing.assert_close(harmonic(2, 3 * x), 14**0.5 * (5 * cosine**2 - 1) / 4)
    assert harmonic(3, x.float().reshape(7, 1, d)).shape == (7, 1)


def test_a_given_derivative_changes_nothing():
    options = {"learning_rate": 0.3, "steps": 20, "penalty": 0.01}
    found = []
    for derivative in (None, torch.sigmoid):
        net = SignedNetwork.draw(6, 4, stream("tests/net"), 2, derivative=derivative)
        rng = stream("tests/signs")
        found.append(net.train(draw(5, 4), draw(5, name="y"), rng=rng, **options))
    assert found[0].abs().max() > 0.1
    torch.testing.assert_close(*found)


@pytest.mark.parametrize(
    "call",
    [
        lambda: minimum_frobenius(draw(4, 3), draw(5)),
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
        (lambda: minimum_frobenius(draw(4, 3).to_sparse(), draw(4)), "G must be a dense tensor"),
        (lambda: whitener(draw(4, 3).to("meta")), "G must be a dense tensor"),
        (lambda: SignedNetwork.draw(10**13, 3, stream("tests/x")), "width, d and members must be"),
        (lambda: SignedNetwork.draw(4, 3, None), "rng must be a numpy Generator"),
        (lambda: SignedNetwork.draw(4, 3, stream("tests/x"), device="abacus"), "device must name"),
        (lambda: SignedNetwork(draw(4, 3), draw(4), activation=3), "activation must be"),
        (lambda: SignedNetwork(draw(4, 3), draw(4), derivative=3), "derivative must be callable"),
        (lambda: harmonic(2, draw(4)), "X must have shape"),
        (lambda: minimum_frobenius(1e200 * draw(4, 3), draw(4)), "G must have smaller entries"),
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
    ],
)
def test_bad_calls_are_refused_at_the_door(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


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


def test_repeated_samples_and_more_samples_than_entries_are_least_squares():
    G, y = draw(20, 3), draw(20, name="y")
    entries = torch.stack([torch.outer(g, g).flatten() for g in G])
    expected = torch.as_tensor(np.linalg.lstsq(entries.numpy(), y.numpy(), rcond=None)[0]).reshape(
        3, 3
    )
    torch.testing.assert_close(minimum_frobenius(G, y), expected, rtol=1e-9, atol=1e-9)


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
