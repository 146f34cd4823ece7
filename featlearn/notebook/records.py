"""The record of a claim: what a notebook stores, and in one line of text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from featlearn import validate

RECORD = "featlearn-claim"
ID = re.compile(r"[a-z]+(-[a-z0-9]+)+(\.[a-z0-9]+(-[a-z0-9]+)*)?")
SIGNS = {"holds": "✓", "fails": "✗", "open": "○"}
KINDS = ("prediction", "comparison", "identity", "open")


@dataclass(frozen=True)
class Claim:
    """One claim, as stored in a notebook.

    `id` is an id of the syllabus, with a dot and a name of its own where an item has several claims
    (``ker-flow.order``). `predicted` and `rule` are text; `measured` and `interval` are numbers.
    `seconds` is the time since the claim before it was recorded, for the first one since this
    module was imported; so the seconds of a notebook add up to its running time from there to the
    last claim. `kind` is one of `KINDS`; `rival` says what the rule rejects, and `limits` between
    which numbers it lets the measured values lie.
    """

    id: str
    says: str
    predicted: str
    rule: str
    verdict: str
    measured: float | None = None
    interval: tuple[float, float] | None = None
    reason: str = ""
    seconds: float | None = None
    kind: str = ""
    rival: str = ""
    limits: tuple[float | None, float | None] | None = None

    def _ipython_display_(self) -> None:
        """Nothing: claims are shown in the table of their page."""

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
        if self.rival:
            parts.append(f"rejected: {self.rival}")
        if self.verdict == "fails" and self.reason:
            parts.append(self.reason)
        return " | ".join(parts)

    @property
    def anchor(self) -> str:
        """Where the page shows the claim."""
        return "claim-" + self.id.replace(".", "-")

    def brief(self) -> str:
        """The claim within a sentence, ``✓ predicted 0.5, measured ≈ 0.503``."""
        value = "" if self.measured is None else f"≈ {_plain(self.measured)}"
        if self.rule.startswith("each measured / "):
            over = self.rule.split()[3]
            return f"{SIGNS[self.verdict]} measured / {over} {value}"
        said = [f"predicted {self.predicted}"] if self.predicted else []
        said += [f"measured {value}"] if value else []
        return f"{SIGNS[self.verdict]} {', '.join(said) or self.verdict}"

    def measurement(self) -> str:
        """Measured value and interval, ``≈ 0.51 [0.49, 0.53]``."""
        if self.measured is None:
            return ""
        spread = "" if self.interval is None else " [{}, {}]".format(*map(_short, self.interval))
        return f"≈ {_short(self.measured)}{spread}"


def _plain(number: float) -> str:
    """A number with three digits, up to a million without a power of ten."""
    return f"{number:,.0f}" if 1000 <= abs(number) < 10**6 else _short(number)


def _short(number: float) -> str:
    """A number with three digits."""
    return f"{number:.3g}"


def read(notebook: Mapping[str, Any]) -> list[Claim]:
    """The claims recorded in the outputs of a notebook (its JSON as a dictionary), in order."""
    found = []
    cells = validate.instance(notebook, "notebook", Mapping).get("cells")
    if not isinstance(cells, Sequence) or not all(isinstance(cell, Mapping) for cell in cells):
        raise ValueError(f"notebook must have a list of cells, got {type(cells).__name__}")
    for cell in cells:
        for output in cell.get("outputs", []):
            record = output.get("metadata", {}).get(RECORD)
            if record is not None:
                pairs = {
                    name: tuple(record[name])
                    for name in ("interval", "limits")
                    if record.get(name) is not None
                }
                found.append(Claim(**{**record, **pairs}))
    return found
