"""Wrong answers to the exercises of chapter 1."""

import numpy as np


def inverse(K, ridge):
    return np.linalg.inv(K + ridge * np.eye(len(K)))


def only_two_arguments(X, Y):
    return np.exp(-2 * np.sin(np.pi * (X - Y.T)) ** 2)


def first_row_only(X, Y=None):
    Y = X if Y is None else Y
    return np.exp(-2 * np.sin(np.pi * (X[0] - Y.T)) ** 2)


def subtract_in_place(K):
    K -= K.mean(axis=0)
    return K


WRONG = {
    "periodic": [
        (
            lambda X, Y=None: np.exp(-2 * np.sin(np.pi * (X - (X if Y is None else Y).T))),
            "not squared",
        ),
        (
            lambda X, Y=None: np.exp(-(np.sin(np.pi * (X - (X if Y is None else Y).T)) ** 2)),
            "factor 2",
        ),
        (lambda X, Y=None: np.exp(-2 * np.sin(X - (X if Y is None else Y).T) ** 2), "Where is π"),
        (
            lambda X, Y=None: np.exp(-2 * np.sin(2 * np.pi * (X - (X if Y is None else Y).T)) ** 2),
            "½",
        ),
        (
            lambda X, Y=None: np.exp(-2 * (np.pi * (X - (X if Y is None else Y).T)) ** 2),
            "Gaussian kernel",
        ),
        (only_two_arguments, "cannot be called as"),
        (first_row_only, "expected shape"),
        (lambda X, Y=None: 1 - 2 * np.sin(np.pi * (X - (X if Y is None else Y).T)) ** 2, "by hand"),
    ],
    "centre": [
        (lambda K: K - K.mean(axis=0, keepdims=True), "one row from all rows"),
        (lambda K: K - K.mean(axis=1, keepdims=True), "one column from all columns"),
        (lambda K: K - K.mean(axis=0) - K.mean(axis=1)[:, None], "Multiply the product"),
        (lambda K: K - K.mean(axis=0) - K.mean(axis=1) + K.mean(), "the shape (n, 1)"),
        (lambda K: K - K.mean(), "one number"),
        (lambda K: K / np.sqrt(np.outer(np.diag(K), np.diag(K))), "did not centre"),
        (subtract_in_place, "changes its input"),
        (lambda K: K - np.diag(K), "not. The rows"),
        (lambda K: K, "K itself"),
    ],
    "leave_one_out": [
        (lambda K, y, ridge: y - K @ inverse(K, ridge) @ y, "none was left out"),
        (lambda K, y, ridge: inverse(K, ridge) @ y, "divided by something"),
        (lambda K, y, ridge: y - inverse(K, ridge) @ y / np.diag(inverse(K, ridge)), "predictions"),
        (
            lambda K, y, ridge: -inverse(K, ridge) @ y / np.diag(inverse(K, ridge)),
            "label minus prediction",
        ),
        (lambda K, y, ridge: inverse(K, 0) @ y / np.diag(inverse(K, 0)), "ridge is missing"),
        (
            lambda K, y, ridge: np.linalg.inv(K + ridge) @ y / np.diag(np.linalg.inv(K + ridge)),
            "to all entries",
        ),
        (
            lambda K, y, ridge: y - (1 - np.eye(len(y))) * (K @ inverse(K, ridge)) @ y,
            "fitted with the label 0",
        ),
        (
            lambda K, y, ridge: inverse(K, ridge) @ y / np.diag(K + ridge * np.eye(len(y))),
            "the case n = 2",
        ),
        (
            lambda K, y, ridge: np.mean((inverse(K, ridge) @ y / np.diag(inverse(K, ridge))) ** 2),
            "average",
        ),
        (
            lambda K, y, ridge: (
                (y - K @ inverse(K, ridge) @ y) * (1 - np.diag(K @ inverse(K, ridge)))
            ),
            "a number below one",
        ),
        (
            lambda K, y, ridge: (y - K @ inverse(K, ridge) @ y) / (1 - K @ inverse(K, ridge)),
            "acts on itself",
        ),
    ],
}
