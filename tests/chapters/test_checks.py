"""The exercises' checks.

The book's solution passes, the stub and every wrong answer fail, with words that help.
"""

import ast
import importlib
import inspect
import re
import sys
import threading
from functools import cache

import numpy as np
import pytest
import torch

from book import notebooks
from featlearn import checks

CHAPTERS = {
    "kernels": "01_kernels",
    "random_features": "02_random_features",
    "wide": "03_wide_networks",
    "ntk": "04_ntk",
    "beyond": "05_beyond_linearization",
    "damian": "06_damian",
    "shi": "07_shi",
    "rfm": "08_feature_learning_kernels",
}


def module(name):
    return importlib.import_module(f"featlearn.checks.{name}")


def all_checks(name):
    return {key: f for key, f in vars(module(name)).items() if hasattr(f, "signature")}


def wrong_answers(name):
    return importlib.import_module(f"answers.{name}").WRONG


def unguarded(work, limit, given, late):
    """In place of `checks._guarded`, which is slow: it copies modules and starts a thread."""
    return work()


def with_seeds(check, answer, seeds):
    """What the check says, once under guard, then unguarded with `seeds`."""
    first = check(answer, seed=1000)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checks, "_guarded", unguarded)
        return [first, *(check(answer, seed=seed) for seed in seeds)]


@cache
def of_wrong_answers(name, key):
    """What a check says of each of its wrong answers, asked once for all tests."""
    return [
        with_seeds(all_checks(name)[key], answer, range(3))
        for answer, _ in wrong_answers(name)[key]
    ]


@cache
def cells(chapter):
    """The import statements of a chapter, and its solution cells."""
    code = [
        cell
        for path in notebooks.lectures()[chapter]
        for cell in notebooks.code(notebooks.load(path))[1:]
    ]
    trees = [(c, ast.parse(notebooks.python(c.source))) for c in code]
    imports = [
        node
        for _, tree in trees
        for node in tree.body
        if isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    solutions = [tree for c, tree in trees if "solution" in c.metadata.get("tags", [])]
    return imports, solutions


def solution(name, key):
    """The book's answer, from its own cell with nothing around it but the chapter's imports."""
    imports, solutions = cells(CHAPTERS[name])
    scope = {}
    for tree in solutions:
        if any(isinstance(node, ast.FunctionDef) and node.name == key for node in tree.body):
            exec(compile(ast.Module([*imports, *tree.body], []), name, "exec"), scope)
    return scope[key]


EACH = [(name, key) for name in CHAPTERS for key in all_checks(name)]


@pytest.mark.parametrize(("name", "key"), EACH)
def test_the_solution_passes_every_time_and_its_arguments_are_those_of_the_check(name, key):
    check, answer = all_checks(name)[key], solution(name, key)
    for result in with_seeds(check, answer, range(6)):
        assert result, result
    wanted = inspect.signature(eval(f"lambda {check.signature.split('(', 1)[1][:-1]}: None"))
    assert f"{key}{wanted}" == f"{key}{inspect.signature(answer)}"
    assert answer.__doc__, "the stub keeps the docstring, so there must be one"


@pytest.mark.parametrize(("name", "key"), EACH)
def test_the_stub_fails_cleanly(name, key):
    def stub(*inputs):
        raise NotImplementedError

    result = all_checks(name)[key](stub)
    assert not result
    assert result.verdict == "not yet"
    assert repr(result) == f"○ {key}: not written yet. Replace the line that raises."


@pytest.mark.parametrize(("name", "key"), EACH)
def test_a_wrong_answer_is_told_what_is_wrong_with_it(name, key):
    for (_, says), results in zip(
        wrong_answers(name)[key], of_wrong_answers(name, key), strict=True
    ):
        for result in results:
            assert result.verdict == "wrong", (says, result)
            assert says in result.message


@pytest.mark.parametrize(("name", "key"), EACH)
def test_each_wrong_answer_has_its_own_message(name, key):
    messages = {results[2].message for results in of_wrong_answers(name, key)}
    assert len(messages) == len(wrong_answers(name)[key]) >= 4


@pytest.mark.parametrize(("name", "key"), EACH)
def test_no_message_holds_a_number_that_was_computed(name, key):
    for results in of_wrong_answers(name, key):
        for message in {result.message for result in results}:
            shown = re.sub(r"Given .*?, it", "it", message)
            assert not re.search(r"\d\.\d{3}", shown), message


@pytest.mark.parametrize("name", CHAPTERS)
def test_no_check_imports_a_notebook_or_lacks_wrong_answers(name):
    source = inspect.getsource(module(name))
    nodes = list(ast.walk(ast.parse(source)))
    roots = {a.name.split(".")[0] for n in nodes if isinstance(n, ast.Import) for a in n.names}
    roots |= {n.module.split(".")[0] for n in nodes if isinstance(n, ast.ImportFrom)}
    assert roots - sys.stdlib_module_names <= {"featlearn", "numpy", "scipy", "torch"}
    assert "ipynb" not in source
    assert set(wrong_answers(name)) == set(all_checks(name))


def endless(*_):
    while True:
        pass


TOLD_TO_STOP = threading.Event()


def stubborn(*_):
    """Cannot be interrupted; the test ends it, so that it does not keep the processor busy."""
    while not TOLD_TO_STOP.is_set():
        try:
            TOLD_TO_STOP.wait(0.01)
        except BaseException:
            continue


def leaving(*_):
    raise SystemExit


def bottomless(*inputs):
    return bottomless(*inputs)


class Hostile:
    """An object that raises whatever one asks of it."""

    def __array__(self, *_, **__):
        raise RuntimeError("no")

    def __len__(self):
        raise RuntimeError("no")

    def __getattr__(self, name):
        raise RuntimeError("no")

    def __repr__(self):
        raise RuntimeError("no")


def failing(*_):
    class Odd(Exception):
        def __str__(self):
            raise RuntimeError("no")

    raise Odd


VALUES = {
    "none": lambda *_: None,
    "text": lambda *_: "42",
    "ragged": lambda *_: [[1.0], [2.0, 3.0]],
    "object": lambda *_: Hostile(),
    "function": lambda *_: print,
    "generator": lambda *_: (i for i in range(3)),
    "dictionary": lambda *_: {"answer": 42},
    "empty": lambda *_: np.zeros((0, 3)),
    "deep": lambda *_: np.zeros((1,) * 9),
    "nan": lambda *inputs: np.full(np.shape(inputs[0]), np.nan),
    "infinite": lambda *inputs: torch.full(np.shape(inputs[0]), torch.inf),
    "nan alone": lambda *_: float("nan"),
    "complex": lambda *inputs: 1j * np.ones(np.shape(inputs[0])),
    "zero": lambda *_: 0.0,
    "zeros": lambda *inputs: np.zeros(np.shape(inputs[0])),
    "tuple": lambda *_: (),
    "the input": lambda *inputs: inputs[0],
    "all inputs": lambda *inputs: inputs,
    "a class": Hostile,
}
CALLS = {
    "raises": lambda *_: 1 / 0,
    "raises oddly": failing,
    "leaves": leaving,
    "endless": endless,
    "stubborn": stubborn,
    "bottomless": bottomless,
    "no arguments": lambda: 1.0,
    "too many": lambda a, b, c, d, e, f, g: 1.0,
}


def assert_survived(result):
    assert result.verdict == "wrong"
    assert result.message.endswith((".", "?", ".)")) or "raised" in result.message
    assert str(result).startswith("✗")
    assert "fl-fails" in result._repr_html_()


@pytest.mark.parametrize("kind", VALUES)
def test_a_hostile_value_is_survived_by_every_check(kind):
    for name, key in EACH:
        assert_survived(all_checks(name)[key](VALUES[kind]))


@pytest.mark.parametrize("kind", CALLS)
def test_a_hostile_call_is_survived(kind):
    """By one check, since all of them call an answer under the same guard."""
    try:
        limit = 0.2 if kind in ("endless", "stubborn") else 10.0
        assert_survived(module("kernels").centre(CALLS[kind], limit=limit))
    finally:
        TOLD_TO_STOP.set()


def test_every_check_calls_the_answer_under_guard():
    for name, key in EACH:
        result = all_checks(name)[key](leaving)
        assert "it ended with SystemExit instead of a value" in result.message


@pytest.mark.parametrize("thing", [None, 3.0, np.eye(2), "text"])
def test_what_cannot_be_called_is_refused(thing):
    result = module("kernels").centre(thing)
    assert "hand over the function itself" in result.message


@pytest.mark.parametrize(
    ("patch", "restored"),
    [
        ("np.abs = lambda *_: 0.0", lambda: np.abs(-2.0) == 2.0),
        ("checks.close = lambda *_: True", lambda: not checks.close(np.zeros(2), np.ones(2))),
        ("del checks.Wrong", lambda: issubclass(checks.Wrong, Exception)),
        ("import builtins; builtins.isinstance = lambda *_: True", lambda: not isinstance(1, str)),
        (
            "torch.set_default_dtype(torch.float64)",
            lambda: torch.get_default_dtype() == torch.float32,
        ),
    ],
)
def test_what_an_answer_patches_is_restored(patch, restored):
    def answer(K):
        exec(patch, {"np": np, "checks": checks, "torch": torch})
        return 0 * K

    result = module("kernels").centre(answer)
    assert result.verdict == "wrong"
    assert restored()
    assert not module("kernels").centre(lambda K: 0 * K)


def test_not_written_is_said_only_of_the_function_itself():
    def calls_another(K):
        return torch.nn.Module()(K)

    assert "it raised NotImplementedError" in module("kernels").centre(calls_another).message


@pytest.mark.parametrize(
    ("option", "value"), [("seed", -1), ("seed", "abc"), ("limit", 0), ("limit", "long")]
)
def test_a_wrong_option_is_named(option, value):
    with pytest.raises((TypeError, ValueError), match=option):
        module("kernels").centre(lambda K: K, **{option: value})


def test_a_long_error_is_cut():
    def answer(K):
        raise ValueError("x" * 999 + "\n" + "y" * 999)

    message = module("kernels").centre(answer).message
    assert "y" not in message.split("ValueError:")[1] and len(message) < 400


def test_inputs_are_fresh_every_time_and_the_seed_brings_them_back():
    seen = []

    def spy(K):
        seen.append(K)
        return K

    check = module("kernels").centre
    first = check(spy)
    check(spy)
    check(spy, seed=first.seed)
    assert not np.array_equal(seen[0], seen[1])
    assert np.array_equal(seen[0], seen[2])


def test_a_tensor_and_single_precision_are_accepted():
    def centre(K):
        K = torch.as_tensor(K, dtype=torch.float32).requires_grad_()
        return K - K.mean(0, keepdim=True) - K.mean(1, keepdim=True) + K.mean()

    assert module("kernels").centre(centre)


@pytest.mark.parametrize(
    "convert",
    [
        lambda K: torch.as_tensor(K).to_sparse(),
        lambda K: [torch.as_tensor(row).requires_grad_() for row in K],
        lambda K: K.astype(object),
        lambda K: K.tolist(),
        lambda K: K.view(np.matrix),
    ],
    ids=["sparse", "tensors", "objects", "lists", "matrix"],
)
def test_containers_of_numbers_are_accepted(convert):
    assert module("kernels").centre(
        lambda K: convert(K - K.mean(0) - K.mean(1)[:, None] + K.mean())
    )


def test_text_of_an_answer_cannot_inject_markup():
    def answer(K):
        raise ValueError("<script>alert(1)</script>")

    assert "<script>" not in module("kernels").centre(answer)._repr_html_()


def test_general_remarks():
    truth = np.array([[2.0, 1.0], [1.0, 3.0]])
    cases = [
        (-truth, "sign"),
        (3 * truth, "constant factor"),
        (truth + np.eye(2, k=1), "symmetric"),
        (truth + 1, "else"),
    ]
    for value, says in cases:
        with pytest.raises(checks.Wrong, match=says):
            checks.agree(value, truth, {}, "something else")
    checks.agree(truth + 1e-9, truth, {}, "never")
