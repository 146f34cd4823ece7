"""Wrong answers to the exercises of chapter 5."""

import numpy as np


def descend(X, y, start=1e-3, steps=2000, step=0.03):
    """U after gradient descent on Σ(‖Uᵀx_i‖² − y_i)² / 4n."""
    U = start * np.random.default_rng(0).standard_normal((X.shape[1], X.shape[1]))
    for _ in range(steps):
        U = U - step * X.T @ ((np.sum((X @ U) ** 2, axis=1) - y)[:, None] * (X @ U)) / len(X)
    return U


def matrix(X, y, **options):
    U = descend(X, y, **options)
    return U @ U.T


def other_side(X, y):
    U = descend(X, y)
    return U.T @ U


def squared(X, y):
    U = descend(X, y)
    return U @ U


def too_long(X, y):
    with np.errstate(all="ignore"):
        return matrix(X, y, step=3.0, steps=100)


def least_frobenius(X, y):
    return X.T @ (np.linalg.pinv((X @ X.T) ** 2) @ y[:, None] * X)


def in_place(X, y):
    y -= y.mean()
    return matrix(X, y + 1.0)


def norms(M, first=None, second=None):
    """The two norms of xᵀMx, with room for mistakes."""
    M, d = (M + M.T) / 2, len(M)
    nuclear, square = np.abs(np.linalg.eigvalsh(M)).sum(), np.sum(M**2)
    first = nuclear if first is None else first(M)
    if second is None:
        return first, np.sqrt(d / 2 * ((d + 2) * square - np.trace(M) ** 2))
    return first, second(d, square, np.trace(M))


def not_symmetrised(M):
    second = len(M) / 2 * ((len(M) + 2) * np.sum(M**2) - np.trace(M) ** 2)
    return np.linalg.svd(M, compute_uv=False).sum(), np.sqrt(second)


def steps(monomials):
    known, found = set(), []
    for S in monomials:
        found.append(len(S - known))
        known = known | S
    return found


def greedy(monomials):
    known, rest, largest = set(), list(monomials), 0
    while rest:
        S = min(rest, key=lambda S: len(S - known))
        largest = max(largest, len(S - known))
        known.update(S)
        rest.remove(S)
    return largest


def eats_the_list(monomials):
    found = greedy(monomials)
    monomials.clear()
    return found


def needs_a_monomial(monomials):
    return max([greedy(monomials)] * len(monomials))


def without_the_largest(monomials):
    first, *rest = sorted(monomials, key=len, reverse=True) or [set()]
    return greedy([S - first for S in rest])


def only_with_a_first_step(monomials):
    """Right only where some monomial is a single coordinate, or where there are few."""
    tangled = len(monomials) > 2 and min(map(len, monomials)) > 1
    return greedy(monomials) if not tangled else 1


WRONG = {
    "quadratic_norms": [
        (lambda M: (norms(M)[0], norms(M)[1] ** 2), "square of the norm"),
        (lambda M: norms(M)[::-1], "wrong order"),
        (lambda M: norms(M, first=np.trace), "This is the trace"),
        (lambda M: norms(M, first=lambda M: np.linalg.norm(M, 2)), "largest singular value"),
        (lambda M: norms(M, first=np.linalg.norm), "the first norm is the Frobenius norm"),
        (lambda M: norms(M, second=lambda d, F, t: np.sqrt(F)), "Frobenius norm alone"),
        (
            lambda M: norms(M, second=lambda d, F, t: np.sqrt(d * (d + 2) / 2 * F)),
            "trace is missing",
        ),
        (
            lambda M: norms(M, second=lambda d, F, t: np.sqrt(d / 2 * ((d + 2) * F + t**2))),
            "not added",
        ),
        (
            lambda M: norms(M, second=lambda d, F, t: np.sqrt((d + 2) * F - t**2)),
            "factor d/2",
        ),
        (
            lambda M: norms(M, second=lambda d, F, t: np.sqrt(d / 2 * ((d + 2) * F - F))),
            "trace of the square",
        ),
        (not_symmetrised, "not symmetric"),
        (lambda M: norms(M)[0], "expected shape"),
        (
            lambda M: norms(M, second=lambda d, F, t: np.sqrt(d / 2 * ((d + 1) * F - t**2 / 2))),
            "try the identity",
        ),
    ],
    "implicit": [
        (descend, "this is U"),
        (squared, "not symmetric"),
        (other_side, "UᵀU"),
        (least_frobenius, "least Frobenius norm"),
        (lambda X, y: matrix(X, y, start=0.0), "still near zero"),
        (lambda X, y: matrix(X, y, start=1.0, step=0.005), "remembers where it started"),
        (lambda X, y: matrix(X, 2 * y), "wrong size"),
        (lambda X, y: matrix(X, y, start=0.12), "low rank"),
        (lambda X, y: matrix(X, y) - 0.1 * np.eye(X.shape[1]), "negative eigenvalue"),
        (lambda X, y: np.eye(X.shape[1]) * y.mean(), "does not fit"),
        (too_long, "diverged"),
        (in_place, "changes its input"),
        (lambda X, y: np.sum((X @ descend(X, y)) ** 2, axis=1), "expected shape"),
    ],
    "leap": [
        (lambda monomials: max(steps(monomials), default=0), "order in which they are given"),
        (lambda monomials: max(map(len, monomials), default=0), "largest degree"),
        (
            lambda monomials: max(steps(sorted(monomials, key=len)), default=0),
            "from low to high degree",
        ),
        (lambda monomials: len(set().union(*monomials)), "number of all coordinates"),
        (
            lambda monomials: max(np.diff([0, *sorted(map(len, monomials))]), default=0),
            "difference of two degrees",
        ),
        (lambda monomials: greedy(monomials) - 1, "one too small"),
        (len, "number of monomials"),
        (eats_the_list, "changes its input"),
        (needs_a_monomial, "empty list"),
        (only_with_a_first_step, "not for all lists"),
        (without_the_largest, "do not count the first"),
        (lambda monomials: greedy(monomials) + 1, "by hand"),
        (steps, "a single number"),
    ],
}
