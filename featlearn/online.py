r"""Chapter 8: how long online gradient descent takes to find a direction. Source: Ben Arous,
Gheissari and Jagannath (2021).

One neuron $\sigma(w\cdot x)$ with $\|w\| = 1$ learns $y = g(u\cdot x)$ from a stream of samples: $w
\leftarrow w+\eta\,y\,\sigma'(w\cdot x)(x-(w\cdot x)w)$, then back to the sphere. All that matters
is the overlap $m = u\cdot w$, and it is a Markov chain of its own: `escape_times` runs it at a cost
that does not depend on d.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from featlearn import hermite, validate

Function = Callable[[np.ndarray], np.ndarray]


def escape_times(
    g: Function,
    slope: Function,
    d: Any,
    learning_rate: Any,
    rng: np.random.Generator,
    *,
    limit: Any,
    level: float = 0.5,
    two_sided: bool = False,
) -> np.ndarray:
    r"""The step at which the overlap first reaches `level`, for each run; infinite where it does
    not within `limit` steps.

    With $z_1 = w\cdot x$, the coordinate $z_2$ of x along the part of u orthogonal to w, and $q
    \sim \chi^2_{d-2}$ for the others,

    $$m' = \frac{m+v\sqrt{1-m^2}\,z_2}{\sqrt{1+v^2(z_2^2+q)}}, \qquad v =
    \eta\,g(mz_1+\sqrt{1-m^2}\,z_2)\,\sigma'(z_1).$$

    Parameters
    ----------
    g, slope
        The label as a function of $u\cdot x$, and $\sigma'$, acting entry by entry on arrays.
    d, learning_rate
        (R,) the dimension, at least 3, and the learning rate $\eta$ of each run.
    rng
        Generator of the start, uniform on the sphere, and of the samples.
    limit
        The most steps: a number, or one for each run.
    level
        The overlap to reach, by a step; the start does not count.
    two_sided
        Whether $-$ `level` counts too, as it should where $g$ is even.
    """
    d = np.asarray(d)
    if d.ndim != 1 or not d.size or d.dtype.kind not in "iu" or (d < 3).any():
        raise ValueError("d must be a vector of integers, at least 3 each")
    step, limit = _each(learning_rate, "learning_rate", d), _each(limit, "limit", d)
    if (limit < 1).any():
        raise ValueError("limit must be at least 1")
    if not 0 < validate.real(level, "level") < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    m = validate.generator(rng, "rng").standard_normal(len(d))
    m = m / np.sqrt(m * m + rng.chisquare(d - 1))
    times, running = np.full(len(d), np.inf), np.arange(len(d))
    for t in range(1, int(limit.max()) + 1):
        z1, z2 = rng.standard_normal((2, len(m)))
        across = np.sqrt(np.maximum(1 - m * m, 0))
        v = step * g(m * z1 + across * z2) * slope(z1)
        m = (m + v * across * z2) / np.sqrt(1 + v * v * (z2 * z2 + rng.chisquare(d - 2)))
        if np.isnan(m).any():
            raise ValueError("g, slope and learning_rate must give finite overlaps, got NaN")
        arrived = (np.abs(m) if two_sided else m) >= level
        over = arrived | (t >= limit)
        if over.any():
            times[running[arrived]] = t
            m, d, step, limit, running = (part[~over] for part in (m, d, step, limit, running))
            if not len(m):
                break
    return times


def _each(values: Any, name: str, d: np.ndarray) -> np.ndarray:
    """Positive, finite numbers, one for each run."""
    values = np.asarray(values, dtype=float)
    if values.shape not in ((), d.shape):
        raise ValueError(
            f"{name} must be a number or one for each of {len(d)} runs, got shape {values.shape}"
        )
    if not (np.all(values > 0) and np.all(np.isfinite(values))):
        raise ValueError(f"{name} must be positive and finite")
    return np.broadcast_to(values, d.shape)


def drift(g: Function, slope: Function, m: Any, delta: float, degree: int) -> np.ndarray:
    r"""$dm/d\tau$ in the limit of large d with step $\eta = \delta/d$ and time $\tau$ = steps/d, at
    the overlaps m.

    $\delta\sqrt{1-m^2}\,\mathbb{E}[y\,\sigma'(z_1)z_2]-\frac12\delta^2m\,\mathbb{E}[y^2\sigma'(z_1)^2]$:
    the gradient pulls, the noise in all other directions dilutes.

    Parameters
    ----------
    g, slope
        As in `escape_times`; polynomials.
    m
        Overlaps between -1 and 1.
    delta
        $\delta = \eta d$.
    degree
        The degree of $g$; that of `slope` must not be larger.
    """
    m = np.asarray(m, dtype=float)
    if not (np.abs(m) <= 1).all():
        raise ValueError("m must lie between -1 and 1")
    delta = validate.real(delta, "delta", above=0)
    nodes, weights = (
        part.numpy() for part in hermite.grid(2, 4 * validate.integer(degree, "degree"))
    )
    z1, z2 = nodes.T
    across = np.sqrt(1 - m * m)[..., None]
    y, s = g(m[..., None] * z1 + across * z2), slope(z1)
    pull = (across * y * s * z2) @ weights
    return delta * pull - 0.5 * delta**2 * m * ((y * s) ** 2 @ weights)


def travel_time(rate: Function, start: float, level: float = 0.5, *, panels: int = 400) -> float:
    r"""$\int_{\text{start}}^{\text{level}}dm/\text{rate}(m)$, by the midpoint rule in $\log m$.

    How long the flow takes, in units of $\tau$.
    """
    start, level = validate.real(start, "start", above=0), validate.real(level, "level", above=0)
    if start >= level:
        raise ValueError(f"start must lie below level, got {start} and {level}")
    width = math.log(level / start) / validate.integer(panels, "panels")
    m = start * np.exp((np.arange(panels) + 0.5) * width)
    speed = np.broadcast_to(np.asarray(rate(m), dtype=float), m.shape)
    if not (speed > 0).all():
        raise ValueError(
            "rate must be positive between start and level: the flow does not get there"
        )
    return float((m / speed).sum() * width)
