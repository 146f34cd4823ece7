"""The batched ensemble is what a loop over single networks would be."""

import numpy as np
import pytest
import torch

from featlearn.networks import TwoLayerEnsemble


def data(batch=3, n=20, d=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((batch, n, d))
    return torch.as_tensor(X), torch.as_tensor(np.abs(X[..., 0]))


def test_batch_equals_loop_with_a_plain_module():
    """One member of the batch against torch.nn.Linear layers trained by the same optimiser."""
    X, y = data()
    net = TwoLayerEnsemble(
        8, steps=30, learning_rate=0.05, weight_decay=0.1, random_state=np.random.default_rng(1)
    )
    net._initialise(3, 2, X)
    first, second = torch.nn.Linear(2, 8).double(), torch.nn.Linear(8, 1).double()
    with torch.no_grad():
        first.weight.copy_(net.W[1].T)
        first.bias.copy_(net.c[1, 0])
        second.weight.copy_(net.a[1].T)
        second.bias.zero_()
    groups = [
        {"params": [first.weight, second.weight], "weight_decay": 0.1},
        {"params": [first.bias, second.bias], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 30)
    model = torch.nn.Sequential(first, torch.nn.ReLU(), second)
    for _ in range(30):
        optimiser.zero_grad()
        ((model(X[1])[:, 0] - y[1]) ** 2).mean().backward()
        optimiser.step()
        schedule.step()
    net = TwoLayerEnsemble(
        8, steps=30, learning_rate=0.05, weight_decay=0.1, random_state=np.random.default_rng(1)
    )
    got = net.fit(X, y).predict(X)[1]
    torch.testing.assert_close(got, model(X[1])[:, 0].detach(), rtol=0, atol=1e-10)


def test_it_learns_and_repeats():
    X, y = data(n=50)
    fits = [TwoLayerEnsemble(32, steps=400, learning_rate=0.02).fit(X, y).predict(X) for _ in range(2)]
    assert torch.equal(fits[0], fits[1])
    assert ((fits[0] - y) ** 2).mean() < 0.01 * y.var()


def test_initial_scales():
    net = TwoLayerEnsemble(400, random_state=np.random.default_rng(0))
    net._initialise(20, 5, torch.zeros(1, dtype=torch.float64))
    assert net.W.var().item() == pytest.approx(1 / 5, rel=0.05)
    assert net.a.var().item() == pytest.approx(1 / 400, rel=0.05)
    assert net.c.var().item() == pytest.approx(1, rel=0.05)
    assert net.e.abs().sum() == 0


def test_shared_points_and_dtype():
    X, y = data()
    net = TwoLayerEnsemble(4, steps=2).fit(X.float(), y)
    assert net.predict(X[0]).shape == (3, 20)
    assert net.predict(X).dtype == torch.float32


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: TwoLayerEnsemble(0), ValueError, "width must be at least 1"),
        (lambda: TwoLayerEnsemble(3.5), TypeError, "width must be an integer"),
        (lambda: TwoLayerEnsemble(3, learning_rate=0), ValueError, "learning_rate must be greater than 0"),
        (lambda: TwoLayerEnsemble(3, weight_decay=-1), ValueError, "weight_decay must be at least 0"),
        (lambda: TwoLayerEnsemble(3).fit(np.zeros((4, 2)), np.zeros((1, 4))), ValueError, "X must be 3-dimensional"),
        (lambda: TwoLayerEnsemble(3).fit(np.zeros((1, 4, 2)), np.zeros((1, 5))), ValueError, r"y must have shape \(1, 4\)"),
        (lambda: TwoLayerEnsemble(3).predict(np.zeros((4, 2))), ValueError, "call fit before predict"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()
