"""``make replicate PAGE=01_kernels/2_training SEEDS=30``: a page under seeds that it never saw.

For each claim it stores how often the claim held, over which range the measured value spread, and
how much room there was between the spread and the rule.
"""

from __future__ import annotations

import json
import math
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import joblib
import numpy as np
from tqdm import tqdm

from book import notebooks
from featlearn.notebook import claims
from featlearn.notebook.claims import Claim

STORE = notebooks.ROOT / "experiments" / "replications"
FIRST = 1000  # seeds below it are for trying


def stored(page: str, store: Path = STORE) -> dict[str, Any] | None:
    """The last replication of a page, if there was one."""
    path = store / f"{page.replace('/', '-')}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


def current(page: str, path: Path, store: Path = STORE) -> dict[str, Any] | None:
    """The replication of the page as it is now."""
    found = stored(page, store) if path.is_file() else None
    if found is None:
        return None
    now = notebooks.load(path).metadata.get("featlearn", {}).get("fingerprint")
    return found if found["fingerprint"] == now else None


def carry(page: str, before: list[Claim], after: list[Claim], old: str, new: str) -> bool:
    """Whether a replication of the version `old` of a page counts for the version `new`, too.

    It does if both gave the same records to six digits: the package computes the same numbers in
    another way, or on another machine.
    """
    path, found = STORE / f"{page.replace('/', '-')}.json", stored(page)
    if found is None or found["fingerprint"] != old or len(before) != len(after):
        return False
    if not all(map(_agree, before, after)):
        return False
    _write(found | {"fingerprint": new}, path)
    return True


def _agree(one: Claim, other: Claim) -> bool:
    """Whether two records differ in their times and in rounding alone."""
    numbers = [np.ravel([c.measured, *(c.interval or ()), *(c.limits or ())]) for c in (one, other)]
    bare = [replace(c, measured=None, interval=None, limits=None, seconds=0) for c in (one, other)]
    return bare[0] == bare[1] and all(
        a == b
        or (a is not None and b is not None and math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-12))
        for a, b in zip(*numbers, strict=True)
    )


def _write(kept: dict[str, Any], path: Path) -> None:
    text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def missing(store: Path = STORE) -> list[str]:
    """The pages of the second edition that have no current replication."""
    pages = {notebooks.name(path): path for path in notebooks.paths() if is_sorted(path)}
    return [page for page, path in pages.items() if current(page, path, store) is None]


def is_sorted(path: Path) -> bool:
    """Whether the claims of a page have kinds, and so rivals."""
    found = claims.read(notebooks.load(path))
    return bool(found) and all(claim.kind for claim in found)


def run(path: Path, seed: int) -> tuple[list[Claim], list[str]]:
    """The claims of the page under this seed, and the errors of its cells but for failed claims."""
    os.environ["OMP_NUM_THREADS"] = "1"
    notebook = notebooks.load(path)
    notebooks.execute(notebook, path.parent, seed=seed, allow_errors=True)
    outputs = [output for cell in notebooks.code(notebook) for output in cell.outputs]
    errors = [f"{o.ename}: {o.evalue}" for o in outputs if o.output_type == "error"]
    return claims.read(notebook), [e for e in errors if not e.startswith("ClaimFailed")]


def room(found: list[Claim]) -> float | None:
    """The least distance of a measured value from the edge of its rule, in standard deviations of
    the value over seeds. Negative if the rule was broken; None where the rule has no edge.
    """
    spread = float(np.std([claim.measured for claim in found])) if found else 0.0
    edges = []
    for claim in found:
        low, high = claim.interval or (claim.measured, claim.measured)
        least, most = claim.limits or (None, None)
        edges += [low - least] if least is not None else []
        edges += [most - high] if most is not None else []
    return min(edges) / spread if edges and spread > 0 else None


def summarise(
    expected: list[Claim], runs: dict[int, tuple[list[Claim], list[str]]]
) -> dict[str, Any]:
    """How often each claim held, its spread and its room; and what failed, by seed."""
    about: dict[str, Any] = {}
    failures = [f"seed {seed}: {error}" for seed, (_, errors) in runs.items() for error in errors]
    for claim in expected:
        found = {
            seed: next((c for c in recorded if c.id == claim.id), None)
            for seed, (recorded, _) in runs.items()
        }
        held = [seed for seed, c in found.items() if c is not None and c.verdict != "fails"]
        failures += [f"seed {seed}: {claim.id}" for seed in found if seed not in held]
        recorded = [c for c in found.values() if c is not None]
        there = [c for c in recorded if isinstance(c.measured, int | float)]  # "nan" is a string
        values = [c.measured for c in there]
        about[claim.id] = {
            "held": len(held),
            "of": len(found),
            "least": min(values, default=None),
            "greatest": max(values, default=None),
            "room": room(there),
        }
    return {"claims": about, "failures": failures}


def replicate(page: str, count: int, store: Path = STORE, workers: int | None = None) -> int:
    """Run the page under `count` new seeds on all cores and store what came out; 1 if one fails."""
    path = notebooks.find(page)
    before = stored(page, store)
    first = FIRST if before is None else before["seeds"][1] + 1
    seeds = range(first, first + count)
    with joblib.parallel_config("loky", n_jobs=workers or os.cpu_count()):
        jobs = joblib.Parallel(return_as="generator")(
            joblib.delayed(run)(path, seed) for seed in seeds
        )
        runs = dict(zip(seeds, tqdm(jobs, total=count, desc=page, unit="seed"), strict=True))
    notebook = notebooks.load(path)
    result = summarise(claims.read(notebook), runs)
    kept = {
        "page": page,
        "fingerprint": notebook.metadata["featlearn"]["fingerprint"],
        "seeds": [seeds[0], seeds[-1]],
        **result,
    }
    _write(kept, store / f"{page.replace('/', '-')}.json")
    for id, about in result["claims"].items():
        told = "" if about["room"] is None else f", room {about['room']:.1f} standard deviations"
        print(f"{id}: {about['held']} of {about['of']}{told}")
    print("\n".join(result["failures"]) or "no failure")
    return 1 if result["failures"] else 0
