"""Fits over seeds: a power law with an interval of its exponent, and where curves cross a level."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from featlearn import validate
from featlearn.seeding import stream
from featlearn.validate import Array

AVERAGES = ("mean", "median", "geometric")


@dataclass(frozen=True)
class PowerLaw:
    """y ≈ prefactor · x^exponent, with a bootstrap interval of the exponent over seeds."""

    exponent: float
    interval: tuple[float, float]
    prefactor: float

    def __post_init__(self) -> None:
        validate.real(self.exponent, "exponent")
        validate.real(self.prefactor, "prefactor", above=0)
        interval = validate.as_tensor(self.interval, "interval", 1).tolist()
        if len(interval) != 2 or interval[0] > interval[1]:
            raise ValueError(f"interval must be a pair in order, got {self.interval}")

    def __call__(self, x: Array) -> np.ndarray:
        """The fitted line at `x`, which is positive."""
        x = _array(x, "x")
        if not np.all(x > 0) or not np.all(np.isfinite(x)):
            raise ValueError("x must be positive and finite")
        return self.prefactor * x**self.exponent


def _array(values: Array, name: str, ndim: int | None = None) -> np.ndarray:
    """`values` as an array of float64, which may hold NaN and infinity."""
    return validate.as_tensor(values, name, ndim, finite=False).detach().double().cpu().numpy()


def fit_power_law(
    x: Array,
    y: Array,
    *,
    average: str = "mean",
    level: float = 0.95,
    resamples: int = 2000,
) -> PowerLaw:
    r"""Least squares of $\log y$ on $\log x$, with an interval from resampling whole seeds.

    Parameters
    ----------
    x
        (k,) positive abscissae, at least three different ones.
    y
        (S, k) positive measurements, a row for each seed, at least three seeds.
    average : {"mean", "median", "geometric"}
        How the seeds are averaged before the logarithm is taken.
    level
        Coverage of the bootstrap percentile interval.
    resamples
        Number of bootstrap samples of the S rows.
    """
    x, y = _array(x, "x"), _array(y, "y", 2)
    validate.one_of(average, "average", AVERAGES)
    resamples = validate.integer(resamples, "resamples", at_least=100, at_most=10**6)
    if not 0 < validate.real(level, "level") < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    if x.ndim != 1 or len(np.unique(x)) < 3:
        raise ValueError(
            f"x must be a vector with at least three different values, got shape {x.shape}"
        )
    if y.shape[1] != len(x) or y.shape[0] < 3:
        raise ValueError(f"y must have shape (seeds >= 3, {len(x)}), got {y.shape}")
    for name, values in (("x", x), ("y", y)):
        if not (np.all(np.isfinite(values)) and np.all(values > 0)):
            raise ValueError(f"{name} must be positive and finite")
    log_x = np.log(x) - np.log(x).mean()
    draws = stream("claims/bootstrap").integers(len(y), size=(resamples, len(y)))
    draws = np.vstack([np.arange(len(y)), draws])
    if average == "geometric":
        log_y = np.log(y)[draws].mean(axis=1)
    elif average == "mean":
        log_y = np.log(y[draws].mean(axis=1))
    else:
        log_y = np.log(np.median(y[draws], axis=1))
    slopes = log_y @ log_x / (log_x @ log_x)
    low, high = np.quantile(slopes[1:], [(1 - level) / 2, (1 + level) / 2])
    prefactor = math.exp(log_y[0].mean() - slopes[0] * np.log(x).mean())
    return PowerLaw(float(slopes[0]), (float(low), float(high)), prefactor)


def crossing(x: Array, y: Array, level: float) -> np.ndarray:
    r"""Where each row of y first falls below `level`, interpolated between neighbours in $\log x$;
    shape (S,).

    NaN for a row that starts below the level, never reaches it, or has a NaN on the way: then
    nobody knows where it crosses.

    Parameters
    ----------
    x
        (k,) positive, increasing.
    y
        (S, k) curves, a row for each seed.
    level
        The height to cross.
    """
    x, y, level = _array(x, "x"), _array(y, "y", 2), validate.real(level, "level")
    if x.ndim != 1 or not (np.all(np.isfinite(x)) and np.all(x > 0) and np.all(np.diff(x) > 0)):
        raise ValueError("x must be a vector of positive, increasing numbers")
    if y.shape[1] != len(x):
        raise ValueError(f"y must have shape (seeds, {len(x)}), got {y.shape}")
    found = np.full(len(y), np.nan)
    for row, curve in enumerate(y):
        below = np.flatnonzero(~(curve >= level))
        if below.size and below[0] > 0:
            i = below[0]
            share = (curve[i - 1] - level) / (curve[i - 1] - curve[i])
            found[row] = x[i - 1] * (x[i] / x[i - 1]) ** share
    return found
