"""Chapter 8 writes its machine and its chain by hand; here they meet the package, and what can only
fail by a bug is checked here."""

import math

import numpy as np
import torch
from conftest import functions
from scipy.integrate import trapezoid
from scipy.stats import ks_2samp, norm

from featlearn import damian, hermite, kernels, online, rfm, stream
from featlearn.damian import LatentPolynomial, mixture

CHAPTER = "08_feature_learning_kernels"


def test_recursive_feature_machine_by_hand():
    by_hand = functions(CHAPTER, np=np)["laplace_rfm"]
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


def test_two_passes_are_two_steps_on_one_sample():
    """The chain with two passes has the law of the algorithm in all coordinates, and not that of
    one pass.
    """
    d, eta, runs, rng = 10, 0.3, 4000, stream("test/chapter-8/passes")

    def slope(z):
        return np.cosh(z) ** -2.0

    w = rng.standard_normal((runs, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    for _ in range(60):
        x = rng.standard_normal((runs, d))
        y = x[:, :1] ** 3 - 3 * x[:, :1]
        for _ in range(2):
            z = (w * x).sum(axis=1, keepdims=True)
            w = w + eta * np.tanh(y) * slope(z) * (x - z * w)
            w /= np.linalg.norm(w, axis=1, keepdims=True)
    distances = []
    for passes in (2, 1):
        m = rng.standard_normal(runs)
        m = m / np.sqrt(m * m + rng.chisquare(d - 1, runs))
        for _ in range(60):
            m = online._sample(
                lambda z: np.tanh(z**3 - 3 * z), slope, m, np.full(runs, d), eta, rng, passes
            )
        distances.append(ks_2samp(w[:, 0], m).statistic * math.sqrt(runs / 2))
    assert distances[0] < 2 < 4 < distances[1]


def test_agop_of_the_target():
    """Its trace is Σ|k|g_k², and its smallest eigenvalue on S* the one found on paper."""
    for terms, smallest in (
        (mixture(4), 3),
        (damian.EXAMPLES[2], 1 / 2),
        (damian.EXAMPLES[3], 5 / 6),
        ({(3,): 1.0}, 3),
        ({(1, 1, 1): 1.0}, 1),
    ):
        f = LatentPolynomial.draw(6, terms, stream("test/chapter-8/agop"))
        Z, omega = hermite.grid(f.r, 2 * f.degree)
        slopes = torch.autograd.grad(f.latent(Z.requires_grad_()).sum(), Z)[0]
        G = torch.einsum("n,ni,nj->ij", omega, slopes, slopes)
        assert math.isclose(G.trace(), sum(sum(k) * c * c for k, c in f.terms.items()))
        assert math.isclose(torch.linalg.eigvalsh(G)[0], smallest)


def test_what_symmetry_leaves():
    """After one round the mean metric has no mixed entries and is round on the complement, for a
    rotation-invariant kernel and only for such a one.
    """

    def largest_t(R, d=6, n=40, samples=200):
        f = LatentPolynomial(torch.eye(d, dtype=torch.float64)[:, :1], mixture(4))
        found = []
        for seed in range(samples):
            points = f.sample(n, stream(f"test/chapter-8/symmetry/{seed}"))
            fit = rfm.RecursiveFeatureMachine(kernels.Laplace(2.0), rounds=1, ridge=1e-8)
            M = R.T @ fit.fit(points.X @ R.T, points.y).metrics_[1] @ R
            found.append(M / M.trace())
        found = torch.stack(found)
        diagonal = found[:, 1:, 1:].diagonal(dim1=1, dim2=2)
        rows, columns = torch.triu_indices(d, d, 1)
        zero = torch.cat(
            [found[:, rows, columns], diagonal - diagonal.mean(dim=1, keepdim=True)], dim=1
        )
        return (zero.mean(dim=0) / zero.std(dim=0)).abs().max().item() * samples**0.5

    turn = torch.linalg.qr(torch.as_tensor(stream("test/turn").standard_normal((6, 6))))[0]
    assert largest_t(torch.eye(6, dtype=torch.float64)) < 4.5
    assert largest_t(torch.diag(torch.linspace(0.5, 1.5, 6).double()) @ turn) > 6


def test_rounds_are_powers():
    """Rounds of the centred quadratic kernel, one gradient step each, give Ĥ², Ĥ¹⁰, Ĥ⁴²."""
    rng = stream("test/chapter-8/power")
    f = LatentPolynomial.draw(12, mixture(4), rng)
    few = f.sample(200, rng)
    points = 20 * torch.linalg.qr(f.sample(400, rng).X)[0]  # the mean of xxᵀ is I
    H, M = rfm.empirical_hessian(few.X, few.y), torch.eye(12).to(f.U)
    for power in (2, 10, 42):
        inner = points @ M @ few.X.T
        M = rfm.agop(((inner * few.y) @ few.X / len(few.y) - few.y.mean() * points @ M) @ M)
        M, exact = M / M.trace(), torch.linalg.matrix_power(H, power)
        assert torch.allclose(M, exact / exact.trace(), atol=1e-9)


def test_sign_of_the_third_hermite_polynomial():
    """E[sgn(h₃(z)) z] = 4φ(√3) − 2φ(0)."""
    z = np.linspace(-12, 12, 240_001)
    found = trapezoid(np.sign(z**3 - 3 * z) * z * norm.pdf(z), z)
    assert math.isclose(found, 4 * norm.pdf(3**0.5) - 2 * norm.pdf(0), abs_tol=1e-6)


def test_weights_of_a_balanced_linear_network():
    """W¹ᵀW¹ = G(f)^(1/L) along gradient descent from a balanced initialisation."""
    rng, L = np.random.default_rng(0), 3
    X = torch.as_tensor(rng.standard_normal((50, 4)))
    y = X @ torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    p = [torch.nn.functional.normalize(torch.as_tensor(rng.standard_normal(4)), dim=0)]
    W = []
    for layer in range(L):
        p.append(torch.nn.functional.normalize(torch.as_tensor(rng.standard_normal(5)), dim=0))
        out = torch.ones(1, dtype=torch.float64) if layer == L - 1 else p[-1]
        W.append(0.7 * torch.outer(out, p[-2]).requires_grad_())
    for _ in range(3000):
        W = [w.detach().requires_grad_() for w in W]
        loss = (torch.linalg.multi_dot(W[::-1]) @ X.T - y).square().mean() / 2
        W = [w - 1e-3 * g for w, g in zip(W, torch.autograd.grad(loss, W), strict=True)]
    beta = torch.linalg.multi_dot(W[::-1])
    G = beta.T @ beta
    values, V = torch.linalg.eigh(G)
    root = (V * values.clamp(min=0) ** (1 / L)) @ V.T
    assert loss < 0.5 and torch.allclose(W[0].T @ W[0], root, atol=2e-2)


def test_weights_at_a_stationary_point():
    """λWᵀW = −(1/n) Σ ∇ₓℓ xᵀ at a stationary point with weight decay."""
    rng, decay = np.random.default_rng(1), 0.05
    X = torch.as_tensor(rng.standard_normal((40, 3)))
    y = torch.tanh(X[:, 0] + X[:, 1] ** 2)
    W, a = (torch.as_tensor(rng.standard_normal(shape)) for shape in ((4, 3), (4,)))
    optimiser = torch.optim.LBFGS(
        [W.requires_grad_(), a.requires_grad_()],
        max_iter=2000,
        tolerance_grad=1e-10,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure():
        optimiser.zero_grad()
        error = torch.tanh(X @ W.T) @ a - y
        loss = error.square().mean() / 2 + decay / 2 * (W.square().sum() + a.square().sum())
        loss.backward()
        return loss

    optimiser.step(closure)
    assert W.grad.abs().max() < 1e-7
    inputs = X.clone().requires_grad_()
    losses = (torch.tanh(inputs @ W.T) @ a - y).square() / 2
    slopes = torch.autograd.grad(losses.sum(), inputs)[0]
    assert W.square().sum() > 0.1
    assert torch.allclose(decay * W.T @ W, -slopes.T @ X / len(X), atol=1e-6)
