"""Online gradient descent on the sphere.

The chain against the full algorithm, the limit against closed forms.
"""

import math

import numpy as np
import pytest

from featlearn import online, stream


def h2(z):
    return (z * z - 1) / 2**0.5


def slope2(z):
    return 2**0.5 * z


def h1(z):
    return z


def full_times(g, slope, d, step, runs, limit, rng):
    """Escape times of the algorithm in d dimensions; u is the first unit vector."""
    w = rng.standard_normal((runs, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    times = np.full(runs, np.inf)
    for t in range(1, limit + 1):
        x = rng.standard_normal((runs, d))
        z = (w * x).sum(axis=1, keepdims=True)
        w = w + step * g(x[:, :1]) * slope(z) * (x - z * w)
        w /= np.linalg.norm(w, axis=1, keepdims=True)
        times[(np.abs(w[:, 0]) >= 0.5) & np.isinf(times)] = t
    return times


def test_escape_times_are_those_of_the_full_algorithm():
    rng = stream("test/online")
    full = full_times(h2, slope2, 10, 0.03, 1500, 150, rng)
    chain = online.escape_times(h2, slope2, np.full(1500, 10), 0.03, rng, limit=150, two_sided=True)
    for share in (0.25, 0.5, 0.75):
        t = np.quantile(full, share)
        assert abs((chain <= t).mean() - (full <= t).mean()) < 4.5 * math.sqrt(0.25 * 2 / 1500)


@pytest.mark.parametrize(("step", "d"), [(1e-9, 3), (10.0, 3), (10.0, 4)])
def test_one_step_in_low_dimension_is_that_of_the_full_algorithm(step, d):
    """Where every degree of freedom counts: the law of the start, and of one large step."""
    rng, runs = stream(f"test/online/one-step/{step:g}/{d}"), 20_000
    full = np.isfinite(full_times(h2, slope2, d, step, runs, 1, rng)).mean()
    chain = online.escape_times(
        h2, slope2, np.full(runs, d), step, rng, limit=1, level=0.5, two_sided=True
    )
    assert abs(np.isfinite(chain).mean() - full) < 4.5 * math.sqrt(0.25 * 2 / runs)


def test_a_large_level_takes_longer_and_a_limit_stops():
    d = np.full(200, 30)
    first, second = (
        online.escape_times(
            h1, np.ones_like, d, 0.5 / d, stream("test/online/level"), limit=400, level=level
        )
        for level in (0.2, 0.6)
    )
    assert np.median(first) < np.median(second)
    stopped = online.escape_times(
        h1, np.ones_like, d, 1e-9, stream("test/online/stop"), limit=3, level=0.9
    )
    assert np.isinf(stopped).all()


def test_own_limits_and_steps_for_each_run():
    d, limit = np.array([20] * 50 + [40] * 50), np.array([1] * 50 + [400] * 50)
    times = online.escape_times(
        h1, np.ones_like, d, 0.5 / d, stream("test/online/own"), limit=limit
    )
    assert np.isin(times[:50], [1, np.inf]).all() and np.isinf(times[:50]).any()
    assert np.isfinite(times[50:]).all()


def test_same_stream_same_times():
    d = np.full(20, 15)
    runs = [
        online.escape_times(h2, slope2, d, 0.02, stream("test/online/same"), limit=200)
        for _ in range(2)
    ]
    assert np.array_equal(*runs)


def test_drift_closed_forms():
    """Exponent 1: y = z, σ' = 1. Exponent 2: pull 2m(1 − m²) and B(m) = E[(u²−1)²w²] = 2 + 8m²."""
    m = np.linspace(-0.9, 0.9, 7)
    assert np.allclose(online.drift(h1, np.ones_like, m, 0.4, 1), 0.4 * (1 - m * m) - 0.08 * m)
    wanted = 0.4 * 2 * m * (1 - m * m) - 0.08 * m * (2 + 8 * m * m)
    assert np.allclose(online.drift(h2, slope2, m, 0.4, 2), wanted)


def test_travel_time_of_exponential_growth():
    assert online.travel_time(lambda m: 3 * m, 0.01, 0.5) == pytest.approx(math.log(50) / 3)


def test_travel_time_is_the_midpoint_rule():
    """dm/(1 - m²) takes artanh(m): the error falls like panels⁻², and is far below the left rule's.

    With 50 panels the left rule is off by about half a panel's difference of the integrand in log
    m, which is 1 %, the midpoint rule by less than 0.01 %.
    """

    def rate(m):
        return 1 - m * m

    exact = math.atanh(0.5) - math.atanh(0.05)
    errors = [
        online.travel_time(rate, 0.05, 0.5, panels=panels) / exact - 1 for panels in (50, 100)
    ]
    assert max(map(abs, errors)) < 4e-4
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.05)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rng: online.escape_times(h1, h1, [2], 0.1, rng, limit=5), "d must hold integers"),
        (lambda rng: online.escape_times(h1, h1, 10, 0.1, rng, limit=5), "d must be 1-dimensional"),
        (
            lambda rng: online.escape_times(h1, h1, [10], 0.0, rng, limit=5),
            "learning_rate must be positive",
        ),
        (
            lambda rng: online.escape_times(h1, h1, [10], 0.1, rng, limit=5, level=1.0),
            "level must lie",
        ),
        (lambda rng: online.escape_times(h1, h1, [], 0.1, rng, limit=5), "d must not be empty"),
        (
            lambda rng: online.escape_times(h1, h1, [10], [0.1, 0.2], rng, limit=5),
            "learning_rate must be a number or",
        ),
        (
            lambda rng: online.escape_times(h1, h1, [10], 0.1, rng, limit=[5, 5]),
            "limit must be a number or",
        ),
        (
            lambda rng: online.escape_times(h1, h1, [10], 0.1, rng, limit=np.inf),
            "limit must be finite",
        ),
        (
            lambda rng: online.escape_times(h1, h1, [10], 0.1, rng, limit=0.5),
            "limit must be at least 1",
        ),
        (
            lambda rng: online.escape_times(lambda z: z * np.nan, h1, [10], 0.1, rng, limit=5),
            "g, slope and learning_rate",
        ),
        (lambda rng: online.drift(h1, h1, np.nan, 0.1, 1), "m must be finite"),
        (lambda rng: online.travel_time(lambda m: np.nan, 0.1, 0.5), r"rate\(m\) must be finite"),
        (lambda rng: online.drift(h1, h1, 1.5, 0.1, 1), "m must lie"),
        (lambda rng: online.drift(h1, h1, 0.5, 0.0, 1), "delta must be"),
        (lambda rng: online.travel_time(lambda m: m, 0.6, 0.5), "start must lie below"),
        (lambda rng: online.travel_time(lambda m: 0.1 - m, 0.01, 0.5), "rate must be positive"),
        (lambda rng: online.travel_time(h1, 0.1, 0.5, panels=10**10), "panels must be at most"),
        (lambda rng: online.travel_time(lambda m: m[:2], 0.1, 0.5), "rate must act entry by entry"),
        (lambda rng: online.drift(h1, h1, 0.5, 0.1, 5000), "degree must be at most 100"),
        (lambda rng: online.drift(lambda z: 1.0, h1, 0.5, 0.1, 1), "g must act entry by entry"),
        (
            lambda rng: online.escape_times(lambda z: 1.0, h1, [10], 0.1, rng, limit=5),
            "g must act entry by entry",
        ),
        (
            lambda rng: online.escape_times(h1, lambda z: 1.0, [10], 0.1, rng, limit=5),
            "slope must act entry by entry",
        ),
        (
            lambda rng: online.escape_times(h1, h1, [10], 0.1, rng, limit=10**10),
            "limit must be at least 1 and at most 1000000000",
        ),
        (
            lambda rng: online.escape_times(h1, h1, [10.5], 0.1, rng, limit=5),
            "d must hold integers",
        ),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call(stream("test/online/errors"))
