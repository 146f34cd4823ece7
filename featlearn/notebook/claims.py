"""Claims: what a theorem predicts, what a cell measured, and the rule that decides.

Each function below settles one claim. It prints one line, leaves a machine-readable record in the
notebook's output, and raises `ClaimFailed` if the rule is broken. The scoreboard reads the records
with `collect`; there is no other register.

Measured digits follow the sign ``≈`` in the printed line. They are this machine's and this seed's;
nbval masks them (see ``tests/sanitize.cfg``), because the rule has already judged them.
"""

from __future__ import annotations

import html
import json
import math
import re
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from IPython import get_ipython
from IPython.display import display

from featlearn import validate
from featlearn.seeding import stream

RECORD = "featlearn-claim"
ID = re.compile(r"[a-z]+(-[a-z0-9]+)+(\.[a-z0-9]+(-[a-z0-9]+)*)?")
SIGNS = {"holds": "✓", "fails": "✗", "open": "○"}


class ClaimFailed(AssertionError):
    """A measurement broke the rule of its claim."""


@dataclass(frozen=True)
class Claim:
    """One settled claim, as stored in a notebook.

    `id` is an id of the syllabus, with a dot and a name of its own where an item has several claims
    (``ker-flow.order``). `predicted` and `rule` are text; `measured` and `interval` are numbers.
    `seconds` is the time since the claim before it was settled, for the first one since this module
    was imported; so the seconds of a notebook add up to its running time from there to the last
    claim.
    """

    id: str
    says: str
    source: str
    predicted: str
    rule: str
    verdict: str
    measured: float | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""
    seconds: float | None = None

    def _ipython_display_(self) -> None:
        """Nothing: a claim is shown once, when it is settled."""

    def line(self) -> str:
        """The claim in one line of text."""
        parts = [f"{SIGNS[self.verdict]} {self.verdict}  {self.id}: {self.says}"]
        if self.predicted:
            parts.append(f"predicted {self.predicted}")
        if self.measured is not None:
            parts.append(f"measured {self.measurement()}")
        parts.append(
            f"not shown here: {self.reason}" if self.verdict == "open" else f"rule: {self.rule}"
        )
        return " | ".join(parts)

    def measurement(self) -> str:
        """Measured value and interval, ``≈ 0.51 [0.49, 0.53]``."""
        if self.measured is None:
            return ""
        spread = (
            ""
            if self.interval is None
            else f" [{_short(self.interval[0])}, {_short(self.interval[1])}]"
        )
        return f"≈ {_short(self.measured)}{spread}"

    def card(self) -> str:
        """The claim as a small block of HTML, for the book and Colab."""
        facts = [
            ("predicted", self.predicted),
            ("measured", self.measurement()),
            ("rule", self.rule),
        ]
        if self.verdict == "open":
            facts[-1] = ("not shown here", self.reason)
        rows = "".join(
            f'<span class="fl-fact"><span class="fl-key">{key}</span> {html.escape(value)}</span>'
            for key, value in facts
            if value
        )
        anchor = "claim-" + self.id.replace(".", "-")
        return (
            f'<div class="fl-claim fl-{self.verdict}" id="{anchor}">'
            f'<div class="fl-head"><span class="fl-verdict">{SIGNS[self.verdict]} {self.verdict}</span> '
            f"<code>{self.id}</code> {html.escape(self.says)}</div>"
            f'<div class="fl-facts">{rows}</div></div>'
        )


def _short(number: float) -> str:
    return f"{number:.3g}"


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


def _values(measured: Any, name: str, *, finite: bool = False) -> np.ndarray:
    """`measured` as a float array; infinity becomes NaN, which meets no rule."""
    try:
        values = np.asarray(measured)
    except (ValueError, RuntimeError) as error:
        raise TypeError(f"{name} must be an array of numbers: {error}") from error
    if values.size == 0:
        raise ValueError(f"{name} must not be empty")
    if values.dtype.kind not in "fiub":
        raise TypeError(f"{name} must be real numbers, got dtype {values.dtype}")
    values = values.astype(float)
    if finite and not np.all(np.isfinite(values)):
        raise ValueError(f"{name} must be finite")
    return np.where(np.isfinite(values), values, np.nan)


def _summary(values: np.ndarray) -> tuple[float, tuple[float, float] | None]:
    spread = (float(values.min()), float(values.max())) if values.size > 1 else None
    return float(np.median(values)), spread


def _verdict(holds: bool | np.bool_) -> str:
    return "holds" if holds else "fails"


def equals(
    id: str, says: str, *, predicted: float, measured: Any, tol: float, source: str
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
    measured: Any,
    source: str,
    at_most: Any = None,
    at_least: Any = None,
) -> Claim:
    """Every measured value respects a bound from above or below.

    The bound is one number, or one for each measured value (a curve under a curve); then the record
    shows the ratio measured / bound, which must stay on the right side of 1.
    """
    if (at_most is None) == (at_least is None):
        raise ValueError("give exactly one of at_most and at_least")
    name, given = ("at_most", at_most) if at_least is None else ("at_least", at_least)
    limit, values = _values(given, name, finite=True), _values(measured, "measured")
    is_curve = limit.size > 1
    if is_curve:
        if limit.shape != values.shape:
            raise ValueError(f"measured has shape {values.shape}, the bound {limit.shape}")
        if np.any(limit <= 0):
            raise ValueError("a bound given value by value must be positive")
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
    id: str, says: str, *, smaller: Any, larger: Any, source: str, factor: float = 1.0
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


@dataclass(frozen=True)
class PowerLaw:
    """y ≈ prefactor · x^exponent, with a bootstrap interval of the exponent over seeds."""

    exponent: float
    interval: tuple[float, float]
    prefactor: float

    def __post_init__(self) -> None:
        low, high = self.interval
        if not (np.isfinite([self.exponent, low, high]).all() and low <= high):
            raise ValueError(
                f"interval must be ordered and all values finite, got {self.exponent}, {self.interval}"
            )

    def __call__(self, x: Any) -> np.ndarray:
        """The fitted line at `x`."""
        return self.prefactor * np.asarray(x, dtype=float) ** self.exponent


def fit_power_law(
    x: Sequence[float] | np.ndarray,
    y: Any,
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
        (S, k) positive measurements, one row a seed, at least three seeds.
    average : {"mean", "median", "geometric"}
        How the seeds are averaged before the logarithm is taken.
    level
        Coverage of the bootstrap percentile interval.
    resamples
        Number of bootstrap samples of the S rows.
    """
    x = np.asarray(x, dtype=float)
    y = np.asarray(y, dtype=float)
    validate.one_of(average, "average", ("mean", "median", "geometric"))
    validate.integer(resamples, "resamples", at_least=100)
    if not 0 < validate.real(level, "level") < 1:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}")
    if x.ndim != 1 or len(np.unique(x)) < 3:
        raise ValueError(
            f"x must be a vector with at least three different values, got shape {x.shape}"
        )
    if y.ndim != 2 or y.shape[1] != len(x) or y.shape[0] < 3:
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


def crossing(x: Sequence[float] | np.ndarray, y: Any, level: float) -> np.ndarray:
    r"""Where each row of y first falls below `level`, interpolated between neighbours in $\log x$;
    shape (S,).

    NaN for a row that starts below the level, never reaches it, or has a NaN on the way: then
    nobody knows where it crosses.

    Parameters
    ----------
    x
        (k,) positive, increasing.
    y
        (S, k) curves, one row a seed.
    level
        The height to cross.
    """
    x, y, level = (
        np.asarray(x, dtype=float),
        np.asarray(y, dtype=float),
        validate.real(level, "level"),
    )
    if x.ndim != 1 or not (np.all(np.isfinite(x)) and np.all(x > 0) and np.all(np.diff(x) > 0)):
        raise ValueError("x must be a vector of positive, increasing numbers")
    if y.ndim != 2 or y.shape[1] != len(x):
        raise ValueError(f"y must have shape (seeds, {len(x)}), got {y.shape}")
    found = np.full(len(y), np.nan)
    for row, curve in enumerate(y):
        below = np.flatnonzero(~(curve >= level))
        if below.size and below[0] > 0:
            i = below[0]
            share = (curve[i - 1] - level) / (curve[i - 1] - curve[i])
            found[row] = x[i - 1] * (x[i] / x[i - 1]) ** share
    return found


def exponent(
    id: str, says: str, *, predicted: float, fit: PowerLaw, within: float, source: str
) -> Claim:
    """The fitted exponent agrees with the prediction.

    The interval over seeds must be narrow (half-width at most `within`, so that the claim can
    fail), and contain the prediction or lie inside predicted ± `within`.
    """
    predicted, within = (
        validate.real(predicted, "predicted"),
        validate.real(within, "within", above=0),
    )
    if not isinstance(fit, PowerLaw):
        raise TypeError(f"fit must be a PowerLaw, got {type(fit).__name__}")
    low, high = fit.interval
    narrow = (high - low) / 2 <= within
    close = low <= predicted <= high or (predicted - within <= low and high <= predicted + within)
    close_to = f"contains {_short(predicted)} or lies within {_short(within)} of it"
    rule = f"interval at most {_short(2 * within)} wide, {close_to}"
    verdict = _verdict(narrow and close)
    return _settle(
        Claim(id, says, source, _short(predicted), rule, verdict, fit.exponent, fit.interval)
    )


def leave_open(
    id: str, says: str, *, reason: str, source: str, predicted: str = "", measured: Any = None
) -> Claim:
    """A claim that this book cannot show at its scale: counted as open, never as passed."""
    validate.text(reason, "reason")
    middle, spread = (None, None) if measured is None else _summary(_values(measured, "measured"))
    return _settle(Claim(id, says, source, predicted, "", "open", middle, spread, reason))


def read(notebook: dict[str, Any]) -> list[Claim]:
    """The claims recorded in the outputs of a notebook (its JSON as a dictionary), in order."""
    found = []
    for cell in notebook.get("cells", []):
        for output in cell.get("outputs", []):
            record = output.get("metadata", {}).get(RECORD)
            if record is not None:
                interval = record["interval"]
                found.append(
                    Claim(**{**record, "interval": None if interval is None else tuple(interval)})
                )
    return found


def collect(directory: str | Path) -> dict[str, list[Claim]]:
    """The recorded claims of every notebook below `directory`, by the notebook's relative path."""
    directory = Path(directory)
    if not directory.is_dir():
        raise ValueError(f"directory must be an existing folder, got {str(directory)!r}")
    paths = sorted(p for p in directory.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
    claims = {
        str(p.relative_to(directory)): read(json.loads(p.read_text(encoding="utf-8")))
        for p in paths
    }
    return {path: found for path, found in claims.items() if found}
