"""The network is its definition, and a batched ensemble is what a loop over single networks would
be.
"""

from itertools import pairwise

import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from featlearn.networks import Network, TwoLayerEnsemble, descent
from featlearn.ntk import empirical_ntk


def data(batch=3, n=20, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((batch, n, d))
    return torch.as_tensor(X), torch.as_tensor(np.abs(X[..., 0]))


def plain_module(theta, widths, member):
    """torch.nn layers with the weights of one member, in standard parametrisation."""
    parts = []
    for layer, (fan_in, fan_out) in enumerate(pairwise(widths), start=1):
        linear = torch.nn.Linear(fan_in, fan_out).double()
        with torch.no_grad():
            linear.weight.copy_(theta[f"W{layer}"][member])
            linear.bias.copy_(theta[f"b{layer}"][member])
        parts += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*parts[:-1])


@pytest.mark.parametrize("penalty", [0.0, 0.2])
def test_batch_equals_loop_with_a_plain_module(penalty):
    """One member of the batch against torch.nn.Linear layers trained by the same optimiser."""
    X, y = data()
    options = {"learning_rate": 0.05, "weight_decay": 0.1, "penalty": penalty}
    start = Network((2, 8, 1), sigma_b=1.0, parametrisation="standard").initialise(
        np.random.default_rng(1), 3
    )
    start["b2"].zero_()
    model = plain_module(start, (2, 8, 1), 1)
    groups = [
        {"params": [model[0].weight, model[2].weight], "weight_decay": 0.1},
        {"params": [model[0].bias, model[2].bias], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 30)
    for _ in range(30):
        optimiser.zero_grad()
        norm = model[0].weight.square().sum() + model[2].weight.square().sum()
        (((model(X[1])[:, 0] - y[1]) ** 2).mean() + penalty / 2 * norm).backward()
        optimiser.step()
        schedule.step()
    net = TwoLayerEnsemble(8, steps=30, random_state=np.random.default_rng(1), **options)
    got = net.fit(X, y).predict(X)[1]
    torch.testing.assert_close(got, model(X[1])[:, 0].detach(), rtol=0, atol=1e-10)


def test_it_learns_and_repeats():
    X, y = data(n=50)
    fits = [
        TwoLayerEnsemble(32, steps=400, learning_rate=0.02).fit(X, y).predict(X) for _ in range(2)
    ]
    assert torch.equal(fits[0], fits[1])
    assert ((fits[0] - y) ** 2).mean() < 0.01 * y.var()


def test_initial_scales():
    net = TwoLayerEnsemble(400, steps=1, learning_rate=1e-12, random_state=np.random.default_rng(0))
    theta = net.fit(np.zeros((20, 1, 5)), np.zeros((20, 1))).theta_
    assert theta["W1"].var().item() == pytest.approx(1 / 5, rel=0.05)
    assert theta["W2"].var().item() == pytest.approx(1 / 400, rel=0.05)
    assert theta["b1"].var().item() == pytest.approx(1, rel=0.05)
    assert theta["b2"].abs().max() < 1e-9


def test_shared_points_and_dtype():
    X, y = data()
    net = TwoLayerEnsemble(4, steps=2).fit(X.float(), y)
    assert net.predict(X[0]).shape == (3, 20)
    assert net.predict(X).dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TwoLayerEnsemble(0).fit(*data()), ValueError, "width must be at least 1"),
        (lambda: TwoLayerEnsemble(3.5).fit(*data()), TypeError, "width must be an integer"),
        (
            lambda: TwoLayerEnsemble(3, learning_rate=0).fit(*data()),
            ValueError,
            "learning_rate must be greater than 0",
        ),
        (
            lambda: TwoLayerEnsemble(3, weight_decay=-1).fit(*data()),
            ValueError,
            "weight_decay must be at least 0",
        ),
        (
            lambda: TwoLayerEnsemble(3, penalty=-1).fit(*data()),
            ValueError,
            "penalty must be at least 0",
        ),
        (
            lambda: TwoLayerEnsemble(3).fit(np.zeros((4, 2)), np.zeros((1, 4))),
            ValueError,
            "X must be 3-dimensional",
        ),
        (
            lambda: TwoLayerEnsemble(3).fit(np.zeros((1, 4, 2)), np.zeros((1, 5))),
            ValueError,
            r"y must have shape \(1, 4\)",
        ),
        (lambda: TwoLayerEnsemble(3).predict(np.zeros((4, 2))), NotFittedError, "not fitted yet"),
        (
            lambda: (
                TwoLayerEnsemble(3, steps=1)
                .fit(np.zeros((2, 4, 2)), np.zeros((2, 4)))
                .predict(np.zeros((3, 4, 2)))
            ),
            ValueError,
            "got 3 for 2 members",
        ),
        (lambda: Network((3,)), ValueError, "widths must list"),
        (lambda: Network(5), TypeError, "widths must be a sequence"),
        (lambda: Network((3, 0, 1)), ValueError, "widths must be at least 1"),
        (lambda: Network((3, 1), "swish"), ValueError, "activation must be one of"),
        (lambda: Network((3, 1), sigma_w=0), ValueError, "sigma_w must be greater than 0"),
        (
            lambda: Network((3, 1), parametrisation="mean"),
            ValueError,
            "parametrisation must be one of",
        ),
        (
            lambda: Network((3, 1), parametrisation="mup"),
            ValueError,
            "widths must have a hidden layer",
        ),
        (lambda: Network((3, 4, 1)).scales(3), ValueError, "layer must lie between 1 and 2"),
        (lambda: Network((3, 1)).initialise(0), TypeError, "rng must be a numpy Generator"),
        (
            lambda: Network((3, 1)).initialise(np.random.default_rng(), dtype=torch.int64),
            ValueError,
            "dtype must be one of",
        ),
        (
            lambda: Network((3, 2, 1))(
                Network((3, 4, 1)).initialise(np.random.default_rng()), np.zeros((2, 3))
            ),
            ValueError,
            r"theta\['W1'\] must be a tensor of shape \(2, 3\), got \(4, 3\)",
        ),
        (
            lambda: Network((3, 1))({}, np.zeros((2, 3))),
            ValueError,
            "theta must be a dictionary of tensors",
        ),
        (
            lambda: list(
                descent(
                    Network((2, 3)),
                    Network((2, 3)).initialise(np.random.default_rng()),
                    np.zeros((4, 2)),
                    np.zeros(3),
                    learning_rate=1,
                    steps=1,
                )
            ),
            ValueError,
            "y must have the shape",
        ),
        (
            lambda: Network((3, 1))(
                Network((3, 1)).initialise(np.random.default_rng()), np.zeros((2, 4))
            ),
            ValueError,
            "X must have 3 columns",
        ),
        (
            lambda: list(
                descent(
                    Network((2, 1)),
                    Network((2, 1)).initialise(np.random.default_rng()),
                    np.zeros((2, 2)),
                    np.zeros(2),
                    learning_rate=0,
                    steps=1,
                )
            ),
            ValueError,
            "learning_rate must be greater",
        ),
        (
            lambda: list(
                descent(
                    Network((2, 1)),
                    Network((2, 1)).initialise(np.random.default_rng()),
                    np.zeros((3, 2)),
                    np.zeros((3, 1)),
                    learning_rate=1,
                    steps=1,
                )
            ),
            ValueError,
            r"y must have the shape of the output, \(3,\)",
        ),
        (
            lambda: Network((2, 1))(
                Network((2, 1)).initialise(np.random.default_rng(), 4), np.zeros((3, 5, 2))
            ),
            ValueError,
            "got 3 for 4 members",
        ),
        (
            lambda: Network((2, 1))(
                Network((2, 1)).initialise(np.random.default_rng()), np.zeros((3, 5, 2))
            ),
            ValueError,
            "got 3 for one network",
        ),
        (
            lambda: list(
                descent(
                    Network((1, 1)),
                    Network((1, 1)).initialise(np.random.default_rng()),
                    [[1e3]],
                    [1.0],
                    learning_rate=10,
                    steps=200,
                )
            ),
            ValueError,
            "training diverges with learning_rate=10",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("members", [None, 4])
@pytest.mark.parametrize("widths", [(3, 1), (3, 1, 1), (2, 7, 5, 1), (2, 7, 3)])
def test_network_is_its_definition(members, widths):
    net = Network(widths, "tanh", 1.3, 0.4)
    theta = net.initialise(np.random.default_rng(0), members)
    X = np.random.default_rng(1).standard_normal((6, widths[0]))
    for b in range(members or 1):
        pick = {
            name: (value if members is None else value[b]).numpy() for name, value in theta.items()
        }
        h = X
        for layer, fan_in in enumerate(widths[:-1], start=1):
            f = 1.3 / np.sqrt(fan_in) * h @ pick[f"W{layer}"].T + 0.4 * pick[f"b{layer}"]
            h = np.tanh(f)
        got = net(theta, X) if members is None else net(theta, X)[b]
        np.testing.assert_allclose(got, f[:, 0] if widths[-1] == 1 else f, atol=1e-12)
    assert net.depth == len(widths) - 1


def test_parametrisations_agree_at_the_start_and_part_in_training():
    """The same draws give the same function; the steps of W2 differ by the factor in front."""
    ntk, standard = (Network((2, 50, 1), "erf", 1.5, 0.3, kind) for kind in ("ntk", "standard"))
    starts = [net.initialise(np.random.default_rng(0)) for net in (ntk, standard)]
    X, y = (part[0] for part in data())
    torch.testing.assert_close(ntk(starts[0], X), standard(starts[1], X))
    _, end = descent(ntk, starts[0], X, y, learning_rate=0.01, steps=1)
    _, other = descent(standard, starts[1], X, y, learning_rate=0.01, steps=1)
    factor = 1.5 / np.sqrt(50)
    torch.testing.assert_close(
        (end["W2"] - starts[0]["W2"]) / factor, other["W2"] - starts[1]["W2"]
    )


def test_maximal_update_starts_like_ntk_up_to_the_output():
    """The same draws give the same hidden layers, and an output smaller by the width's root."""
    ntk, mup = (Network((3, 16, 16, 1), "tanh", 1.3, 0.4, kind) for kind in ("ntk", "mup"))
    starts = [net.initialise(np.random.default_rng(0)) for net in (ntk, mup)]
    X = torch.as_tensor(np.random.default_rng(1).standard_normal((4, 3)))
    first, second = ntk.layers(starts[0], X), mup.layers(starts[1], X)
    for hidden, other in zip(first[:2], second[:2], strict=True):
        torch.testing.assert_close(hidden, other)
    without_bias = first[2] - 0.4 * starts[0]["b3"]
    torch.testing.assert_close(second[2], without_bias / 4)
    assert not starts[1]["b3"].any()


def test_maximal_update_is_standard_with_a_step_for_each_layer():
    """A factor α in front of W trained with the step η is αW trained with the step α²η."""
    net = Network((2, 12, 12, 1), "erf", 1.5, 0.3, "mup")
    theta = net.initialise(np.random.default_rng(0))
    X, y = (part[0] for part in data())
    plain = {}
    for layer in (1, 2, 3):
        (alpha, beta), _ = net.scales(layer)
        plain[f"W{layer}"] = (alpha * theta[f"W{layer}"]).requires_grad_()
        plain[f"b{layer}"] = (beta * theta[f"b{layer}"]).requires_grad_()
    standard = Network((2, 12, 12, 1), "erf", 1.5, 0.3, "standard")
    torch.testing.assert_close(net(theta, X), standard(plain, X))
    (0.5 * (standard(plain, X) - y).square().sum()).backward()
    _, end = descent(net, theta, X, y, learning_rate=0.02, steps=1)
    for layer, square in ((1, 1.5**2 * 12 / 2), (2, 1.5**2), (3, 1.5**2 / 12)):
        W = plain[f"W{layer}"]
        torch.testing.assert_close(
            net.scales(layer)[0][0] * end[f"W{layer}"], (W - 0.02 * square * W.grad).detach()
        )
    for layer, square in ((1, 0.3**2 * 12), (2, 0.3**2 * 12), (3, 0.3**2)):
        b = plain[f"b{layer}"]
        torch.testing.assert_close(
            net.scales(layer)[0][1] * end[f"b{layer}"], (b - 0.02 * square * b.grad).detach()
        )


@pytest.mark.parametrize("kind", ["ntk", "standard", "mup"])
def test_tangent_kernel_in_every_parametrisation(kind):
    net = Network((2, 6, 5, 1), "tanh", 1.2, 0.5, kind)
    theta = net.initialise(np.random.default_rng(1))
    X = data()[0][0]
    leaves = {name: value.requires_grad_() for name, value in theta.items()}
    rows = [
        torch.autograd.grad(f, list(leaves.values()), retain_graph=True) for f in net(leaves, X)
    ]
    J = torch.stack([torch.cat([g.ravel() for g in row]) for row in rows])
    torch.testing.assert_close(empirical_ntk(net, X, theta=theta), J @ J.T)


def test_no_biases_without_their_scale():
    assert set(Network((2, 3, 1)).initialise(np.random.default_rng(0))) == {"W1", "W2"}


@pytest.mark.parametrize("scale", [1.0, 0.2])
def test_descent_of_a_batch_is_descent_of_each(scale):
    net = Network((2, 5, 4, 1), "tanh", 1.2, 0.3)
    theta = net.initialise(np.random.default_rng(0), 3)
    X, y = (part[0] for part in data())
    *_, end = descent(net, theta, X, y, learning_rate=0.02, steps=8, scale=scale)
    for b in range(3):
        single = {name: value[b].clone().requires_grad_() for name, value in theta.items()}
        optimiser = torch.optim.SGD(single.values(), lr=0.02 / scale**2)
        for _ in range(8):
            optimiser.zero_grad()
            (0.5 * ((scale * net(single, X) - y) ** 2).sum()).backward()
            optimiser.step()
        for name, value in single.items():
            torch.testing.assert_close(end[name][b], value.detach(), atol=1e-12, rtol=0)


@pytest.mark.parametrize("activation", ["relu", "erf", "tanh"])
@pytest.mark.parametrize("kind", ["ntk", "standard", "mup"])
@pytest.mark.parametrize("members", [None, 3])
def test_gradients_by_hand_are_those_of_automatic_differentiation(activation, kind, members):
    """Also for several outputs, and without biases."""
    rng = np.random.default_rng(0)
    for widths, sigma_b in (((2, 7, 5, 1), 0.3), ((2, 6, 3), 0.0)):
        net = Network(widths, activation, 1.2, sigma_b, kind)
        theta = net.initialise(rng, members)
        X = rng.standard_normal((5, 2))
        y = rng.standard_normal((5,) if widths[-1] == 1 else (5, widths[-1]))
        options = {"learning_rate": 0.1, "steps": 4, "scale": 0.5}
        *_, end = descent(net, theta, X, y, **options)
        *_, expected = descent(lambda at, X, net=net: net(at, X), theta, X, y, **options)
        for name, value in expected.items():
            torch.testing.assert_close(end[name], value, atol=1e-12, rtol=0)


def test_descent_leaves_its_start_alone():
    net = Network((2, 4, 1), "erf")
    theta = net.initialise(np.random.default_rng(0), 2)
    before = {name: value.clone() for name, value in theta.items()}
    X, y = (part[0] for part in data())
    trajectory = list(descent(net, theta, X, y, learning_rate=0.1, steps=3))
    assert len(trajectory) == 4
    for name in theta:
        assert torch.equal(theta[name], before[name])
        assert not theta[name].requires_grad
        assert not any(state[name].requires_grad for state in trajectory)
        assert not torch.equal(trajectory[1][name], trajectory[2][name])
    with torch.no_grad():
        *_, end = descent(net, theta, X, y, learning_rate=0.1, steps=3)
    assert torch.equal(end["W1"], trajectory[-1]["W1"])


def test_descent_takes_its_precision_from_the_parameters():
    net = Network((2, 4, 1), "erf")
    X, y = (part[0] for part in data())
    *_, end = descent(
        net,
        net.initialise(np.random.default_rng(0), dtype=torch.float32),
        X,
        y,
        learning_rate=0.1,
        steps=2,
    )
    assert end["W1"].dtype == torch.float32


def test_network_goes_through_torch_func():
    """Gradients in x for each row, by vmap, against autograd."""
    net = Network((2, 4, 1), "tanh", 1.2, 0.3)
    theta, X = net.initialise(np.random.default_rng(0)), data()[0][0]
    got = torch.func.vmap(torch.func.grad(lambda x: net(theta, x[None])[0]))(X)
    leaf = X.clone().requires_grad_()
    torch.testing.assert_close(got, torch.autograd.grad(net(theta, leaf).sum(), leaf)[0])


def test_a_device_without_numbers_is_refused():
    with pytest.raises(ValueError, match="device must hold numbers, got 'meta'"):
        Network((2, 4, 1)).initialise(np.random.default_rng(0), device="meta")


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"b1": None}, TypeError, r"theta\['b1'\] must be a tensor, got NoneType"),
        ({"b1": torch.ones(1)}, ValueError, r"theta\['b1'\] must be a tensor of shape \(3,\)"),
        ({"W2": np.ones((1, 3))}, TypeError, r"theta\['W2'\] must be a tensor, got ndarray"),
        ({"W2": torch.ones(1, 3)}, ValueError, r"theta\['W2'\] must have the dtype"),
        ({"W1": torch.ones(3, 2).to_sparse()}, TypeError, r"theta\['W1'\] must be a dense tensor"),
    ],
)
@pytest.mark.parametrize("parametrisation", ["ntk", "standard", "mup"])
def test_parameters_that_do_not_fit_are_named(change, error, message, parametrisation):
    net = Network((2, 3, 1), "tanh", 1.0, 0.5, parametrisation)
    theta, X = net.initialise(np.random.default_rng(0)), np.ones((4, 2))
    for call in (net, net.layers, lambda at, X: empirical_ntk(net, X, theta=at)):
        with pytest.raises(error, match=message):
            call({**theta, **change}, X)


def test_a_bias_that_is_missing_is_named():
    net, X = Network((2, 3, 1), sigma_b=0.5), np.ones((4, 2))
    theta = net.initialise(np.random.default_rng(0))
    del theta["b1"]
    missing = r"theta\['b1'\] must be a tensor of shape \(3,\), got none"
    with pytest.raises(ValueError, match=missing):
        net(theta, X)
    with pytest.raises(ValueError, match=missing):
        list(descent(net, theta, X, np.ones(4), learning_rate=0.1, steps=1))
    with pytest.raises(ValueError, match="theta must be a dictionary of tensors, at least one"):
        descent(net, {}, X, np.ones(4), learning_rate=0.1, steps=1)


@pytest.mark.parametrize("steps", [1, 5])
def test_training_that_diverges_raises(steps):
    with pytest.raises(ValueError, match=r"training diverges with learning_rate=1e\+200"):
        TwoLayerEnsemble(4, steps=steps, learning_rate=1e200).fit(*data())


def test_the_ensemble_follows_scikit_learn():
    """Parameters as given, clone, an integer as random state."""
    net = TwoLayerEnsemble(4, steps=3, random_state=5)
    assert clone(net).get_params() == net.get_params()
    assert net.get_params()["random_state"] == 5
    X, y = data()
    first, second = (clone(net).fit(X, y).predict(X) for _ in range(2))
    assert torch.equal(first, second)
    generator = TwoLayerEnsemble(4, steps=3, random_state=np.random.default_rng(5)).fit(X, y)
    assert torch.equal(generator.predict(X), first)
    other = TwoLayerEnsemble(4, steps=3, random_state=6).fit(X, y).predict(X)
    assert not torch.equal(other, first)


def test_sizes_that_no_machine_holds_are_refused():
    with pytest.raises(ValueError, match="widths and members must be smaller"):
        Network((10**6, 10**6, 1)).initialise(np.random.default_rng(0))
    with pytest.raises(ValueError, match="X and width must be smaller"):
        TwoLayerEnsemble(10**10).fit(*data())
    with pytest.raises(ValueError, match="steps must be at most"):
        TwoLayerEnsemble(3, steps=10**10).fit(*data())


def test_width_one_is_finite_with_gradients():
    net = Network((1, 1, 1, 1), "relu", 1.4, 0.1)
    theta = {
        name: value.requires_grad_()
        for name, value in net.initialise(np.random.default_rng(0)).items()
    }
    output = net(theta, np.zeros((2, 1)))
    gradients = torch.autograd.grad(output.sum(), list(theta.values()))
    assert torch.isfinite(output).all()
    assert all(torch.isfinite(part).all() for part in gradients)
