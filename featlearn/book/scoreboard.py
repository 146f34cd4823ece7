"""The scoreboard: every recorded claim of the book, read from the notebooks' outputs alone."""

from __future__ import annotations

import html
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from featlearn.claims import SIGNS, Claim, collect

Records = dict[str, list[Claim]]


def totals(records: Records) -> dict[str, int]:
    """How many claims hold, fail and are open."""
    counts = Counter(claim.verdict for found in records.values() for claim in found)
    return {verdict: counts[verdict] for verdict in SIGNS}


def summary(records: Records) -> str:
    """The totals in one line."""
    count = totals(records)
    said = f"{count['holds']} hold, {count['fails']} fail, {count['open']} open"
    return f"{sum(count.values())} claims: {said}"


def as_text(records: Records) -> str:
    """The scoreboard for a terminal: one line a claim, by notebook."""
    lines = [summary(records)]
    for path, found in records.items():
        lines += ["", path] + [f"  {claim.line()}" for claim in found]
    return "\n".join(lines)


def as_json(records: Records) -> str:
    """The scoreboard as JSON: totals, and all records by notebook."""
    by_path = {path: [asdict(claim) for claim in found] for path, found in records.items()}
    return json.dumps({"totals": totals(records), "claims": by_path}, indent=1, ensure_ascii=False)


def as_html(records: Records, to_chapters: str = "") -> str:
    """The scoreboard for the book; `to_chapters` leads from the page to the folder of the chapters."""
    head = "<tr><th>verdict</th><th>claim</th><th>predicted</th><th>measured</th></tr>"
    parts = [f"<p><strong>{summary(records)}.</strong></p>"]
    for path, found in records.items():
        page = to_chapters + path.removesuffix(".ipynb") + ".html"
        rows = []
        for claim in found:
            link = f"{page}#claim-{claim.id.replace('.', '-')}"
            said = html.escape(claim.says) + (
                f" <em>{html.escape(claim.reason)}</em>" if claim.reason else ""
            )
            rows.append(
                f'<tr><td class="fl-{claim.verdict}">{SIGNS[claim.verdict]} {claim.verdict}</td>'
                f'<td><a href="{link}"><code>{claim.id}</code></a> {said}</td>'
                f"<td>{html.escape(claim.predicted)}</td><td>{html.escape(claim.measurement())}</td></tr>"
            )
        parts.append(
            f'<div class="fl-scroll" tabindex="0" role="region" aria-label="Claims of {path}">'
            f'<table class="fl-scoreboard"><caption>{path}</caption><thead>{head}</thead>'
            f"<tbody>{''.join(rows)}</tbody></table></div>"
        )
    return "\n".join(parts)


def write(chapters: Path, target: Path) -> Records:
    """Collect the claims below `chapters` and write them to `target` as JSON."""
    records = collect(chapters)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(as_json(records) + "\n", encoding="utf-8")
    return records
