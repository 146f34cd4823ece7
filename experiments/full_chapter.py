"""A chapter at full scale: ``python -m experiments full-chapter 06_damian/2_samples`` runs it with
``FEATLEARN_SCALE=full``, on a GPU if there is one.

All its claims, settled anew, and the arrays named in `KEPT` are written to
``featlearn/data/full_06_damian_2_samples.json``.
"""

from __future__ import annotations

import json
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import nbformat
import torch
from tqdm import tqdm

from book import notebooks
from experiments import stored
from featlearn.notebook import claims

KEPT = {
    "04_ntk/1_kernel": ("widths", "errors"),
    "04_ntk/2_training": ("widths", "final"),
    "05_beyond_linearization/3_second_order": ("DIMS", "counts", "curves", "need"),
    "05_beyond_linearization/4_three_layers": ("counts", "curves", "need"),
    "06_damian/2_samples": (
        "LAYER_DIMS",
        "answers",
        "half",
        "HEAD_DIMS",
        "HEAD_MULTIPLES",
        "head_runs",
        "head_half",
    ),
    "07_shi/2_learning": ("points",),
    "08_feature_learning_kernels/1_metric": ("GROWING", "MULTIPLES", "final_table"),
}
LAST = """\
import sys

sys.path.append({root!r})
from experiments import full_chapter

full_chapter.keep(globals(), {names!r}, {path!r})"""


def keep(names: dict[str, Any], wanted: tuple[str, ...], path: str) -> None:
    """Write these variables of a notebook to `path`; called by a cell put at its end."""
    Path(path).write_text(
        json.dumps({name: stored.rounded(names[name]) for name in wanted}), encoding="utf-8"
    )


def run(chapter: str, scale: str = "full") -> dict[str, Any]:
    """Seconds, claims with the value stored in the notebook beside the new one, errors and kept
    arrays of one chapter.
    """
    path = notebooks.CHAPTERS / f"{chapter}.ipynb"
    notebook = notebooks.load(path)
    quick = {claim.id: claim.measured for claim in claims.read(notebook)}
    with tempfile.TemporaryDirectory() as folder:
        kept = Path(folder) / "kept.json"
        last = LAST.format(root=str(notebooks.ROOT), names=KEPT[chapter], path=str(kept))
        notebook.cells.append(nbformat.v4.new_code_cell(last))
        start = time.perf_counter()
        with tqdm(total=len(notebooks.code(notebook)), desc=chapter, unit="cell") as bar:
            notebooks.execute(
                notebook, path.parent, scale=scale, allow_errors=True, after_cell=bar.update
            )
        arrays = json.loads(kept.read_text(encoding="utf-8")) if kept.exists() else {}
    raised = [
        o for cell in notebooks.code(notebook) for o in cell.outputs if o.output_type == "error"
    ]
    return {
        "seconds": round(time.perf_counter() - start),
        "claims": [
            {**asdict(claim), "quick": quick.get(claim.id)} for claim in claims.read(notebook)
        ],
        "errors": [f"{o.ename}: {o.evalue}" for o in raised],
        "kept": arrays,
    }


def main(arguments: list[str]) -> int:
    """Run one chapter and write the file; 1 if a cell raised anything but a broken claim."""
    parser = stored.options(
        "full-chapter", "Run a chapter at full scale, on a GPU if there is one."
    )
    parser.add_argument("chapter", choices=KEPT)
    options = parser.parse_args(arguments)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    origin = stored.origin(f"python -m experiments full-chapter {options.chapter}", device)
    result = {**origin, **run(options.chapter)}
    broken = [error for error in result["errors"] if not error.startswith("ClaimFailed")]
    target = options.out or stored.DATA / f"full_{options.chapter.replace('/', '_')}.json"
    stored.write(target.with_suffix(".failed.json") if broken else target, result)
    print("\n".join(result["errors"]))
    return int(bool(broken))
