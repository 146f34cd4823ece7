"""Checks of the exercises: hand over your function, get a tick or a sentence that says what is
wrong.

    from featlearn.checks import kernels as check

    check.centre(centre)

A check calls the function on fresh inputs, under guard, and compares with a computation of its own,
which shares nothing with the book's solution. Whatever the function does, the check returns a
result and does not raise, it never shows the answer, and it always shows the function's own error.
What the function imports is loaded before its clock starts. The check is made for people who want
to learn: it cannot stop a function that ends the whole process, and a single call into compiled
code is interrupted only when it returns. Each chapter has a module here; this file holds what they
share.
"""

from __future__ import annotations

import builtins
import copy
import ctypes
import dis
import functools
import html
import inspect
import secrets
import sys
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

import numpy as np
import torch

from featlearn import validate

SIGNS = {"passes": "✓", "not yet": "○", "wrong": "✗"}
DRAWS = 3
SOLVERS = {
    "solve",
    "inv",
    "pinv",
    "lstsq",
    "cholesky",
    "cho_factor",
    "cho_solve",
    "lu_factor",
    "eigh",
    "svd",
    "qr",
}
PATIENCE = 6  # on a busy machine a call may last so many times its limit, if it hardly computes
OPTIMISERS = {"optim", "SGD", "Adam", "AdamW", "RMSprop", "Adagrad", "LBFGS"}
AUTOGRAD = {"autograd", "backward", "requires_grad", "requires_grad_", "torch.func"}
AUTOGRAD |= {"jacrev", "jacfwd", "jvp", "vjp"}


class Wrong(Exception):
    """What is wrong with an answer, in a sentence for the person who wrote it."""


@dataclass(frozen=True)
class Result:
    """The outcome of a check, true if the answer passes; `seed` draws the same inputs again."""

    name: str
    verdict: str
    message: str
    seed: int

    def __bool__(self) -> bool:
        return self.verdict == "passes"

    def __repr__(self) -> str:
        call = f"check.{self.name}({self.name}, seed={self.seed})"
        again = f"\n  The same inputs again: {call}" if self.verdict == "wrong" else ""
        return f"{SIGNS[self.verdict]} {self.name}: {self.message}{again}"

    def _repr_html_(self) -> str:
        style = {"passes": "", "not yet": " fl-open", "wrong": " fl-fails"}[self.verdict]
        head, *rest = repr(self).splitlines()
        sign, text = head.split(" ", 1)
        again = "".join(f'<div class="fl-facts">{html.escape(line.strip())}</div>' for line in rest)
        verdict = f'<span class="fl-verdict">{sign}</span> {html.escape(text)}'
        return f'<div class="fl-claim{style}">{verdict}{again}</div>'


class Answer:
    """The reader's function, called under guard.

    Every call gets copies of the inputs, at most `limit` seconds, and a thread of its own, in which
    it may raise, exit or loop for ever. What comes back is an array of finite numbers of the
    expected shape, or `Wrong` is raised. `draw` counts the draws of fresh inputs: what is slow is
    asked in the last one, `is_last`.
    """

    def __init__(self, function: Callable, signature: str, limit: float) -> None:
        self.function, self.limit, self.calls, self.draw = function, limit, 0, 0
        self.first: tuple[tuple, np.ndarray] | None = None
        self.name, self.arguments = (
            signature.split("(", 1)[0],
            signature.split("(", 1)[1].rstrip(")"),
        )

    @property
    def is_last(self) -> bool:
        """Whether these are the last inputs that are drawn."""
        return self.draw == DRAWS - 1

    def uses(self, names: set[str]) -> bool:
        """Whether the function, or one that it calls, mentions one of these names."""
        return any(names & set(code.co_names) for code in _codes(self.function))

    def differentiates(self) -> bool:
        """Whether it uses automatic differentiation. A helper of its own may be called ``grad``."""
        own = [set(code.co_names) for code in _codes(self.function)]
        return self.uses(AUTOGRAD) or any({"torch", "func"} <= names for names in own)

    def __call__(
        self,
        *inputs: Any,
        shape: tuple[int, ...] | None = None,
        nan: str = "",
        slow: str = "",
        raised: dict[type[Exception], str] | None = None,
    ) -> np.ndarray:
        """The returned array, as float64.

        `nan` and `slow` replace the general messages, `raised` goes before the function's error.
        """
        value = self.raw(*inputs, raised=raised, slow=slow, convert=self.as_array)
        if self.first is None:
            self.first = copy.deepcopy(inputs), value
        shape = None if shape is None else tuple(map(int, shape))
        if shape is not None and value.shape != shape:
            turned = value.shape == shape[::-1] and len(shape) == 2
            hint = " Rows and columns are exchanged." if turned else ""
            expected = f"shape {shape}" if shape else "a single number"
            raise Wrong(
                f"{self._given(inputs)} it returned an array of shape {value.shape}; expected "
                f"{expected}.{hint}"
            )
        if not np.isfinite(value).all():
            raise Wrong(nan or f"{self._given(inputs)} it returned NaN or infinite numbers.")
        return value.astype(float)

    def raw(
        self,
        *inputs: Any,
        raised: dict[type[Exception], str] | None = None,
        slow: str = "",
        convert: Callable[[Any], Any] | None = None,
    ) -> Any:
        """What the function returns, as it is or converted by `convert` (under guard, too)."""
        given = copy.deepcopy(inputs)
        if not self.calls:
            _load(self.function)
        late = slow or (
            f"{self._given(inputs)} it did not return within {self.limit:g} seconds. Does a loop "
            "never end?"
        )
        value = _guarded(
            lambda: self._call(given, raised or {}, convert),
            self.limit,
            self._given(inputs),
            late,
        )
        self.calls += 1
        if not _same(inputs, given):
            raise Wrong(
                "it changes its input. Work on a copy: the caller still needs the original."
            )
        if value is None:
            raise Wrong("it returned None. Is the return statement missing?")
        return value

    def remembers(self) -> bool:
        """Whether it gives another value when it is asked for the first time's value again.

        A descent from a random start may differ by a few percent.
        """
        return self.first is not None and not close(self(*self.first[0]), self.first[1], 0.05)

    def traced(self, *inputs: Any) -> Counter[str]:
        """How often the function's own lines run, as ``lines``, and all that it calls, by name."""
        counts: Counter[str] = Counter()
        own = set(_codes(self.function))

        def trace(frame: Any, event: str, _: Any) -> Any:
            counts["lines" if event == "line" else frame.f_code.co_name] += event != "return"
            return trace if frame.f_code in own else None

        function, before = self.function, sys.gettrace()

        def under_trace(*given: Any) -> Any:
            sys.settrace(trace)
            try:
                return function(*given)
            finally:
                sys.settrace(before)

        self.function = under_trace
        try:
            self(*inputs)
        finally:
            self.function = function
        return counts

    def _call(
        self,
        inputs: tuple,
        raised: dict[type[Exception], str],
        convert: Callable[[Any], Any] | None,
    ) -> Any:
        try:
            inspect.signature(self.function).bind(*inputs)
        except TypeError:
            raise Wrong(f"it cannot be called as {self.name}({self.arguments}).") from None
        except ValueError:
            pass  # some built-in functions do not tell their arguments
        try:
            value = self.function(*inputs)
        except Exception as error:
            if (
                isinstance(error, NotImplementedError)
                and not self.calls
                and _own(error, self.function)
            ):
                raise
            first = next(iter(str(error).splitlines()), "")[:200]
            own = f"it raised {type(error).__name__}: {first}"
            for kind, message in raised.items():
                if isinstance(error, kind):
                    raise Wrong(f"{message} ({self._given(inputs)} {own})") from None
            raise Wrong(f"{self._given(inputs)} {own}") from None
        return value if convert is None or value is None else convert(value)

    @staticmethod
    def as_array(value: Any) -> np.ndarray:
        """What was returned as an array of numbers, or `Wrong`."""
        if isinstance(value, (list, tuple)):
            value = [v.detach().cpu() if isinstance(v, torch.Tensor) else v for v in value]
        if isinstance(value, torch.Tensor):
            value = value.detach().to_dense().cpu()
            value = (value if value.is_complex() else value.double()).numpy()
        try:
            array = np.asarray(value)
            array = array.astype(float) if array.dtype.kind == "O" else array
        except Exception:
            array = np.array(None)
        if array.dtype.kind == "c":
            raise Wrong("it returned complex numbers; expected real ones.")
        if array.dtype.kind not in "iuf":
            raise Wrong(
                f"it returned something of type {type(value).__name__}; expected an array of "
                "numbers."
            )
        return array

    def _given(self, inputs: tuple) -> str:
        def describe(value: Any) -> str:
            if isinstance(value, np.ndarray):
                return f"an array of shape {value.shape}" if value.ndim else "a number"
            if isinstance(value, (int, float)):
                return str(value) if isinstance(value, int) else f"{value:.4g}"
            return f"a {type(value).__name__}"

        return "Given " + ", ".join(describe(value) for value in inputs) + ","


def _own(error: BaseException, function: Callable) -> bool:
    """Whether the function's own lines raised the error, and not something that it calls."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return trace is not None and trace.tb_frame.f_code is getattr(function, "__code__", None)


def _codes(function: Callable) -> list[CodeType]:
    """The code of a function and of all functions that it defines or finds in its surroundings."""
    found: list[CodeType] = []
    waiting: list[Any] = [function]
    while waiting:
        one = waiting.pop()
        code = one if isinstance(one, CodeType) else getattr(one, "__code__", None)
        if not isinstance(code, CodeType) or code in found:
            continue
        found.append(code)
        waiting += [part for part in code.co_consts if isinstance(part, CodeType)]
        around = getattr(one, "__globals__", {})
        named = [around.get(name) for name in code.co_names]
        waiting += [part for part in named if isinstance(part, FunctionType)]
        waiting += [cell.cell_contents for cell in getattr(one, "__closure__", None) or ()]
    return found


def _load(function: Callable) -> None:
    """Import what the function imports when it is called, and what torch loads with its first
    optimiser, which can take longer than a check has.
    """
    with suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        codes = _codes(function)
        for code in codes:
            for step in dis.get_instructions(code):
                if step.opname == "IMPORT_NAME":
                    import_module(step.argval)
        if any(OPTIMISERS & set(code.co_names) for code in codes):
            weight = torch.zeros(1, requires_grad=True)
            weight.sum().backward()
            torch.optim.SGD([weight], lr=0.1).step()


def _same(before: Any, after: Any) -> bool:
    """Whether the copy of an input is still what the input is; what cannot be compared counts."""
    if type(before) is not type(after):
        return False
    if isinstance(before, np.ndarray):
        return np.array_equal(before, after)
    if isinstance(before, (list, tuple)):
        return len(before) == len(after) and all(map(_same, before, after))
    if isinstance(before, dict):
        return list(before) == list(after) and all(_same(before[k], after[k]) for k in before)
    return before == after if isinstance(before, (int, float, str, set, frozenset)) else True


def _guarded(work: Callable[[], Any], limit: float, given: str, late: str) -> Any:
    """The value of `work()`, run in a thread that is given up after `limit` seconds.

    What it patches is restored.
    """
    checks = [module for name, module in list(sys.modules.items()) if name.startswith(__name__)]
    protected = [(module, dict(vars(module))) for module in (builtins, np, np.linalg, *checks)]
    dtype = torch.get_default_dtype()
    try:
        return _in_thread(work, limit, given, late)
    finally:
        torch.set_default_dtype(dtype)
        patched = [
            (module, name, value)
            for module, before in protected
            for name, value in before.items()
            if vars(module).get(name) is not value
        ]
        for module, name, value in patched:
            setattr(module, name, value)
        if patched:
            raise Wrong("it changes Python, numpy or the check itself. Leave them as they are.")


def _in_thread(work: Callable[[], Any], limit: float, given: str, late: str) -> Any:
    """The value of `work()`. Its clock is the processor's: waiting for a busy machine is no fault.

    A thread that does not compute, asleep or kept waiting, has `PATIENCE` times the limit.
    """
    outcome: list[tuple[Any, BaseException | None]] = []

    def target() -> None:
        try:
            outcome.append((work(), None))
        except BaseException as error:
            outcome.append((None, error))

    thread = threading.Thread(target=target, daemon=True)
    start, computed = time.monotonic(), time.process_time()
    thread.start()
    thread.join(limit)
    while (
        thread.is_alive()
        and time.process_time() - computed < limit
        and time.monotonic() - start < PATIENCE * limit
    ):
        thread.join(limit / 20)
    if not outcome:
        stop = ctypes.py_object(SystemExit)
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), stop)
        raise Wrong(late)
    value, error = outcome[0]
    if isinstance(error, (Wrong, NotImplementedError)):
        raise error
    if error is not None:
        raise Wrong(f"{given} it ended with {type(error).__name__} instead of a value.")
    return value


def check(
    signature: str,
) -> Callable[[Callable[[Answer, np.random.Generator], None]], Callable[..., Result]]:
    """Make a check out of a body that calls the answer on inputs drawn from a generator and raises
    `Wrong`.

    `signature` is what the exercise asks for, such as ``"centre(K)"``. The body runs `DRAWS` times.
    """
    name = signature.split("(", 1)[0]

    def decorate(body: Callable[[Answer, np.random.Generator], None]) -> Callable[..., Result]:
        @functools.wraps(body)
        def run(answer: Callable, *, seed: int | None = None, limit: float = 10.0) -> Result:
            seed = (
                secrets.randbits(31) if seed is None else validate.integer(seed, "seed", at_least=0)
            )
            limit = validate.real(limit, "limit", above=0)
            if not callable(answer):
                return Result(
                    name,
                    "wrong",
                    f"hand over the function itself, {name}, not what it returns.",
                    seed,
                )
            guard, rng = (
                Answer(answer, signature, limit),
                np.random.Generator(np.random.PCG64(seed)),
            )
            try:
                for guard.draw in range(DRAWS):
                    body(guard, rng)
                if guard.remembers():
                    raise Wrong(
                        "asked again with the same inputs it returns something else. Does it "
                        "remember something from one call to the next?"
                    )
            except NotImplementedError:
                return Result(
                    name, "not yet", "not written yet. Replace the line that raises.", seed
                )
            except Wrong as wrong:
                return Result(name, "wrong", str(wrong), seed)
            return Result(name, "passes", f"right on {DRAWS} draws of fresh inputs.", seed)

        run.signature = signature  # type: ignore[attr-defined]
        return run

    return decorate


def close(value: np.ndarray, truth: np.ndarray, tolerance: float = 1e-5) -> bool:
    """Whether two arrays agree, up to `tolerance` times the largest entry of the second."""
    scale = np.abs(truth).max(initial=0.0) or 1.0
    return value.shape == truth.shape and bool(
        np.abs(value - truth).max(initial=0.0) <= tolerance * scale
    )


def agree(
    value: np.ndarray,
    truth: np.ndarray | float,
    mistakes: Mapping[str, np.ndarray | float],
    otherwise: str,
    tolerance: float = 1e-5,
) -> None:
    """Raise `Wrong` unless the value is the truth; if it is the value of a known mistake, say
    which.

    Values that nobody foresaw get a general remark (wrong sign, constant factor, symmetry lost) and
    `otherwise`.
    """
    value, truth = np.asarray(value, dtype=float), np.asarray(truth, dtype=float)
    if close(value, truth, tolerance):
        return
    for message, mistaken in mistakes.items():
        if close(value, np.asarray(mistaken, dtype=float), tolerance):
            raise Wrong(message)
    size = float((truth * truth).sum())
    factor = float((value * truth).sum()) / size if size else 0.0
    if truth.size > 1 and factor and close(value, factor * truth, tolerance):
        raise Wrong(
            "the sign is wrong everywhere."
            if close(value, -truth, tolerance)
            else "it is right up to a constant factor. Check the normalisation."
        )
    square = truth.ndim == 2 and truth.shape[0] == truth.shape[1]
    if square and close(truth, truth.T) and not close(value, value.T, tolerance):
        raise Wrong(
            f"the matrix must be symmetric and is not. {otherwise[:1].upper()}{otherwise[1:]}"
        )
    raise Wrong(otherwise)
