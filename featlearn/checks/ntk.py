"""Checks of the exercises of chapter 4."""

from __future__ import annotations

import numpy as np

from featlearn.checks import Answer, Wrong, agree, check

NODES, WEIGHTS = np.polynomial.legendre.leggauss(16)


def _layers(
    X: np.ndarray, depth: int, sigma_w: float, sigma_b: float
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Σ^1, …, Σ^L and Σ̇^2, …, Σ̇^L of a ReLU network.

    z and z′ are both positive with probability ¼ + arcsin(ρ)/2π (Sheppard), and this is also the
    derivative of E[φ(z)φ(z′)] in their covariance (Price): the expectation is an integral over it,
    taken by quadrature.
    """
    S = [sigma_w**2 * X @ X.T / X.shape[1] + sigma_b**2]
    dots = []
    for _ in range(depth - 1):
        size = np.sqrt(np.outer(np.diag(S[-1]), np.diag(S[-1])))
        angle = np.arcsin(np.clip(S[-1] / size, -1, 1))
        path = angle[..., None] * (NODES + 1) / 2
        integral = (0.25 + path / (2 * np.pi)) * np.cos(path) @ WEIGHTS * angle / 2
        dots.append(sigma_w**2 * (0.25 + angle / (2 * np.pi)))
        S.append(sigma_w**2 * size * (1 / (2 * np.pi) + integral) + sigma_b**2)
    return S, dots


def _sum(parts: list[np.ndarray], dots: list[np.ndarray]) -> np.ndarray:
    """Σ_l parts_l · Π_{l′ > l} Σ̇^{l′}."""
    return sum(
        part * np.prod([np.ones_like(part), *dots[i:]], axis=0) for i, part in enumerate(parts)
    )


@check("tangent_kernel(X, W, a)")
def tangent_kernel(answer: Answer, rng: np.random.Generator) -> None:
    """The kernel of a finite network against differences of its output in each of its weights."""
    n, d, m = (int(size) for size in rng.permutation(np.arange(3, 8))[:3])
    X, W, a = rng.normal(size=(n, d)), rng.normal(size=(m, d)), rng.normal(size=m)

    def output(X: np.ndarray, W: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.maximum(X @ W.T, 0) @ a / np.sqrt(len(a))

    def kernel(X: np.ndarray, W: np.ndarray, a: np.ndarray) -> np.ndarray:
        """By central differences, which are exact away from a kink: f is linear in each weight."""
        h = 1e-6 * min(1.0, np.abs(X @ W.T).min() / np.abs(X).max())
        steps = h * np.eye(W.size).reshape(W.size, *W.shape)
        columns = [output(X, W + step, a) - output(X, W - step, a) for step in steps]
        columns += [output(X, W, a + step) - output(X, W, a - step) for step in h * np.eye(len(a))]
        J = np.stack(columns, axis=1) / (2 * h)
        return J @ J.T

    truth = kernel(X, W, a)
    Z, inner = X @ W.T, X @ X.T
    H, gate = np.maximum(Z, 0), 1.0 * (Z > 0)
    upper, lower = H @ H.T / m, inner * ((gate * a) @ (gate * a).T) / m
    mistakes = {
        "only the gradients in the output weights a are in it: this is the kernel if the first "
        "layer is fixed.": upper,
        "only the gradients in the first layer are in it. The output weights train, too.": lower,
        "the gradient in w_j carries a_j, and it is missing.": upper + inner * (gate @ gate.T) / m,
        "the gradient in w_j carries a_j, so a kernel carries its square.": upper
        + inner * ((gate * a) @ gate.T) / m,
        "the gradient in a_j is the neuron's activation, without a_j.": (H * a) @ (H * a).T / m
        + lower,
        "the gradient in w_j is a vector, a multiple of x: its inner product brings ⟨x, x′⟩, which "
        "is missing.": upper + (gate * a) @ (gate * a).T / m,
        "⟨x, x′⟩ and the sum over the neurons belong to one pair of inputs: multiply entry by "
        "entry.": upper + inner @ ((gate * a) @ (gate * a).T) / m,
        "φ′ is missing: only the neurons that are active at both inputs count in the part of the "
        "first layer.": upper + inner * (a @ a) / m,
        "each gradient carries 1/√m, so the kernel carries 1/m.": np.sqrt(m) * truth,
        "the factor 1/√m of the network is missing.": m * truth,
        "you divide by m twice. Each of the two gradients carries 1/√m.": truth / m,
        "you divide by the dimension of the inputs; this network has no such factor.": upper
        + lower / d,
    }
    agree(
        answer(X, W, a, shape=truth.shape),
        truth,
        mistakes,
        "take one neuron and two inputs and write down its two gradients.",
    )
    if answer.differentiates():
        raise Wrong(
            "the values are right, but they come from automatic differentiation. The exercise asks "
            "for the two gradients by hand."
        )
    many = rng.normal(size=(60, d))
    if answer.traced(many, W, a)["lines"] > len(many) * (len(many) - 1) / 2:
        raise Wrong("the values are right, but there is a loop over pairs of inputs.")
    agree(
        answer(X[:1], W, a, shape=(1, 1)),
        truth[:1, :1],
        {},
        "it is wrong for a single input, although it is right for several.",
    )
    agree(
        answer(X, W[:1], a[:1], shape=truth.shape),
        kernel(X, W[:1], a[:1]),
        {},
        "it is wrong for a single neuron, although it is right for several.",
    )
    agree(
        answer(X, W, 0 * a, shape=truth.shape),
        upper,
        {},
        "it is wrong for a = 0, where the gradients in the first layer vanish.",
    )


@check("bias_kernel(X, depth, sigma_w, sigma_b)")
def bias_kernel(answer: Answer, rng: np.random.Generator) -> None:
    """The kernel of the biases against a sum of products over layers, with expectations by
    quadrature.
    """
    n, d, depth = int(rng.integers(3, 6)), int(rng.integers(2, 5)), int(rng.integers(3, 6))
    sigma_w, sigma_b = round(rng.uniform(1.1, 1.7), 2), round(rng.uniform(0.5, 0.85), 2)
    X = rng.normal(size=(n, d))
    X = np.concatenate([X, X[:1], -X[:1]])
    one = np.ones((len(X), len(X)))

    def kernel(depth: int, X: np.ndarray = X) -> np.ndarray:
        return _sum([sigma_b**2 * one] * depth, _layers(X, depth, sigma_w, sigma_b)[1])

    truth, (S, dots) = kernel(depth), _layers(X, depth, sigma_w, sigma_b)
    without, dots_without = _layers(X, depth, sigma_w, 0.0)
    bias = [sigma_b**2 * one] * depth
    mistakes = {
        "this is Θ, the kernel when everything trains. Here the weights are frozen: which part of "
        "a layer's kernel is left?": _sum(S, dots),
        "this is Σ, the covariance of the outputs at the start. What counts here is a gradient.": S[
            -1
        ],
        "only the bias of the output is in it. The biases below have a gradient, too.": bias[0],
        "the bias of the output is missing. Nothing lies above it, so its product is empty.": truth
        - bias[0],
        "only the biases of the first layer are in it. Sum over the layers.": bias[0]
        * np.prod(dots, axis=0),
        "it has one layer too many. `depth` counts the layers of weights; the last one has no "
        "ReLU after it.": kernel(depth + 1),
        "it has one layer too few. `depth` counts the layers of weights, the output layer "
        "included.": kernel(depth - 1),
        "the gradient in a bias carries the factor σ_b, and a kernel is a product of two "
        "gradients. You have one such factor.": truth / sigma_b,
        "the gradient in a bias carries a factor of its own, and it is missing.": truth
        / sigma_b**2,
        "σ_w² is missing in Σ̇.": _sum(bias, [dot / sigma_w**2 for dot in dots]),
        "Σ̇ carries σ_w² and not σ_w.": _sum(bias, [dot / sigma_w for dot in dots]),
        "there is σ_b² in Σ̇. A bias does not change how the gradient passes a layer.": _sum(
            bias, [dot + sigma_b**2 for dot in dots]
        ),
        "your Σ̇ is twice as large as it should be: with which probability are two independent "
        "signs both positive?": _sum(bias, [2 * dot for dot in dots]),
        "your Σ̇ does not see the angle between two inputs: it is E[φ′²] for all pairs.": _sum(
            bias, [sigma_w**2 / 2 * one] * (depth - 1)
        ),
        "your angle stays that of the first layer. Each Σ̇ has that of the layer below it.": _sum(
            bias, [dots[0]] * (depth - 1)
        ),
        "the recursion for Σ runs without biases. They train, so they are there, and they bend "
        "the angles.": _sum(bias, dots_without),
        "this is Θ with biases minus Θ without. The biases do more than add a term: they change "
        "Σ, which the weights see.": _sum(S, dots) - _sum(without, dots_without),
        "Σ¹ has the inner product divided by the dimension of the inputs.": kernel(
            depth, np.sqrt(d) * X
        ),
    }
    nan = (
        "it returned NaN. Rounding can push a cosine above 1 or below −1: clip it before the "
        "arccos."
    )
    value = answer(X, depth, sigma_w, sigma_b, shape=truth.shape, nan=nan)
    agree(
        value,
        truth,
        mistakes,
        "compare with two layers, where you can write the kernel down: two biases, one of them "
        "below a ReLU.",
        tolerance=1e-3,
    )
    agree(
        answer(X[:1], depth, sigma_w, sigma_b, shape=(1, 1), nan=nan),
        truth[:1, :1],
        {},
        "it is wrong for a single input, although it is right for several.",
        tolerance=1e-3,
    )
    turned = rng.permutation(len(X))
    agree(
        answer(X[turned], depth, sigma_w, sigma_b, shape=truth.shape, nan=nan),
        truth[np.ix_(turned, turned)],
        {},
        "it is wrong when the rows of X come in another order.",
        tolerance=1e-3,
    )
    agree(
        answer(X, 12, sigma_w, sigma_b, shape=truth.shape, nan=nan),
        kernel(12),
        {},
        "it is right for a few layers and wrong for twelve.",
        tolerance=1e-3,
    )
    shallow = "it is wrong at depth 1, where f is linear in its only bias."
    agree(
        answer(X, 1, sigma_w, sigma_b, shape=truth.shape, raised={Exception: shallow}),
        bias[0],
        {},
        shallow,
    )
    agree(
        answer(
            X,
            depth,
            sigma_w,
            0.0,
            shape=truth.shape,
            nan="it returned NaN for σ_b = 0. Do you divide by σ_b, or is a cosine not clipped?",
        ),
        0 * truth,
        {},
        "for σ_b = 0 nothing trains, and the kernel must vanish.",
    )


@check("trained_covariance(Sigma, Theta, n)")
def trained_covariance(answer: Answer, rng: np.random.Generator) -> None:
    """The covariance after training against the columns of a root of Σ, trained one by one by
    gradient descent.
    """
    n = int(rng.integers(2, 6))
    N = n + int(rng.choice([m for m in range(2, 7) if m != n]))

    def matrix() -> np.ndarray:
        A = rng.normal(size=(N, 2 * N))
        return A @ A.T / N * rng.uniform(0.5, 2)

    def trained(Sigma: np.ndarray, Theta: np.ndarray, n: int) -> np.ndarray:
        f = np.linalg.cholesky(Sigma)
        s = np.linalg.eigvalsh(Theta[:n, :n])
        for _ in range(int(20 * s[-1] / s[0]) + 20):
            f = f - Theta[:, :n] @ f[:n] / s[-1]
        return f[n:] @ f[n:].T

    Sigma, Theta = matrix(), matrix()
    truth = trained(Sigma, Theta, n)
    seen, new = slice(None, n), slice(n, None)
    start, cross, both = Sigma[new, new], Sigma[seen, new], Sigma[seen, seen]

    def posterior(K: np.ndarray) -> np.ndarray:
        return K[new, new] - K[new, seen] @ np.linalg.inv(K[seen, seen]) @ K[seen, new]

    A = Theta[new, seen] @ np.linalg.inv(Theta[seen, seen])
    whole = Theta[new, seen] @ np.linalg.inv(Theta)[seen, seen]
    sandwich, mixed = A @ both @ A.T, A @ cross
    bare = Theta[new, seen]
    lengths = np.sqrt(np.diag(truth))
    mistakes = {
        "this is the Bayesian posterior of a prior with covariance Θ. But the outputs start with "
        "the covariance Σ.": posterior(Theta),
        "this is the Bayesian posterior of the prior Σ. But training follows Θ, and not the rule "
        "of Bayes.": posterior(Sigma),
        "Σ and Θ have exchanged their roles.": trained(Theta, Sigma, n),
        "this is the covariance at the start.": start,
        "only one of the two cross terms is there: f₀(x) and f₀(x′) both meet f₀(X).": start
        - mixed
        + sandwich,
        "only one of the two cross terms is there, the second: f₀(x) and f₀(x′) both meet "
        "f₀(X).": start - mixed.T + sandwich,
        "the term that is quadratic in A is missing.": start - mixed - mixed.T,
        "one cross term and the quadratic term are missing. That would do if A came from Σ.": start
        - mixed,
        "one cross term and the quadratic term are missing, and what you have is not "
        "symmetric.": start - mixed.T,
        "the cross terms have the wrong sign: training takes A f₀(X) away from f₀(x).": start
        + mixed
        + mixed.T
        + sandwich,
        "you treat f₀(x) and f₀(X) as if they were independent: the cross terms are missing.": start
        + sandwich,
        "you take the quadratic term away; it comes from a square.": start - sandwich,
        "this is the covariance of A f₀(X) alone. The trained function "
        "still has f₀(x) in it.": sandwich,
        "between the two A stands Θ(X, X). What varies there is f₀(X), and its covariance is "
        "another one.": start - mixed - mixed.T + A @ Theta[seen, seen] @ A.T,
        "A is cut from the inverse of the whole Θ. Cut first, then invert: only training points "
        "pull.": start - whole @ cross - (whole @ cross).T + whole @ both @ whole.T,
        "the inverse is missing: this is the outcome of one step of length 1, not of training to "
        "the end.": start - bare @ cross - (bare @ cross).T + bare @ both @ bare.T,
        "these are correlations. Return the covariance.": truth / np.outer(lengths, lengths),
    }
    value = answer(Sigma, Theta, n)
    if value.shape == (N - n,):
        raise Wrong("return the covariance of all pairs of new points, not only the variances.")
    if value.shape == Sigma.shape:
        raise Wrong("return the block of the points that are not training points; they come last.")
    if value.shape == (n, n):
        raise Wrong(
            "this has the size of the training points. They come first, and the others are wanted."
        )
    otherwise = (
        "draw functions with covariance Σ, train each with Θ and the labels 0, and take their "
        "covariance."
    )
    agree(answer(Sigma, Theta, n, shape=truth.shape), truth, mistakes, otherwise)
    agree(
        answer(Sigma, Sigma, n, shape=truth.shape),
        posterior(Sigma),
        {},
        "for Θ = Σ the result must be the posterior of Σ.",
    )
    tiny = (
        "it is wrong if both matrices are tiny. Neither a jitter nor a fixed threshold is needed."
    )
    agree(answer(1e-10 * Sigma, 1e-10 * Theta, n, shape=truth.shape), 1e-10 * truth, {}, tiny, 1e-4)
    A = rng.normal(size=(50, 200))
    B = rng.normal(size=(50, 200))
    Many, Kernel = A @ A.T, B @ B.T
    agree(
        answer(Many, Kernel, 45, shape=(5, 5)),
        trained(Many, Kernel, 45),
        {},
        "it is right for a few training points and wrong for 45.",
    )
    for few in (1, N - 1):
        agree(
            answer(Sigma, Theta, few, shape=(N - few, N - few)),
            trained(Sigma, Theta, few),
            {},
            "it is wrong for n = 1 or for a single new point, although it is right in between.",
        )
