"""Which solutions a build shows: ``make book SOLUTIONS=no``, and likewise for Colab and print.

``no`` leaves out all solutions and puts stubs in the place of functions to write: a lecturer's copy
for students. ``yes``, the book on the web, has the solutions of the exercises. ``all``, the
lecturer's edition, has those of the exam questions, too.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from sphinx.application import Sphinx

from book import exercises
from book.myst import placed

EDITIONS = ("no", "yes", "all")


def edition() -> str:
    """The edition that is being made, by the environment variable `SOLUTIONS`."""
    wanted = os.environ.get("SOLUTIONS") or "yes"
    if wanted not in EDITIONS:
        raise ValueError(f"SOLUTIONS must be one of {', '.join(EDITIONS)}, got {wanted!r}")
    return wanted


def markdown(source: str, edition: str) -> str:
    """The source of a page in this edition: exam questions have folded solutions."""
    lines = source.split("\n")
    for part, start, end in reversed(placed(source) if edition != "all" else []):
        if part.name == "dropdown" and part.argument == "Solution":
            lines[start:end] = []
    return "\n".join(lines)


def unsolved(source: str, inside: bool) -> tuple[str, bool]:
    """A Markdown cell without solutions, and whether a solution goes on after it.

    `inside` says whether one has begun before it.
    """
    kept: list[str] = []
    lines, read = source.split("\n"), 0
    for part, start, end in placed(source):
        if not part.name.startswith("solution"):
            continue
        kept += [] if inside else lines[read:start]
        inside, read = part.name == "solution-start", end
    kept += [] if inside else lines[read:]
    return "\n".join(kept).strip("\n"), inside


def page(notebook: NotebookNode, edition: str) -> NotebookNode:
    """A notebook in this edition; without solutions, functions to write are stubs."""
    if edition != "no":
        return notebook
    cells, inside, after_stub = [], False, False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source, inside = unsolved(cell.source, inside)
            cells += [cell] if cell.source else []
        elif exercises.is_solution(cell):
            cell.source, cell.outputs, after_stub = exercises.stub(cell.source), [], True
            cell.metadata.tags = [tag for tag in cell.metadata.tags if tag != "solution"]
            cells.append(cell)
        elif not inside:
            if after_stub:  # the call of the check
                cell.outputs, after_stub = [], False
            cells.append(cell)
    notebook.cells = cells
    return notebook


def source(text: str, name: str, edition: str) -> str:
    """The text of a source file with this name in this edition."""
    if not name.endswith(".ipynb"):
        return markdown(text, edition)
    return nbformat.writes(page(nbformat.reads(text, as_version=4), edition))


def _read(app: Sphinx, docname: str, content: list[str]) -> None:
    name = Path(app.env.doc2path(docname)).name
    content[0] = source(content[0], name, app.config.fl_solutions)


def _hand_out(app: Sphinx, exception: Exception | None) -> None:
    """The sources that a page offers are those of its edition, too."""
    folder = Path(app.outdir, "_sources")
    for path in folder.rglob("*") if exception is None else ():
        name = path.name.removesuffix(".txt")
        if path.is_file() and name.endswith((".ipynb", ".md")):
            text = path.read_text(encoding="utf-8")
            path.write_text(source(text, name, app.config.fl_solutions), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx. Another edition is read anew."""
    app.add_config_value("fl_solutions", edition(), "env")
    app.connect("source-read", _read)
    app.connect("build-finished", _hand_out)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
