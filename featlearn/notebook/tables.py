"""Tables for the book: one HTML form for all, and the tables of the stored results."""

from __future__ import annotations

import html
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from featlearn.notebook.records import SIGNS


@dataclass(frozen=True)
class Cell:
    """A cell that is more than its content: the head of its row, or coloured by a verdict."""

    content: str
    is_head: bool = False
    verdict: str = ""

    def __str__(self) -> str:
        if self.is_head:
            return f'<th scope="row">{self.content}</th>'
        colour = f' class="fl-{self.verdict}"' if self.verdict else ""
        return f"<td{colour}>{self.content}</td>"


def table(
    caption: str,
    head: Iterable[str],
    rows: Iterable[Iterable[str | Cell]],
    *,
    kind: str,
    id: str = "",
) -> str:
    """A table in a box that scrolls by itself.

    Parameters
    ----------
    caption
        Names the table and its box. It and all cells are HTML.
    head
        The names of the columns.
    rows
        Their cells, from left to right.
    kind
        The class of the style sheet that the table has beside ``fl-scoreboard``.
    id
        The anchor of the table, if it has one.
    """
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "\n".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    anchor = f' id="{id}"' if id else ""
    return (
        f'<div class="fl-scroll" tabindex="0" role="region" aria-label="{caption}">'
        f'<table class="fl-scoreboard {kind}"{anchor}>'
        f"<caption>{caption}</caption><thead><tr>{names}</tr></thead>\n"
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(cell: str | Cell) -> str:
    return str(cell if isinstance(cell, Cell) else Cell(cell))


def verdict(name: str) -> Cell:
    """The cell of a claim's verdict, such as ``✓ holds``."""
    return Cell(f"{SIGNS[name]} {name}", verdict=name)


def interval(ends: Sequence[float] | None) -> str:
    """``[low, high]`` with three digits, or nothing."""
    return "" if ends is None else "[{:.3g}, {:.3g}]".format(*ends)


def full_claims(results: Iterable[Mapping[str, Any]]) -> str:
    """The claims of chapters at full scale whose measured value is not that of the quick run."""
    rows = []
    for claim in (claim for result in results for claim in result["claims"]):
        if claim["measured"] is None or claim["measured"] == claim["quick"]:
            continue
        said = f"<code>{claim['id']}</code> {html.escape(claim['says'])}"
        quick = "" if claim["quick"] is None else f"{claim['quick']:.3g}"
        values = (quick, f"{claim['measured']:.3g}", interval(claim["interval"]))
        rows.append((verdict(claim["verdict"]), said, html.escape(claim["predicted"]), *values))
    head = ("verdict", "claim", "predicted", "quick", "full", "interval")
    return table("Claims at full scale", head, rows, kind="fl-claims")


def ratios(seconds: Mapping[str, list[float]], name: str, ours: str) -> tuple[float, float, float]:
    """Median, least and greatest of a contestant's time over ours, round by round."""
    found = [a / b for a, b in zip(seconds[name], seconds[ours], strict=True)]
    return statistics.median(found), min(found), max(found)


def milliseconds(seconds: list[float]) -> str:
    """The median in milliseconds, three digits or all before the point."""
    value = 1000 * statistics.median(seconds)
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def products(cases: Iterable[Mapping[str, Any]]) -> str:
    """Times of products with a kernel matrix by several libraries, and their ratios to the fused
    product; `cases` are those that the experiment ``kernel-scale`` stored.
    """
    rows = []
    for case in cases:
        kernel = "tangent kernel, 3 layers" if case["case"] == "ntk" else case["case"].capitalize()
        for name, seconds in case["seconds"].items():
            middle, low, high = ratios(case["seconds"], name, "fused")
            rows.append(
                (
                    Cell(f"{kernel}, n = {case['n']:,}, d = {case['d']}", is_head=True),
                    name,
                    milliseconds(seconds),
                    f"{middle:.3g} [{low:.3g}, {high:.3g}]",
                    f"{case['errors'][name]:.0e}",
                )
            )
    head = ("product", "library", "ms", "over fused", "relative error")
    return table("One product with a kernel matrix", head, rows, kind="fl-speed")


def times(result: Mapping[str, Any], kind: str) -> str:
    """Times of tangent kernels: medians, their ratios to ours, and the range of these over rounds.

    Parameters
    ----------
    result
        What the experiment ``tangent-kernels`` stored.
    kind : {"analytic", "empirical"}
        Kernels of infinite width, or of a network as it is.
    """
    rows = []
    for r in (r for r in result["results"] if r["kind"] == kind):
        ours, *others = r["seconds"]
        network = f"{r['activation']}{', biases' if r['sigma_b'] else ''}"
        size = (str(r["hidden"]), f"{r['n']:,}", r["dtype"])
        for name in others or [None]:
            against = ("", "", "")
            if name is not None:
                middle, low, high = ratios(r["seconds"], name, ours)
                over = f"<b>{middle:,.3g}</b> [{low:,.3g}, {high:,.3g}]"
                against = (name, milliseconds(r["seconds"][name]), over)
            rows.append((network, *size, milliseconds(r["seconds"][ours]), *against))
    head = ("network", "hidden", "n", "dtype", "ours (ms)", "against", "(ms)", "over ours")
    return table(f"Times, {kind}, {html.escape(result['machine'])}", head, rows, kind="fl-speed")


def in_roundings(row: Mapping[str, Any], key: str) -> str:
    """The gap or the yardstick of a comparison in units of the type's rounding."""
    return f"{row[key] / torch.finfo(getattr(torch, row['dtype'])).eps:,.2g}"


def agreement(result: Mapping[str, Any]) -> str:
    """The comparison of two devices, one row for each case.

    For each type it gives gap and yardstick in units of the type's rounding, and the verdict.
    """
    found: dict[tuple[str, str], dict[str, tuple[str | Cell, ...]]] = {}
    for row in result["rows"]:
        agrees = "holds" if row["agrees"] else "fails"
        said = html.escape(row.get("error", "agrees" if row["agrees"] else "disagrees"))
        sizes = ["" if "error" in row else in_roundings(row, key) for key in ("gap", "yardstick")]
        verdict = Cell(f"{SIGNS[agrees]} {said}", verdict=agrees)
        cells: tuple[str | Cell, ...] = (*sizes, verdict)
        found.setdefault((row["group"], row["name"]), {})[row["dtype"]] = cells
    types = ("float32", "float64")
    rows = [
        (
            html.escape(group),
            Cell(html.escape(name), is_head=True),
            *(cell for dtype in types for cell in cells.get(dtype, ("", "", ""))),
        )
        for (group, name), cells in found.items()
    ]
    columns = (f"{name}, {dtype}" for dtype in types for name in ("gap", "yardstick", "verdict"))
    machine = html.escape(result["machine"])
    caption = f"The CPU and {machine}: gap and yardstick in units of rounding"
    return table(caption, ("group", "case", *columns), rows, kind="fl-agreement")
