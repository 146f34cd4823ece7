"""Checks of the exercises of chapter 5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import count, pairwise, permutations

import numpy as np

from featlearn.checks import Answer, Wrong, agree, check, close

Monomials = list[set[int]]


def _axes(d: int, rng: np.random.Generator) -> np.ndarray:
    """A random orthogonal matrix."""
    return np.linalg.qr(rng.normal(size=(d, d)))[0]


def _sensing(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Inputs (n, d), labels and a matrix ββᵀ that fits them, where matrices of high rank fit as
    well.

    Along β an input has the coordinate √(vᵀCv), where v is the rest of it, so that C on the rest
    fits the labels of ββᵀ, too. Each input comes with (√(vᵀCv), −v), and the v are two bases: from
    a small start β is then the first direction to grow, with a clear lead, and nothing else is
    needed for the fit.
    """
    d = int(rng.integers(5, 9))
    V = np.concatenate([_axes(d - 1, rng), _axes(d - 1, rng)]) * rng.uniform(
        0.85, 1.15, (2 * d - 2, 1)
    )
    along = np.sqrt(V**2 @ rng.uniform(0.7, 1.3, d - 1))[:, None]
    X = np.block([[along, V], [along, -V]]) * (3 / np.mean(along**4)) ** 0.25
    axes, size = _axes(d, rng), rng.uniform(1.3, 1.6) ** rng.choice([-1, 1])
    X, beta = rng.permutation(X) @ axes.T, np.sqrt(size) * axes[:, 0]
    return X, (X @ beta) ** 2, np.outer(beta, beta)


@check("quadratic_norms(M)")
def quadratic_norms(answer: Answer, rng: np.random.Generator) -> None:
    """The two norms against singular values and against the interpolant at enough points."""

    def truth(M: np.ndarray) -> np.ndarray:
        d = len(M)
        X = rng.normal(size=(d * (d + 1), d))
        y = np.sum(X @ M * X, axis=1)
        square = np.sum(X**2, axis=1)
        K = (2 * (X @ X.T) ** 2 + np.outer(square, square)) / (d * (d + 2))
        first = np.linalg.svd(M + M.T, compute_uv=False).sum() / 2
        return np.array([first, np.sqrt(y @ np.linalg.pinv(K, 1e-10, hermitian=True) @ y)])

    d = int(rng.integers(3, 6))
    axes = _axes(d, rng)
    M = axes * (rng.uniform(0.5, 2, d) * np.where(np.arange(d) % 2, -1, 1)) @ axes.T
    right, s = truth(M), np.linalg.eigvalsh(M)
    F, trace = np.sum(M**2), np.trace(M)

    def second(value: float) -> np.ndarray:
        return np.array([right[0], np.sqrt(max(value, 0.0))])

    mistakes = {
        "the second number is the square of the norm.": right ** [1, 2],
        "they are in the wrong order: first F₁, then F₂.": right[::-1],
        "the first norm adds the absolute values of the eigenvalues. This is the trace.": np.array(
            [trace, right[1]]
        ),
        "the first norm adds the absolute values of the eigenvalues. This is the absolute value of "
        "the trace.": np.array([abs(trace), right[1]]),
        "the first norm is not the largest singular value but the sum of all.": np.array(
            [np.abs(s).max(), right[1]]
        ),
        "the first norm is the Frobenius norm. It should add the absolute values, not the "
        "squares.": np.array([np.sqrt(F), right[1]]),
        "the second norm is the Frobenius norm alone: the factors with d and the trace are "
        "missing.": second(F),
        "the trace is missing in the second norm.": second(d * (d + 2) / 2 * F),
        "the square of the trace is subtracted, not added.": second(
            d / 2 * ((d + 2) * F + trace**2)
        ),
        "it is the square of the trace, and not the trace of the square.": second(
            d / 2 * ((d + 2) * F - F)
        ),
        "the factor d/2 of the second norm is missing.": second((d + 2) * F - trace**2),
    }
    otherwise = (
        "try the identity, whose norms are both d, and uuᵀ with ‖u‖ = 1, whose norms are 1 and "
        "√(d(d + 1)/2)."
    )
    agree(answer(M, shape=(2,)), right, mistakes, otherwise)
    turned = M + np.triu(rng.normal(size=(d, d)), 1)
    agree(
        answer(turned, shape=(2,)),
        truth(turned),
        {},
        "it is wrong if M is not symmetric. The function does not change if M is replaced by its "
        "transpose: which symmetric matrix gives the same function?",
    )
    agree(
        answer(np.outer(axes[0], axes[0]), shape=(2,)),
        np.array([1.0, np.sqrt(d * (d + 1) / 2)]),
        {},
        "it is wrong for a matrix of rank one.",
    )
    agree(
        answer(np.array([[-3.0]]), shape=(2,)), np.array([3.0, 3.0]), {}, "it is wrong for d = 1."
    )
    agree(answer(0 * M, shape=(2,)), np.zeros(2), {}, "it is wrong for M = 0.")


@check("implicit(X, y)")
def implicit(answer: Answer, rng: np.random.Generator) -> None:
    """The end of gradient descent against the planted matrix of rank one.

    The start is random, so are the last digits.
    """
    X, y, truth = _sensing(rng)
    K = (X @ X.T) ** 2
    frobenius = X.T @ ((np.linalg.pinv(K, hermitian=True) @ y)[:, None] * X)
    size = np.linalg.norm(truth)

    def misfit(M: np.ndarray) -> float:
        return np.abs(np.sum(X @ M * X, axis=1) - y).max() / y.max()

    def far(M: np.ndarray) -> float:
        return float(np.linalg.norm(M - truth) / size)

    nan = (
        "it returned NaN: the descent diverged. Take a smaller step; the loss is of degree four "
        "in U."
    )
    M = answer(X, y, shape=truth.shape, nan=nan)
    if far(M) < 0.08 and misfit(M) < 0.02 and close(M, M.T):
        _rank_two(answer, rng, nan)
        return
    if not close(M, M.T, 1e-3):
        if far(M @ M.T) < 0.08:
            raise Wrong("this is U. Return the matrix M that it stands for, with ‖Uᵀx‖² = xᵀMx.")
        raise Wrong("your matrix is not symmetric, so it is not UUᵀ.")
    if close(M, frobenius, 1e-2):
        raise Wrong(
            "this is the interpolant of least Frobenius norm. There is no formula here: descend, "
            "and see where it ends."
        )
    eigenvalues = np.linalg.eigvalsh(M)
    if eigenvalues[0] < -1e-3 * size:
        raise Wrong("it has a negative eigenvalue, so it is not UUᵀ.")
    if eigenvalues[-1] < 0.1 * size:
        raise Wrong(
            "it is still near zero, where the gradient vanishes. Start close to zero but not at "
            "it, and give it time."
        )
    factor = np.sum(M * truth) / size**2
    if close(M, factor * truth, 0.05):
        raise Wrong(
            "it points the right way but has the wrong size. Did you stop too early, or is there "
            "a factor in ‖Uᵀx‖² or in UUᵀ that does not belong there?"
        )
    if close(eigenvalues, np.linalg.eigvalsh(truth), 0.08) and misfit(M) > 0.1:
        raise Wrong(
            "its eigenvalues are right and its eigenvectors are not. Which of UUᵀ and UᵀU has "
            "‖Uᵀx‖² = xᵀMx?"
        )
    if misfit(M) > 0.25 or far(M) < 0.08:
        raise Wrong(
            "it does not fit the labels. If your gradient is right, take more steps, or longer "
            "ones."
        )
    if eigenvalues.sum() > 3 * np.trace(truth):
        raise Wrong(
            "its trace is far too large: it still remembers where it started. Begin closer to zero."
        )
    raise Wrong(
        "it fits the labels but has not the low rank that a small start leads to. Begin closer to "
        "zero, and take plain gradient steps: Adam, for one, moves in all directions at the same "
        "speed."
    )


def _rank_two(answer: Answer, rng: np.random.Generator, nan: str) -> None:
    """A matrix of rank two that the labels determine: descent on a square U finds it.

    A single column, or a leading eigenvector, does not.
    """
    d = int(rng.integers(4, 7))
    X, axes = rng.normal(size=(12 * d, d)), _axes(d, rng)
    truth = axes[:, :2] * rng.uniform(0.8, 1.2, 2) @ axes[:, :2].T
    M = answer(X, np.sum(X @ truth * X, axis=1), shape=(d, d), nan=nan)
    if np.linalg.norm(M - truth) < 0.1 * np.linalg.norm(truth):
        return
    s = np.abs(np.linalg.eigvalsh(M))
    if np.sort(s)[-2] < 1e-3 * s.max():
        raise Wrong(
            "it is right if the labels are squares of one direction. For labels from a matrix of "
            "rank two it still returns rank one: U has d columns, and descent decides on the rank."
        )
    raise Wrong(
        "it is right if the labels are squares of one direction, but for labels from a matrix of "
        "rank two it does not fit them. Does it take enough steps?"
    )


def _steps(order: Iterable[set[int]]) -> Iterator[int]:
    """The number of new coordinates that each monomial brings, in this order."""
    known: set[int] = set()
    for monomial in order:
        yield len(monomial - known)
        known = known | monomial


def _best(monomials: Monomials) -> int:
    return min(max(_steps(order), default=0) for order in permutations(monomials))


def _by_overlap(monomials: Monomials) -> int:
    """A greedy choice of another kind.

    The monomial that shares the most with what is known, the smaller one first.
    """
    known: set[int] = set()
    rest, largest = sorted(monomials, key=len), 0
    while rest:
        nearest = rest.pop(int(np.argmax([len(S & known) for S in rest])))
        largest = max(largest, len(nearest - known))
        known |= nearest
    return largest


STAIRS: list[Monomials] = [
    [{0, 1, 2}, {0, 1}, {0}],
    [{0, 1, 2}, {0}],
    [{0, 1, 2}],
    [{1, 2}, {0}, {3, 4, 5}],
    [{0, 1, 2, 3}, {2, 3}, {0, 1, 2}, {0, 1}, {0}],
    [{0, 2, 3, 4}, {1, 2}, {0, 1}, {0}],
    [{0, 1, 2, 3}, {0}, {2, 4}, {0, 1}, {4}],
    [{0, 1}, {1}, {0}, {0, 1, 2, 3, 4, 5}],
    [{0, 1}, set(), {0, 1}],
]
MISTAKES: dict[str, Callable[[Monomials], int]] = {
    "you take the monomials in the order in which they are given. The network chooses its "
    "own.": lambda m: max(_steps(m)),
    "this is the largest degree, the leap of the worst order. Coordinates that an earlier "
    "monomial has brought are no longer new.": lambda m: max(len(S) for S in m),
    "you go from low to high degree. A monomial of higher degree may come first and leave less "
    "for the others.": (lambda m: max(_steps(sorted(m, key=len)))),
    "this is the number of all coordinates. The leap is the largest "
    "step, and not their sum.": lambda m: sum(_steps(m)),
    "this is the largest difference of two degrees. Which "
    "coordinates they are counts, too.": lambda m: max(
        b - a for a, b in pairwise([0, *sorted(len(S) for S in m)])
    ),
    "this is the smallest step of an order. The leap is the largest "
    "one, in the best order.": lambda m: min(min(_steps(order)) for order in permutations(m)),
    "you do not count the first monomial. Nothing is known before it: all its coordinates "
    "are new.": lambda m: min(max(list(_steps(order))[1:], default=0) for order in permutations(m)),
    "you compare each monomial with the one before it. What counts "
    "is all that came before.": lambda m: min(
        max(len(b - a) for a, b in pairwise([set(), *order])) for order in permutations(m)
    ),
    "you choose the monomial that shares the most with what is known. One that shares little may "
    "still bring less.": _by_overlap,
    "this is the number of monomials.": len,
    "it is one too small. A single coordinate, when nothing is known, is a leap of 1.": lambda m: (
        _best(m) - 1
    ),
}


def _reached(monomials: Monomials, step: int) -> bool:
    """Whether all monomials are learned if those with at most `step` new coordinates can be."""
    known: set[int] = set()
    rest = monomials
    while rest:
        near = [S for S in rest if len(S - known) <= step]
        if not near:
            return False
        known, rest = known.union(*near), [S for S in rest if S not in near]
    return True


@check("leap(monomials)")
def leap(answer: Answer, rng: np.random.Generator) -> None:
    """The leap against all orders of the monomials."""
    names = 64 * rng.permutation(40)

    def renamed(monomials: Monomials) -> Monomials:
        return [{int(names[k]) for k in monomial} for monomial in monomials]

    agree(
        np.array([answer(renamed(m), shape=()) for m in STAIRS]),
        np.array([_best(m) for m in STAIRS]),
        {message: np.array([mistake(m) for m in STAIRS]) for message, mistake in MISTAKES.items()},
        "try [{0}, {0, 1}, {0, 1, 2}] in each of its six orders by hand, and then add {5, 6}.",
    )
    for _ in range(8):
        m = [
            set(rng.permutation(7)[: rng.integers(1, 5)].tolist())
            for _ in range(rng.integers(3, 6))
        ]
        if answer(renamed(m), shape=()) != _best(m):
            raise Wrong(
                "it is right for stairs but not for all lists. Compare with all orders of four "
                "random sets."
            )
    late = (
        "it does not come to an end for fourteen monomials. They have more orders than anyone can "
        "try: which monomial can come next without harm?"
    )
    chain = [set(range(j)) for j in range(14, 0, -1)]
    if answer(renamed(chain), shape=(), slow=late) != 1:
        raise Wrong("it is wrong for a long staircase that is listed from its upper end.")
    if answer(renamed([*STAIRS[5], {9}, {9, 10}, {0, 9}, {1, 10}]), shape=()) != _best(STAIRS[5]):
        raise Wrong("it is right for a few monomials and wrong for eight.")
    empty = "for an empty list there is nothing to learn, and the leap is 0."
    if answer([], shape=(), raised={Exception: empty}) != 0:
        raise Wrong(empty)
    if answer.is_last:
        slow = (
            "it is right, but it takes too long for forty monomials. They have more orders than "
            "anyone can try: which monomial can come next without harm?"
        )
        m = [set(rng.permutation(30)[: rng.integers(4, 12)].tolist()) for _ in range(40)]
        truth = next(step for step in count() if _reached(m, step))
        if answer(m, shape=(), slow=slow) != truth:
            raise Wrong("it is right for a few monomials and wrong for forty.")
