"""Chapter 8 writes its machine and its chain by hand; here they meet the package."""

import math

import numpy as np
import torch
from conftest import functions

from featlearn import kernels, online, rfm, stream
from featlearn.damian import LatentPolynomial, mixture

CHAPTER = "08_feature_learning_kernels"


def test_machine_by_hand():
    by_hand = functions(CHAPTER, np=np)["laplace_machine"]
    rng = stream("test/chapter-8")
    f = LatentPolynomial.draw(6, mixture(4), rng)
    points = f.sample(80, rng)
    metrics = by_hand(points.X.numpy(), points.y.numpy(), rounds=3, L=2.0, ridge=1e-6)
    machine = rfm.RecursiveFeatureMachine(kernels.Laplace(2.0), rounds=3, ridge=1e-6).fit(
        points.X, points.y
    )
    for mine, its in zip(metrics, machine.metrics_, strict=True):
        assert np.allclose(mine, its, atol=1e-6)


def test_chain_by_hand():
    """The same random numbers in the same order give the same escape time, run by run."""
    chain_step = functions(CHAPTER, np=np, math=math)["chain_step"]
    times = []
    for seed in range(30):
        rng = stream(f"test/chapter-8/chain/{seed}")
        m = rng.standard_normal(1)
        m = m / np.sqrt(m * m + rng.chisquare(np.array([19])))
        times.append(np.inf)
        for t in range(1, 201):
            m = chain_step(m, np.tanh, np.ones_like, 20, 0.1, rng)
            if m[0] >= 0.4:
                times[-1] = t
                break
        rng = stream(f"test/chapter-8/chain/{seed}")
        found = online.escape_times(np.tanh, np.ones_like, [20], 0.1, rng, limit=200, level=0.4)
        assert found[0] == times[-1]
    assert np.isfinite(times).mean() > 0.5 and len(set(times)) > 5


def test_rounds_by_hand_are_powers():
    scope = functions(CHAPTER, np=np, torch=torch, rfm=rfm)
    X, y = (
        torch.as_tensor(stream("t").standard_normal((40, 3))),
        torch.arange(40.0, dtype=torch.float64),
    )
    whitened = math.sqrt(40) * torch.linalg.qr(X)[0]
    M = scope["quadratic_round"](X, y, torch.eye(3, dtype=torch.float64), whitened)
    H = rfm.empirical_hessian(X, y)
    assert torch.allclose(M, H @ H, atol=1e-8 * M.abs().max().item())
