"""Wrong answers to the exercises of chapter 4."""

import numpy as np
import torch


def biases(X, depth, sigma_w, sigma_b, *, each=None, inside=None, extra=0.0, half=0.5):
    """The recursion for the kernel of the biases, with room for mistakes."""
    inside = sigma_b if inside is None else inside
    S = sigma_w**2 * X @ X.T / X.shape[1] + inside**2
    each = sigma_b**2 if each is None else each
    K = np.full_like(S, each)
    for _ in range(depth - 1):
        root = np.sqrt(np.diag(S))
        gamma = np.arccos(np.clip(S / np.outer(root, root), -1, 1))
        K = K * (sigma_w**2 * half * (1 - gamma / np.pi) + extra) + each
        dual = (
            np.outer(root, root) / (2 * np.pi) * (np.sin(gamma) + (np.pi - gamma) * np.cos(gamma))
        )
        S = sigma_w**2 * dual + inside**2
    return K


def tangent_kernel(X, depth, sigma_w, sigma_b):
    S = sigma_w**2 * X @ X.T / X.shape[1] + sigma_b**2
    T = S
    for _ in range(depth - 1):
        size = np.sqrt(np.outer(np.diag(S), np.diag(S)))
        gamma = np.arccos(np.clip(S / size, -1, 1))
        S = (
            sigma_w**2 * size / (2 * np.pi) * (np.sin(gamma) + (np.pi - gamma) * np.cos(gamma))
            + sigma_b**2
        )
        T = T * sigma_w**2 * (np.pi - gamma) / (2 * np.pi) + S
    return T


def without_clipping(X, depth, sigma_w, sigma_b):
    """A cosine that rounding has pushed above 1, as it does on the diagonal for some inputs."""
    with np.errstate(invalid="ignore"):
        return biases(X, depth, sigma_w, sigma_b) + 0 * np.arccos(1 + 1e-15)


def finite(X, W, a, *, upper=1.0, lower=1.0, gate=None):
    """The kernel of a finite network, with room for mistakes."""
    Z = X @ W.T
    H = np.maximum(Z, 0)
    gate = (Z > 0) * a if gate is None else gate(Z, a)
    return (upper * H @ H.T + lower * (X @ X.T) * (gate @ gate.T)) / len(a)


def activations_times_outputs(X, W, a):
    Z = X @ W.T
    H, gate = np.maximum(Z, 0) * a, (Z > 0) * a
    return (H @ H.T + X @ X.T * (gate @ gate.T)) / len(a)


def without_inputs(X, W, a):
    Z = X @ W.T
    H, gate = np.maximum(Z, 0), (Z > 0) * a
    return (H @ H.T + gate @ gate.T) / len(a)


def matrix_product(X, W, a):
    Z = X @ W.T
    H, gate = np.maximum(Z, 0), (Z > 0) * a
    return (H @ H.T + X @ X.T @ (gate @ gate.T)) / len(a)


def differentiated(X, W, a):
    W, a = (torch.as_tensor(part).requires_grad_() for part in (W, a))
    f = torch.relu(torch.as_tensor(X) @ W.T) @ a / len(a) ** 0.5
    rows = [torch.autograd.grad(value, (W, a), retain_graph=True) for value in f]
    J = torch.stack([torch.cat([part.flatten() for part in row]) for row in rows])
    return (J @ J.T).numpy()


def pair_by_pair(X, W, a):
    K = np.empty((len(X), len(X)))
    for i in range(len(X)):
        for k in range(len(X)):
            K[i, k] = finite(X[[i, k]], W, a)[0, 1]
    return K


def blocks(K, n):
    return K[n:, n:], K[n:, :n], K[:n, :n]


def posterior(K, n):
    new, cross, seen = blocks(K, n)
    return new - cross @ np.linalg.inv(seen) @ cross.T


def law(Sigma, Theta, n, first=1, second=1, square=1):
    new, cross, seen = blocks(Sigma, n)
    A = Theta[n:, :n] @ np.linalg.inv(Theta[:n, :n])
    return new - first * A @ cross.T - second * cross @ A.T + square * A @ seen @ A.T


def inverse_of_the_whole(Sigma, Theta, n):
    A = Theta[n:, :n] @ np.linalg.inv(Theta)[:n, :n]
    M = np.hstack([-A, np.eye(len(Sigma) - n)])
    return M @ Sigma @ M.T


def in_place(Sigma, Theta, n):
    Sigma /= 1.0 + 1e-9
    return law(Sigma, Theta, n)


WRONG = {
    "tangent_kernel": [
        (lambda X, W, a: finite(X, W, a, lower=0), "first layer is fixed"),
        (lambda X, W, a: finite(X, W, a, upper=0), "output weights train, too"),
        (lambda X, W, a: finite(X, W, a, gate=lambda Z, a: 1.0 * (Z > 0)), "it is missing"),
        (activations_times_outputs, "without a_j"),
        (without_inputs, "inner product brings"),
        (matrix_product, "entry by entry"),
        (lambda X, W, a: finite(X, W, a, gate=lambda Z, a: 0 * Z + a), "φ′ is missing"),
        (lambda X, W, a: finite(X, W, a) * np.sqrt(len(a)), "so the kernel carries 1/m"),
        (lambda X, W, a: finite(X, W, a) * len(a), "of the network is missing"),
        (lambda X, W, a: finite(X, W, a) / len(a), "twice"),
        (differentiated, "automatic differentiation"),
        (pair_by_pair, "loop over pairs"),
        (lambda X, W, a: np.diag(finite(X, W, a)), "expected shape"),
        (lambda X, W, a: finite(X, W, a, gate=lambda Z, a: Z * a), "one neuron and two inputs"),
    ],
    "bias_kernel": [
        (tangent_kernel, "everything trains"),
        (lambda X, depth, w, b: np.full((len(X), len(X)), b**2), "only the bias of the output"),
        (lambda X, depth, w, b: biases(X, depth, w, b) - b**2, "bias of the output is missing"),
        (lambda X, depth, w, b: biases(X, depth + 1, w, b), "too many"),
        (lambda X, depth, w, b: biases(X, depth, w, b, each=b), "one such factor"),
        (lambda X, depth, w, b: biases(X, depth, w, b, each=1.0), "it is missing"),
        (lambda X, depth, w, b: biases(X, depth, w, b, extra=b**2), "there is σ_b² in Σ̇"),
        (lambda X, depth, w, b: biases(X, depth, w, b, half=1.0), "twice as large"),
        (lambda X, depth, w, b: biases(X, depth, w, b, half=0.5 / w**2), "σ_w² is missing"),
        (lambda X, depth, w, b: biases(X, depth, w, b, inside=0.0), "runs without biases"),
        (
            lambda X, depth, w, b: (
                tangent_kernel(X, depth, w, b) - tangent_kernel(X, depth, w, 0.0)
            ),
            "minus Θ without",
        ),
        (lambda X, depth, w, b: np.diag(biases(X, depth, w, b)), "expected shape"),
        (without_clipping, "clip"),
        (lambda X, depth, w, b: biases(X, max(depth, 2), w, b), "depth 1"),
    ],
    "trained_covariance": [
        (lambda Sigma, Theta, n: posterior(Theta, n), "with covariance Θ"),
        (lambda Sigma, Theta, n: posterior(Sigma, n), "rule of Bayes"),
        (
            lambda Sigma, Theta, n: law(Sigma, Theta, n, second=0),
            "only one of the two cross terms is there:",
        ),
        (lambda Sigma, Theta, n: law(Sigma, Theta, n, square=0), "quadratic in A is missing"),
        (lambda Sigma, Theta, n: law(Sigma, Theta, n, 0, 0), "independent"),
        (lambda Sigma, Theta, n: law(Sigma, Theta, n, -1, -1), "wrong sign"),
        (lambda Sigma, Theta, n: Sigma[n:, n:], "at the start"),
        (lambda Sigma, Theta, n: law(Theta, Sigma, n), "exchanged"),
        (lambda Sigma, Theta, n: np.diag(law(Sigma, Theta, n)), "not only the variances"),
        (lambda Sigma, Theta, n: np.pad(law(Sigma, Theta, n), ((n, 0), (n, 0))), "they come last"),
        (
            lambda Sigma, Theta, n: law(Sigma[::-1, ::-1], Theta[::-1, ::-1], len(Sigma) - n),
            "They come first",
        ),
        (inverse_of_the_whole, "Cut first"),
        (in_place, "changes its input"),
    ],
}
