"""Read, execute and clean the notebooks; decide which are out of date."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import nbformat
import yaml
from nbclient import NotebookClient
from nbformat import NotebookNode

from book import scoreboard
from featlearn.notebook import claims

ROOT = Path(__file__).parents[1]
CHAPTERS = ROOT / "chapters"
SETUP = """\
try:
    import featlearn
except ModuleNotFoundError:  # on Colab
    %pip install -q git+{url}
    import featlearn"""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def paths(chapters: Path = CHAPTERS) -> list[Path]:
    """All notebooks: the chapters in order, then the appendices, the scoreboard last."""
    found = [p for p in chapters.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts]
    return sorted(found, key=lambda p: (p.name == "claims.ipynb", len(p.parts), str(p)))


def load(path: Path) -> NotebookNode:
    """The notebook at `path`."""
    return nbformat.read(path, as_version=4)


def save(notebook: NotebookNode, path: Path) -> None:
    """Write the notebook, whole or not at all."""
    part = path.with_suffix(".part")
    part.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8")
    os.replace(part, path)


def repository_url(root: Path = ROOT) -> str:
    """`repository.url` of ``_config.yml``: the one place that names the repository."""
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]


def code(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def python(source: str) -> str:
    """The source of a cell without its IPython magics, so that it parses."""
    return re.sub(r"^(\s*)%.*$", r"\1pass", source, flags=re.MULTILINE)


def _imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in names if name.split(".")[0] == "featlearn"}


def _file(module: str) -> Path | None:
    base = ROOT / Path(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


def modules(notebook: NotebookNode) -> list[Path]:
    """The files of the package that the notebook imports, directly or through each other.

    The checks of the exercises are left out: what they print is the same for every right answer,
    and nbval compares it.
    """
    waiting = _imported(ast.parse("\n".join(python(cell.source) for cell in code(notebook)))) | {
        "featlearn"
    }
    seen: set[str] = set()
    while waiting:
        name = waiting.pop()
        file = None if name in seen else _file(name)
        seen.add(name)
        if file is not None:
            waiting |= _imported(ast.parse(file.read_text(encoding="utf-8")))
    files = {file for name in seen if (file := _file(name)) is not None}
    return sorted(file for file in files if file.parent.name != "checks")


def fingerprint(notebook: NotebookNode) -> str:
    """A digest of what the outputs come from: the code, the package, stored data, other records."""
    parts = [cell.source for cell in code(notebook)]
    files = modules(notebook)
    parts += [file.read_text(encoding="utf-8") for file in files]
    if ROOT / "featlearn" / "data" / "__init__.py" in files:
        parts += [
            p.read_text(encoding="utf-8")
            for p in sorted((ROOT / "featlearn" / "data").glob("*.json"))
        ]
    if ROOT / "featlearn" / "book" / "scoreboard.py" in files:
        records = {
            path: [asdict(c) for c in found] for path, found in claims.collect(CHAPTERS).items()
        }
        parts.append(json.dumps([records, scoreboard.titles(CHAPTERS)], sort_keys=True))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def is_stale(notebook: NotebookNode) -> bool:
    """Whether the code, the package or the data changed since the outputs were made."""
    return notebook.metadata.get("featlearn", {}).get("fingerprint") != fingerprint(notebook)


def clean(notebook: NotebookNode) -> NotebookNode:
    """Drop what editors and executors leave behind; name each cell by a digest of its source."""
    kept = {
        key: notebook.metadata[key] for key in ("featlearn", "jupytext") if key in notebook.metadata
    }
    notebook.metadata = nbformat.from_dict(
        {"kernelspec": KERNEL, "language_info": {"name": "python"}, **kept}
    )
    seen: dict[str, int] = {}
    for cell in notebook.cells:
        kept = {key: cell.metadata[key] for key in ("tags", "mystnb") if cell.metadata.get(key)}
        cell.metadata = nbformat.from_dict(kept)
        digest = hashlib.sha256(f"{cell.cell_type}:{cell.source}".encode()).hexdigest()[:12]
        seen[digest] = seen.get(digest, 0) + 1
        cell.id = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return notebook


def renew_links(notebook: NotebookNode, url: str) -> None:
    """Point the set-up cell at `url`."""
    for cell in code(notebook)[:1]:
        cell.source = re.sub(r"git\+\S+", f"git+{url}", cell.source)


def renew_texts(url: str, root: Path = ROOT) -> list[Path]:
    """Point the clone commands and citations of the README and the front page at `url`.

    The files changed.
    """
    changed = []
    for path in (root / "README.md", root / "chapters" / "index.md"):
        text = path.read_text(encoding="utf-8")
        for old in set(re.findall(r"git clone (https://\S+)", text)) - {url}:
            path.write_text(text := text.replace(old, url), encoding="utf-8")
            changed.append(path)
    return changed


def execute(
    notebook: NotebookNode,
    folder: Path,
    *,
    seed: int | None = None,
    scale: str = "quick",
    allow_errors: bool = False,
    after_cell: Callable[[], None] | None = None,
) -> NotebookNode:
    """Run all cells in a fresh kernel, with `folder` as working directory, seed 0 or `seed`, at
    this scale.
    """
    environment = {**os.environ, "FEATLEARN_PROGRESS": "off", "FEATLEARN_SEED": str(seed or 0)}
    environment["FEATLEARN_SCALE"] = scale

    def done(**_: object) -> None:
        if after_cell is not None:
            after_cell()

    client = NotebookClient(
        notebook,
        timeout=900,
        kernel_name="python3",
        allow_errors=allow_errors,
        resources={"metadata": {"path": str(folder)}},
        on_cell_executed=done,
    )
    client.execute(env=environment)
    return notebook
