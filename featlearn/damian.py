r"""Chapter 6: one gradient step finds the directions that a polynomial depends on. Source: Damian, Lee and Soltanolkotabi (2022).

The target $f^*(x) = g(U^\top x)$ is a polynomial of r hidden coordinates of a Gaussian x, a `LatentPolynomial`. `algorithm1` learns it: subtract
the linear part (`preprocess`), take one large step on the first layer (`initialise`, `first_step`), draw new biases, and fit the second layer by
ridge regression. `population_gradient` and `gradient_terms` are the gradient of that step without sampling noise, by quadrature and as a Hermite
series. `expected_alignment` says how much of the step lies in the hidden subspace after n samples.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from scipy.special import ndtri
from torch import Tensor

from featlearn import hermite, linalg, validate

RIDGES = tuple(10.0 ** np.arange(-7, 4.1, 0.5))
SPREAD = 1.6
BLOCK = 2**16


@dataclass(frozen=True, eq=False)
class Sample:
    r"""Inputs X (n, d), labels y (n,) and weights (n,) that sum to one."""

    X: Tensor
    y: Tensor
    weights: Tensor

    def __post_init__(self) -> None:
        X, y = (
            validate.as_tensor(self.X, "X", 2, beside=(self.y, self.weights)),
            validate.as_tensor(self.y, "y", 1),
        )
        weights = validate.as_tensor(self.weights, "weights", 1)
        validate.same_length(X, "X", y, "y")
        validate.same_length(y, "y", weights, "weights")
        if (weights < 0).any() or abs(weights.sum().item() - 1) > 1e-5:
            raise ValueError("weights must not be negative and must sum to one")
        for name, value in (("X", X), ("y", y.to(X)), ("weights", weights.to(X))):
            object.__setattr__(self, name, value)

    def risk(self, predictions: Any) -> Tensor:
        r"""$\sum_i\omega_i(\hat y_i-y_i)^2$ for predictions of shape (n,), a number, or (n, k), then one for each column."""
        predictions = validate.as_tensor(predictions, "predictions", (1, 2)).to(self.y)
        validate.same_length(predictions, "predictions", self.y, "y")
        y = self.y if predictions.ndim == 1 else self.y[:, None]
        return self.weights @ (predictions - y).square()

    def mean(self, values: Any) -> Tensor:
        r"""$\sum_i\omega_iv_i$ for values of shape (n,) or (n, k)."""
        values = validate.as_tensor(values, "values", (1, 2)).to(self.y)
        validate.same_length(values, "values", self.y, "y")
        return self.weights @ values

    def split(self, first: int) -> tuple[Sample, Sample]:
        """The first rows and the others, the weights of each scaled to sum to one."""
        if not 0 < validate.integer(first, "first") < len(self.y):
            raise ValueError(f"first must lie between 1 and {len(self.y) - 1}, got {first}")
        weights = self.weights[:first], self.weights[first:]
        halves = (self.X[:first], self.y[:first]), (self.X[first:], self.y[first:])
        return tuple(Sample(X, y, w / w.sum()) for (X, y), w in zip(halves, weights, strict=True))


def _equal(X: Tensor, y: Tensor) -> Sample:
    return Sample(X, y, torch.full_like(y, 1 / len(y)))


@dataclass(frozen=True, eq=False)
class LatentPolynomial:
    r"""$f^*(x) = \sum_{\mathbf k}g_{\mathbf k}h_{\mathbf k}(U^\top x)$ with $h_{\mathbf k}(z) = \prod_ih_{k_i}(z_i)$ and $x \sim N(0, I_d)$.

    $h_k$ are the normalised Hermite polynomials of `featlearn.hermite`, so $\mathbb{E}[(f^*)^2] = \sum_{\mathbf k}g_{\mathbf k}^2$.

    Parameters
    ----------
    U
        (d, r) with orthonormal columns, a basis of the hidden subspace $S^*$.
    terms
        The coefficients: ``{(2, 0): 0.6, (0, 3): 0.8}`` is $0.6\,h_2(z_1)+0.8\,h_3(z_2)$.
    """

    U: Tensor
    terms: Mapping[tuple[int, ...], float]

    def __post_init__(self) -> None:
        U = validate.as_tensor(self.U, "U", 2)
        if U.shape[0] < U.shape[1] or (U.T @ U - torch.eye(U.shape[1]).to(U)).abs().max() > 1e-6:
            raise ValueError(
                f"U must have orthonormal columns, got a matrix of shape {tuple(U.shape)} without"
            )
        if not self.terms:
            raise ValueError("terms must not be empty")
        for alpha in self.terms:
            if len(alpha) != U.shape[1] or any(k < 0 or k != int(k) for k in alpha):
                raise ValueError(f"terms must be indexed by {U.shape[1]} degrees each, got {alpha!r}")
        object.__setattr__(self, "U", U)
        object.__setattr__(
            self,
            "terms",
            {tuple(map(int, alpha)): validate.real(c, "terms") for alpha, c in self.terms.items()},
        )

    @classmethod
    def draw(
        cls,
        d: int,
        terms: Mapping[tuple[int, ...], float],
        rng: np.random.Generator,
        device: str | torch.device = "cpu",
    ) -> LatentPolynomial:
        r"""The polynomial with these terms in a random subspace of $\mathbb{R}^d$."""
        if not terms:
            raise ValueError("terms must not be empty")
        r = len(next(iter(terms)))
        if validate.integer(d, "d") < r:
            raise ValueError(f"d must be at least {r}, the number of hidden coordinates, got {d}")
        U = np.linalg.qr(validate.generator(rng, "rng").standard_normal((d, r)))[0]
        return cls(torch.as_tensor(U, device=device), terms)

    @property
    def d(self) -> int:
        """The number of inputs."""
        return self.U.shape[0]

    @property
    def r(self) -> int:
        r"""The dimension of $S^*$."""
        return self.U.shape[1]

    @property
    def degree(self) -> int:
        """The degree p."""
        return max(map(sum, self.terms))

    def part(self, degrees: Collection[int]) -> LatentPolynomial:
        """The terms of these degrees."""
        return LatentPolynomial(
            self.U, {alpha: c for alpha, c in self.terms.items() if sum(alpha) in degrees}
        )

    def latent(self, Z: Any) -> Tensor:
        r"""$g(z) = \sum_{\mathbf k}g_{\mathbf k}h_{\mathbf k}(z)$ for Z of shape (..., r)."""
        Z = validate.as_tensor(Z, "Z", beside=(self.U,))
        if Z.ndim == 0 or Z.shape[-1] != self.r:
            raise ValueError(f"Z must have {self.r} columns, got shape {tuple(Z.shape)}")
        h = hermite.polynomials(Z, self.degree)
        return sum(
            c * math.prod(h[k][..., i] for i, k in enumerate(alpha)) for alpha, c in self.terms.items()
        )

    def __call__(self, X: Any) -> Tensor:
        r"""$f^*(x)$ for X of shape (..., d)."""
        X = validate.as_tensor(X, "X", beside=(self.U,))
        if X.ndim == 0 or X.shape[-1] != self.d:
            raise ValueError(f"X must have {self.d} columns, got shape {tuple(X.shape)}")
        return self.latent(X @ self.U.to(X))

    def smoothed(self, S: Any) -> tuple[Tensor, Tensor]:
        r"""$G_k$ and $\nabla G_k$ at the points $s$ of S (..., r), for $k = 0, \dots, p$: shapes (p + 1, ...) and (p + 1, ..., r).

        $G(s) = \mathbb{E}_z[g(z+s)]$ is $g$ with each $\mathrm{He}_k$ replaced by the power $s^k$, and $G_k$ is its part of degree k. It
        holds all mean derivatives: $\mathbb{E}[\nabla^kg](s^{\otimes k}) = k!\,G_k(s)$ and $\mathbb{E}[\nabla^kg](s^{\otimes k-1}) = (k-1)!\,\nabla G_k(s)$.
        """
        S = validate.as_tensor(S, "S", beside=(self.U,))
        if S.ndim == 0 or S.shape[-1] != self.r:
            raise ValueError(f"S must have {self.r} columns, got shape {tuple(S.shape)}")
        G = torch.zeros(self.degree + 1, *S.shape[:-1], dtype=S.dtype, device=S.device)
        slope = torch.zeros(self.degree + 1, *S.shape, dtype=S.dtype, device=S.device)
        for alpha, c in self.terms.items():
            c = c / math.sqrt(math.prod(map(math.factorial, alpha)))
            k, powers = sum(alpha), [S[..., i] ** alpha[i] for i in range(self.r)]
            G[k] += c * math.prod(powers)
            for i in range(self.r):
                if alpha[i]:
                    rest = math.prod(powers[:i] + powers[i + 1 :])
                    slope[k, ..., i] += c * alpha[i] * S[..., i] ** (alpha[i] - 1) * rest
        return G, slope

    @property
    def latent_hessian(self) -> Tensor:
        r"""$\mathbb{E}[\nabla^2g]$, (r, r), with $\sqrt2\,g_{2e_i}$ on the diagonal and $g_{e_i+e_j}$ beside it."""
        M = torch.zeros(self.r, self.r).to(self.U)
        for alpha, c in self.terms.items():
            if sum(alpha) == 2:
                i, j = (k for k, power in enumerate(alpha) for _ in range(power))
                M[i, j] = M[j, i] = c * math.sqrt(2) if i == j else c
        return M

    @property
    def hessian(self) -> Tensor:
        r"""$H = \mathbb{E}[\nabla^2f^*] = U\,\mathbb{E}[\nabla^2g]\,U^\top$, (d, d)."""
        return self.U @ self.latent_hessian @ self.U.T

    @property
    def kappa(self) -> float:
        r"""$\kappa = \|H^\dagger\|/\sqrt r$, infinite where H has rank below r and Assumption 2 fails."""
        sizes = torch.linalg.eigvalsh(self.latent_hessian).abs()
        if sizes.min() <= 1e-9 * sizes.max():
            return math.inf
        return 1 / (sizes.min().item() * math.sqrt(self.r))

    def sample(self, n: int, rng: np.random.Generator, noise: float = 0.0) -> Sample:
        r"""n points $x_i \sim N(0, I_d)$ with $y_i = f^*(x_i)+\epsilon_i$, $\epsilon_i = \pm\varsigma$ with equal probability."""
        noise = validate.real(noise, "noise", at_least=0)
        X = validate.generator(rng, "rng").standard_normal((validate.integer(n, "n"), self.d))
        X = torch.as_tensor(X).to(self.U)
        y = self(X)
        if noise:
            y = y + torch.as_tensor(rng.choice([-noise, noise], n)).to(y)
        return _equal(X, y)

    def stratified(self, n: int, rng: np.random.Generator) -> Sample:
        r"""n points to test on, without noise: hidden coordinates spread evenly over a wider Gaussian, weighted back to $N(0, I_r)$.

        A high power of a Gaussian has its mean square in its tails. Plain points see them rarely, and the mean of $(f^*)^2$ over
        2000 of them is off by tens of per cent; here it is off by less than one.
        """
        ranks = np.tile(np.arange(validate.integer(n, "n"))[:, None], (1, self.r))
        cube = (validate.generator(rng, "rng").permuted(ranks, axis=0) + rng.random((n, self.r))) / n
        Z = torch.as_tensor(SPREAD * ndtri(np.clip(cube, 1e-12, 1 - 1e-12))).to(self.U)
        weights = torch.exp(-Z.square().sum(dim=1) * (1 - SPREAD**-2) / 2)
        X = torch.as_tensor(rng.standard_normal((n, self.d))).to(self.U)
        X = X + (Z - X @ self.U) @ self.U.T
        return Sample(X, self.latent(Z), weights / weights.sum())


def mixture(p: int) -> dict[tuple[int, ...], float]:
    r"""The terms of $\frac12\mathrm{He}_2(z)+\mathrm{He}_p(z)/\sqrt{2\,p!}$, the target of the paper's experiments; p is at least 3."""
    return {(2,): math.sqrt(0.5), (validate.integer(p, "p", at_least=3),): math.sqrt(0.5)}


EXAMPLES = {
    1: mixture(4),
    2: {(1, 1): math.sqrt(1 / 2), (3, 0): math.sqrt(1 / 2)},
    3: {(2, 0, 0): 1 / 6**0.5, (0, 2, 0): 1 / 6**0.5, (0, 0, 2): -1 / 6**0.5, (1, 1, 1): math.sqrt(1 / 2)},
}


def relu_coefficients(degree: int, bias: float = 0.0) -> Tensor:
    r"""$c_k = \mathbb{E}[\mathrm{ReLU}(z+b)\mathrm{He}_k(z)]$ for $k = 0, \dots$, `degree`, for $z \sim N(0, 1)$.

    $c_0 = \varphi(b)+b\,\Phi(b)$, $c_1 = \Phi(b)$ and $c_k = \mathrm{He}_{k-2}(-b)\,\varphi(b)$, with the density $\varphi$ and the distribution
    function $\Phi$ of $z$. For $b = 0$ all odd $c_k$ from $c_3$ on are zero.
    """
    degree, bias = validate.integer(degree, "degree", at_least=0), validate.real(bias, "bias")
    density = math.exp(-bias * bias / 2) / math.sqrt(2 * math.pi)
    mass = math.erfc(-bias / math.sqrt(2)) / 2
    he = [1.0, -bias]
    for k in range(1, degree):
        he.append(-bias * he[k] - k * he[k - 1])
    c = [density + bias * mass, mass, *(density * value for value in he)]
    return torch.tensor(c[: degree + 1], dtype=torch.float64)


def _directions(target: LatentPolynomial, W: Any) -> tuple[Tensor, Tensor]:
    r"""The unit vectors $\bar w = w/\|w\|$ and their hidden coordinates $s = U^\top\bar w$."""
    W = validate.as_tensor(W, "W", 2).to(target.U)
    if W.shape[1] != target.d:
        raise ValueError(f"W must have {target.d} columns, got {W.shape[1]}")
    length = W.norm(dim=1, keepdim=True)
    if (length == 0).any():
        raise ValueError("W must not have a row of zeros: it has no direction")
    return W / length, W / length @ target.U


def population_gradient(target: LatentPolynomial, W: Any, bias: float = 0.0) -> Tensor:
    r"""$\mathbb{E}_x[f^*(x)\,x\,\mathbf 1\{\bar w\cdot x+b \ge 0\}]$ for each row $w$ of W, shape (m, d), by quadrature in the r hidden coordinates.

    Write $\bar w = Us+\tau v$ with a unit vector $v \perp S^*$. Given $z = U^\top x$ the indicator is 1 with probability $\Phi((s\cdot z+b)/\tau)$, so

    $$U\,\mathbb{E}_z\bigl[g(z)\,z\,\Phi(\tfrac{s\cdot z+b}\tau)\bigr]+v\,\mathbb{E}_z\bigl[g(z)\,\varphi(\tfrac{s\cdot z+b}\tau)\bigr].$$

    Along $s$ the rule is `hermite.rule`, across it the integrand is a polynomial and the rule of Gauss and Hermite exact. For $\tau < 0.1$,
    that is, for rows almost in $S^*$, the integrand is too steep for the rule and this raises; `gradient_terms` has no such limit.
    """
    bias = validate.real(bias, "bias")
    unit, S = _directions(target, W)
    m, r = S.shape
    length = S.norm(dim=1, keepdim=True)
    tau = (1 - length.square()).clamp_min(0).sqrt()
    if (tau < 0.1).any():
        raise ValueError("W must not have a row almost in the hidden subspace: use gradient_terms")
    frame = torch.linalg.qr(torch.cat([S[:, :, None], torch.eye(r).to(S).expand(m, r, r)], dim=2))[0]
    backwards = (frame[:, :, 0] * S).sum(dim=1, keepdim=True) < 0
    along = torch.where(backwards, -frame[:, :, 0], frame[:, :, 0])
    t, omega_t = (part.to(S) for part in hermite.rule())
    across, omega_across = (part.to(S) for part in hermite.grid(r - 1, target.degree + 1))
    Z = t[None, :, None, None] * along[:, None, None, :] + (across @ frame[:, :, 1:].mT)[:, None, :, :]
    g = omega_t[:, None] * omega_across * target.latent(Z)
    threshold = (length * t + bias) / tau
    inside = torch.einsum("mt,mtk,mtkr->mr", torch.special.ndtr(threshold), g, Z)
    density = torch.exp(-threshold.square() / 2) / math.sqrt(2 * math.pi)
    outside = torch.einsum("mt,mtk->m", density, g)
    return inside @ target.U.T + (outside[:, None] / tau) * (unit - S @ target.U.T)


def gradient_terms(target: LatentPolynomial, W: Any, bias: float = 0.0) -> Tensor:
    r"""The terms of the Hermite series of `population_gradient`, shape (p + 1, m, d); their sum over $k = 0, \dots, p$ is exact.

    $\frac1{k!}\bigl[c_{k+1}C_{k+1}(\bar w^{\otimes k})+c_{k+2}\,\bar w\,C_k(\bar w^{\otimes k})\bigr]$ with $C_k = \mathbb{E}[\nabla^kf^*]$, which is
    $c_{k+1}U\nabla G_{k+1}(s)+c_{k+2}\,\bar w\,G_k(s)$ in terms of `LatentPolynomial.smoothed`. S0, equation (1), summed to p.
    """
    unit, S = _directions(target, W)
    p = target.degree
    G, slope = target.smoothed(S)
    c = relu_coefficients(p + 2, bias)
    terms = [c[k + 2] * unit * G[k][:, None] for k in range(p + 1)]
    for k in range(p):
        terms[k] = terms[k] + c[k + 1] * slope[k + 1] @ target.U.T
    return torch.stack(terms)


def initialise(
    m: int, d: int, rng: np.random.Generator, device: str | torch.device = "cpu"
) -> tuple[Tensor, Tensor]:
    r"""$a$ (m,) and $W$ (m, d): signs $a_j = \pm1$, $w_j \sim N(0, I/d)$, and $a_{j+m/2} = -a_j$, $w_{j+m/2} = w_j$, so that $f_{\theta_0} = 0$."""
    if validate.integer(m, "m") % 2:
        raise ValueError(f"m must be even, got {m}")
    validate.generator(rng, "rng")
    a = torch.as_tensor(rng.choice([-1.0, 1.0], m // 2), device=device)
    W = torch.as_tensor(rng.standard_normal((m // 2, validate.integer(d, "d"))) / math.sqrt(d), device=device)
    return torch.cat([a, -a]), torch.cat([W, W])


def _data(X: Any, y: Any, *others: Any) -> tuple[Tensor, Tensor]:
    X = validate.as_tensor(X, "X", 2, beside=(y, *others))
    y = validate.as_tensor(y, "y", 1).to(X)
    validate.same_length(X, "X", y, "y")
    return X, y


def preprocess(X: Any, y: Any) -> tuple[Tensor, Tensor, Tensor]:
    r"""$\alpha = \frac1n\sum_iy_i$, $\beta = \frac1n\sum_iy_ix_i$ and the labels $y_i-\alpha-\beta\cdot x_i$."""
    X, y = _data(X, y)
    alpha, beta = y.mean(), X.T @ y / len(y)
    return alpha, beta, y - alpha - X @ beta


def first_step(
    a: Any, W: Any, X: Any, y: Any, step: float, decay: float | None = None, b: Any = 0.0
) -> Tensor:
    r"""$W^{(1)} = W-\eta_1[\nabla_W\mathcal L+\lambda_1W]$ at a network whose output is zero, shape (m, d).

    $\mathcal L = \frac1n\sum_i(f(x_i)-y_i)^2$ and $f = 0$, so $\nabla_{w_j}\mathcal L = -\frac{2a_j}n\sum_iy_i\,x_i\,\mathbf 1\{w_j\cdot x_i+b_j \ge 0\}$.

    Parameters
    ----------
    a, W
        (m,) and (m, d), the start.
    X, y
        (n, d) and (n,), inputs and preprocessed labels.
    step
        $\eta_1$.
    decay
        $\lambda_1$. By default $1/\eta_1$: the start is forgotten and $W^{(1)} = -\eta_1\nabla_W\mathcal L$.
    b
        Biases, a number or (m,). Algorithm 1 has none here.
    """
    X, y = _data(X, y, a, W)
    a, W, b = (
        validate.as_tensor(a, "a", 1).to(X),
        validate.as_tensor(W, "W", 2).to(X),
        validate.as_tensor(b, "b").to(X),
    )
    validate.same_length(a, "a", W, "W")
    if W.shape[1] != X.shape[1] or b.shape not in ((), a.shape):
        raise ValueError(
            f"W and b must go with {X.shape[1]} columns of X, got {tuple(W.shape)} and {tuple(b.shape)}"
        )
    step = validate.real(step, "step", above=0)
    decay = 1 / step if decay is None else validate.real(decay, "decay", at_least=0)
    gradient = torch.zeros_like(W)
    for rows in range(0, len(y), BLOCK):
        X_rows, y_rows = X[rows : rows + BLOCK], y[rows : rows + BLOCK]
        gradient += ((X_rows @ W.T + b >= 0) * y_rows[:, None]).T @ X_rows
    return (1 - step * decay) * W + step * (2 / len(y)) * a[:, None] * gradient


@dataclass(frozen=True, eq=False)
class TwoLayer:
    r"""$x \mapsto \alpha+\beta\cdot x+a^\top\mathrm{ReLU}(Wx+b)$, and the $\lambda$ its head was fitted with."""

    W: Tensor
    b: Tensor
    a: Tensor
    alpha: Tensor
    beta: Tensor
    ridge: float

    def features(self, X: Any) -> Tensor:
        r"""$\mathrm{ReLU}(Wx+b)$, shape (n, m)."""
        X = validate.as_tensor(X, "X", 2).to(self.W)
        if X.shape[1] != self.W.shape[1]:
            raise ValueError(f"X must have {self.W.shape[1]} columns, got {X.shape[1]}")
        return torch.relu(X @ self.W.T + self.b)

    def __call__(self, X: Any) -> Tensor:
        """The outputs at the rows of X, shape (n,)."""
        hidden = self.features(X)
        return self.alpha + validate.as_tensor(X, "X", 2).to(self.W) @ self.beta + hidden @ self.a


def fit_head(
    network: TwoLayer, X: Any, y: Any, validation: Sample, ridges: Sequence[float] = RIDGES
) -> TwoLayer:
    r"""The same first layer with a new head: ridge regression of y on the features, and $\alpha, \beta$ as they are.

    $a$ is the limit of $a \leftarrow a-\eta[\nabla_a\mathcal L+\lambda a]$. One eigendecomposition gives it for all `ridges` $\lambda$; the one with the
    least risk on `validation` stays.
    """
    X, y = _data(X, y)
    grid = validate.as_tensor(ridges, "ridges", 1)
    heads = linalg.feature_ridge(network.features(X), y, grid / 2)
    linear = network.alpha + validation.X.to(network.W) @ network.beta
    best = int(validation.risk(linear[:, None] + network.features(validation.X) @ heads).argmin())
    return replace(network, a=heads[:, best], ridge=grid[best].item())


def fixed_features(
    X: Any,
    y: Any,
    validation: Sample,
    rng: np.random.Generator,
    *,
    width: int = 1000,
    ridges: Sequence[float] = RIDGES,
) -> TwoLayer:
    r"""Random features: $w_j \sim N(0, I/d)$ and $b_j \sim N(0, 1)$ stay as drawn, only the head is fitted. Arguments as in `algorithm1`."""
    X = validate.as_tensor(X, "X", 2, beside=(y,))
    d, width = X.shape[1], validate.integer(width, "width")
    W = torch.as_tensor(validate.generator(rng, "rng").standard_normal((width, d)) / math.sqrt(d)).to(X)
    b = torch.as_tensor(rng.standard_normal(width)).to(X)
    zero = torch.zeros_like(X[0])
    return fit_head(TwoLayer(W, b, torch.zeros_like(b), zero[0], zero, math.nan), X, y, validation, ridges)


def algorithm1(
    X: Any,
    y: Any,
    validation: Sample,
    rng: np.random.Generator,
    *,
    width: int = 500,
    step: float | None = None,
    ridges: Sequence[float] = RIDGES,
) -> TwoLayer:
    r"""Algorithm 1 of Damian, Lee and Soltanolkotabi (2022), line by line.

    Parameters
    ----------
    X, y
        (n, d) inputs and (n,) labels.
    validation
        What chooses $\lambda$.
    rng
        Generator of the first weights and of the biases.
    width
        m, even.
    step
        $\eta_1$; $\sqrt d/2$ unless given.
    ridges
        The $\lambda$ to choose from.
    """
    X, y = _data(X, y)
    d = X.shape[1]
    step = math.sqrt(d) / 2 if step is None else validate.real(step, "step", above=0)
    a, W = (part.to(X) for part in initialise(width, d, rng))
    alpha, beta, residual = preprocess(X, y)
    W = first_step(a, W, X, residual, step)
    b = torch.as_tensor(rng.standard_normal(width)).to(X)
    return fit_head(TwoLayer(W, b, a, alpha, beta, math.nan), X, residual, validation, ridges)


def alignment(W: Any, U: Any) -> float:
    r"""$\|WU\|_F^2/\|W\|_F^2$, the share of the squared weights that lies in the span of the orthonormal columns of U."""
    W = validate.as_tensor(W, "W", 2)
    U = validate.as_tensor(U, "U", 2).to(W)
    if W.shape[1] != len(U):
        raise ValueError(f"W must have as many columns as U has rows, {len(U)}, got {W.shape[1]}")
    if not W.any():
        raise ValueError("W must not be zero")
    return ((W @ U).square().sum() / W.square().sum()).item()


def expected_alignment(target: LatentPolynomial, n: Any, W: Any, noise: float = 0.0) -> np.ndarray:
    r"""What `alignment` should be after `first_step` on n preprocessed samples, from the weights W; n is a number or several.

    Preprocessing takes the degrees 0 and 1, with squared norms $\ell_0$ and $\ell_1$, out of $f^*$; let $y$ be the rest with its noise. The mean
    of the gradient is that of the rest, `gradient_terms`. Its fluctuation has, for each neuron, the covariance of
    $\frac1n[y(\frac12\mathrm{sgn}(w\cdot x)x-\bar w/\sqrt{2\pi})-\frac12(\text{low degrees})\,x]$ up to terms of size $d/n$, since $\beta$ removes half of
    the indicator. So the alignment is about

    $$\frac{\|\Pi^*\text{mean}\|^2+\frac1{4n}(\mathbb{E}[y^2|U^\top x|^2]+\ell_0r+\ell_1(r+1))}{\|\text{mean}\|^2+\frac1{4n}(\mathbb{E}[y^2|x|^2]+\ell_0d+\ell_1(d+1))-\frac1{2\pi n}\mathbb{E}[y^2]},$$

    with squared norms averaged over the neurons. It is meant for $n$ of several $d^2$; with fewer samples a few large labels decide. Without low
    degrees and for large d this is $1/(1+\frac\pi2\,\mathbb{E}[y^2]\,d^2/(n\|H\|_F^2))$.
    """
    n, noise = validate.as_tensor(n, "n", (0, 1)), validate.real(noise, "noise", at_least=0)
    if (n < 1).any():
        raise ValueError(f"n must be at least 1, got {n.min().item():g}")
    if target.degree < 2:
        raise ValueError("target must have degree two or more: preprocessing leaves nothing of a linear one")
    rest = target.part(range(2, target.degree + 1))
    mean = gradient_terms(rest, W).sum(dim=0)
    Z, omega = (part.to(rest.U) for part in hermite.grid(rest.r, 2 * rest.degree + 2))
    square = omega * (rest.latent(Z).square() + noise**2)
    y2, y2z2 = square.sum(), square @ Z.square().sum(dim=1)
    low = [sum(g * g for k, g in target.terms.items() if sum(k) == degree) for degree in (0, 1)]
    signal, total = ((part.square().sum() / len(mean)) for part in (mean @ rest.U, mean))
    inside = (y2z2 + low[0] * rest.r + low[1] * (rest.r + 1)) / 4
    outside = (y2 + low[0] + low[1]) * (rest.d - rest.r) / 4 - y2 / (2 * math.pi)
    n = n.to(rest.U)
    return ((signal + inside / n) / (total + (inside + outside) / n)).cpu().numpy()


def learned(predictions: Any, test: Sample, component: Any) -> float:
    r"""The share of a component that the predictions contain, $\mathbb{E}[\hat ff_k]/\mathbb{E}[f_k^2]$: 1 if it is learned, 0 if it is missing."""
    component = validate.as_tensor(component, "component", 1).to(test.y)
    return (
        test.mean(validate.as_tensor(predictions, "predictions", 1).to(component) * component)
        / test.mean(component.square())
    ).item()


def capped(y: Any, cap: float = 3.0) -> Tensor:
    r"""$\min(y^2, \text{cap})$ less its mean: a label whose average Hessian is not zero."""
    square = validate.as_tensor(y, "y", 1).square().clamp(max=validate.real(cap, "cap", above=0))
    return square - square.mean()


def trial(
    d: int,
    n: int,
    rng: np.random.Generator,
    *,
    p: int = 4,
    kernel: Callable[..., Tensor] | None = None,
    points: int = 2048,
    device: str | torch.device = "cpu",
) -> np.ndarray:
    r"""One run of the sample-complexity experiment on `mixture(p)`: rows Algorithm 1, random features, kernel; columns risk, share of $h_2$, of $h_p$.

    Algorithm 1 keeps a fifth of the n samples to choose $\lambda$. The other two train on all of them and have $\lambda$ chosen on the test set,
    which is in their favour. Without `kernel` there are two rows.
    """
    target = LatentPolynomial.draw(d, mixture(p), rng, device)
    test, sample = target.stratified(points, rng), target.sample(n, rng)
    train, kept = sample.split(len(sample.y) * 4 // 5)
    outputs = [
        algorithm1(train.X, train.y, kept, rng)(test.X),
        fixed_features(sample.X, sample.y, test, rng)(test.X),
    ]
    if kernel is not None:
        outputs.append(kernel_predictions(kernel, sample.X, sample.y, test))
    parts = [target.part([k])(test.X) for k in (2, p)]
    return np.array([[test.risk(f).item(), *(learned(f, test, part) for part in parts)] for f in outputs])


def kernel_predictions(
    kernel: Callable[..., Tensor], X: Any, y: Any, test: Sample, ridges: Sequence[float] = (1e-6, 1e-4, 1e-3)
) -> Tensor:
    r"""Kernel ridge regression at the test points, in float32; of all `ridges`, times n and the mean of $k(x, x)$, and of zero, what has least risk there."""
    X, y = (part.float() for part in _data(X, y))
    K, K_test = kernel(X), kernel(test.X.float(), X)
    unit = len(y) * K.diagonal().mean().item()
    outputs = [K_test @ linalg.cholesky_solve(K, y, ridge * unit) for ridge in ridges]
    outputs.append(torch.zeros_like(outputs[0]))
    return outputs[int(torch.stack([test.risk(f) for f in outputs]).argmin())]


def transfer(
    d: int,
    n: int,
    sizes: Sequence[int],
    rng: np.random.Generator,
    *,
    p: int = 3,
    width: int = 500,
    points: int = 1024,
    device: str | torch.device = "cpu",
) -> np.ndarray:
    r"""One run of the transfer experiment: risks on $h_p(u\cdot x)$ after training a head on N samples, for each N of `sizes`.

    The first layer took its step on n samples of `mixture(p)`; for n = 0 it is random. $\lambda$ is chosen on the test set.
    """
    sizes = [validate.integer(N, "sizes") for N in sizes]
    source = LatentPolynomial.draw(d, mixture(p), rng, device)
    target = LatentPolynomial(source.U, {(p,): 1.0})
    if validate.integer(n, "n", at_least=0):
        a, W = initialise(width, d, rng, device)
        sample = source.sample(n, rng)
        W = first_step(a, W, sample.X, preprocess(sample.X, sample.y)[2], math.sqrt(d) / 2)
    else:
        W = torch.as_tensor(rng.standard_normal((width, d)) / math.sqrt(d), device=device)
    b, zero = torch.as_tensor(rng.standard_normal(width)).to(W), torch.zeros_like(W[0])
    network = TwoLayer(W, b, torch.zeros_like(b), zero[0], zero, math.nan)
    test, fresh = target.stratified(points, rng), target.sample(max(sizes), rng)
    heads = [fit_head(network, fresh.X[:N], fresh.y[:N], test) for N in sizes]
    return np.array([test.risk(head(test.X)).item() for head in heads])


def step_alignment(
    d: int,
    n: int,
    terms: Mapping[tuple[int, ...], float],
    rng: np.random.Generator,
    *,
    width: int = 400,
    noise: float = 0.0,
    label: Callable[[Tensor], Tensor] | None = None,
    device: str | torch.device = "cpu",
) -> float:
    """`alignment` after the first step on n samples of the polynomial with these terms; `label` transforms the labels before anything else."""
    target = LatentPolynomial.draw(d, terms, rng, device)
    a, W = initialise(width, d, rng, device)
    sample = target.sample(n, rng, noise)
    y = sample.y if label is None else label(sample.y)
    return alignment(first_step(a, W, sample.X, preprocess(sample.X, y)[2], 1.0), target.U)
