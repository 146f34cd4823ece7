r"""What one gradient step finds.

Its population gradient, by quadrature and as a Hermite series, and its alignment after n samples.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from featlearn import hermite, validate
from featlearn.damian.target import LARGEST_NOISE, LatentPolynomial
from featlearn.validate import Array


def relu_coefficients(degree: int, bias: float = 0.0) -> Tensor:
    r"""$c_k = \mathbb{E}[\mathrm{ReLU}(z+b)\mathrm{He}_k(z)]$ for $k = 0, \dots$, `degree`, for $z
    \sim N(0, 1)$.

    $c_0 = \varphi(b)+b\,\Phi(b)$, $c_1 = \Phi(b)$ and $c_k = \mathrm{He}_{k-2}(-b)\,\varphi(b)$,
    with the density $\varphi$ and the distribution function $\Phi$ of $z$. For $b = 0$ all odd
    $c_k$ from $c_3$ on are zero.
    """
    degree = validate.integer(degree, "degree", at_least=0)
    return _relu_coefficients(degree, validate.real(bias, "bias"), "degree")


def _relu_coefficients(degree: int, bias: float, name: str) -> Tensor:
    density = math.exp(-bias * bias / 2) / math.sqrt(2 * math.pi)
    mass = math.erfc(-bias / math.sqrt(2)) / 2
    he = [1.0, -bias]
    for k in range(1, degree - 2):
        he.append(-bias * he[k] - k * he[k - 1])
        if not math.isfinite(he[-1]):
            raise ValueError(f"{name} must be at most {k + 2}, got {degree}: c_k leaves float64")
    c = [density + bias * mass, mass, *(density * value for value in he)]
    return torch.tensor(c[: degree + 1], dtype=torch.float64)


def _directions(target: LatentPolynomial, W: Array) -> tuple[Tensor, Tensor]:
    r"""The unit vectors $\bar w = w/\|w\|$ and their hidden coordinates $s = U^\top\bar w$."""
    validate.instance(target, "target", LatentPolynomial)
    W = validate.as_tensor(W, "W", 2).to(target.U)
    validate.columns(W, "W", target.d)
    length = W.norm(dim=1, keepdim=True)
    if not (length.isfinite() & (length > 0)).all():
        raise ValueError("W must not have a row of zeros, nor one whose length overflows")
    return W / length, W / length @ target.U


def population_gradient(target: LatentPolynomial, W: Array, bias: float = 0.0) -> Tensor:
    r"""$\mathbb{E}_x[f^*(x)\,x\,\mathbf 1\{\bar w\cdot x+b \ge 0\}]$ for each row $w$ of W, shape
    (m, d), by quadrature in the r hidden coordinates.

    Write $\bar w = Us+\tau v$ with a unit vector $v \perp S^*$. Given $z = U^\top x$ the indicator
    is 1 with probability $\Phi((s\cdot z+b)/\tau)$, so

    $$U\,\mathbb{E}_z\bigl[g(z)\,z\,\Phi(\tfrac{s\cdot
    z+b}\tau)\bigr]+v\,\mathbb{E}_z\bigl[g(z)\,\varphi(\tfrac{s\cdot z+b}\tau)\bigr].$$

    Along $s$ the rule is `hermite.rule`, across it the integrand is a polynomial and the rule of
    Gauss and Hermite exact. For $\tau < 0.1$, that is, for rows almost in $S^*$, the integrand is
    too steep for the rule and this raises; `gradient_terms` has no such limit.
    """
    bias = validate.real(bias, "bias")
    unit, S = _directions(target, W)
    m, r = S.shape
    length = S.norm(dim=1, keepdim=True)
    tau = (1 - length.square()).clamp_min(0).sqrt()
    if (tau < 0.1).any():
        raise ValueError("W must not have a row almost in the hidden subspace: use gradient_terms")
    frame = torch.linalg.qr(torch.cat([S[:, :, None], torch.eye(r).to(S).expand(m, r, r)], dim=2))[
        0
    ]
    backwards = (frame[:, :, 0] * S).sum(dim=1, keepdim=True) < 0
    along = torch.where(backwards, -frame[:, :, 0], frame[:, :, 0])
    t, omega_t = (part.to(S) for part in hermite.rule())
    per_axis = (target.degree + 1) // 2 + 1
    validate.size(m * len(t) * float(per_axis) ** (r - 1) * r, "W and target")
    across, omega_across = (part.to(S) for part in hermite.grid(r - 1, target.degree + 1))
    Z = (
        t[None, :, None, None] * along[:, None, None, :]
        + (across @ frame[:, :, 1:].mT)[:, None, :, :]
    )
    g = omega_t[:, None] * omega_across * target.latent(Z)
    threshold = (length * t + bias) / tau
    inside = torch.einsum("mt,mtk,mtkr->mr", torch.special.ndtr(threshold), g, Z)
    density = torch.exp(-threshold.square() / 2) / math.sqrt(2 * math.pi)
    outside = torch.einsum("mt,mtk->m", density, g)
    return inside @ target.U.T + (outside[:, None] / tau) * (unit - S @ target.U.T)


def gradient_terms(target: LatentPolynomial, W: Array, bias: float = 0.0) -> Tensor:
    r"""The terms of the Hermite series of `population_gradient`, shape (p + 1, m, d); their sum
    over $k = 0, \dots, p$ is exact.

    $\frac1{k!}\bigl[c_{k+1}C_{k+1}(\bar w^{\otimes k})+c_{k+2}\,\bar w\,C_k(\bar w^{\otimes
    k})\bigr]$ with $C_k = \mathbb{E}[\nabla^kf^*]$, which is $c_{k+1}U\nabla
    G_{k+1}(s)+c_{k+2}\,\bar w\,G_k(s)$ in terms of `LatentPolynomial.smoothed`. S0, equation (1),
    summed to p.
    """
    unit, S = _directions(target, W)
    p = target.degree
    G, slope = target.smoothed(S)
    c = _relu_coefficients(p + 2, validate.real(bias, "bias"), "target's degree + 2")
    terms = [c[k + 2] * unit * G[k][:, None] for k in range(p + 1)]
    for k in range(p):
        terms[k] = terms[k] + c[k + 1] * slope[k + 1] @ target.U.T
    return torch.stack(terms)


def expected_alignment(
    target: LatentPolynomial, n: Array, W: Array, noise_std: float = 0.0
) -> np.ndarray:
    r"""What `alignment` should be after `first_step` on n preprocessed samples, from the weights W;
    n is a number or several.

    Preprocessing takes the degrees 0 and 1, with squared norms $\ell_0$ and $\ell_1$, out of $f^*$;
    let $y$ be the rest with its noise. The mean of the gradient is that of the rest,
    `gradient_terms`. Its fluctuation has, for each neuron, the covariance of
    $\frac1n[y(\frac12\mathrm{sgn}(w\cdot x)x-\bar w/\sqrt{2\pi})-\frac12(\text{low degrees})\,x]$
    up to terms of size $d/n$, since $\beta$ removes half of the indicator. So the alignment is
    about

    $$\frac{\|\Pi^*\text{mean}\|^2+\frac1{4n}(\mathbb{E}[y^2|U^\top
    x|^2]+\ell_0r+\ell_1(r+1))}{\|\text{mean}\|^2+\frac1{4n}(\mathbb{E}[y^2|x|^2]+\ell_0d+\ell_1(d+1))-\frac1{2\pi
    n}\mathbb{E}[y^2]},$$

    with squared norms averaged over the neurons. It is meant for $n$ of several $d^2$; with fewer
    samples a few large labels decide. Without low degrees and for large d this is
    $1/(1+\frac\pi2\,\mathbb{E}[y^2]\,d^2/(n\|H\|_F^2))$.
    """
    validate.instance(target, "target", LatentPolynomial)
    n = validate.as_tensor(n, "n", (0, 1))
    noise_std = validate.real(noise_std, "noise_std", at_least=0)
    if noise_std > LARGEST_NOISE:
        raise ValueError(f"noise_std must be at most {LARGEST_NOISE:g}, got {noise_std:g}")
    if (n < 1).any():
        raise ValueError(f"n must be at least 1, got {n.min().item():g}")
    if target.degree < 2:
        raise ValueError(
            "target must have degree two or more: preprocessing leaves nothing of a linear one"
        )
    rest = target.part(range(2, target.degree + 1))
    mean = gradient_terms(rest, W).sum(dim=0)
    Z, omega = (part.to(rest.U) for part in hermite.grid(rest.r, 2 * rest.degree + 2))
    square = omega * (rest.latent(Z).square() + noise_std**2)
    y2, y2z2 = square.sum(), square @ Z.square().sum(dim=1)
    low = [sum(g * g for k, g in target.terms.items() if sum(k) == degree) for degree in (0, 1)]
    signal, total = ((part.square().sum() / len(mean)) for part in (mean @ rest.U, mean))
    inside = (y2z2 + low[0] * rest.r + low[1] * (rest.r + 1)) / 4
    outside = (y2 + low[0] + low[1]) * (rest.d - rest.r) / 4 - y2 / (2 * math.pi)
    n = n.to(rest.U)
    return ((signal + inside / n) / (total + (inside + outside) / n)).cpu().numpy()
