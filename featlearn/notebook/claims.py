"""Claims: what a theorem predicts, what a cell measured, and the rule that decides.

Each function below settles one claim. It prints one line, leaves a machine-readable record in the
notebook's output (`featlearn.notebook.records`), and raises `ClaimFailed` if the rule is broken.
The scoreboard reads the records with `read`; there is no other register.

Measured digits follow the sign ``≈`` in the printed line. They are this machine's and this seed's;
nbval masks them (see ``tests/sanitize.cfg``), because the rule has already judged them.
"""

from __future__ import annotations

import time
from dataclasses import asdict, replace

import numpy as np
from IPython import get_ipython
from IPython.display import display

from featlearn import validate
from featlearn.notebook.fits import PowerLaw, crossing, fit_power_law
from featlearn.notebook.records import ID, RECORD, SIGNS, Claim, _short, read
from featlearn.validate import Array

__all__ = [
    "RECORD",
    "SIGNS",
    "Claim",
    "ClaimFailed",
    "PowerLaw",
    "bound",
    "crossing",
    "equals",
    "exponent",
    "fit_power_law",
    "leave_open",
    "ordering",
    "read",
]


class ClaimFailed(AssertionError):
    """A measurement broke the rule of its claim."""


_last_settled = time.perf_counter()


def _lap() -> float:
    """Seconds since the last call, for the first one since this module was imported."""
    global _last_settled
    before, _last_settled = _last_settled, time.perf_counter()
    return round(_last_settled - before, 2)


def _settle(claim: Claim) -> Claim:
    validate.text(claim.says, "says")
    validate.text(claim.source, "source")
    if not isinstance(claim.id, str) or not ID.fullmatch(claim.id):
        raise ValueError(f"id must look like 'ker-flow' or 'ker-flow.order', got {claim.id!r}")
    claim = replace(claim, seconds=_lap())
    if get_ipython() is None:
        print(claim.line())
    else:
        data = {"text/plain": claim.line(), "text/html": claim.card()}
        display(data, raw=True, metadata={RECORD: asdict(claim)})
    if claim.verdict == "fails":
        raise ClaimFailed(claim.line())
    return claim


def _values(measured: Array, name: str, *, finite: bool = False) -> np.ndarray:
    """`measured` as a float array; infinity becomes NaN, which meets no rule."""
    tensor = validate.as_tensor(measured, name, finite=finite)
    values = tensor.detach().double().cpu().numpy()
    return np.where(np.isfinite(values), values, np.nan)


def _summary(values: np.ndarray) -> tuple[float, tuple[float, float] | None]:
    spread = (float(values.min()), float(values.max())) if values.size > 1 else None
    return float(np.median(values)), spread


def _verdict(holds: bool | np.bool_) -> str:
    return "holds" if holds else "fails"


def equals(
    id: str, says: str, *, predicted: float, measured: Array, tol: float, source: str
) -> Claim:
    """Every measured value lies within `tol` of `predicted`.

    `measured` is a number or one number per seed; NaN fails.
    """
    predicted, tol = validate.real(predicted, "predicted"), validate.real(tol, "tol", at_least=0)
    values = _values(measured, "measured")
    middle, spread = _summary(values)
    rule = f"each within {_short(tol)} of {_short(predicted)}"
    verdict = _verdict(np.all(np.abs(values - predicted) <= tol))
    return _settle(Claim(id, says, source, _short(predicted), rule, verdict, middle, spread))


def bound(
    id: str,
    says: str,
    *,
    measured: Array,
    source: str,
    at_most: Array | None = None,
    at_least: Array | None = None,
) -> Claim:
    """Every measured value respects a bound from above or below.

    The bound is one number, or one for each measured value (a curve under a curve); then the record
    shows the ratio measured / bound, which must stay on the right side of 1.
    """
    if at_most is not None and at_least is None:
        name, given = "at_most", at_most
    elif at_least is not None and at_most is None:
        name, given = "at_least", at_least
    else:
        raise ValueError("exactly one of at_most and at_least must be given")
    limit, values = _values(given, name, finite=True), _values(measured, "measured")
    is_curve = limit.size > 1
    if is_curve:
        if limit.shape != values.shape:
            raise ValueError(
                f"measured must have the shape of {name}, {limit.shape}, got {values.shape}"
            )
        if np.any(limit <= 0):
            raise ValueError(f"{name} must be positive where it is given value by value")
        values, limit = values / limit, np.ones(1)
    limit = limit.ravel()
    word, sign = ("at most", "≤") if at_least is None else ("at least", "≥")
    holds = np.all(values <= limit) if at_least is None else np.all(values >= limit)
    middle, spread = _summary(values)
    what = "measured / bound" if is_curve else "each"
    predicted = "a bound, point by point" if is_curve else f"{word} {_short(limit[0])}"
    rule = f"{what} {sign} {_short(limit[0])}"
    return _settle(Claim(id, says, source, predicted, rule, _verdict(holds), middle, spread))


def ordering(
    id: str, says: str, *, smaller: Array, larger: Array, source: str, factor: float = 1.0
) -> Claim:
    """`larger` exceeds `smaller` by at least `factor`, seed by seed.

    Both are positive; the record shows the ratio larger / smaller.
    """
    factor = validate.real(factor, "factor", above=0)
    low, high = _values(smaller, "smaller"), _values(larger, "larger")
    if low.shape != high.shape:
        raise ValueError(
            f"smaller and larger must have the same shape, got {low.shape} and {high.shape}"
        )
    if not (np.all(low > 0) and np.all(high > 0)):
        raise ValueError("smaller and larger must be positive and finite")
    ratios = high / low
    middle, spread = _summary(ratios)
    rule = f"ratio ≥ {_short(factor)} for each"
    verdict = _verdict(np.all(ratios >= factor))
    return _settle(
        Claim(id, says, source, f"ratio above {_short(factor)}", rule, verdict, middle, spread)
    )


def exponent(
    id: str, says: str, *, predicted: float, fit: PowerLaw, within: float, source: str
) -> Claim:
    """The fitted exponent agrees with the prediction.

    The interval over seeds must be narrow (half-width at most `within`, so that the claim can
    fail), and contain the prediction or lie inside predicted ± `within`.
    """
    predicted = validate.real(predicted, "predicted")
    within = validate.real(within, "within", above=0)
    low, high = validate.instance(fit, "fit", PowerLaw).interval
    narrow = (high - low) / 2 <= within
    close = low <= predicted <= high or (predicted - within <= low and high <= predicted + within)
    close_to = f"contains {_short(predicted)} or lies within {_short(within)} of it"
    rule = f"interval at most {_short(2 * within)} wide, {close_to}"
    verdict = _verdict(narrow and close)
    return _settle(
        Claim(id, says, source, _short(predicted), rule, verdict, fit.exponent, fit.interval)
    )


def leave_open(
    id: str,
    says: str,
    *,
    reason: str,
    source: str,
    predicted: str = "",
    measured: Array | None = None,
) -> Claim:
    """A claim that this book cannot show at its scale: counted as open, never as passed."""
    validate.text(reason, "reason")
    validate.instance(predicted, "predicted", str)
    middle, spread = (None, None) if measured is None else _summary(_values(measured, "measured"))
    return _settle(Claim(id, says, source, predicted, "", "open", middle, spread, reason))
