"""``make course``: the checked exercises of every chapter as a course for nbgrader, in ``course``.

``source/`` holds the lecturer's assignments, with solutions and hidden tests, ``release/`` the
students', which nbgrader itself makes from them. Submissions, marks and ``gradebook.db`` live in
the same folder, which no other command touches: an assignment with submissions stays as it is, and
so does the configuration once it is there.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader.apps import NbGraderAPI
from traitlets.config import Config

from book import colab, exercises, notebooks
from book.colab import Book
from book.exercises import Exercise

TARGET = notebooks.ROOT / "course"
CONFIG = Path(__file__).with_name("nbgrader_config.py")
HIDDEN = """\
### BEGIN HIDDEN TESTS
import importlib

import featlearn.checks
import {module}

importlib.reload(featlearn.checks)  # a check that was tampered with does not count
marker = importlib.reload({module})
for _ in range(3):
    result = marker.{function}({function})
    assert result, result.message
### END HIDDEN TESTS"""


def marked(source: str) -> str:
    """The cell with the bodies of its functions between nbgrader's solution marks.

    Docstrings stay outside.
    """
    lines = source.split("\n")
    for node in reversed(exercises.functions(source)):
        body = node.body[1:] if ast.get_docstring(node) else node.body
        first, last, indent = body[0].lineno - 1, body[-1].end_lineno, " " * body[0].col_offset
        lines[first:last] = [
            f"{indent}### BEGIN SOLUTION",
            *lines[first:last],
            f"{indent}### END SOLUTION",
        ]
    return "\n".join(lines)


def cell(
    kind: str, source: str, id: str, points: int | None = None, answer: bool = False
) -> NotebookNode:
    """A cell with nbgrader's metadata.

    For an answer, for marks, for both (marked by hand) or for reading only.
    """
    made = (
        nbformat.v4.new_code_cell(source)
        if kind == "code"
        else nbformat.v4.new_markdown_cell(source)
    )
    about = {
        "schema_version": 3,
        "grade_id": id,
        "task": False,
        "solution": answer,
        "grade": points is not None,
    }
    made.metadata["nbgrader"] = (
        about | {"locked": not answer} | ({} if points is None else {"points": points})
    )
    return made


def statement(book: Book, page: str, exercise: Exercise) -> str:
    """The exercise with its hint and what to expect folded below."""
    head = (
        f"## {book.labels[exercise.label]}: {exercise.title}\n\n*{exercise.about.points} points.* "
    )
    folds = {"Hint": exercise.hint, "What to expect": exercise.expect}
    told = [colab.fold(name, colab.plain(book, page, text)) for name, text in folds.items()]
    return "\n\n".join([head + colab.plain(book, page, exercise.text), *told])


def checked(book: Book, page: str, exercise: Exercise, module: str) -> list[NotebookNode]:
    """The cells of an exercise that a check marks."""
    call = f"result = check.{exercise.function}({exercise.function})\nassert result, result\n"
    call += "print(result)\n"
    hidden = HIDDEN.format(module=module, function=exercise.function)
    return [
        cell("markdown", statement(book, page, exercise), f"{exercise.label}-text"),
        cell("code", marked(exercise.code.source), exercise.label, answer=True),
        cell("code", call + hidden, f"{exercise.label}-check", points=exercise.about.points),
    ]


def written(book: Book, page: str, exercise: Exercise) -> list[NotebookNode]:
    """The cells of an exercise that is marked by hand."""
    texts = [part for part in exercise.solution if isinstance(part, str)]
    answer = colab.plain(book, page, "\n\n".join(texts))
    return [
        cell("markdown", statement(book, page, exercise), f"{exercise.label}-text"),
        cell(
            "markdown",
            f"### BEGIN SOLUTION\n{answer}\n### END SOLUTION",
            exercise.label,
            points=exercise.about.points,
            answer=True,
        ),
    ]


def merged(imports: str) -> str:
    """Import statements with each module once, in order."""
    whole: dict[str, None] = {}
    names: dict[str, dict[str, None]] = {}
    for node in ast.parse(imports).body:
        if isinstance(node, ast.ImportFrom):
            names.setdefault(node.module or "", {}).update(
                dict.fromkeys(ast.unparse(alias) for alias in node.names)
            )
        else:
            whole[ast.unparse(node)] = None
    parts = [f"from {module} import {', '.join(listed)}" for module, listed in names.items()]
    return "\n".join([*whole, *parts])


def assignment(book: Book, chapter: str, with_written: bool = False) -> NotebookNode:
    """The instructor's version.

    Every exercise of the chapter with a check and, if wanted, the written ones for marking by hand.
    """
    pages = notebooks.lectures()[chapter]
    sources = {notebooks.name(path): notebooks.load(path) for path in pages}
    imports = merged("\n".join(exercises.imports(source) for source in sources.values()))
    module = next(
        f"{node.module}.{node.names[0].name}"
        for node in ast.parse(imports).body
        if isinstance(node, ast.ImportFrom) and node.module == "featlearn.checks"
    )
    cells = [
        cell("markdown", f"# Assignment: {colab.title(chapter)}", "title"),
        cell("code", book.set_up().source, "set-up"),
        cell("code", imports, "imports"),
    ]
    for page, exercise in ((p, e) for p, source in sources.items() for e in exercises.read(source)):
        if exercise.code is not None:
            cells += checked(book, page, exercise, module)
        elif with_written and exercise.about.kind.startswith("Derive"):
            cells += written(book, page, exercise)
    made = nbformat.v4.new_notebook(cells=cells)
    made.metadata["kernelspec"] = notebooks.KERNEL
    for number, each in enumerate(made.cells):
        each.id = f"cell-{number}"
    return made


def chapter(number: str) -> str:
    """The name of a chapter, by its number."""
    known = {name[:2]: name for name in notebooks.lectures()}
    wanted = number.zfill(2)
    if wanted not in known:
        raise ValueError(f"CHAPTER must be one of {', '.join(known)}, got {number!r}")
    return known[wanted]


def nbgrader(root: Path) -> NbGraderAPI:
    """nbgrader in the course folder `root`.

    It calls ``alembic`` by name, which lies beside our Python.
    """
    beside = str(Path(sys.executable).parent)
    if beside not in os.environ["PATH"].split(os.pathsep):
        os.environ["PATH"] = os.pathsep.join([beside, os.environ["PATH"]])
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.db_url = f"sqlite:///{root}/gradebook.db"
    return NbGraderAPI(config=config)


def has_submissions(chapter: str, target: Path) -> bool:
    """Whether students have handed in something for this assignment."""
    return any(target.glob(f"submitted/*/{chapter}"))


def write(
    chapters: list[str],
    target: Path = TARGET,
    with_written: bool = False,
    site: Path = colab.SITE,
) -> list[Path]:
    """Write the lecturer's assignments, let nbgrader make the students'; the paths of the first.

    An assignment with submissions is left alone.
    """
    new = [chapter for chapter in chapters if not has_submissions(chapter, target)]
    target.mkdir(parents=True, exist_ok=True)
    if not (config := target / CONFIG.name).exists():
        config.write_text(CONFIG.read_text(encoding="utf-8"), encoding="utf-8")
    book, written = colab.load(site), []
    for chapter in new:
        where = target / "source" / chapter / f"{chapter}.ipynb"
        where.parent.mkdir(parents=True, exist_ok=True)
        notebooks.save(assignment(book, chapter, with_written), where)
        written.append(where)
        outcome = nbgrader(target).generate_assignment(chapter, force=True, create=True)
        if not outcome["success"]:
            raise RuntimeError(
                f"nbgrader could not make the assignment:\n{outcome['log']}\n{outcome['error']}"
            )
    return written


def main(arguments: list[str] | None = None) -> int:
    """Write the course, or the assignment of one chapter, and say where it is."""
    parser = argparse.ArgumentParser(prog="python -m book.course", description=__doc__)
    parser.add_argument("chapter", nargs="?", help="number of a chapter, such as 04")
    parser.add_argument(
        "--written", action="store_true", help="with the derivations, to be marked by hand"
    )
    options = parser.parse_args(arguments)
    try:
        wanted = [chapter(options.chapter)] if options.chapter else list(notebooks.lectures())
        written = write(wanted, with_written=options.written)
    except (FileNotFoundError, ValueError, RuntimeError) as error:
        print(error, file=sys.stderr)
        return 1
    for source in written:
        release = TARGET / "release" / source.relative_to(TARGET / "source")
        print(f"{release.relative_to(notebooks.ROOT)}: give it to your students")
    for name in wanted:
        if has_submissions(name, TARGET):
            print(f"{name}: has submissions and was left as it is")
    return 0


if __name__ == "__main__":
    sys.exit(main())
