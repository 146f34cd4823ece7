"""Claims that are recorded quietly: rules, rivals, and the table that names all that fail."""

import numpy as np
import pytest
import scipy.stats

from featlearn.notebook import claims
from featlearn.notebook.claims import ClaimFailed, PowerLaw

NAME = ("ker-x.y", "a sentence")
TWICE = ("twice as much", 2.0)


@pytest.fixture(autouse=True)
def page(monkeypatch):
    """A page without claims."""
    monkeypatch.setattr(claims, "_recorded", {})


@pytest.mark.parametrize(
    ("record", "good", "bad"),
    [
        (
            claims.prediction,
            {"predicted": 1, "tol": 0.2, "rival": TWICE, "measured": [0.9, 1.1]},
            {"measured": [1, 1.3]},
        ),
        (
            claims.prediction,
            {"predicted": [1, 10], "tol": 0.1, "rival": ("all one", [1, 1]), "measured": [1, 9.5]},
            {"measured": [1, 8]},
        ),
        (
            claims.prediction,
            {"at_most": 1, "rival": TWICE, "measured": [0.5, 1]},
            {"measured": [0.5, 1.1]},
        ),
        (
            claims.prediction,
            {"at_least": [1, 2], "rival": ("none", [0, 0]), "measured": [1, 3]},
            {"measured": [1, 1.9]},
        ),
        (
            claims.prediction,
            {"predicted": -1, "rival": ("half", -0.5), "measured": PowerLaw(-0.9, (-1.1, -0.8), 1)},
            {"measured": PowerLaw(-0.9, (-0.95, -0.8), 1)},
        ),
        (
            claims.comparison,
            {"smaller": [1, 1.02, 0.98, 1], "larger": [3, 3.05, 2.95, 3], "factor": 2},
            {"factor": 3.2},
        ),
        (claims.identity, {"gap": [1e-12, -1e-12], "tol": 1e-10}, {"gap": [-1e-9]}),
    ],
)
def test_rules_decide_without_a_word(record, good, bad, capsys):
    assert record(*NAME, **good).verdict == "holds"
    assert record(*NAME, **(good | bad)).verdict == "fails"
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    "call",
    [
        lambda: claims.prediction(
            *NAME, predicted=1, tol=2, measured=1.1, rival=("a little more", 1.5)
        ),
        lambda: claims.prediction(*NAME, at_most=3, measured=1, rival=TWICE),
        lambda: claims.prediction(
            *NAME, predicted=-1, measured=PowerLaw(-0.9, (-2, 0), 1), rival=("half", -0.5)
        ),
    ],
)
def test_a_rule_that_accepts_the_rival_fails(call):
    claim = call()
    assert claim.verdict == "fails"
    assert "the rule accepts the rival" in claim.line()


def test_a_comparison_needs_more_than_scatter():
    rng = np.random.default_rng(0)
    noise = np.exp(rng.standard_normal((2, 8)))
    assert claims.comparison(*NAME, smaller=noise[0], larger=noise[1]).verdict == "fails"
    assert claims.comparison(*NAME, smaller=noise[0], larger=30 * noise[1]).verdict == "holds"


def test_the_interval_of_a_comparison_is_students():
    logs = np.array([0.3, 0.9, 0.5, 0.1, 0.7])
    claim = claims.comparison(*NAME, smaller=np.ones(5), larger=np.exp(logs))
    wanted = scipy.stats.t.interval(0.999, 4, logs.mean(), scipy.stats.sem(logs))
    assert claim.interval == pytest.approx(np.exp(wanted))


def test_the_table_names_all_that_fail(capsys):
    claims.identity("ker-a", "good", gap=0, tol=0)
    claims.prediction("ker-b", "bad", predicted=1, tol=0.1, measured=2, rival=("three", 3))
    claims.identity("ker-c", "bad too", gap=1, tol=0)
    claims.not_shown("ker-d", "open", reason="too large")
    with pytest.raises(ClaimFailed) as error:
        claims.table()
    assert "ker-b" in str(error.value) and "ker-c" in str(error.value)
    assert "ker-a" not in str(error.value)
    assert capsys.readouterr().out.startswith("1 identity, 1 open, 2 fail\n")


def test_a_cell_that_runs_again_replaces_its_claim(capsys):
    claims.identity("ker-a", "bad", gap=1, tol=0)
    claims.identity("ker-a", "mended", gap=0, tol=0)
    claims.table()
    assert capsys.readouterr().out.startswith("1 identity\n")


def test_a_page_without_claims_has_no_table():
    with pytest.raises(ValueError, match="no claim was recorded"):
        claims.table()


def test_the_line_of_a_table_counts_kinds_apart():
    for number in range(2):
        claims.prediction(f"ker-p{number}", "p", at_most=1, measured=0, rival=TWICE)
    claims.comparison("ker-c", "c", smaller=[1, 1, 1, 1], larger=[2, 2.1, 2.2, 2.1])
    found = list(claims._recorded.values())
    assert claims._counted(found) == "2 predictions hold, 1 comparison holds"
    shown = claims._table(found)
    assert shown.count('<span id="claim-ker-') == 3 and "no difference" in shown


def test_a_claim_within_a_sentence():
    claim = claims.prediction(*NAME, predicted=0.5, tol=0.1, measured=0.503, rival=TWICE)
    assert claim.brief() == "✓ predicted 0.5, measured ≈ 0.503"
    assert claim.anchor == "claim-ker-x-y"
    assert claim.limits == (0.4, 0.6)
    curve = claims.prediction(*NAME, predicted=[1, 2], tol=1, measured=[1, 2], rival=("no", [9, 9]))
    assert curve.brief() == "✓ measured / predicted ≈ 1"
    large = claims.prediction(*NAME, at_least=1, measured=1380.4, rival=("none", 0))
    assert large.brief() == "✓ predicted at least 1, measured ≈ 1,380"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: claims.prediction(*NAME, measured=1, rival=TWICE), "either predicted and tol"),
        (
            lambda: claims.prediction(*NAME, measured=1, predicted=1, at_most=2, rival=TWICE),
            "either predicted and tol",
        ),
        (
            lambda: claims.prediction(*NAME, measured=1, at_least=0, at_most=2, rival=TWICE),
            "exactly one of at_most",
        ),
        (
            lambda: claims.prediction(*NAME, measured=1, at_most=2, rival="nothing"),
            "rival must be a pair",
        ),
        (lambda: claims.comparison(*NAME, smaller=[1, 2], larger=[3, 4]), "at least 4"),
    ],
)
def test_wrong_calls_are_named(call, message):
    with pytest.raises((TypeError, ValueError), match=message):
        call()
