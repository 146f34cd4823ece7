"""Wrong answers to the exercises of chapter 6."""

import numpy as np
import torch


def hessian(on=2**0.5, beside=1.0, counts=lambda key: sum(key) == 2, finish=lambda H: H):
    """An answer with these factors on and beside the diagonal; `counts` says which terms enter."""

    def answer(coefficients):
        r = len(next(iter(coefficients)))
        H = np.zeros((r, r))
        for key, c in coefficients.items():
            if counts(key):
                twos, ones = np.flatnonzero(np.array(key) == 2), np.flatnonzero(np.array(key) == 1)
                for i in twos:
                    H[i, i] += on * c
                if len(ones) == 2 and not len(twos):
                    H[ones[0], ones[1]] = H[ones[1], ones[0]] = beside * c
        return finish(H)

    return answer


def with_the_constant(coefficients):
    H = hessian()(coefficients)
    return H + coefficients.get((0,) * len(H), 0.0) * np.eye(len(H))


def at_zero(coefficients):
    H = hessian()(coefficients)
    h = np.array([1.0, 0.0, -(0.5**0.5), 0.0, 3 / 24**0.5])
    second = np.array([0.0, 0.0, 2**0.5, 0.0, -12 / 24**0.5])
    first = np.array([0.0, 1.0, 0.0, -3 / 6**0.5, 0.0])
    for i, j in np.ndindex(*H.shape):
        H[i, j] = sum(
            c
            * np.prod(
                [
                    (second if i == j == n else first if n in (i, j) else h)[k]
                    for n, k in enumerate(key)
                ]
            )
            for key, c in coefficients.items()
        )
    return H


def two_variables_only(coefficients):
    c = coefficients
    return np.array([[2**0.5 * c[2, 0], c[1, 1]], [c[1, 1], 2**0.5 * c[0, 2]]])


def looks_every_term_up(coefficients):
    r = len(next(iter(coefficients)))
    e = np.eye(r, dtype=int)
    H = [[coefficients[tuple((e[i] + e[j]).tolist())] for j in range(r)] for i in range(r)]
    return H * (1 + (2**0.5 - 1) * np.eye(r))


def parts(W, b, a, X, y):
    z = X @ W.T + b
    return np.maximum(z, 0) @ a - y, 1.0 * (z > 0)


def no_residual(W, b, a, X, y):
    return -2 / len(y) * (parts(W, b, a, X, y)[1] * y[:, None] * a).T @ X


def no_head(W, b, a, X, y):
    residual, gate = parts(W, b, a, X, y)
    return 2 / len(y) * (gate * residual[:, None]).T @ X


def right(W, b, a, X, y):
    return no_head(W, b, a, X, y) * a[:, None]


def activation_for_slope(W, b, a, X, y):
    residual, _ = parts(W, b, a, X, y)
    return 2 / len(y) * (np.maximum(X @ W.T + b, 0) * residual[:, None] * a).T @ X


def linear(W, b, a, X, y):
    residual, _ = parts(W, b, a, X, y)
    return 2 / len(y) * np.outer(a, residual @ X)


def no_bias_in_the_gate(W, b, a, X, y):
    residual, _ = parts(W, b, a, X, y)
    return 2 / len(y) * ((X @ W.T > 0) * residual[:, None] * a).T @ X


def no_bias_in_the_output(W, b, a, X, y):
    residual, gate = parts(W, 0, a, X, y)[0], parts(W, b, a, X, y)[1]
    return 2 / len(y) * (gate * residual[:, None] * a).T @ X


def squeezed(W, b, a, X, y):
    return np.squeeze(right(W, b, a, X, y))


def smooth(W, b, a, X, y):
    W, b, a, X, y = (torch.tensor(part) for part in (W, b, a, X, y))
    W.requires_grad_()
    loss = (torch.nn.functional.softplus(X @ W.T + b) @ a - y).square().mean()
    return torch.autograd.grad(loss, W)[0]


WRONG = {
    "average_hessian": [
        (hessian(on=1.0), "too small"),
        (hessian(on=2.0), "not normalised"),
        (hessian(on=0.5**0.5), "this 2 is missing"),
        (hessian(on=2 * 2**0.5), "counted twice"),
        (hessian(beside=0.5), "half of what"),
        (hessian(beside=2.0), "both orders"),
        (hessian(beside=2**0.5), "different factors"),
        (hessian(beside=0.0), "only the diagonal"),
        (hessian(finish=np.triu), "above the diagonal"),
        (hessian(finish=np.tril), "below the diagonal"),
        (hessian(counts=lambda key: 2 in key or sum(key) == 2), "degree two in one variable"),
        (with_the_constant, "has no curvature"),
        (at_zero, "at z = 0"),
        (hessian(finish=lambda H: H / 2), "Taylor series"),
        (two_variables_only, "raised KeyError"),
        (looks_every_term_up, "a missing key is a zero"),
        (hessian(finish=np.diag), "expected shape"),
    ],
    "first_layer_gradient": [
        (no_residual, "residual is missing"),
        (no_head, "a_j is missing"),
        (
            lambda W, b, a, X, y: no_head(W, b, a, X, y) * np.sign(a)[:, None],
            "only the sign of a_j",
        ),
        (lambda W, b, a, X, y: -right(W, b, a, X, y), "direction of descent"),
        (lambda W, b, a, X, y: len(y) * right(W, b, a, X, y), "factor 1/n"),
        (lambda W, b, a, X, y: right(W, b, a, X, y) / 2, "factor 2 is"),
        (lambda W, b, a, X, y: len(y) / 2 * right(W, b, a, X, y), "factor 2/n"),
        (lambda W, b, a, X, y: len(y) / len(a) * right(W, b, a, X, y), "number of neurons"),
        (lambda W, b, a, X, y: right(W, b, a, X, y).T, "exchanged"),
        (lambda W, b, a, X, y: right(W, b, a, X, 0 * y), "labels are missing"),
        (lambda W, b, a, X, y: right(W, 0, a, X, y), "in the output and in"),
        (activation_for_slope, "the activation stands"),
        (linear, "derivative of ReLU is missing"),
        (no_bias_in_the_gate, "which neurons are on"),
        (no_bias_in_the_output, "missing in the output."),
        (squeezed, "returned an array of shape"),
        (smooth, "difference quotient"),
    ],
}
