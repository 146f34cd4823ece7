"""The workflows: valid, without a finding of the linter, pinned; what may write runs no code of
the project. The versions that they and the release rely on agree."""

import re
import subprocess
import sys
from importlib.metadata import requires
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

import featlearn

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
WORKFLOWS = {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in FILES}
JOBS = {
    f"{name}/{job}": content
    for name, workflow in WORKFLOWS.items()
    for job, content in workflow["jobs"].items()
}
PUBLISHING = {
    "deploy/site": {"pages": "write", "id-token": "write"},
    "deploy/colab": {"contents": "write"},
    "release/publish": {"id-token": "write"},
}
BIN = Path(sys.executable).parent


def steps(job):
    return JOBS[job].get("steps", [])


def test_the_workflows_are_valid():
    command = [BIN / "check-jsonschema", "--builtin-schema", "vendor.github-workflows", *FILES]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


def test_the_linter_has_no_finding():
    command = [BIN / "zizmor", "--offline", "--no-progress", "--pedantic", *FILES]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0, found.stdout + found.stderr


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_actions_are_pinned_by_hash_and_name_their_version(path):
    used = re.findall(r"uses: +(.+)", path.read_text(encoding="utf-8"))
    local = [use for use in used if use.startswith("./.github/workflows/")]
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40}  # v\d+\.\d+\.\d+")
    assert [use for use in used if use not in local and not pinned.fullmatch(use)] == []
    assert used, path


def test_an_action_has_one_version_everywhere():
    text = "\n".join(path.read_text(encoding="utf-8") for path in FILES)
    pins = set(re.findall(r"uses: +([\w-]+/[\w-]+)@(.+)", text))
    assert len(pins) == len({action for action, _ in pins})


@pytest.mark.parametrize("job", JOBS)
def test_only_what_publishes_may_write(job):
    assert WORKFLOWS[job.split("/")[0]]["permissions"] == {}
    assert JOBS[job]["permissions"] == PUBLISHING.get(job, {"contents": "read"})


@pytest.mark.parametrize("job", PUBLISHING)
def test_what_publishes_runs_no_code_of_the_project(job):
    actions = [step["uses"].split("@")[0] for step in steps(job) if "uses" in step]
    assert "actions/checkout" not in actions
    commands = "\n".join(step.get("run", "") for step in steps(job))
    words = re.findall(r"^\s*(?:\w+=\S+\s+)*(\S+)", commands.replace("\\\n", " "), re.MULTILINE)
    assert set(words) <= {"git"}


@pytest.mark.parametrize("job", PUBLISHING)
def test_what_publishes_waits_for_the_tests(job):
    workflow = WORKFLOWS[job.split("/")[0]]
    needed = JOBS[job]["needs"]
    assert "test" in ([needed] if isinstance(needed, str) else needed)
    assert workflow["jobs"]["test"]["uses"] == "./.github/workflows/test.yml"


def test_what_is_published_is_what_was_kept_after_the_tests():
    """The suite keeps its artifacts in the last steps; nothing else makes some of the same name."""
    suite = [step.get("uses", step.get("run")).split("@")[0] for step in steps("test/suite")]
    tests = suite.index("make colab test")
    kept = ["actions/upload-pages-artifact", "actions/upload-artifact"]
    assert suite[tests + 1 :] == kept
    assert WORKFLOWS["deploy"]["jobs"]["test"]["with"] == {"keep": True}
    build = [step.get("uses", step.get("run")).split("@")[0] for step in steps("release/build")]
    assert build[-2:] == ['make release TAG="$GITHUB_REF_NAME"', "actions/upload-artifact"]
    artifacts = {
        job: [step["with"]["name"] for step in steps(job) if "name" in step.get("with", {})]
        for job in JOBS
    }
    assert {job: names for job, names in artifacts.items() if names} == {
        "test/suite": ["colab"],
        "deploy/colab": ["colab"],
        "release/build": ["dist"],
        "release/publish": ["dist"],
    }


@pytest.mark.parametrize("job", JOBS)
def test_every_job_ends_in_time_and_no_checkout_keeps_the_token(job):
    if "uses" not in JOBS[job]:
        assert JOBS[job]["timeout-minutes"] <= 45
    for step in steps(job):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] is False


def test_a_push_runs_the_suite_once_for_each_python():
    """yaml reads the key `on` as true."""
    pushed = [name for name, workflow in WORKFLOWS.items() if "push" in workflow[True]]
    assert pushed == ["deploy", "release"]
    assert WORKFLOWS["deploy"][True]["push"] == {"branches": ["main"]}
    assert WORKFLOWS["release"][True]["push"] == {"tags": ["v*"]}
    commands = {job: [step.get("run", "") for step in steps(job)] for job in JOBS}
    suites = [job for job, lines in commands.items() if re.search(r"\btest\b|pytest", str(lines))]
    assert suites == ["newest/newest", "test/suite"]


def test_the_newest_versions_get_the_same_tests():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    options = re.search(r"\$\(PYTEST\) (-n auto .*?) tests", makefile)[1]
    assert steps("newest/newest")[-1]["run"] == f".venv/bin/python -m pytest {options}"


def test_the_oldest_versions_are_the_lower_bounds():
    lines = (ROOT / "tests" / "oldest.txt").read_text(encoding="utf-8").split("\n")
    pins = dict(line.split("==") for line in lines if "==" in line)
    for text in requires("featlearn"):
        requirement = Requirement(text)
        if requirement.marker is None:
            (bound,) = requirement.specifier
            pinned, least = Version(pins[requirement.name]), Version(bound.version)
            assert (bound.operator, pinned.release[:2]) == (">=", least.release[:2])
            assert requirement.specifier.contains(pinned)


def test_one_version_of_the_package():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    built = re.search(r'^version = "(.+)"', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    assert featlearn.__version__ == cited == built[1]
