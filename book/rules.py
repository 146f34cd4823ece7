"""The rules for notebooks. Each takes one and returns what is wrong with it, in sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from copy import deepcopy

from nbformat import NotebookNode

from book import exercises, notebooks
from featlearn.notebook import claims

LONGEST_CELL = 20
FEWEST_EXERCISES = 6
CLOSING = ("## What we verified, and what not", "## Exercises", "## Further reading")
GLOBAL_RANDOMNESS = re.compile(
    r"(?:np|numpy)\.random\.(?!Generator|PCG64|RandomState\b(?!\())\w+|from numpy\.random"
    r"|torch\.(?:manual_)?seed|\brandom\.\w+\("
    r"|torch\.(?:rand\w*|normal|bernoulli|multinomial|poisson)\((?![^\n]*generator=)|\.rvs\(|\.(?:normal|uniform)_\("
)
SETTLES = re.compile(r"claims\.(prediction|comparison|identity|not_shown)\(")
PARTS = ("## In short", "## Exercises", "## Measured on this page", "## Notes")


def _name(cell: NotebookNode) -> str:
    lines = cell.source.splitlines() or ["(empty)"]
    return f"cell {lines[0][:60]!r}"


def executed(notebook: NotebookNode) -> list[str]:
    """Every code cell ran, in order, without an error and without a word on stderr."""
    problems = []
    for count, cell in enumerate(notebooks.code(notebook), start=1):
        if cell.execution_count != count:
            problems.append(
                f"{_name(cell)} has execution count {cell.execution_count}, expected {count}"
            )
        for output in cell.outputs:
            if output.output_type == "error":
                problems.append(f"{_name(cell)} stores the error {output.ename}")
            if output.output_type == "stream" and output.name == "stderr":
                problems.append(f"{_name(cell)} wrote to stderr: {output.text[:80]!r}")
    return problems


def clean(notebook: NotebookNode) -> list[str]:
    """Metadata and cell ids are those that `make notebooks` writes."""
    return (
        [] if notebooks.clean(deepcopy(notebook)) == notebook else ["not clean: run make notebooks"]
    )


def set_up(notebook: NotebookNode) -> list[str]:
    """The first code cell installs the package from the repository of ``_config.yml``."""
    wanted = notebooks.SETUP.format(url=notebooks.repository_url())
    first = notebooks.code(notebook)[0].source
    return [] if first == wanted else [f"the set-up cell is not\n{wanted}"]


def figures(notebook: NotebookNode) -> list[str]:
    """Every figure has a label, a caption and alternative text, and its cell ends with
    ``plt.show()``.
    """
    problems = []
    for cell in notebooks.code(notebook):
        if not any("image/png" in output.get("data", {}) for output in cell.outputs):
            continue
        about = cell.metadata.get("mystnb", {})
        figure, alt = about.get("figure", {}), about.get("image", {}).get("alt", "")
        if not re.fullmatch(r"fig(-[a-z0-9]+)+", figure.get("name", "")):
            problems.append(f"{_name(cell)}: the figure needs a name such as 'fig-curse'")
        if len(figure.get("caption", "")) < 20 or len(alt) < 20:
            problems.append(f"{_name(cell)}: the figure needs a caption and alternative text")
        if not cell.source.rstrip().endswith("plt.show()"):
            problems.append(f"{_name(cell)}: a figure's cell ends with plt.show()")
    return problems


def _length(source: str) -> int:
    """Lines of code; a call that settles a claim counts as one."""
    lines = 0
    for node in ast.parse(notebooks.python(source)).body:
        text = ast.unparse(node)
        lines += 1 if SETTLES.match(text) else sum(bool(line.strip()) for line in text.splitlines())
    return lines


def short(notebook: NotebookNode) -> list[str]:
    """No visible cell is longer than LONGEST_CELL lines."""
    visible = [
        c for c in notebooks.code(notebook) if "hide-input" not in c.metadata.get("tags", [])
    ]
    long = [(cell, _length(cell.source)) for cell in visible]
    return [
        f"{_name(cell)} has {n} lines, at most {LONGEST_CELL}"
        for cell, n in long
        if n > LONGEST_CELL
    ]


def seeded(notebook: NotebookNode) -> list[str]:
    """Random numbers come from `featlearn.stream` alone."""
    found = [(cell, GLOBAL_RANDOMNESS.search(cell.source)) for cell in notebooks.code(notebook)]
    return [f"{_name(cell)} uses {match.group()}" for cell, match in found if match]


def compared(notebook: NotebookNode) -> list[str]:
    """No cell asks nbval to look away."""
    tags = [
        (cell, tag)
        for cell in notebook.cells
        for tag in cell.metadata.get("tags", [])
        if "nbval" in tag
    ]
    return [f"{_name(cell)} has the tag {tag}" for cell, tag in tags]


def recorded(notebook: NotebookNode) -> list[str]:
    """Every call that settles a claim left its record, the record is what was shown, ids are
    unique.
    """
    problems = []
    for cell in notebooks.code(notebook):
        shown = [output for output in cell.outputs if claims.RECORD in output.get("metadata", {})]
        if len(shown) < len(SETTLES.findall(cell.source)):
            problems.append(f"{_name(cell)} settles more claims than it stores records")
        for claim, output in zip(claims.read({"cells": [cell]}), shown, strict=True):
            if output.data.get("text/plain") != claim.line():
                problems.append(f"the record of {claim.id} is not what the cell shows")
    found = claims.read(notebook)
    ids = [claim.id.replace(".", "-") for claim in found]
    problems += [
        f"the claim {id} is recorded twice" for id in sorted({i for i in ids if ids.count(i) > 1})
    ]
    return problems + [f"the claim {claim.id} fails" for claim in found if claim.verdict == "fails"]


def glued(notebook: NotebookNode) -> list[str]:
    """Every number that the prose quotes was glued here, and every glued one is quoted."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    quoted = set(re.findall(r"\{glue:text\}`([\w-]+)`", prose))
    outputs = [output for cell in notebooks.code(notebook) for output in cell.outputs]
    stored = {o.metadata.scrapbook.name for o in outputs if "scrapbook" in o.get("metadata", {})}
    return [f"{key} is quoted but not glued" for key in sorted(quoted - stored)] + [
        f"{key} is glued but not quoted" for key in sorted(stored - quoted)
    ]


def opening(notebook: NotebookNode) -> list[str]:
    """The first cell is the title, and there is only one."""
    headings = [
        line for c in notebook.cells if c.cell_type == "markdown" for line in c.source.splitlines()
    ]
    titles = [line for line in headings if line.startswith("# ")]
    starts = notebook.cells[0].cell_type == "markdown" and notebook.cells[0].source.startswith("# ")
    return [] if starts and len(titles) == 1 else ["a notebook begins with its one title"]


def closing(notebook: NotebookNode) -> list[str]:
    """A chapter says what it verified and what not, sets exercises, and points further."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [f"the section {heading!r} is missing" for heading in CLOSING if heading not in prose]


def parts(notebook: NotebookNode) -> list[str]:
    """A page says its question and answer, and closes with its parts in order."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    headings = re.findall(r"^## .*$", prose, re.MULTILINE)
    problems = [] if headings[-len(PARTS) :] == list(PARTS) else [f"it must end with {PARTS}"]
    first = notebook.cells[0].source
    if not ("**The question.**" in first and "**The answer.**" in first):
        problems.append("the first cell must say the question and the answer")
    return problems


def quiet(notebook: NotebookNode) -> list[str]:
    """Claims are recorded in folded cells, have a kind, and stand in one table at the end."""
    code = notebooks.code(notebook)
    problems = [
        f"{_name(cell)} records a claim where it is seen"
        for cell in code
        if SETTLES.search(cell.source) and "hide-input" not in cell.metadata.get("tags", [])
    ]
    if code[-1].source != "claims.table()":
        problems.append("the last code cell must be claims.table()")
    return problems + [f"{c.id} has no kind" for c in claims.read(notebook) if not c.kind]


def sourceless(notebook: NotebookNode) -> list[str]:
    """The documents appear in the notes alone."""
    prose = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    found = re.findall(r"\bS[0-4]\b|\*Source:\*|\bslides?\b", prose.split("## Notes")[0])
    return [f"{word!r} belongs in the notes" for word in found]


def exercised(*pages: NotebookNode) -> list[str]:
    """A chapter sets at least six exercises of all kinds, each with its ladder.

    The open-ended one is the last of its page.
    """
    try:
        by_page = [exercises.read(page) for page in pages]
        found = [exercise for page in by_page for exercise in page]
    except ValueError as error:
        return [str(error)]
    kinds = " ".join(exercise.about.kind.title() for exercise in found)
    problems = [p for exercise in found for p in exercises.problems(exercise)]
    problems += [
        f"no exercise of the kind {kind}" for kind in exercises.KINDS if kind.title() not in kinds
    ]
    if len(found) < FEWEST_EXERCISES:
        problems.append(f"{len(found)} exercises, at least {FEWEST_EXERCISES}")
    for page in by_page:
        if any(exercise.about.kind == "Open-ended" for exercise in page[:-1]):
            problems.append("the last exercise of a page is the open-ended one")
    return problems


EVERY_NOTEBOOK: tuple[Callable[[NotebookNode], list[str]], ...] = (
    executed, clean, set_up, figures, short, seeded, compared, recorded, glued, opening,
)  # fmt: skip
EVERY_CHAPTER = (closing, exercised)
EVERY_PAGE = (parts, quiet, sourceless)
