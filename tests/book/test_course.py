"""``make assignment``: nbgrader makes, validates and marks it.

Solutions get full marks, stubs none.
"""

import pytest
from nbformat.v4 import new_code_cell, new_notebook
from nbgrader.api import Gradebook
from nbgrader.validator import Validator

from book import assignment, colab, exercises, notebooks

CHAPTERS = notebooks.lectures()


@pytest.fixture(scope="module")
def course(tmp_path_factory):
    """A course with one assignment for each chapter, and three students."""
    root = tmp_path_factory.mktemp("course")
    made = {chapter: assignment.write(chapter, root) for chapter in CHAPTERS}
    return root, made


def hand_in(root, student, name, notebook):
    folder = root / "submitted" / student / name
    folder.mkdir(parents=True, exist_ok=True)
    notebooks.save(notebook, folder / f"{name}.ipynb")


def mark(root, student, name):
    """Autograde one submission; (score, the most one can get)."""
    outcome = assignment.course(root).autograde(name, student, force=True)
    assert outcome["success"], outcome["log"]
    with Gradebook(f"sqlite:///{root}/gradebook.db") as book:
        submission = book.find_submission(name, student)
        assert not submission.needs_manual_grade
        return submission.score, submission.max_score


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_students_get_stubs_and_no_hidden_test(chapter, course):
    _, made = course
    source, release = map(notebooks.load, made[chapter])
    text = "\n".join(cell.source for cell in release.cells)
    assert "HIDDEN" not in text and "reload" not in text and "SOLUTION" not in text
    read = [e for path in CHAPTERS[chapter] for e in exercises.read(notebooks.load(path))]
    answers = [e for e in read if e.code is not None]
    assert text.count("raise NotImplementedError()") >= len(answers) >= 2
    points = [
        cell.metadata.nbgrader.points for cell in source.cells if cell.metadata.nbgrader.grade
    ]
    assert points == [exercise.about.points for exercise in answers]
    for exercise in answers:
        assert exercise.code.source.splitlines()[-1].strip() not in text


def test_the_solution_gets_full_marks(course):
    root, made = course
    hand_in(root, "solver", "01_kernels", notebooks.load(made["01_kernels"][0]))
    score, most = mark(root, "solver", "01_kernels")
    assert score == most > 0


def test_solutions_pass_the_hidden_tests_of_every_chapter(course, tmp_path):
    """What nbgrader runs, in one kernel, which loads torch once; each chapter begins with
    nothing defined.
    """
    cells = []
    for source, _ in course[1].values():
        cells += [new_code_cell("%reset -f"), *notebooks.code(notebooks.load(source))]
    assert sum("BEGIN HIDDEN TESTS" in cell.source for cell in cells) >= 2 * len(CHAPTERS)
    for number, cell in enumerate(cells):
        cell.id = f"cell-{number}"
    notebooks.execute(new_notebook(cells=cells), tmp_path)


def test_one_right_answer_gets_its_points_and_stubs_and_tampering_with_the_check_none(course):
    root, made = course
    source, release = map(notebooks.load, made["01_kernels"])
    answers = {cell.metadata.nbgrader.grade_id: cell.source for cell in source.cells}
    tampered = "check.periodic = lambda f: True"
    for cell in release.cells:
        if cell.metadata.nbgrader.grade_id == "ex-ker-centre":
            cell.source = answers["ex-ker-centre"]
        if cell.metadata.nbgrader.grade_id == "ex-kernel":
            cell.source += f"\n\n\n{tampered}"
    hand_in(root, "half", "01_kernels", release)
    score, _ = mark(root, "half", "01_kernels")
    assert score == exercises.POINTS["easy"]


def test_nbgrader_says_what_a_student_has_not_done(course):
    assert Validator().validate(str(course[1]["04_ntk"][1]))["failed"]


def test_derivations_are_marked_by_hand(tmp_path):
    made = assignment.write("02_random_features", tmp_path, with_written=True)
    source, release = map(notebooks.load, made)
    by_hand = [
        c for c in source.cells if c.metadata.nbgrader.grade and c.metadata.nbgrader.solution
    ]
    assert len(by_hand) >= 2
    assert "YOUR ANSWER HERE" in "\n".join(cell.source for cell in release.cells)
    assert all("SOLUTION" not in cell.source for cell in release.cells)


def test_marks_go_around_bodies_and_leave_docstrings():
    source = (
        'def f(x):\n    """Formula."""\n    y = 2 * x\n    return y\n\n\ndef g(x):\n    return f(x)'
    )
    assert assignment.marked(source) == (
        'def f(x):\n    """Formula."""\n'
        "    ### BEGIN SOLUTION\n    y = 2 * x\n    return y\n    ### END SOLUTION"
        "\n\n\ndef g(x):\n    ### BEGIN SOLUTION\n    return f(x)\n    ### END SOLUTION"
    )


@pytest.mark.parametrize("number", ["", "9", "four", "-1"])
def test_an_unknown_chapter_is_refused(number, capsys):
    assert assignment.main([number] if not number.startswith("-") else ["--", number]) == 1
    assert "CHAPTER must be one of 01, 02" in capsys.readouterr().err


def test_no_leftover_syntax(course):
    _, made = course
    for source, _ in made.values():
        for cell in notebooks.load(source).cells:
            assert cell.cell_type == "code" or not colab.LEFTOVER.search(cell.source)
