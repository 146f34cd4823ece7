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

import numpy as np

from featlearn import hermite, validate
from featlearn.validate import Array

Function = Callable[[np.ndarray], np.ndarray]
MOST_STEPS, MOST_PANELS, MOST_DEGREE = 10**9, 10**7, 100


def _array(values: Array, name: str, ndim: int | tuple[int, ...] | None = None) -> np.ndarray:
    """`values` as a float64 array."""
    return validate.as_tensor(values, name, ndim).detach().cpu().double().numpy()


def _entrywise(function: Function, name: str) -> Function:
    """`function`, if it maps an array to one of its shape."""
    at = np.linspace(-0.5, 0.5, 4)
    shape = np.shape(validate.function(function, name)(at))
    if shape != at.shape:
        raise ValueError(f"{name} must act entry by entry, got shape {shape} at {at.shape}")
    return function


def escape_times(
    g: Function,
    slope: Function,
    d: Array,
    learning_rate: Array,
    rng: np.random.Generator,
    *,
    limit: Array,
    level: float = 0.5,
    two_sided: bool = False,
    passes: int = 1,
) -> np.ndarray:
    r"""The sample at which the overlap first reaches `level`, for each run; infinite where it does
    not within `limit` samples.

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
        Generator of the initialisation, uniform on the sphere, and of the samples.
    limit
        The most samples, up to $10^9$: a number, or one for each run.
    level
        The overlap to reach, by a step; the initialisation does not count.
    two_sided
        Whether $-$ `level` counts too, as it should where $g$ is even.
    passes
        How many steps are taken on each sample before the next one is drawn.
    """
    _entrywise(g, "g")
    _entrywise(slope, "slope")
    dims = _array(d, "d", 1)
    if (dims < 3).any() or (dims % 1 != 0).any():
        raise ValueError("d must hold integers, at least 3 each")
    step, last = _each(learning_rate, "learning_rate", dims), _each(limit, "limit", dims)
    if (last < 1).any() or (last > MOST_STEPS).any():
        raise ValueError(f"limit must be at least 1 and at most {MOST_STEPS}")
    if not 0 < validate.real(level, "level") < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    two_sided = validate.flag(two_sided, "two_sided")
    passes = validate.integer(passes, "passes", at_most=1000)
    m = validate.generator(rng, "rng").standard_normal(len(dims))
    m = m / np.sqrt(m * m + rng.chisquare(dims - 1))
    times, running = np.full(len(dims), np.inf), np.arange(len(dims))
    for t in range(1, int(last.max()) + 1):
        m = _sample(g, slope, m, dims, step, rng, passes)
        if np.isnan(m).any():
            raise ValueError("g, slope and learning_rate must give finite overlaps, got NaN")
        arrived = (np.abs(m) if two_sided else m) >= level
        over = arrived | (t >= last)
        if over.any():
            times[running[arrived]] = t
            on = ~over
            m, dims, step, last, running = m[on], dims[on], step[on], last[on], running[on]
            if not len(m):
                break
    return times


def _sample(
    g: Function,
    slope: Function,
    m: np.ndarray,
    d: np.ndarray,
    learning_rate: np.ndarray,
    rng: np.random.Generator,
    passes: int,
) -> np.ndarray:
    r"""The overlaps after `passes` steps on one fresh sample.

    A step adds $v\,(x-zw)$ to $w$, with $z = w\cdot x$, and returns to the sphere. It changes m and
    z; $u\cdot x$ and $\|x\|^2$ stay.
    """
    z, z2 = rng.standard_normal((2, len(m)))
    along = m * z + np.sqrt(np.maximum(1 - m * m, 0)) * z2  # u·x
    y, square = g(along), z * z + z2 * z2 + rng.chisquare(d - 2)  # ‖x‖²
    for _ in range(passes):
        v, rest = learning_rate * y * slope(z), square - z * z
        length = np.sqrt(1 + v * v * rest)
        m, z = (m + v * (along - m * z)) / length, (z + v * rest) / length
    return m


def _each(values: Array, name: str, d: np.ndarray) -> np.ndarray:
    """Positive, finite numbers, one for each run."""
    values = _array(values, name)
    if values.shape not in ((), d.shape):
        raise ValueError(
            f"{name} must be a number or one for each of {len(d)} runs, got shape {values.shape}"
        )
    if not (values > 0).all():
        raise ValueError(f"{name} must be positive")
    return np.broadcast_to(values, d.shape)


def drift(
    g: Function, slope: Function, m: Array, delta: float, degree: int, *, passes: int = 1
) -> np.ndarray:
    r"""$dm/d\tau$ in the limit of large d with learning rate $\eta = \delta/d$ and time $\tau$ =
    samples/d, at the overlaps m.

    $\delta\sqrt{1-m^2}\,\mathbb{E}[y\,s\,z_2]-\frac12\delta^2m\,\mathbb{E}[y^2s^2]$ with $s =
    \sigma'(z_1)$: the gradient pulls, the noise in all other directions dilutes. With several
    passes over each sample $s$ is the sum of $\sigma'(z)$ over them, where each pass moves $z$ by
    $\delta\,y\,\sigma'(z)$.

    Parameters
    ----------
    g, slope
        As in `escape_times`; polynomials, or as smooth as polynomials of that degree.
    m
        Overlaps between -1 and 1.
    delta
        $\delta = \eta d$.
    degree
        The degree of $g$, at most 100; that of `slope` must not be larger.
    passes
        As in `escape_times`.
    """
    _entrywise(g, "g")
    _entrywise(slope, "slope")
    m = _array(m, "m")
    if not (np.abs(m) <= 1).all():
        raise ValueError("m must lie between -1 and 1")
    delta = validate.real(delta, "delta", above=0)
    degree = validate.integer(degree, "degree", at_most=MOST_DEGREE)
    validate.size(m.size * (2 * degree + 1) ** 2, "m and degree")
    nodes, weights = (part.numpy() for part in hermite.grid(2, 4 * degree))
    z1, z2 = nodes.T
    across = np.sqrt(1 - m * m)[..., None]
    y = g(m[..., None] * z1 + across * z2)
    s = np.zeros_like(y)
    for _ in range(validate.integer(passes, "passes", at_most=1000)):
        s, z1 = s + slope(z1), z1 + delta * y * slope(z1)
    pull = (across * y * s * z2) @ weights
    speed = delta * pull - 0.5 * (delta * delta) * m * ((y * s) ** 2 @ weights)
    if not np.isfinite(speed).all():
        raise ValueError("g, slope and delta must give a finite drift, got NaN or infinity")
    return speed


def travel_time(rate: Function, start: float, level: float = 0.5, *, panels: int = 400) -> float:
    r"""$\int_{\text{start}}^{\text{level}}dm/\text{rate}(m)$, by the midpoint rule in $\log m$.

    How long the flow takes, in units of $\tau$.
    """
    validate.function(rate, "rate")
    start, level = validate.real(start, "start", above=0), validate.real(level, "level", above=0)
    if start >= level or math.isinf(level / start):
        raise ValueError(f"start must lie below level, within 300 digits, got {start} and {level}")
    panels = validate.integer(panels, "panels", at_most=MOST_PANELS)
    width = math.log(level / start) / panels
    m = start * np.exp((np.arange(panels) + 0.5) * width)
    speed = _array(rate(m), "rate(m)")
    if speed.shape not in ((), m.shape):
        raise ValueError(f"rate must act entry by entry, got shape {speed.shape} at {m.shape}")
    if not (speed > 0).all():
        raise ValueError(
            "rate must be positive between start and level: the flow does not get there"
        )
    return float((m / speed).sum() * width)
