"""Results of runs too long for a notebook.

Where they come from, how they are written to `featlearn/data`, tables of them.
"""

from __future__ import annotations

import html
import json
import os
import platform
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from featlearn import seeding
from featlearn.notebook import claims

DATA = Path(__file__).parents[1] / "featlearn" / "data"


def machine(device: str = "cpu") -> str:
    """The machine in a few words."""
    if device == "cuda":
        return torch.cuda.get_device_name()
    listed = Path("/proc/cpuinfo")
    lines = listed.read_text(encoding="utf-8").splitlines() if listed.exists() else []
    model = next(
        (line.split(":")[1].strip() for line in lines if line.startswith("model name")), ""
    )
    return f"{os.cpu_count()} cores, {platform.machine()} {model}".strip()


def origin(command: str, device: str = "cpu") -> dict[str, Any]:
    """The command, the commit (``-dirty`` if the files differed from it), the machine and
    `FEATLEARN_SEED` of a run.
    """
    describe = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    commit = subprocess.run(
        describe, cwd=DATA, capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "command": command,
        "commit": commit,
        "machine": f"{machine(device)}, torch {torch.__version__.split('+')[0]}",
        "seed": seeding.seed(),
    }


def write(path: Path, result: dict[str, Any], indent: int | None = None) -> None:
    """Write `result` as JSON, whole or not at all."""
    part = path.with_suffix(".part")
    separators = (",", ":") if indent is None else None
    part.write_text(
        json.dumps(result, indent=indent, separators=separators) + "\n", encoding="utf-8"
    )
    os.replace(part, path)
    print(f"wrote {path.name}")


def table(caption: str, head: Iterable[str], lines: Iterable[str], attributes: str) -> str:
    """A table for the book, in a box that scrolls by itself; all parts are HTML."""
    names = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "\n".join(lines)
    return (
        f'<div class="fl-scroll" tabindex="0" role="region" aria-label="{caption}"><table {attributes}>'
        f"<caption>{caption}</caption><thead><tr>{names}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def full_claims(results: Iterable[dict[str, Any]]) -> str:
    """The claims of chapters at full scale whose measured value is not that of the quick run, as a
    table.
    """
    lines = []
    for claim in (claim for result in results for claim in result["claims"]):
        if claim["measured"] is None or claim["measured"] == claim["quick"]:
            continue
        interval = (
            "" if claim["interval"] is None else "[{:.3g}, {:.3g}]".format(*claim["interval"])
        )
        said = f"<code>{claim['id']}</code> {html.escape(claim['says'])}"
        sign = claims.SIGNS[claim["verdict"]]
        quick = "" if claim["quick"] is None else f"{claim['quick']:.3g}"
        values = (quick, f"{claim['measured']:.3g}", interval)
        cells = "".join(
            f"<td>{value}</td>" for value in (said, html.escape(claim["predicted"]), *values)
        )
        lines.append(
            f'<tr><td class="fl-{claim["verdict"]}">{sign} {claim["verdict"]}</td>{cells}</tr>'
        )
    head = ("verdict", "claim", "predicted", "quick", "full", "interval")
    return table("Claims at full scale", head, lines, 'class="fl-scoreboard fl-claims"')
