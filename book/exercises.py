"""The exercises of a chapter, read from its notebook.

Statement, ladder, solution, and the function to write.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from nbformat import NotebookNode

from book import notebooks
from book.myst import Directive, parse

KINDS = ("Derive", "Implement", "Experiment", "Open-ended")
POINTS = {"easy": 2, "medium": 4, "hard": 6}
IMPORTANCE = ("core", "useful", "optional")
ABOUT = re.compile(
    rf"(?P<kind>[\w -]+) · (?P<difficulty>{'|'.join(POINTS)})(?: · (?P<importance>\w+))?"
    r" · (?P<time>(?:(?P<minutes>\d+) minutes|an hour)(?P<more> or more)?)\."
)


@dataclass(frozen=True)
class About:
    """The line that an exercise begins with, such as ``Derive · easy · core · 10 minutes.``"""

    kind: str
    difficulty: str
    importance: str
    time: str
    minutes: int
    is_longer: bool

    @property
    def points(self) -> int:
        """Easy 2, medium 4, hard 6."""
        return POINTS[self.difficulty]

    def __str__(self) -> str:
        return f"{self.kind} · {self.difficulty} · {self.importance} · {self.time}."


def about(line: str) -> About:
    """Read the line that an exercise begins with."""
    found = ABOUT.fullmatch(line)
    if found is None:
        raise ValueError(
            f"the line must read like 'Derive · easy · core · 10 minutes.', got {line!r}"
        )
    time, minutes, more = found.group("time", "minutes", "more")
    kind, difficulty, importance = found.group("kind", "difficulty", "importance")
    return About(kind, difficulty, importance or "", time, int(minutes or 60), more is not None)


@dataclass
class Exercise:
    """One exercise. `code` and `check` are the cells of the function that it asks for."""

    label: str
    title: str
    about: About
    text: str
    hint: str = ""
    expect: str = ""
    solution: list[str | NotebookNode] = field(default_factory=list)
    code: NotebookNode | None = None
    check: NotebookNode | None = None

    @property
    def function(self) -> str:
        """The name of the function that the check marks.

        The last one defined in the solution's cell.
        """
        return "" if self.code is None else functions(self.code.source)[-1].name


def functions(source: str) -> list[ast.FunctionDef]:
    """The functions that a cell defines."""
    return [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def is_solution(cell: NotebookNode) -> bool:
    """Whether a code cell holds a solution."""
    return cell.cell_type == "code" and "solution" in cell.metadata.get("tags", [])


def stub(source: str) -> str:
    """The cell without its solution: imports, signatures and docstrings stay, bodies raise."""
    kept: list[ast.stmt] = []
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef):
            docstring = node.body[:1] if ast.get_docstring(node) else []
            node.body = [*docstring, *ast.parse('raise NotImplementedError("your turn")').body]
        elif not isinstance(node, (ast.Import, ast.ImportFrom)):
            continue
        kept.append(node)
    return "\n\n\n".join(ast.unparse(node) for node in kept)


def read(notebook: NotebookNode) -> list[Exercise]:
    """All exercises in order. What does not fit the form is an error that names the exercise."""
    found: list[Exercise] = []
    inside = False
    for cell in notebook.cells:
        if cell.cell_type == "code":
            if not found:
                continue
            if inside:
                found[-1].solution.append(cell)
            if is_solution(cell):
                found[-1].code = cell
            elif re.search(r"^check\.\w+\(\w+\)$", cell.source, re.MULTILINE):
                found[-1].check = cell
            continue
        for part in parse(cell.source):
            if isinstance(part, str):
                if inside:
                    found[-1].solution.append(part)
            elif part.name == "exercise":
                found.append(_exercise(part))
            elif part.name in ("solution", "solution-start"):
                _same(found, part)
                found[-1].solution.append(part.body)
                inside = part.name == "solution-start"
            elif part.name == "solution-end":
                inside = False
            elif inside:
                raise ValueError(
                    f"{found[-1].label}: a directive inside its solution is not supported"
                )
            elif part.name == "dropdown" and part.argument == "Hint":
                found[-1].hint = part.body
            elif part.name == "dropdown" and part.argument == "What to expect":
                found[-1].expect = part.body
    return found


def _exercise(part: Directive) -> Exercise:
    label = part.options.get("label", "")
    first = re.fullmatch(r"(?:\*(?P<line>[^*]*)\* )?(?P<text>.*)", part.body, re.DOTALL)
    try:
        return Exercise(
            label, part.argument, about(first["line"] or first["text"][:60]), first["text"]
        )
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from error


def _same(found: list[Exercise], part: Directive) -> None:
    if not found or found[-1].label != part.argument:
        raise ValueError(f"the solution of {part.argument} does not follow its exercise")


def problems(exercise: Exercise) -> list[str]:
    """What an exercise lacks, in sentences."""
    kind, importance = exercise.about.kind, exercise.about.importance
    kinds = kind.split(" and ")
    found = {
        f"kind {kind!r}": all(k.capitalize() in (*KINDS, "Check") for k in kinds),
        f"importance {importance!r}": importance in IMPORTANCE,
        "no hint": len(exercise.hint) > 20,
        "nothing under 'What to expect'": len(exercise.expect) > 20,
        "no solution": bool(exercise.solution),
        "a function without solution cell and check": ("Implement" in kind.title())
        <= (exercise.code is not None and exercise.check is not None),
        "a solution cell that the check does not call": exercise.code is None
        or (
            exercise.check is not None
            and f"check.{exercise.function}({exercise.function})" in exercise.check.source
        ),
    }
    return [f"{exercise.label}: {what}" for what, holds in found.items() if not holds]


def imports(notebook: NotebookNode) -> str:
    """All import statements of a notebook but those of its set-up cell, as source."""
    trees = [ast.parse(notebooks.python(cell.source)) for cell in notebooks.code(notebook)[1:]]
    found = [
        node
        for tree in trees
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    return "\n".join(dict.fromkeys(ast.unparse(node) for node in found))
