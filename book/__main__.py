"""``python -m book``: what the Makefile calls."""

from __future__ import annotations

import argparse
import sys

from nbclient.exceptions import CellExecutionError
from tqdm import tqdm

from book import notebooks, planting, replication, rules, scoreboard
from featlearn.notebook import claims


def run_notebooks(everything: bool) -> int:
    """Re-execute in place the notebooks that are out of date.

    Point their set-up cells at the repository.
    """
    url = notebooks.repository_url()
    for path in notebooks.renew_texts(url):
        print(f"{path.name}: now names {url}")
    for path in notebooks.paths():
        notebook = notebooks.load(path)
        notebooks.renew_links(notebook, url)
        name = notebooks.name(path)
        if everything or notebooks.is_stale(notebook) or rules.executed(notebook):
            fingerprint, before = notebooks.fingerprint(notebook), claims.read(notebook)
            old = notebook.metadata.get("featlearn", {}).get("fingerprint", "")
            with tqdm(total=len(notebooks.code(notebook)), desc=name, unit="cell") as bar:
                try:
                    notebooks.execute(notebook, path.parent, after_cell=bar.update)
                except CellExecutionError as error:
                    print(
                        f"\n{name}: a cell failed, the notebook is left as it was\n{error}",
                        file=sys.stderr,
                    )
                    return 1
            notebook.metadata["featlearn"] = {"fingerprint": fingerprint}
            if replication.carry(name, before, claims.read(notebook), old, fingerprint):
                print(f"{name}: the same records, so its replication stays")
        else:
            print(f"{name}: up to date")
        notebooks.save(notebooks.clean(notebook), path)
    return 0


def show_claims() -> int:
    """Print the scoreboard and write ``_build/claims.json``."""
    target = notebooks.ROOT / "_build" / "claims.json"
    records = scoreboard.write(notebooks.CHAPTERS, target)
    print(scoreboard.as_text(records))
    print(f"\nwrote {target.relative_to(notebooks.ROOT)}")
    for page in replication.missing():
        print(f"no current replication: {page} (make replicate PAGE={page} SEEDS=30)")
    return 1 if scoreboard.totals(records)["fails"] else 0


def reseed(seeds: list[int]) -> int:
    """Run every notebook with claims under each seed; print claim × seed; 1 if one fails."""
    verdicts: dict[str, dict[int, claims.Claim]] = {}
    errors: list[str] = []
    paths = [path for path in notebooks.paths() if claims.read(notebooks.load(path))]
    for path in paths:
        expected = [claim.id for claim in claims.read(notebooks.load(path))]
        for id in expected:
            verdicts.setdefault(id, {})
        for seed in seeds:
            notebook = notebooks.load(path)
            with tqdm(
                total=len(notebooks.code(notebook)),
                desc=f"{path.name}, seed {seed}",
                unit="cell",
                leave=False,
            ) as bar:
                notebooks.execute(
                    notebook, path.parent, seed=seed, allow_errors=True, after_cell=bar.update
                )
            for claim in claims.read(notebook):
                verdicts.setdefault(claim.id, {})[seed] = claim
            raised = [
                o
                for cell in notebooks.code(notebook)
                for o in cell.outputs
                if o.output_type == "error"
            ]
            errors += [
                f"{path.name}, seed {seed}: {o.ename}: {o.evalue}"
                for o in raised
                if o.ename != "ClaimFailed"
            ]
            broken = [id for id in expected if _fails(verdicts[id].get(seed))]
            print(f"{path.name}, seed {seed}: {' '.join(broken) or 'all hold'}", flush=True)
    width = max((len(id) for id in verdicts), default=0)
    print(" " * width + "".join(f"{f'seed {seed}':>14}" for seed in seeds))
    for id, found in verdicts.items():
        marks = [_mark(found.get(seed)) for seed in seeds]
        print(f"{id:<{width}}" + "".join(f"{mark:>14}" for mark in marks))
    bad = sum(_fails(found.get(seed)) for found in verdicts.values() for seed in seeds)
    for error in errors:
        print(error, file=sys.stderr)
    total = len(verdicts) * len(seeds)
    print(f"{total} results: {total - bad} hold or are open, {bad} fail or are missing")
    return 1 if bad or errors or not verdicts else 0


def _fails(claim: claims.Claim | None) -> bool:
    return claim is None or claim.verdict == "fails"


def _mark(claim: claims.Claim | None) -> str:
    if claim is None:
        return "missing"
    value = "" if claim.measured is None else f" {claim.measured:.3g}"
    return scoreboard.SIGNS[claim.verdict] + value


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run the command."""
    parser = argparse.ArgumentParser(prog="python -m book", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("notebooks", help="re-execute the notebooks that are out of date")
    run.add_argument("--all", action="store_true", help="re-execute all of them")
    commands.add_parser("claims", help="print the scoreboard")
    again = commands.add_parser("reseed", help="run every notebook under other seeds")
    again.add_argument("seeds", type=int, nargs="+")
    fresh = commands.add_parser("replicate", help="run a page under seeds that it never saw")
    fresh.add_argument("page", help="such as 01_kernels/2_training")
    fresh.add_argument("--seeds", type=int, default=30, help="how many")
    wrong = commands.add_parser("plant", help="run a page with a mistake for every prediction")
    wrong.add_argument("page", help="such as 01_kernels/2_training")
    options = parser.parse_args(arguments)
    if options.command == "notebooks":
        return run_notebooks(options.all)
    if options.command == "claims":
        return show_claims()
    if options.command == "reseed":
        return reseed(options.seeds)
    try:
        if options.command == "plant":
            return planting.run(options.page)
        return replication.replicate(options.page, options.seeds)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
