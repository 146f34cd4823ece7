"""Claims: each rule holds where it should, fails where it should, and leaves a faithful record."""

import json
import re
from configparser import ConfigParser
from dataclasses import asdict
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from featlearn.notebook import claims
from featlearn.notebook.claims import Claim, PowerLaw, crossing, fit_power_law

ABOUT = {"id": "ker-x.y", "says": "a sentence", "rival": ("a hundred", 100.0)}


@pytest.fixture(autouse=True)
def page(monkeypatch):
    """A page without claims."""
    monkeypatch.setattr(claims, "_recorded", {})


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: claims.prediction(
                "Ker", "s", predicted=1, measured=1, tol=0, rival=("a hundred", 100.0)
            ),
            ValueError,
            "id must look like",
        ),
        (
            lambda: claims.prediction(
                "ker-x", "", predicted=1, measured=1, tol=0, rival=("a hundred", 100.0)
            ),
            ValueError,
            "says must not be empty",
        ),
        (
            lambda: claims.prediction(
                "ker-x", "s", predicted=1, measured=[], tol=0, rival=("a hundred", 100.0)
            ),
            ValueError,
            "measured must not be empty",
        ),
        (
            lambda: claims.prediction(
                "ker-x", "s", predicted=1, measured=1, tol=-1, rival=("a hundred", 100.0)
            ),
            ValueError,
            "tol must be at least 0",
        ),
        (
            lambda: claims.prediction(
                "ker-x", "s", predicted=float("inf"), measured=1, tol=1, rival=("a hundred", 100.0)
            ),
            ValueError,
            "predicted must be finite",
        ),
        (
            lambda: claims.prediction("ker-x", "s", measured=1, rival=("a hundred", 100.0)),
            ValueError,
            "either predicted and tol or one of at_most",
        ),
        (
            lambda: claims.prediction(
                "ker-x", "s", measured=[1, 2, 3], at_most=[1, 2], rival=("a hundred", 100.0)
            ),
            ValueError,
            "measured must have the shape of at_most",
        ),
        (
            lambda: claims.prediction(
                "ker-x", "s", measured=[1, 2], at_most=[1, 0], rival=("a hundred", 100.0)
            ),
            ValueError,
            "must be positive",
        ),
        (
            lambda: claims.not_shown("ker-x", "s", reason=" "),
            ValueError,
            "reason must not be empty",
        ),
        (
            lambda: fit_power_law([1, 2], np.ones((3, 2))),
            ValueError,
            "x must be a vector with at least three",
        ),
        (lambda: fit_power_law([1, 2, 3], np.ones((2, 3))), ValueError, "y must have shape"),
        (lambda: fit_power_law([1, 2, 3], -np.ones((3, 3))), ValueError, "y must be positive"),
        (
            lambda: fit_power_law([1, 2, 3], np.ones((3, 3)), average="mode"),
            ValueError,
            "average must be one of",
        ),
        (
            lambda: fit_power_law([1, 2, 3], np.ones((3, 3)), level=1.5),
            ValueError,
            "level must lie between 0 and 1",
        ),
    ],
)
def test_errors_name_the_argument(call, error, message):
    with pytest.raises(error, match=message):
        call()


@given(st.floats(-3, 3), st.floats(0.1, 10), st.sampled_from(["mean", "median", "geometric"]))
def test_exact_power_law_is_recovered(exponent, prefactor, average):
    x = np.array([1.0, 2, 5, 10])
    fit = fit_power_law(x, np.tile(prefactor * x**exponent, (4, 1)), average=average)
    assert fit.exponent == pytest.approx(exponent, abs=1e-9)
    assert fit.interval == pytest.approx((exponent, exponent), abs=1e-9)
    assert fit(x) == pytest.approx(prefactor * x**exponent)


def test_slope_agrees_with_polyfit_and_interval_covers():
    rng, x, hits = np.random.default_rng(0), np.geomspace(10, 1000, 6), 0
    for _ in range(200):
        y = x**-0.5 * np.exp(0.3 * rng.standard_normal((12, 6)))
        fit = fit_power_law(x, y, average="geometric", resamples=400)
        assert fit.exponent == pytest.approx(np.polyfit(np.log(x), np.log(y).mean(0), 1)[0])
        hits += fit.interval[0] <= -0.5 <= fit.interval[1]
    assert 0.85 <= hits / 200 <= 0.99


def test_each_average_is_taken_before_the_logarithm():
    """With an even number of seeds, of very different size, no two orders of operations agree."""
    x = np.array([1.0, 10, 100])
    y = np.array([[1.0, 2, 3], [2, 90, 4], [700, 3, 5], [9000, 1000, 6]])
    averages = {
        "mean": y.mean(axis=0),
        "median": np.median(y, axis=0),
        "geometric": np.exp(np.log(y).mean(axis=0)),
    }
    for average, curve in averages.items():
        fit = fit_power_law(x, y, average=average)
        slope, start = np.polyfit(np.log(x), np.log(curve), 1)
        assert fit.exponent == pytest.approx(slope)
        assert fit.prefactor == pytest.approx(np.exp(start))


def test_crossing_is_interpolated_in_the_logarithm():
    x = np.array([1.0, 10, 100, 1000])
    found = crossing(
        x,
        [[1.0, 0.75, 0.25, 0.0], [4.0, 2.0, 1.0, 0.0], [0.1, 0.1, 0.1, 0.1], [1.0, 1.0, 1.0, 1.0]],
        0.5,
    )
    np.testing.assert_allclose(found[:2], [10**1.5, 10**2.5])
    assert np.isnan(found[2:]).all(), (
        "a row that starts below or never reaches the level shows no crossing"
    )


def test_crossing_at_the_level_itself_and_across_a_hole():
    found = crossing([1.0, 10, 100], [[0.5, 0.5, 0.0], [1.0, 0.7, 0.5], [1.0, np.nan, 0.1]], 0.5)
    assert found[0] == pytest.approx(10)
    assert np.isnan(found[1:]).all()
    with pytest.raises(ValueError, match="y must have shape"):
        crossing([1.0, 2.0, 3.0], np.ones((2, 4)), 0.5)


@pytest.mark.parametrize(
    "x", [[1.0, 1.0, 2.0], [0.0, 1.0, 2.0], [3.0, 2.0, 1.0], [1.0, np.nan, 2.0]]
)
def test_crossing_needs_an_increasing_axis(x):
    with pytest.raises(ValueError, match="x must be a vector of positive, increasing numbers"):
        crossing(x, np.ones((2, 3)), 0.5)


def test_records_survive_the_notebook():
    kept = [
        Claim("ker-x", "s", "1", "r", "holds", 1.0, (0.5, 1.5)),
        Claim("ker-y", "s", "", "", "open", reason="w"),
    ]
    outputs = [{"metadata": {claims.RECORD: asdict(claim)}} for claim in kept]
    notebook = json.loads(json.dumps({"cells": [{"outputs": outputs}, {"source": "text"}]}))
    assert claims.read(notebook) == kept


def test_a_record_of_an_older_run_has_no_seconds():
    record = asdict(Claim("ker-x", "s", "1", "r", "holds", 1.0, seconds=0.25))
    assert (
        claims.read({"cells": [{"outputs": [{"metadata": {claims.RECORD: record}}]}]})[0].seconds
        == 0.25
    )
    del record["seconds"]
    old = claims.read({"cells": [{"outputs": [{"metadata": {claims.RECORD: record}}]}]})
    assert old == [Claim("ker-x", "s", "1", "r", "holds", 1.0)]


def test_seconds_run_from_claim_to_claim(monkeypatch):
    """Import at 10, claims at 12.004, 12.5 and, after one that was refused, at 13.5."""
    now = iter([12.004, 12.5, 13.5])
    monkeypatch.setattr(claims, "_last_settled", 10.0)
    monkeypatch.setattr(claims, "time", SimpleNamespace(perf_counter=lambda: next(now)))
    first = claims.prediction(**ABOUT, measured=1, at_most=1)
    second = claims.not_shown("ker-x", "s", reason="why")
    with pytest.raises(ValueError, match="id must look like"):
        claims.prediction("Ker", "s", measured=1, at_most=1, rival=("a hundred", 100.0))
    assert claims.prediction(**ABOUT, measured=2, at_most=1).verdict == "fails"
    assert (first.seconds, second.seconds) == (2.0, 0.5)
    assert claims._last_settled == 13.5


def test_seconds_are_not_shown_with_the_claim():
    quick = Claim("ker-x", "s", "1", "r", "holds", 1.0, seconds=0.25)
    slow = Claim("ker-x", "s", "1", "r", "holds", 1.0, seconds=80.5)
    assert quick.line() == slow.line()


def test_records_are_read_from_outputs_and_nothing_else():
    claim = Claim("ker-x", "s", "1", "r", "holds", 1.0)
    with_record = {"outputs": [{"metadata": {claims.RECORD: asdict(claim)}}]}
    without = {"source": "claims.prediction('ker-z')", "outputs": []}
    assert claims.read({"cells": [with_record, without]}) == [claim]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: claims.prediction(**ABOUT, predicted=1, measured=None, tol=0),
            "measured must be an",
        ),
        (
            lambda: claims.prediction(
                **ABOUT, measured=np.ma.masked_equal([1.0, 9.0], 9.0), at_most=2
            ),
            "measured must not be a masked array",
        ),
        (
            lambda: claims.prediction(**ABOUT, measured=torch.ones(2, device="meta"), at_most=2),
            "measured must be a dense tensor",
        ),
        (lambda: claims.prediction(**ABOUT, measured=1, at_most="two"), "at_most must be an array"),
        (lambda: claims.read(None), "notebook must be a Mapping"),
        (lambda: fit_power_law("abc", np.ones((3, 3))), "x must be an array of numbers"),
        (lambda: fit_power_law([1, 2, 3], None), "y must be an array of numbers"),
        (lambda: fit_power_law([1, 2, 3], np.ones((3, 3)), resamples=10**9), "resamples must be"),
        (lambda: crossing([1, 2], [["a", "b"]], 1.0), "y must be an array of numbers"),
        (lambda: PowerLaw(1.0, None, 1.0), "interval must be an array of numbers"),
        (lambda: PowerLaw(1.0, (0.0, 1.0), 0.0), "prefactor must be greater than 0"),
    ],
)
def test_bad_calls_are_refused_at_the_door(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()


def test_measured_digits_are_masked_and_nothing_else():
    config = ConfigParser()
    config.read(Path(__file__).parents[1] / "sanitize.cfg", encoding="utf-8")
    mask = lambda text: re.sub(config["measured"]["regex"], config["measured"]["replace"], text)  # noqa: E731
    here = Claim("ker-x", "s", "1", "each within 0.1 of 1", "holds", 1.0321, (0.98, 1.1))
    there = Claim("ker-x", "s", "1", "each within 0.1 of 1", "holds", -1.5e-16, (-2e-10, 3e5))
    alone = Claim("ker-x", "s", "1", "each within 0.1 of 1", "holds", 12.0)
    assert mask(here.line()) == mask(there.line()) == mask(alone.line())
    other_rule = Claim("ker-x", "s", "1", "each within 0.2 of 1", "holds", 1.0321, (0.98, 1.1))
    assert mask(other_rule.line()) != mask(here.line())
    assert mask("rank 35, error ≈0.12, done") == mask("rank 35, error ≈3e-10, done")
    assert mask("rank 35") != mask("rank 36")
    assert mask("error ≈nan") != mask("error ≈0.1")
    assert mask("error ≈ 0.1 [0.1, 0.2]") != mask("error ≈ 0.1 [see above]")


@pytest.mark.parametrize(
    "call",
    [
        {"measured": float("inf"), "at_least": 1},
        {"measured": -float("inf"), "at_most": 1},
        {"predicted": 1, "measured": [1, float("nan")], "tol": 9},
    ],
)
def test_nothing_infinite_holds(call):
    assert claims.prediction(**ABOUT, **call).verdict == "fails"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: claims.prediction(**ABOUT, measured=5, at_most=float("inf")),
            "at_most must be finite",
        ),
        (
            lambda: claims.prediction(**ABOUT, measured=np.ones((2, 3)), at_most=np.ones((3, 2))),
            "measured must have the shape of at_most",
        ),
        (
            lambda: claims.prediction(**ABOUT, predicted=1, measured=np.array([1 + 5j]), tol=0),
            "measured must be real",
        ),
        (
            lambda: claims.prediction(**ABOUT, predicted=1, measured="1", tol=0),
            "measured must be an array of numbers",
        ),
        (lambda: PowerLaw(float("nan"), (0.9, 1.1), 1.0), "exponent must be finite"),
        (lambda: PowerLaw(1.0, (5.0, -5.0), 1.0), "interval must be a pair in order"),
    ],
)
def test_hostile_measurements_are_refused(call, message):
    with pytest.raises((ValueError, TypeError), match=message):
        call()
