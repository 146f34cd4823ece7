"""The scoreboard: every recorded claim of the book, read from the notebooks' outputs and from what
their replications stored.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from book import replication
from book.notebooks import CHAPTERS
from featlearn.notebook import tables
from featlearn.notebook.claims import KINDS, SIGNS, Claim, read
from featlearn.notebook.tables import Cell

Records = dict[str, list[Claim]]


def _notebooks(directory: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """The notebooks below `directory`, by relative path."""
    if not directory.is_dir():
        raise ValueError(f"directory must be an existing folder, got {str(directory)!r}")
    for path in sorted(directory.rglob("*.ipynb")):
        if ".ipynb_checkpoints" not in path.parts:
            yield str(path.relative_to(directory)), _load(path)


def _load(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} must be a notebook in JSON: {error}") from error


def collect(directory: str | Path) -> Records:
    """The recorded claims of every notebook below `directory`, by the notebook's relative path."""
    claims = {path: read(notebook) for path, notebook in _notebooks(Path(directory))}
    return {path: found for path, found in claims.items() if found}


def totals(records: Records) -> dict[str, int]:
    """How many claims hold, fail and are open."""
    counts = Counter(claim.verdict for found in records.values() for claim in found)
    return {verdict: counts[verdict] for verdict in SIGNS}


def kinds(records: Records) -> dict[str, int]:
    """How many claims there are of each kind."""
    counts = Counter(claim.kind for found in records.values() for claim in found)
    return {kind: counts[kind] for kind in KINDS}


def seconds(records: Records) -> float | None:
    """Running time of all claims together; None where no record knows its time."""
    known = [c.seconds for found in records.values() for c in found if c.seconds is not None]
    return sum(known) if known else None


def summary(records: Records) -> str:
    """The totals in one line, what is measured and what is true by algebra apart."""
    count, sort = totals(records), kinds(records)
    measured = sort["prediction"] + sort["comparison"]
    said = (
        f"{measured} measurements ({sort['prediction']} predictions,"
        f" {sort['comparison']} comparisons), {sort['identity']} identities, {sort['open']} open"
    )
    return f"{sum(count.values())} claims: {said}; {count['fails']} fail"


def trust(records: Records, directory: Path) -> str:
    """What holds and under how many fresh seeds, in a line of Markdown for the front page."""
    sort = kinds(records)
    measured = {
        claim.id
        for found in records.values()
        for claim in found
        if claim.kind in ("prediction", "comparison") and claim.verdict == "holds"
    }
    runs = [
        about
        for path in records
        if (seen := replication.current(path.removesuffix(".ipynb"), directory / path))
        for id, about in seen["claims"].items()
        if id in measured
    ]
    always = sum(about["held"] == about["of"] for about in runs)
    seeds = min((about["of"] for about in runs), default=0)
    return (
        f"**{len(measured)}** measurements hold, each by a rule that a named alternative breaks · "
        f"of the {len(runs)} repeated under {seeds} fresh seeds **{always}** held every time · "
        f"**{sort['open']}** "
        "claims open, with the reason · [scoreboard](appendix/claims.md) · code MIT, text CC BY 4.0"
    )


def titles(directory: str | Path) -> dict[str, str]:
    """The title of every notebook below `directory`, by relative path: its first line."""
    found = {}
    for path, notebook in _notebooks(Path(directory)):
        first = notebook["cells"][0]
        line = "".join(first["source"]).split("\n", 1)[0]
        if first["cell_type"] == "markdown" and line.startswith("# "):
            number = re.match(r"0?(\d+)_\w+/(\d+)_", path)
            before = f"{number[1]}.{number[2]} " if number else ""
            found[path] = before + line.removeprefix("# ").strip()
    return found


def as_text(records: Records) -> str:
    """The scoreboard for a terminal: one line for each claim, by notebook."""
    lines = [summary(records)]
    for path, found in records.items():
        lines += ["", path] + [f"  {claim.line()}" for claim in found]
    return "\n".join(lines)


def as_json(records: Records) -> str:
    """The scoreboard as JSON: totals, and all records by notebook."""
    by_path = {path: [asdict(claim) for claim in found] for path, found in records.items()}
    return json.dumps({"totals": totals(records), "claims": by_path}, indent=1, ensure_ascii=False)


def as_html(records: Records, title_of: dict[str, str] | None = None, to_chapters: str = "") -> str:
    """The scoreboard for the book: totals, the open claims, then one table for each notebook.

    `title_of` are the `titles` (a notebook without one is named by its path); `to_chapters` leads
    from the page to the folder of the chapters.
    """
    named = {path: html.escape((title_of or {}).get(path, path)) for path in records}
    pages = {
        path: html.escape(to_chapters + path.removesuffix(".ipynb") + ".html") for path in records
    }
    parts = [f"<p><strong>{summary(records)}.</strong></p>", _overview(records, named, pages)]
    if totals(records)["open"]:
        parts += ['<h2 id="open-claims">Open</h2>', _open(records, pages)]
    parts.append('<h2 id="all-claims">All claims</h2>')
    parts += [_claims(path, found, named[path], pages[path]) for path, found in records.items()]
    return "\n".join(parts)


def _overview(records: Records, named: dict[str, str], pages: dict[str, str]) -> str:
    """One row for each notebook, and their sum."""
    rows: list[tuple[str | Cell, ...]] = []
    for path, found in records.items():
        page = Cell(f'<a href="{pages[path]}">{named[path]}</a>', is_head=True)
        number = f'<a href="#{_anchor(path)}">{len(found)}</a>'
        rows.append((page, number, *_counts({path: found})))
    count = sum(map(len, records.values()))
    rows.append((Cell("all", is_head=True), str(count), *_counts(records)))
    head = (
        "page",
        "claims",
        "predictions",
        "comparisons",
        "identities",
        "○ open",
        "✗ fails",
        "time",
    )
    return tables.table("Claims by page", head, rows, kind="fl-totals")


def _open(records: Records, pages: dict[str, str]) -> str:
    """Every open claim with the reason why it is open."""
    lines = [
        f"<li>{_link(claim, pages[path])} {html.escape(claim.says)}. "
        f"<em>Not shown here:</em> {html.escape(claim.reason)}</li>"
        for path, found in records.items()
        for claim in found
        if claim.verdict == "open"
    ]
    return "\n".join(["<ul>", *lines, "</ul>"])


def _claims(path: str, found: list[Claim], title: str, page: str) -> str:
    """The claims of one notebook, one row each."""
    again = replication.current(path.removesuffix(".ipynb"), CHAPTERS / path) or {"claims": {}}
    rows = [
        (
            tables.verdict(claim.verdict),
            claim.kind,
            f"{_link(claim, page)} {html.escape(claim.says)}",
            html.escape(claim.rival),
            html.escape(claim.predicted),
            "" if claim.measured is None else f"≈ {claim.measured:.3g}",
            tables.interval(claim.interval),
            html.escape(claim.rule),
            _held(again["claims"].get(claim.id)),
            _time(claim.seconds),
        )
        for claim in found
    ]
    head = (
        "verdict",
        "kind",
        "claim",
        "rival",
        "predicted",
        "measured",
        "interval",
        "rule",
        "held under",
        "time",
    )
    return tables.table(title, head, rows, kind="fl-claims", id=_anchor(path))


def _held(about: dict[str, Any] | None) -> str:
    """``30 of 30 seeds``, with the range of the measured value."""
    if about is None:
        return ""
    spread = (about["least"], about["greatest"])
    told = "" if None in spread else f", {tables.interval(spread)}"
    return f"{about['held']} of {about['of']} seeds{told}"


def _counts(records: Records) -> tuple[str, ...]:
    kind, fails = kinds(records), totals(records)["fails"]
    sorts = ("prediction", "comparison", "identity", "open")
    return (*(str(kind[name] or "") for name in sorts), str(fails or ""), _time(seconds(records)))


def _link(claim: Claim, page: str) -> str:
    return f'<a href="{page}#{claim.anchor}"><code>{claim.id}</code></a>'


def _anchor(path: str) -> str:
    return "claims-" + "-".join(Path(path).with_suffix("").parts).replace("_", "-")


def _time(duration: float | None) -> str:
    """``≈ 0.3 s``: measured digits follow the sign, as everywhere."""
    return "" if duration is None else f"≈ {duration:.1f} s"


def write(chapters: Path, target: Path) -> Records:
    """Collect the claims below `chapters` and write them to `target` as JSON."""
    records = collect(chapters)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(as_json(records) + "\n", encoding="utf-8")
    return records
