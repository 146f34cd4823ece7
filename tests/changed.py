"""Run the tests of what changed since the last commit: `make check`."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests"


def changed(root=ROOT):
    """The files that differ from the last commit, new ones included."""
    commands = ["diff --name-only --diff-filter=d HEAD", "ls-files --others --exclude-standard"]
    found = (
        subprocess.run(["git", *command.split()], cwd=root, capture_output=True, text=True)
        for command in commands
    )
    return [line for answer in found for line in answer.stdout.splitlines()]


def tests_of(path):
    """The files of tests for one changed file, and the file itself for its docstring's examples.

    A module without a file of tests of its own is tested by those that import it.
    """
    path = Path(path)
    if path.suffix != ".py" or path.parts[0] not in ("featlearn", "tests"):
        return []
    if path.parts[0] == "tests":
        fast = path.parts[1] in ("package", "chapters") and path.name.startswith("test_")
        return [str(path)] if fast else []
    if path.parts[1] == "checks":
        return [str(path), "tests/chapters/test_checks.py"]
    package = [path.parts[1]] if path.parts[1] in ("damian", "shi") else []
    names = [*package, path.parent.name if path.stem == "__init__" else path.stem]
    files = sorted((TESTS / "package").glob("test_*.py"))
    own = [file for file in files if file.stem.removeprefix("test_") in names]
    imports = re.compile(
        rf"^(from|import) .*(\.{names[-1]} import|\b{names[-1]}(,| as|$))", re.MULTILINE
    )
    importing = [file for file in files if imports.search(file.read_text(encoding="utf-8"))]
    return [str(path), *(str(file.relative_to(ROOT)) for file in own or importing)]


if __name__ == "__main__":
    chosen = sorted({test for path in changed() for test in tests_of(path)})
    print("Tests of what changed:", " ".join(chosen) or "none")
    code = pytest.main(["-n", "auto", "--dist", "loadfile", *chosen]) if chosen else 0
    sys.exit(0 if code == pytest.ExitCode.NO_TESTS_COLLECTED else code)
