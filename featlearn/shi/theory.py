r"""What the theorems say.

Lemma 4 (`good_network`), Lemmas 5 and 6 (`components`, `step_bounds`), and parities for Theorem 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from featlearn import validate
from featlearn.shi.data import Patterns
from featlearn.shi.network import Net
from featlearn.validate import Array

MOST_VALUES, LONGEST = 2**26, 10**4


def good_network(
    model: Patterns, *, dtype: torch.dtype = torch.float64, device: str | torch.device = "cpu"
) -> Net:
    r"""Lemma 4: 3(k+1) neurons, all with $w = \tilde\sigma\sum_{j\in A}M_j/(4k)$, whose output is
    exactly the label of every count.

    $\langle w,x\rangle = (c-k\mu)/(4k)$ at the count c. Three neurons make a hat of width $\delta =
    1/(16k)$ around each count, of height $y_c$.
    """
    k = validate.instance(model, "model", Patterns).k
    validate.size(3 * (k + 1) * model.d, "k and d")
    validate.one_of(dtype, "dtype", validate.PRECISIONS)
    device = validate.device(device)
    centres = (torch.arange(k + 1, dtype=torch.float64) - k * model.presence) / (4 * k)
    delta = 1 / (16 * k)
    b = (-centres[:, None] + delta * torch.tensor([1.0, 0.0, -1.0], dtype=torch.float64)).ravel()
    a = (
        model.labels[:, None] * torch.tensor([1.0, -2.0, 1.0], dtype=torch.float64) / delta
    ).ravel()
    w = model.effective * (math.sqrt(k) * model.sigma / (4 * k))
    return Net(w.to(device, dtype).expand(len(b), -1).clone(), b, a)


@dataclass(frozen=True, eq=False)
class Components:
    r"""`along` (units, D) holds $T_j = \mathbb{E}[y\phi_j\sigma'(z_i)]$ for every dictionary
    element, and $\beta_i = \mathbb{E}\sigma'(z_i^{-A})$ (units,), where $z^{-A}$ leaves A out.
    """

    along: Tensor
    beta: Tensor


def _along(model: Patterns, W: Array) -> Tensor:
    """q = MᵀW, the components of the weights along the dictionary, (units, D) in float64."""
    if validate.instance(model, "model", Patterns).sigma == 0:
        raise ValueError("model must have patterns that vary: σ̃ is zero")
    W = validate.as_tensor(W, "W", 2, like=(model.M,)).to(torch.float64)
    validate.columns(W, "W", model.d)
    return W if model.M is None else W @ model.M.to(W)


def components(model: Patterns, W: Array, b: Array, noise_std: float) -> Components:
    r"""The components of the population step while $yg(x) < 1$ everywhere: $-\nabla_{w_i}L =
    a_i\sum_jT_jM_j$, equation (1) of the proof of Lemma 5.

    $\sigma'$ of the truncated ReLU with noise is the probability that $z = \langle
    w,x\rangle+b+\xi$ lies in (0, 1), and $\mathbb{E}[Y\,\mathbb{1}(0<z<1)] =
    \frac1\pi\int_0^\infty\mathrm{Re}\bigl[\frac{1-e^{-it}}{it}\,\mathbb{E}Ye^{itz}\bigr]dt$. The
    expectation on the right is a product over the independent patterns, times a sum over the $2^k$
    relevant ones. The midpoint rule is exact to rounding: the noise cuts the integral off, and $z$
    is bounded up to the noise, so the rule's copies of the interval (0, 1), $2\pi/h$ apart, can be
    placed out of its reach.

    Parameters
    ----------
    model
        The distribution.
    W, b
        (units, d) and (units,), the neurons.
    noise_std
        $\sigma_\xi > 0$.
    """
    noise_std = validate.real(noise_std, "noise_std", above=0)
    Q = _along(model, W)
    b = validate.as_tensor(b, "b", 1).to(Q)
    validate.same_length(Q, "W", b, "b")
    reach = (Q.abs().sum(1) / model.sigma + b.abs()).max().item() + 1 + 9 * noise_std
    h = 2 * math.pi / reach
    nodes = 9 / noise_std / h
    if nodes * max(model.D, _relevant_patterns(model)) > MOST_VALUES:
        raise ValueError(
            f"noise_std must be larger, or W, b and k = {model.k} smaller, got noise_std = "
            f"{noise_std:g}: they ask for {nodes:.3g} nodes"
        )
    t = h * (torch.arange(math.ceil(9 / (noise_std * h)), dtype=Q.dtype, device=Q.device) + 0.5)
    size = len(t) * max(model.D, 2**model.k)
    T, beta = torch.empty_like(Q), torch.empty_like(b)
    side = max(1, 2**21 // size)
    for rows in (slice(start, start + side) for start in range(0, len(b), side)):
        T[rows], beta[rows] = _characteristic(model, Q[rows], b[rows], noise_std, t, h)
    return Components(T, beta)


def _characteristic(
    model: Patterns, Q: Tensor, b: Tensor, noise_std: float, t: Tensor, h: float
) -> tuple[Tensor, Tensor]:
    """`components` for one block of neurons, by the midpoint rule with the nodes t, spaced by h."""
    inside, outside = list(model.A), model.outside
    phi, probability, y = _relevant_table(model, Q.device)
    wave = torch.exp(1j * (phi @ Q[:, inside].T + b)[:, :, None] * t)
    signed = (probability * y).to(wave.dtype)
    relevant = torch.einsum("pj,put->ujt", signed[:, None] * phi, wave)
    plain = torch.einsum("p,put->ut", signed, wave)
    on, off = (1 - model.p0) / model.sigma, -model.p0 / model.sigma
    up, down = (torch.exp(1j * value * Q[:, outside, None] * t) for value in (on, off))
    factor = model.p0 * up + (1 - model.p0) * down
    tilted = model.p0 * on * up + (1 - model.p0) * off * down
    ones = torch.ones_like(wave[0])[:, None]
    before = torch.cat([ones, factor.cumprod(1)], 1)
    after = torch.cat([factor.flip(1).cumprod(1).flip(1), ones], 1)
    background = before[:, -1]
    kernel = (
        (1 - torch.exp(-1j * t))
        / (1j * t)
        * torch.exp(-(noise_std * t).square() / 2)
        * (h / math.pi)
    )
    T = torch.empty_like(Q)
    T[:, inside] = (relevant * (background * kernel)[:, None]).real.sum(-1)
    T[:, outside] = (before[:, :-1] * after[:, 1:] * tilted * (plain * kernel)[:, None]).real.sum(
        -1
    )
    return T, (torch.exp(1j * b[:, None] * t) * background * kernel).real.sum(-1)


def _relevant_patterns(model: Patterns) -> float:
    """2^k as a float, which does not overflow."""
    return 2.0 ** min(model.k, 1000)


def _relevant_table(model: Patterns, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
    """All 2^k relevant patterns: centred indicators (2^k, k), probabilities and labels (2^k,)."""
    codes, places = torch.arange(2**model.k), torch.arange(model.k - 1, -1, -1)
    bits = ((codes[:, None] >> places) & 1).double()
    count = bits.sum(1).long()
    size = torch.tensor([math.comb(model.k, c) for c in range(model.k + 1)], dtype=torch.float64)
    centred, law = (bits - model.presence) / model.sigma, (model.counts / size)[count]
    return centred.to(device), law.to(device), model.labels[count].to(device)


def step_bounds(model: Patterns, W: Array, noise_std: float) -> tuple[Tensor, Tensor]:
    r"""The error terms of the chapter's form of Lemma 5, with $q = M^\top w$ and $\Lambda =
    1/(\sqrt{2\pi}\,\sigma_\xi)$.

    For $j\in A$ (units, k): $|T_j-\beta\gamma/\tilde\sigma| \le
    \Lambda\,\mathbb{E}\bigl|\phi_j\sum_{l\in A}\phi_lq_l\bigr|$. For $j\notin A$ (units, D - k):
    $|T_j| \le \Lambda\,\sigma_\phi^2\,|q_j|$ with $\sigma_\phi^2 = p_0(1-p_0)/\tilde\sigma^2$, and,
    if the classes are equally likely, $|T_j| \le
    \Lambda_2\,\sigma_\phi^2\,|q_j|\,\mathbb{E}|\sum_{l\in A}\phi_lq_l|$ with $\Lambda_2 =
    2/(\sqrt{2\pi e}\,\sigma_\xi^2)$; the smaller of the two.
    """
    noise_std, Q = validate.real(noise_std, "noise_std", above=0), _along(model, W)
    if _relevant_patterns(model) * (model.k + len(Q)) > 4 * MOST_VALUES:
        raise ValueError(
            f"model must have fewer relevant patterns, or W fewer rows, got k = {model.k} and "
            f"{len(Q)} rows: the sums run over 2^k patterns"
        )
    variance = noise_std * noise_std
    if variance < 1e-300:
        raise ValueError(f"noise_std must be larger, got {noise_std:g}: the bounds overflow")
    Lambda = 1 / (math.sqrt(2 * math.pi) * noise_std)
    Lambda_2 = 2 / (math.sqrt(2 * math.pi * math.e) * variance)
    phi, probability, _ = _relevant_table(model, Q.device)
    reach = (Q[:, list(model.A)] @ phi.T).abs()
    relevant = Lambda * reach @ (probability[:, None] * phi.abs())
    steepness = torch.full_like(Q[:, :1], Lambda)
    if abs(model.balance) < 1e-12:
        steepness = torch.minimum(steepness, Lambda_2 * (reach @ probability)[:, None])
    spread = model.p0 * (1 - model.p0) / model.sigma**2
    return relevant, steepness * spread * Q[:, model.outside].abs()


def walsh(values: Array) -> Tensor:
    r"""$\hat f(S) = \mathbb{E}[f\chi_S]$ for all $2^D$ parities $\chi_S(\phi) = \prod_{j\in
    S}(2\phi_j-1)$ by the fast Walsh-Hadamard transform.

    `values` (2^D, r) holds f at all points; bit j of the row number is $\phi_j$. Bit j of the
    result's row number says whether $j\in S$.
    """
    f = validate.as_tensor(values, "values", 2).clone()
    size = f.shape[0]
    if size & (size - 1):
        raise ValueError(f"values must have a power of two as the number of rows, got {size}")
    width = 1
    while width < size:
        pairs = f.view(size // (2 * width), 2, width, -1)
        f = (
            torch.stack([pairs[:, 1] + pairs[:, 0], pairs[:, 1] - pairs[:, 0]], 1).reshape(size, -1)
            / 2
        )
        width *= 2
    return f


def krawtchouk(D: int, k: int) -> np.ndarray:
    r"""(D+1,) the sum over all $\binom Dk$ parities of size k, at an input with w ones.

    $\sum_i(-1)^{k-i}\binom wi\binom{D-w}{k-i}$, exact integers. With $x = D-w$ zeros it is
    Krawtchouk's polynomial $\mathcal K_k(x)$, and $(D-x)\,\mathcal K_k(x+1) =
    (D-2k)\,\mathcal K_k(x)-x\,\mathcal K_k(x-1)$ from $\mathcal K_k(0) = \binom Dk$.
    """
    D, k = validate.integer(D, "D", at_most=LONGEST), validate.integer(k, "k", at_least=0)
    values = [0, math.comb(D, k)]
    for x in range(D):
        values.append(((D - 2 * k) * values[-1] - x * values[-2]) // (D - x))
    return np.array(values[:0:-1], dtype=object)
