"""The instructor's plan agrees with the exercises and with itself."""

import re

import pytest

from book import exercises, notebooks, printing

PAGE = (notebooks.CHAPTERS / "appendix" / "instructor.md").read_text(encoding="utf-8")
CHAPTERS = notebooks.lectures()
PAGES = [path for pages in CHAPTERS.values() for path in pages]
EXERCISES = {e.label: e for path in PAGES for e in exercises.read(notebooks.load(path))}
SHEETS = printing.sheets(PAGE)


def test_every_exercise_is_on_exactly_one_of_twelve_sheets():
    labels = [label for sheet in SHEETS for label in sheet.labels]
    assert sorted(labels) == sorted(EXERCISES)
    assert [sheet.number for sheet in SHEETS] == list(range(1, 13))
    assert all(4 <= len(sheet.labels) <= 10 for sheet in SHEETS)


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: f"sheet-{sheet.number}")
def test_the_minutes_of_a_sheet_are_those_of_its_exercises(sheet):
    closed = [
        EXERCISES[label] for label in sheet.labels if EXERCISES[label].about.kind != "Open-ended"
    ]
    minutes = sum(exercise.about.minutes for exercise in closed)
    assert f"| {sheet.number}, about {minutes} minutes |" in PAGE


@pytest.mark.parametrize("week", range(1, 13))
def test_lectures_last_ninety_minutes_and_a_week_has_all_its_parts(week):
    section = re.search(rf"^### Week {week}: .*?(?=^##)", PAGE, re.MULTILINE | re.DOTALL).group()
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    for column in (1, 3):
        assert sum(int(row[column]) for row in rows if row[column].strip()) == 90
    for part in ("**On the board.**", "**Run.**", "**Sheet.**", "**Typical errors.**"):
        assert part in section
    assert 3 <= section.count('\n- *"') <= 5


@pytest.mark.parametrize("lecture", range(1, 5))
def test_the_four_lectures_last_ninety_minutes(lecture):
    section = re.search(
        rf"^### Lecture {lecture}: .*?(?=^\(|^##)", PAGE, re.MULTILINE | re.DOTALL
    ).group()
    rows = [line.split("|")[1:-1] for line in section.splitlines() if line.startswith("|")][2:]
    assert sum(int(row[1]) for row in rows) == 90


def test_exam_questions_have_solutions_whose_points_add_up():
    exam = PAGE.split("## Exam questions", 1)[1].split("## What the checks catch", 1)[0]
    questions = re.findall(
        r"^\*\*\d[ab]\. .*? · (\d+) points · \d+ minutes\.\*\*(.*?)^:::$", exam, re.M | re.DOTALL
    )
    assert len(questions) == 2 * len(CHAPTERS)
    for points, text in questions:
        assert ":::{dropdown} Solution" in text
        assert sum(map(int, re.findall(r"\*\((\d+) points?\)\*", text))) == int(points), text[:60]
