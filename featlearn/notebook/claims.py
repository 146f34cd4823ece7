"""Claims: what a theorem predicts, what a cell measured, and the rule that decides.

`prediction`, `comparison`, `identity` and `not_shown` record a claim quietly, where it is measured:
the record is in the notebook's output (`featlearn.notebook.records`), and nothing is shown. The
last cell of a page calls `table`, which shows all of them and raises `ClaimFailed` with the names
of those that failed. A prediction or a comparison names its rival, what would be measured if the
statement were wrong in the most plausible way; a rule that accepts the rival fails.

The scoreboard reads all records with `read`; there is no other register.

Measured digits follow the sign ``≈`` in the printed line. They are this machine's and this seed's;
nbval masks them (see ``tests/sanitize.cfg``), because the rule has already judged them.
"""

from __future__ import annotations

import html
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from IPython import get_ipython
from IPython.display import display
from scipy.special import stdtrit

from featlearn import validate
from featlearn.notebook import tables
from featlearn.notebook.fits import PowerLaw, crossing, fit_power_law
from featlearn.notebook.records import ID, KINDS, RECORD, SIGNS, Claim, _short, read
from featlearn.validate import Array

__all__ = [
    "KINDS",
    "RECORD",
    "SIGNS",
    "Claim",
    "ClaimFailed",
    "PowerLaw",
    "comparison",
    "crossing",
    "fit_power_law",
    "identity",
    "not_shown",
    "prediction",
    "read",
    "table",
]
Rival = tuple[str, Any]
LEVEL = 0.999  # of the intervals of comparisons


class ClaimFailed(AssertionError):
    """Measurements broke the rules of their claims."""


_last_settled = time.perf_counter()


def _lap() -> float:
    """Seconds since the last call, for the first one since this module was imported."""
    global _last_settled
    before, _last_settled = _last_settled, time.perf_counter()
    return round(_last_settled - before, 2)


def _named(claim: Claim) -> Claim:
    """The claim with its time, if it has a proper name."""
    validate.text(claim.says, "says")
    if not isinstance(claim.id, str) or not ID.fullmatch(claim.id):
        raise ValueError(f"id must look like 'ker-flow' or 'ker-flow.order', got {claim.id!r}")
    return replace(claim, seconds=_lap())


def _values(measured: Array, name: str, *, finite: bool = False) -> np.ndarray:
    """`measured` as a float array; infinity becomes NaN, which meets no rule."""
    tensor = validate.as_tensor(measured, name, finite=finite)
    values = tensor.detach().double().cpu().numpy()
    return np.where(np.isfinite(values), values, np.nan)


def _over(measured: Array, curve: np.ndarray, name: str) -> np.ndarray:
    """The measured values, over the curve if it is more than a number."""
    values = _values(measured, "measured")
    if curve.size == 1:
        return values
    if values.ndim > 0 and values.shape[-curve.ndim :] != curve.shape:
        raise ValueError(
            f"measured must have the shape of {name}, {curve.shape}, got {values.shape}"
        )
    return values / curve


def _summary(values: np.ndarray) -> tuple[float, tuple[float, float] | None]:
    spread = (float(values.min()), float(values.max())) if values.size > 1 else None
    return float(np.median(values)), spread


_recorded: dict[str, Claim] = {}  # of this page, by id: a cell that runs again replaces its own


def _record(claim: Claim) -> Claim:
    claim = _recorded[claim.id] = _named(claim)
    if get_ipython() is not None:
        data = {"text/plain": claim.line(), "text/html": ""}
        display(data, raw=True, metadata={RECORD: asdict(claim)})
    return claim


def _judged(claim: Claim, accepts: Callable[[Any], bool], measured: Any, rival: Rival) -> Claim:
    """Record the claim: it holds if its rule accepts what was measured and rejects the rival."""
    if not (isinstance(rival, tuple) and len(rival) == 2 and isinstance(rival[0], str)):
        raise TypeError(f"rival must be a pair of a name and a value, got {rival!r}")
    name, value = rival
    if not accepts(measured):
        return _record(replace(claim, verdict="fails", rival=name))
    if accepts(value):
        reason = f"the rule accepts the rival, {name}"
        return _record(replace(claim, verdict="fails", rival=name, reason=reason))
    return _record(replace(claim, verdict="holds", rival=name))


def prediction(
    id: str,
    says: str,
    *,
    measured: Array | PowerLaw,
    rival: Rival,
    predicted: Array | None = None,
    tol: float | None = None,
    at_most: Array | None = None,
    at_least: Array | None = None,
) -> Claim:
    """A number or a law from theory against a measurement.

    Parameters
    ----------
    id, says
        The claim's name and its statement.
    measured
        A number, one number per run, or a `PowerLaw`.
    rival
        Its name and what would be measured under it; the rule must reject it.
    predicted, tol
        Each measured value lies within `tol` of `predicted`. If `predicted` is an array, each ratio
        measured / predicted lies within `tol` of 1. For a `PowerLaw`, without `tol`: its interval
        contains `predicted` and excludes the rival's exponent.
    at_most, at_least
        Instead: a bound, one number or one for each measured value.
    """
    if isinstance(measured, PowerLaw):
        return _law(id, says, measured, validate.real(predicted, "predicted"), rival)
    if (predicted is None) == (at_most is None and at_least is None):
        raise ValueError("either predicted and tol or one of at_most and at_least must be given")
    if predicted is None:
        return _bounded(id, says, measured, rival, at_most, at_least)
    tol = validate.real(tol, "tol", at_least=0)
    target = _values(predicted, "predicted", finite=True)
    is_curve = target.size > 1
    centre = 1.0 if is_curve else float(target.ravel()[0])

    def shown(values: Array) -> np.ndarray:
        return _over(values, target, "predicted")

    middle, spread = _summary(shown(measured))
    what = "each measured / predicted" if is_curve else "each"
    rule = f"{what} within {_short(tol)} of {_short(centre)}"
    said = "a curve, point by point" if is_curve else _short(centre)
    claim = Claim(id, says, said, rule, "", middle, spread, kind="prediction")
    return _judged(
        replace(claim, limits=(centre - tol, centre + tol)),
        lambda values: bool(np.all(np.abs(shown(values) - centre) <= tol)),
        measured,
        rival,
    )


def _law(id: str, says: str, fit: PowerLaw, predicted: float, rival: Rival) -> Claim:
    low, high = fit.interval
    other = validate.real(rival[1], "rival")
    rule = f"interval contains {_short(predicted)} and excludes {_short(other)}"
    claim = Claim(
        id, says, _short(predicted), rule, "", fit.exponent, fit.interval, kind="prediction"
    )

    def accepts(exponent: float) -> bool:
        """Whether the interval does not contradict this exponent."""
        return low <= exponent <= high

    return _judged(claim, accepts, predicted, (rival[0], other))


def _bounded(
    id: str, says: str, measured: Array, rival: Rival, at_most: Any, at_least: Any
) -> Claim:
    if (at_most is None) == (at_least is None):
        raise ValueError("exactly one of at_most and at_least must be given")
    name, given = ("at_most", at_most) if at_least is None else ("at_least", at_least)
    limit = _values(given, name, finite=True)
    is_curve = limit.size > 1
    if is_curve and np.any(limit <= 0):
        raise ValueError(f"{name} must be positive where it is given value by value")
    edge = 1.0 if is_curve else float(limit.ravel()[0])

    def shown(values: Array) -> np.ndarray:
        return _over(values, limit, name)

    def accepts(values: Array) -> bool:
        found = shown(values)
        return bool(np.all(found <= edge) if at_least is None else np.all(found >= edge))

    middle, spread = _summary(shown(measured))
    sign, word = ("≤", "at most") if at_least is None else ("≥", "at least")
    what = "each measured / bound" if is_curve else "each"
    said = "a bound, point by point" if is_curve else f"{word} {_short(edge)}"
    claim = Claim(
        id, says, said, f"{what} {sign} {_short(edge)}", "", middle, spread, kind="prediction"
    )
    limits = (None, edge) if at_least is None else (edge, None)
    return _judged(replace(claim, limits=limits), accepts, measured, rival)


def comparison(
    id: str,
    says: str,
    *,
    smaller: Array,
    larger: Array,
    factor: float = 1.0,
    rival: str = "no difference",
) -> Claim:
    """`larger` exceeds `smaller` by more than `factor`, in pairs of runs on the same draws.

    Parameters
    ----------
    id, says
        The claim's name and its statement.
    smaller, larger
        (S,) positive numbers, at least four, one for each run.
    factor
        At least 1. The 99.9 % interval of the geometric mean of larger / smaller (Student's) must
        lie above it; so it rejects the rival, that there is no difference.
    rival
        What the rival is called.
    """
    factor = validate.real(factor, "factor", at_least=1)
    low, high = _values(smaller, "smaller"), _values(larger, "larger")
    if low.shape != high.shape or low.ndim != 1 or len(low) < 4:
        raise ValueError(
            f"smaller and larger must be vectors of one length, at least 4, got shapes {low.shape}"
            f" and {high.shape}"
        )
    if not (np.all(low > 0) and np.all(high > 0)):
        raise ValueError("smaller and larger must be positive and finite")

    def interval(logs: np.ndarray) -> tuple[float, float]:
        reach = stdtrit(len(logs) - 1, (1 + LEVEL) / 2) * logs.std(ddof=1) / len(logs) ** 0.5
        return float(np.exp(logs.mean() - reach)), float(np.exp(logs.mean() + reach))

    logs = np.log(high / low)
    claim = Claim(
        id,
        says,
        f"ratio above {_short(factor)}",
        f"99.9 % interval of the mean ratio above {_short(factor)}, {len(logs)} pairs",
        "",
        float(np.exp(logs.mean())),
        interval(logs),
        kind="comparison",
        limits=(factor, None),
    )
    same = logs - logs.mean()  # as scattered as the measured ratios, around 1
    return _judged(claim, lambda logs: interval(logs)[0] > factor, logs, (rival, same))


def identity(id: str, says: str, *, gap: Array, tol: float) -> Claim:
    """True by algebra: only a bug breaks it. The largest `gap` is at most `tol`."""
    tol = validate.real(tol, "tol", at_least=0)
    largest = float(np.max(np.abs(_values(gap, "gap"))))
    verdict = "holds" if largest <= tol else "fails"
    rule = f"largest gap ≤ {_short(tol)}"
    return _record(
        Claim(
            id,
            says,
            "equality",
            rule,
            verdict,
            largest,
            kind="identity",
            limits=(None, tol),
        )
    )


def not_shown(
    id: str, says: str, *, reason: str, predicted: str = "", measured: Array | None = None
) -> Claim:
    """What this page cannot show at its scale: counted as open, never as passed."""
    validate.text(reason, "reason")
    validate.instance(predicted, "predicted", str)
    middle, spread = (None, None) if measured is None else _summary(_values(measured, "measured"))
    return _record(Claim(id, says, predicted, "", "open", middle, spread, reason, kind="open"))


def _counted(found: list[Claim]) -> str:
    """What the claims are, in one line, such as ``11 predictions hold, 2 identities, 1 open``."""
    held = Counter(claim.kind for claim in found if claim.verdict == "holds")
    failed = sum(claim.verdict == "fails" for claim in found)
    names = {
        "prediction": ("prediction holds", "predictions hold"),
        "comparison": ("comparison holds", "comparisons hold"),
        "identity": ("identity", "identities"),
    }
    said = [f"{held[kind]} {names[kind][held[kind] > 1]}" for kind in names if held[kind]]
    said += [f"{n} open"] if (n := sum(claim.verdict == "open" for claim in found)) else []
    return ", ".join(said + ([f"{failed} fail"] if failed else []))


def table() -> None:
    """Show every claim of this page in one folded table; raise, naming all that fail."""
    found = list(_recorded.values())
    if not found:
        raise ValueError("no claim was recorded on this page")
    lines = [_counted(found), *(claim.line() for claim in found)]
    if get_ipython() is None:
        print("\n".join(lines))
    else:
        display({"text/plain": "\n".join(lines), "text/html": _table(found)}, raw=True)
    if failed := [claim for claim in found if claim.verdict == "fails"]:
        raise ClaimFailed("\n".join(["these claims fail:", *(claim.line() for claim in failed)]))


def _table(found: list[Claim]) -> str:
    rows = [
        (
            tables.verdict(claim.verdict),
            f'<span id="{claim.anchor}"></span><span class="fl-kind">{claim.kind}</span> '
            f"<code>{claim.id}</code> {html.escape(claim.says)}",
            html.escape(claim.predicted),
            claim.measurement(),
            html.escape(claim.rule or claim.reason),
            html.escape(claim.rival),
        )
        for claim in found
    ]
    head = ("verdict", "claim", "predicted", "measured", "rule", "rival, rejected")
    said = tables.table("Measured on this page", head, rows, kind="fl-page")
    return f'<details class="fl-measured"><summary>{_counted(found)}</summary>{said}</details>'
