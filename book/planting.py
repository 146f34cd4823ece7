"""``make plant PAGE=01_kernels/2_training``: does each prediction notice a wrong formula?

``experiments/plants.json`` has, for each prediction of a page, a piece of its code and what a
mistake would make of it. The page runs once with all mistakes in it; every claim named must fail.
"""

from __future__ import annotations

import json
from pathlib import Path

from nbformat import NotebookNode

from book import notebooks
from featlearn.notebook import claims

STORE = notebooks.ROOT / "experiments" / "plants.json"


def plants(page: str, store: Path = STORE) -> dict[str, tuple[str, str]]:
    """By claim: a piece of the page's code, and the mistake in its place."""
    found = json.loads(store.read_text(encoding="utf-8")).get(page, {})
    return {id: (old, new) for id, (old, new) in found.items()}


def plant(notebook: NotebookNode, mistakes: dict[str, tuple[str, str]]) -> NotebookNode:
    """The notebook with all mistakes; each must have exactly one place in its code."""
    for id, (old, new) in mistakes.items():
        places = [cell for cell in notebooks.code(notebook) if old in cell.source]
        if len(places) != 1 or places[0].source.count(old) != 1:
            raise ValueError(f"{id}: {old!r} must stand in the code of the page once")
        places[0].source = places[0].source.replace(old, new)
    return notebook


def predictions(notebook: NotebookNode) -> list[str]:
    """The claims of a page that must have a mistake to notice."""
    return [claim.id for claim in claims.read(notebook) if claim.kind == "prediction"]


def run(page: str, store: Path = STORE) -> int:
    """Run the page with its mistakes and print what each claim says; 1 if one does not notice."""
    path = notebooks.find(page)
    mistakes = plants(page, store)
    notebook = plant(notebooks.load(path), mistakes)
    notebooks.execute(notebook, path.parent, allow_errors=True)
    verdicts = {claim.id: claim.verdict for claim in claims.read(notebook)}
    unnoticed = [id for id in mistakes if verdicts.get(id) != "fails"]
    for id, (old, new) in mistakes.items():
        print(f"{id}: {verdicts.get(id, 'missing')}, with {new!r} for {old!r}")
    print(f"{len(mistakes) - len(unnoticed)} of {len(mistakes)} mistakes are noticed")
    return 1 if unnoticed else 0
