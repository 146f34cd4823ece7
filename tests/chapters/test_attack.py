"""An attack on the checks with answers that were written without knowing them.

Of more than a hundred wrong answers at most three pass, and all right ones in unusual forms do.
"""

import importlib

import pytest
from attack.right import RIGHT
from attack.wrong import WRONG

from featlearn import checks

MODULES = ("kernels", "random_features", "wide", "ntk", "beyond", "damian", "shi", "rfm")
CHECKS = {
    name: check
    for module in MODULES
    for name, check in vars(importlib.import_module(f"featlearn.checks.{module}")).items()
    if hasattr(check, "signature")
}
MISSED = {("bias_kernel", "divides by the norm: nan for the zero input without biases")}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """An answer that never ends is given up sooner."""
    monkeypatch.setattr(checks, "PATIENCE", 1)


def test_the_attack_is_as_large_as_it_says():
    assert set(WRONG) == set(RIGHT) == set(CHECKS)
    assert sum(map(len, WRONG.values())) >= 110
    assert sum(map(len, RIGHT.values())) >= 60
    assert len(MISSED) <= 3


@pytest.mark.parametrize("name", WRONG)
def test_wrong_answers_are_rejected(name):
    for what, answer in WRONG[name]:
        result = CHECKS[name](answer, seed=7, limit=4)
        assert result.verdict == "wrong" or (name, what) in MISSED, what


@pytest.mark.parametrize("name", RIGHT)
def test_right_answers_in_unusual_forms_pass(name):
    for what, answer in RIGHT[name]:
        result = CHECKS[name](answer, seed=7, limit=60)
        assert result, (what, result)
