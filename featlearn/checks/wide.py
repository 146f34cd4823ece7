"""Checks of the exercises of chapter 3."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.polynomial.hermite_e import hermegauss
from numpy.polynomial.legendre import leggauss

from featlearn.checks import Answer, Wrong, agree, check, close

LEGENDRE, HERMITE = leggauss(20), hermegauss(64)
ARRAYS = (
    "it fails on arrays. Use numpy's functions, which act on every entry; those of math take one "
    "number."
)


def _one_layer(rho: np.ndarray) -> np.ndarray:
    """2 E[max(z, 0) max(z′, 0)] for standard Gaussians of correlation ρ, as an integral over the
    angle of (z, z′).
    """
    gamma = 2 * np.arcsin(np.sqrt(np.clip((1 - rho) / 2, 0, 1)))[..., None]
    half = (np.pi - gamma) / 2
    beta = gamma / 2 + half * LEGENDRE[0]  # where both are positive
    return 2 / np.pi * (half * LEGENDRE[1] * np.cos(beta) * np.cos(beta - gamma)).sum(axis=-1)


def _layers(
    rho: np.ndarray, depth: int, layer: Callable[[np.ndarray], np.ndarray] = _one_layer
) -> np.ndarray:
    for _ in range(depth):
        rho = layer(np.clip(rho, -1, 1))
    return rho


@check("relu_correlation(rho, depth)")
def relu_correlation(answer: Answer, rng: np.random.Generator) -> None:
    """The correlation after some ReLU layers against an integral over the angle, layer by layer."""
    depth = int(rng.integers(2, 6))
    rho = np.array([[-0.8, -0.4, -0.1], [0.3, 0.6, 0.85]]) + rng.uniform(-0.08, 0.08, (2, 3))
    truth, once = _layers(rho, depth), _one_layer(rho)
    slips = {
        "equal inputs do not keep the correlation 1: a factor 2 is lost. How large is σ_w²?": (
            lambda r: _one_layer(r) / 2
        ),
        "this is the map of the step function, the derivative of ReLU.": lambda r: (
            1 - np.arccos(r) / np.pi
        ),
        "in the formula the angle stands where π minus the angle should.": (
            lambda r: (np.sqrt(1 - r**2) + np.arccos(r) * r) / np.pi
        ),
        "sine and cosine are exchanged.": (
            lambda r: (r + (np.pi - np.arccos(r)) * np.sqrt(1 - r**2)) / np.pi
        ),
        "rho is a correlation, the cosine of the angle, not the angle.": (
            lambda r: (np.sin(r) + (np.pi - r) * np.cos(r)) / np.pi
        ),
        "you took the mean of the activations away. Σ keeps it: the next weights have mean zero, "
        "that is enough.": (lambda r: (np.pi * _one_layer(r) - 1) / (np.pi - 1)),
    }
    mistakes = {
        "it goes through one layer too few.": _layers(rho, depth - 1),
        "it goes through one layer too many.": _layers(rho, depth + 1),
        "it goes through one layer, whatever the depth.": once,
        "nothing has changed: this is rho itself.": rho,
        "it takes one layer to a power. Each layer must act on what the layer before "
        "returned.": once**depth,
        "the last layer returns half the correlation: its dual was not "
        "divided by a variance.": truth / 2,
        "you return the angle. The exercise asks for its cosine.": np.arccos(truth),
        "you return one minus the correlation.": 1 - truth,
        **{message: _layers(rho, depth, layer) for message, layer in slips.items()},
    }
    value = answer(rho, depth, shape=rho.shape, raised={TypeError: ARRAYS})
    agree(
        value,
        truth,
        mistakes,
        "the values are wrong. By hand: one layer sends the correlation 0 to 1/π.",
    )
    if not close(answer(rho, 0, shape=rho.shape), rho):
        raise Wrong("after no layer at all, depth 0, the correlation is rho itself.")
    if not close(answer(rho, 1, shape=rho.shape), once):
        raise Wrong("it is wrong for a single layer.")
    number = round(float(rho[0, 0]), 2)
    plain = "it must take a plain number, too, and return one."
    agree(
        answer(number, depth, shape=(), raised={Exception: plain}),
        _layers(np.array(number), depth),
        {},
        "it is right for arrays and wrong for a plain number.",
    )
    whole, integers = (
        np.array([-1, 0, 1]),
        ("it is wrong for integers. Do you write fractions into an array of integers?"),
    )
    agree(answer(whole, depth, shape=(3,)), _layers(whole, depth), {}, integers)
    agree(answer(-1, depth, shape=()), _layers(np.array(-1.0), depth), {}, integers)
    answer(np.zeros((0, 3)), depth, shape=(0, 3))
    deep = "it is wrong for hundreds of layers. Does it stop too early?"
    agree(answer(rho, 300, shape=rho.shape), _layers(rho, 300), {}, deep, 1e-7)
    edges = np.array([1.0, 1 + 4e-16, -1.0, -1 - 4e-16, 0.0])
    outside = (
        "rounding can push a correlation just outside [−1, 1], where neither arccos nor √(1 − ρ²) "
        "has a value."
    )
    value = answer(edges, depth, shape=(5,), nan=outside)
    agree(value, _layers(edges, depth), {}, "it is wrong for equal, opposite or orthogonal inputs.")
    if abs(value[0] - 1) > 1e-7:
        raise Wrong("equal inputs must stay equal. Clip at ±1 and not further inside.")


def _expected_sines(
    q_x: np.ndarray | float, rho: np.ndarray | float, q_y: np.ndarray | float
) -> np.ndarray:
    """E[sin(u) sin(v)] by Gauss–Hermite quadrature in two variables, for variances below 4."""
    z, weight = HERMITE[0], HERMITE[1] / HERMITE[1].sum()
    q_x, rho, q_y = (np.asarray(a)[..., None, None] for a in (q_x, rho, q_y))
    u = np.sqrt(q_x) * z[:, None]
    v = np.sqrt(q_y) * (rho * z[:, None] + np.sqrt(1 - rho**2) * z)
    return np.einsum("...ij,i,j->...", np.sin(u) * np.sin(v), weight, weight)


@check("sine_dual(q_x, q_xy, q_y)")
def sine_dual(answer: Answer, rng: np.random.Generator) -> None:
    """E[sin(u) sin(v)] against Gauss–Hermite quadrature.

    At large variances against that of u − v alone.
    """
    q_x, q_y = rng.uniform(0.3, 2.5, (4, 1)), rng.uniform(0.3, 2.5, (1, 3))
    rho = rng.choice([-1, 1], (4, 3)) * rng.uniform(0.2, 0.9, (4, 3))
    q_xy = rho * np.sqrt(q_x * q_y)
    fade = np.exp(-(q_x + q_y) / 2)
    truth = _expected_sines(q_x, rho, q_y)
    mistakes = {
        "this is the dual of the cosine. Which sign does cos(u + v) have in the product of two "
        "sines?": (fade * np.cosh(q_xy)),
        "it is twice the dual. Look at the factor in front of the two cosines.": 2 * truth,
        "it is half the dual: a factor ½ is there twice.": truth / 2,
        "the sign is wrong everywhere. For u = v the dual is the mean of a square.": -truth,
        "in E cos g = exp(−Var(g)/2) the half is lost.": fade**2 * np.sinh(2 * q_xy),
        "the variance of u − v holds the covariance twice.": fade * np.sinh(q_xy / 2),
        "only one of the two cosines is there: it does not vanish for independent u and v.": (
            fade * np.exp(q_xy) / 2
        ),
        "q_x and q_y are variances. You seem to square them, as if they were standard "
        "deviations.": (np.exp(-(q_x**2 + q_y**2) / 2) * np.sinh(q_xy)),
        "the correlation stands where the covariance should.": fade * np.sinh(rho),
        "this is right only to first order in q_xy.": fade * q_xy,
        "the arguments are in another order: the covariance is the second, q_x and q_y are first "
        "and third.": (np.exp(-(q_x + q_xy) / 2) * np.sinh(q_y)),
        "the exponent has the wrong sign: the mean of a cosine cannot grow with the variance.": (
            np.sinh(q_xy) / fade
        ),
        "q_x and q_y need not be equal, and only q_x is used.": np.exp(-q_x) * np.sinh(q_xy),
        "q_x and q_y need not be equal, and only q_y is used.": np.exp(-q_y) * np.sinh(q_xy),
        "u and v are not independent: the mean of the product is not the product of the means.": 0
        * truth,
    }
    value = answer(q_x, q_xy, q_y, shape=(4, 3), raised={TypeError: ARRAYS})
    agree(
        value,
        truth,
        mistakes,
        "the values are wrong. For small variances the dual is close to q_xy.",
    )
    x, y = (round(float(q), 2) for q in rng.uniform(0.5, 2.5, 2))
    xy = round(float(rng.uniform(0.3, 0.9)) * float(np.sqrt(x * y)), 2)
    agree(
        answer(
            x,
            xy,
            y,
            shape=(),
            raised={Exception: "it must take plain numbers, too, and return one."},
        ),
        _expected_sines(x, xy / np.sqrt(x * y), y),
        {},
        "it is right for arrays and wrong for plain numbers.",
    )
    agree(
        answer(np.array([1, 2]), np.array([1, -1]), 2, shape=(2,)),
        _expected_sines(np.array([1, 2]), np.array([0.5**0.5, -0.5]), 2.0),
        {},
        "it is wrong for integers. Do you write fractions into an array of integers?",
    )
    wide, narrow = np.array([6.0, 5.0, 3.5, 9.0]), np.array([0.9, -0.7, 1e-4, -1e-5])
    agree(
        answer(wide, narrow * wide, wide, shape=(4,)) / _expected_sines(wide, narrow, wide),
        np.ones(4),
        {},
        "it is wrong for a large variance, with a large covariance or a very small one.",
    )
    q, sign = rng.uniform(0.5, 2.5, 5), np.array([1.0, -1.0, 0.0, 0.0, 0.0])
    first, second = q * [1, 1, 0, 1, 0], q * [1, 1, 1, 0, 0]
    agree(
        answer(
            first, sign * q, second, shape=(5,), nan="it returned NaN where a variance is zero."
        ),
        _expected_sines(first, sign, second),
        {},
        "it is wrong where u = v, u = −v, or a variance is zero.",
    )
    near, apart = rng.uniform(700, 1500, 4), np.append(0.0, rng.uniform(0.3, 3, 3))
    close_by = np.cos(np.sqrt(apart)[:, None] * HERMITE[0]) @ HERMITE[1] / HERMITE[1].sum() / 2
    huge = (
        "at variances of several hundred it returned NaN or infinity: a tiny number times a huge "
        "one."
    )
    large, covariance = np.append(near, near), near - apart / 2
    agree(
        answer(large, np.append(covariance, -covariance), large, shape=(8,), nan=huge),
        np.append(close_by, -close_by),
        {},
        "it is wrong at variances of several hundred. For u = v the mean of sin² tends to ½.",
        tolerance=2e-3,
    )
