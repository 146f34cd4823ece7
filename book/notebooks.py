"""Read, execute and clean the notebooks; decide which are out of date."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbclient import NotebookClient
from nbformat import NotebookNode

ROOT = Path(__file__).parents[1]
CHAPTERS = ROOT / "chapters"
DATA = ROOT / "featlearn" / "data"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
SETUP = """\
try:
    import featlearn
except ModuleNotFoundError:  # on Colab
    %pip install -q git+{url}
    import featlearn"""
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def paths(chapters: Path | None = None) -> list[Path]:
    """All notebooks: the pages of the chapters in order, then the appendices."""
    every = (chapters or CHAPTERS).rglob("*.ipynb")
    found = [path for path in every if ".ipynb_checkpoints" not in path.parts]
    return sorted(found, key=lambda p: (p.parent.name == "appendix", p.with_suffix("").parts))


def name(path: Path, chapters: Path | None = None) -> str:
    """What a page is called: its path in the chapters without suffix, ``01_kernels/2_training``."""
    return path.relative_to(chapters or CHAPTERS).with_suffix("").as_posix()


def lectures(chapters: Path | None = None) -> dict[str, list[Path]]:
    """The pages of each chapter, by the chapter's name; a chapter of one notebook has one page."""
    found: dict[str, list[Path]] = {}
    for path in paths(chapters):
        chapter = name(path, chapters).split("/")[0]
        if chapter != "appendix":
            found.setdefault(chapter, []).append(path)
    return found


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


def on_colab(url: str, path: str) -> str:
    """The address at which Colab opens a notebook of the branch ``colab`` of the repository."""
    name = url.removeprefix("https://github.com/")
    return f"https://colab.research.google.com/github/{name}/blob/colab/{path}.ipynb"


def code(notebook: NotebookNode) -> list[NotebookNode]:
    """The code cells."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def python(source: str) -> str:
    """The source of a cell without its IPython magics, so that it parses."""
    return re.sub(r"^(\s*)%.*$", r"\1pass", source, flags=re.MULTILINE)


def _imported(tree: ast.AST) -> set[str]:
    """What the code takes from the package, as dotted names: modules, and names in modules."""
    names: set[str] = set()
    package = {"featlearn"}  # what the package is called here
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
            package |= {a.asname for a in node.names if a.name == "featlearn" and a.asname}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            names |= {f"featlearn.{node.attr}"} if node.value.id in package else set()
    return {name for name in names if name.startswith("featlearn.")}


def _file(module: str) -> Path | None:
    base = ROOT / Path(*module.split("."))
    return next((p for p in (base.with_suffix(".py"), base / "__init__.py") if p.is_file()), None)


def _exported() -> dict[str, str]:
    """The names that ``import featlearn`` offers, by the modules that they come from."""
    tree = _parsed(ROOT / "featlearn" / "__init__.py")
    return {
        f"featlearn.{alias.asname or alias.name}": node.module
        for node in tree.body
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
        if node.module != "featlearn"
    }


@cache
def _read(path: Path, changed: int) -> ast.Module:
    """The syntax tree of the file as it was at the time `changed`."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _parsed(path: Path) -> ast.Module:
    return _read(path, path.stat().st_mtime_ns)


def modules(notebook: NotebookNode) -> list[Path]:
    """The files of the package that the notebook imports, directly or through each other.

    The package's own ``__init__`` imports everything; of it only the names in use count. The checks
    of the exercises are left out: what they print is the same for every right answer, and nbval
    compares it.
    """
    waiting = set().union(*(_imported(ast.parse(python(cell.source))) for cell in code(notebook)))
    exported, seen = _exported(), set()
    files: set[Path] = set()
    while waiting:
        name = waiting.pop()
        seen.add(name)
        parent = name.rpartition(".")[0]
        found = {parent} if parent != "featlearn" else set()
        if (file := _file(name)) is not None:
            files.add(file)
            found |= _imported(_parsed(file))
        elif name in exported:
            found.add(exported[name])
        waiting |= found - seen
    return sorted(file for file in files if file.parent.name != "checks")


def _loaded(tree: ast.AST) -> set[str]:
    """Patterns for the names of the stored files that the code loads.

    ``data.load("live")`` gives ``live.json`` and ``data.load(f"full_{name}")`` gives
    ``full_*.json``; an argument that is no string may be any of them.
    """
    patterns: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "featlearn.data":
            patterns |= {"*.json", "*.npz"}
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        owner, called = node.func.value, node.func.attr
        if getattr(owner, "id", getattr(owner, "attr", "")) != "data":
            continue
        if called == "mnist":
            patterns.add("*.npz")
        elif called == "load":
            argument = node.args[0] if node.args else None
            parts = argument.values if isinstance(argument, ast.JoinedStr) else [argument]
            known = [p.value if isinstance(p, ast.Constant) else "*" for p in parts]
            patterns.add("".join(known) + ".json")
    return patterns


def stored(notebook: NotebookNode) -> list[Path]:
    """The stored files that the notebook loads."""
    patterns = set().union(*(_loaded(ast.parse(python(cell.source))) for cell in code(notebook)))
    return sorted({path for pattern in patterns for path in DATA.glob(pattern)})


def _meaning(node: Any) -> Any:
    """A syntax tree without formatting, comments and docstrings, the same in every Python.

    Fields that are empty are left out: which of them exist depends on the version of Python.
    """
    if isinstance(node, list):
        return [_meaning(part) for part in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = dict(ast.iter_fields(node))
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
        fields["body"] = node.body[1:]
    kept = {name: _meaning(part) for name, part in fields.items() if part not in (None, [])}
    return [type(node).__name__, kept]


@cache
def _digest(path: Path, changed: int) -> str:
    """A digest of the meaning of the file as it was at the time `changed`."""
    return hashlib.sha256(json.dumps(_meaning(_read(path, changed))).encode()).hexdigest()


def fingerprint(notebook: NotebookNode) -> str:
    """A digest of what the outputs come from: the code, the package and the stored data it loads.

    Code counts by its meaning: a docstring, a comment or another layout changes nothing.
    """
    cells = [_meaning(ast.parse(python(cell.source)).body) for cell in code(notebook)]
    package = [_digest(file, file.stat().st_mtime_ns) for file in modules(notebook)]
    data = {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in stored(notebook)}
    text = json.dumps([cells, package, data], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


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
        if cell.cell_type == "code":
            cell.outputs = _joined(cell.outputs)
    return notebook


def _joined(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """The outputs with the pieces of one stream as one: where a busy kernel cuts is chance."""
    joined: list[NotebookNode] = []
    for output in outputs:
        is_more = bool(joined) and output.output_type == joined[-1].output_type == "stream"
        if is_more and output.name == joined[-1].name:
            joined[-1].text += output.text
        else:
            joined.append(output)
    return joined


def renew_links(notebook: NotebookNode, url: str) -> None:
    """Point the set-up cell at `url`."""
    for cell in code(notebook)[:1]:
        cell.source = re.sub(r"git\+\S+", f"git+{url}", cell.source)


def renew_texts(url: str, root: Path = ROOT) -> list[Path]:
    """Point the clone commands and citations of the README and the page about the book at `url`.

    The files changed.
    """
    changed = []
    for path in (root / "README.md", root / "chapters" / "appendix" / "about.md"):
        text = path.read_text(encoding="utf-8")
        for old in set(re.findall(r"git clone (https://\S+)", text)) - {url}:
            path.write_text(text := text.replace(old, url), encoding="utf-8")
            changed.append(path)
    return changed


def find(page: str) -> Path:
    """The notebook of a page, such as ``01_kernels/2_training``."""
    path = CHAPTERS / f"{page}.ipynb"
    if not path.is_file():
        raise ValueError(f"PAGE must be one of {', '.join(map(name, paths()))}, got {page!r}")
    return path


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
