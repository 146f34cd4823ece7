# ruff: noqa
"""Wrong answers, as students might hand them in, written from the statements alone by
somebody who had not seen the checks. Above each stands an input on which it is wrong.
"""

import itertools
import math

import numpy as np
import torch

WRONG = {}


def wrong(name, what):
    def put(f):
        WRONG.setdefault(name, []).append((what, f))
        return f

    return put


# ------------------------------------------------------------------ centre


# Wrong on K = [[2., 1.], [1., 3.]] and on nearly every other K: not symmetric.
@wrong("centre", "subtracts the column means only")
def centre_1(K):
    return K - K.mean(axis=0)


# Wrong on K = [[2., 1.], [1., 3.]]: rows do not sum to zero.
@wrong("centre", "forgets to add the grand mean back")
def centre_2(K):
    row = K.mean(axis=1, keepdims=True)
    return K - row - row.T


# Wrong on K = [[2., 1.], [1., 3.]]; and divides by zero for n = 1, K = [[2.]].
@wrong("centre", "centring matrix with n - 1 in place of n")
def centre_3(K):
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / (n - 1)
    return H @ K @ H


# Right result for any float K, but K = [[2., 1.], [1., 3.]] is overwritten.
@wrong("centre", "centres in place, so the argument changes")
def centre_4(K):
    K -= K.mean(axis=0, keepdims=True)
    K -= K.mean(axis=1, keepdims=True)
    return K


# Wrong on the integer matrix K = [[2, 1], [1, 3]]: entries cut to integers.
@wrong("centre", "result has the integer type of an integer K")
def centre_5(K):
    out = np.zeros_like(K)
    row, col, all_ = K.mean(axis=1), K.mean(axis=0), K.mean()
    for i in range(len(K)):
        for j in range(len(K)):
            out[i, j] = K[i, j] - row[i] - col[j] + all_
    return out


# Breaks on the singular K = x xᵀ with x = (1, 2, 3): Cholesky finds no factor.
@wrong("centre", "takes features from a Cholesky factor: fails for singular K")
def centre_6(K):
    features = np.linalg.cholesky(K)
    features = features - features.mean(axis=0)
    return features @ features.T


# ----------------------------------------------------------- leave_one_out


# Wrong on K = [[2., 1.], [1., 3.]], y = (1., 2.), ridge 0.5, and everywhere.
@wrong("leave_one_out", "errors of the fit to all points")
def leave_one_out_1(K, y, ridge):
    n = len(y)
    return y - K @ np.linalg.solve(K + ridge * np.eye(n), y)


# Wrong on K = [[2., 1.], [1., 3.]], y = (1., 2.), ridge 0.5: the signs.
@wrong("leave_one_out", "prediction minus label")
def leave_one_out_2(K, y, ridge):
    H = K @ np.linalg.inv(K + ridge * np.eye(len(y)))
    return (H @ y - y) / (1 - np.diag(H))


# Wrong on K = [[2., 1.], [1., 3.]], y = (1., 2.), ridge 0.5: H has an uneven diagonal.
@wrong("leave_one_out", "divides by the mean of 1 - H_ii (generalised cross-validation)")
def leave_one_out_3(K, y, ridge):
    n = len(y)
    H = np.linalg.solve(K + ridge * np.eye(n), K)
    return (y - H.T @ y) / (1 - np.trace(H) / n)


# Forbidden on every input: one solve for each point (tried with n = 8).
@wrong("leave_one_out", "n separate fits, which the statement forbids")
def leave_one_out_4(K, y, ridge):
    n = len(y)
    errors = np.empty(n)
    for i in range(n):
        rest = np.arange(n) != i
        alpha = np.linalg.solve(K[np.ix_(rest, rest)] + ridge * np.eye(n - 1), y[rest])
        errors[i] = y[i] - K[i, rest] @ alpha
    return errors


# Changes K on K = [[2., 1.], [1., 3.]], ridge 0.5: the diagonal is 2.5, 3.5 afterwards.
@wrong("leave_one_out", "adds the ridge to the caller's K")
def leave_one_out_5(K, y, ridge):
    K[np.diag_indices(len(y))] += ridge
    G = np.linalg.inv(K)
    return G @ y / np.diag(G)


# Wrong on K = [[2., 1.], [1., 3.]], y = (1., 2.), ridge 0.001: 1 - H_ii is below 0.01.
@wrong("leave_one_out", "cuts the leverages at 0.99 against a division by zero")
def leave_one_out_6(K, y, ridge):
    H = np.linalg.solve(K + ridge * np.eye(len(y)), K).T
    h = np.minimum(np.diag(H), 0.99)
    return (y - H @ y) / (1 - h)


# ---------------------------------------------------------------- periodic


# Wrong on X = [[0.], [0.3]]: the square is inside the sine.
@wrong("periodic", "sine of the square in place of the square of the sine")
def periodic_1(X, Y=None):
    Y = X if Y is None else Y
    return np.exp(-2 * np.sin(np.pi * (X - Y.T) ** 2))


# Wrong on X = [[0.], [0.3]], Y = [[0.1], [0.2], [0.5]]: shape (3, 2).
@wrong("periodic", "result is transposed, (m, n)")
def periodic_2(X, Y=None):
    if Y is None:
        Y = X
    return np.exp(-2 * np.sin(np.pi * (Y - X.T)) ** 2)


# Wrong on X = [[0.], [0.3]]: the diagonal is e.
@wrong("periodic", "writes the exponent as cos(2πd) without the -1")
def periodic_3(X, Y=None):
    Y = X if Y is None else Y
    return np.exp(np.cos(2 * np.pi * (X - Y.T)))


# Wrong on X = [[0.], [0.3]], Y = [[0.1], [0.5]]: as many points, but others.
@wrong("periodic", "sets the diagonal to one whenever the result is square")
def periodic_4(X, Y=None):
    Y = X if Y is None else Y
    K = np.exp(-2 * np.sin(np.pi * (X - Y.T)) ** 2)
    if K.shape[0] == K.shape[1]:
        np.fill_diagonal(K, 1.0)
    return K


# Breaks on one point: X = [[0.3]], or X = [[0.], [0.3]] and Y = [[0.1]].
@wrong("periodic", "squeezes the inputs: fails for a single point")
def periodic_5(X, Y=None):
    x = np.squeeze(X)
    z = x if Y is None else np.squeeze(Y)
    return np.exp(-2 * np.sin(np.pi * (x[:, None] - z[None, :])) ** 2)


# Right values, but X = [[0.2], [1.3], [-0.4]] is [[0.2], [0.3], [0.6]] afterwards.
@wrong("periodic", "reduces X modulo one in place")
def periodic_6(X, Y=None):
    X %= 1.0
    Y = X if Y is None else Y % 1.0
    return np.exp(-2 * np.sin(np.pi * (X - Y.T)) ** 2)


# ----------------------------------------------------------- fourier_pairs


# Wrong on X = [[0.5, 1.], [1., -1.]], W = [[1., 0.], [0.5, 2.], [-1., 1.]]: half the kernel.
@wrong("fourier_pairs", "divides by √(2q), the number of features")
def fourier_pairs_1(X, W):
    Z = X @ W.T
    F = np.concatenate([np.cos(Z), np.sin(Z)], axis=1)
    return F / np.sqrt(F.shape[1])


# Wrong on X = [[0.5, 1.], [1., -1.]], W = [[1., 0.], [0.5, 2.], [-1., 1.]]: signs lost.
@wrong("fourier_pairs", "sine as √(1 - cos²), without its sign")
def fourier_pairs_2(X, W):
    c = np.cos(X @ W.T)
    s = np.sqrt(1 - c**2)
    return np.hstack([c, s]) / np.sqrt(W.shape[0])


# Wrong on X = [[0.5, 1.], [1., -1.]], W = [[1., 0.], [0.5, 2.], [-1., 1.]];
# right for d = 1 or q = 1.
@wrong("fourier_pairs", "reshapes W where it should be transposed")
def fourier_pairs_3(X, W):
    q, d = W.shape
    Z = X @ W.reshape(d, q)
    return np.hstack([np.cos(Z), np.sin(Z)]) / np.sqrt(q)


# Wrong on X = [[0.5, 1.], [1., -1.]], W = [[1., 0.], [0.5, 2.], [-1., 1.]]: rows differ in
# length, and two calls differ.
@wrong("fourier_pairs", "random phases, another for the sine than for the cosine")
def fourier_pairs_4(X, W):
    q = len(W)
    b = np.random.uniform(0, 2 * np.pi, (2, q))
    Z = X @ W.T
    return np.hstack([np.cos(Z + b[0]), np.sin(Z + b[1])]) / np.sqrt(q)


# Wrong on X = [[0.5, 1.], [1., -1.]], W = [[1., 0.], [0.5, 2.], [-1., 1.]] (q = 3, d = 2);
# right for q = d.
@wrong("fourier_pairs", "normalises by the dimension, the wrong axis of W")
def fourier_pairs_5(X, W):
    Z = np.einsum("id,qd->iq", X, W)
    return np.concatenate((np.sin(Z), np.cos(Z)), axis=1) / math.sqrt(W.shape[1])


# Wrong on integer points X = [[0, 1], [2, -1]], W = [[1., 0.], [0.5, 2.]]: all cut to 0 or 1.
@wrong("fourier_pairs", "features take the type of X: integers are cut off")
def fourier_pairs_6(X, W):
    n, q = len(X), len(W)
    F = np.empty((n, 2 * q), dtype=X.dtype)
    Z = X @ W.T
    F[:, 0::2] = np.cos(Z) / np.sqrt(q)
    F[:, 1::2] = np.sin(Z) / np.sqrt(q)
    return F


# -------------------------------------------------------- laplace_features


# Wrong on X = [[0.], [1.]], p = 10000: the diagonal is near 0.5.
@wrong("laplace_features", "forgets the factor √2 of the cosine")
def laplace_features_1(X, p, rng):
    w = rng.standard_cauchy(p)
    b = rng.uniform(0, 2 * np.pi, p)
    return np.cos(X * w + b) / np.sqrt(p)


# Wrong on X = [[0.], [1.]], p = 10000: estimates e^{-|x-x'|} + e^{-|x+x'|}, 2 at x = x' = 0.
@wrong("laplace_features", "no phases")
def laplace_features_2(X, p, rng):
    w = rng.standard_cauchy((1, p))
    return np.sqrt(2 / p) * np.cos(X @ w)


# Wrong on X = [[0.], [0.2]], p = 10000: the diagonal at x = 0 is near 1.45.
@wrong("laplace_features", "phases uniform on [0, 1) in place of [0, 2π)")
def laplace_features_3(X, p, rng):
    w = rng.standard_cauchy((1, p))
    b = rng.random((1, p))
    return np.sqrt(2.0 / p) * np.cos(X @ w + b)


# Wrong on X = [[0.], [1.]], p = 7: six columns.
@wrong("laplace_features", "cosines and sines in pairs: one column short for odd p")
def laplace_features_4(X, p, rng):
    q = p // 2
    Z = X @ rng.standard_cauchy((1, q))
    return np.hstack([np.cos(Z), np.sin(Z)]) / np.sqrt(q)


# Wrong on X = [[0.], [1.]], p = 50, rng = default_rng(0) twice: two different results.
@wrong("laplace_features", "phases from the global generator, not from rng")
def laplace_features_5(X, p, rng):
    w = rng.standard_cauchy((1, p))
    b = 2 * np.pi * np.random.rand(p)
    return np.sqrt(2 / p) * np.cos(X @ w + b)


# Wrong on X = [[0.], [1.]], p = 10000: off the diagonal about 0.31, true 0.368.
@wrong("laplace_features", "cuts the heavy tails of w at ±10")
def laplace_features_6(X, p, rng):
    w = np.clip(rng.standard_cauchy((1, p)), -10, 10)
    b = rng.uniform(0, 2 * np.pi, (1, p))
    return np.sqrt(2 / p) * np.cos(X @ w + b)


# -------------------------------------------------------- relu_correlation


def _relu_map(r):
    return (np.sqrt(1 - r**2) + r * (np.pi - np.arccos(r))) / np.pi


# Wrong on rho = 0, depth 1: 0.5, true 1/π.
@wrong("relu_correlation", "kernel of the derivative (step function) in place of ReLU")
def relu_correlation_1(rho, depth):
    rho = np.clip(rho, -1, 1)
    for _ in range(depth):
        rho = 1 - np.arccos(rho) / np.pi
    return rho


# Wrong on rho = 0, depth 1: returns 0 (depth 0 is right).
@wrong("relu_correlation", "one layer too few")
def relu_correlation_2(rho, depth):
    rho = np.clip(rho, -1, 1)
    for _ in range(1, depth):
        rho = _relu_map(rho)
    return rho


# Wrong on rho = 1.0000000000000002, depth 1: nan.
@wrong("relu_correlation", "does not clip: nan just outside ±1")
def relu_correlation_3(rho, depth):
    rho = np.asarray(rho, dtype=float)
    for _ in range(depth):
        rho = _relu_map(rho)
    return rho


# Wrong on rho = -0.5, depth 1: 0.318, true 0.109.
@wrong("relu_correlation", "clips to [0, 1]: wrong for negative correlations")
def relu_correlation_4(rho, depth):
    for _ in range(depth):
        rho = np.clip(rho, 0, 1)
        rho = _relu_map(rho)
    return rho


# Changes rho = array([-0.5, 0., 0.5]), depth 2: it holds the result afterwards.
@wrong("relu_correlation", "iterates in the caller's array")
def relu_correlation_5(rho, depth):
    r = np.asarray(rho, dtype=float)
    for _ in range(depth):
        np.clip(r, -1, 1, out=r)
        r[...] = _relu_map(r)
    return r


# Wrong on rho = 0, depth 60: 0.979, true 0.991 (right for depth 30).
@wrong("relu_correlation", "stops when a layer changes less than 0.001")
def relu_correlation_6(rho, depth):
    rho = np.clip(rho, -1, 1)
    for _ in range(depth):
        new = np.clip(_relu_map(rho), -1, 1)
        if np.max(np.abs(new - rho)) < 1e-3:
            return new
        rho = new
    return rho


# --------------------------------------------------------------- sine_dual


# Wrong on (1., 0.5, 1.): the characteristic function without its half.
@wrong("sine_dual", "exp(-variance) in place of exp(-variance/2)")
def sine_dual_1(q_x, q_xy, q_y):
    return 0.5 * (np.exp(-(q_x + q_y - 2 * q_xy)) - np.exp(-(q_x + q_y + 2 * q_xy)))


# Wrong on (1., 0.5, 2.); right when both variances are equal.
@wrong("sine_dual", "takes q_y for equal to q_x")
def sine_dual_2(q_x, q_xy, q_y):
    return 0.5 * (np.exp(q_xy - q_x) - np.exp(-q_xy - q_x))


# Wrong on (1000., 1000., 1000.): 0 times infinity, nan; true 0.5.
@wrong("sine_dual", "exp times sinh: nan for large variances")
def sine_dual_3(q_x, q_xy, q_y):
    return np.exp(-(q_x + q_y) / 2) * np.sinh(q_xy)


# Wrong on (1000., 1000., 1000.): 0 (well below 1e-100), true 0.5.
@wrong("sine_dual", "cuts the covariance at 700 against overflow: wrong for large variances")
def sine_dual_4(q_x, q_xy, q_y):
    return np.exp(-(q_x + q_y) / 2) * np.sinh(np.clip(q_xy, -700, 700))


# Wrong on (100., 99., 100.): the nodes miss the oscillation, true value 0.184.
@wrong("sine_dual", "quadrature with 30 nodes in place of the closed form")
def sine_dual_5(q_x, q_xy, q_y):
    z, w = np.polynomial.hermite_e.hermegauss(30)
    w = w / w.sum()
    q_x, q_xy, q_y = (np.asarray(q, float)[..., None, None] for q in (q_x, q_xy, q_y))
    slope = np.where(q_x > 0, q_xy / np.sqrt(np.where(q_x > 0, q_x, 1)), 0)
    u = np.sqrt(q_x) * z[:, None]
    v = slope * z[:, None] + np.sqrt(np.maximum(q_y - slope**2, 0)) * z
    return (np.sin(u) * np.sin(v) * w[:, None] * w).sum((-2, -1))


# Wrong on (0., 0., 1.): 0/0, nan; true 0.
@wrong("sine_dual", "goes through the correlation: nan for variance zero")
def sine_dual_6(q_x, q_xy, q_y):
    s_x, s_y = np.sqrt(q_x), np.sqrt(q_y)
    rho = np.divide(q_xy, s_x * s_y)
    plus = s_x**2 + s_y**2 + 2 * rho * s_x * s_y
    minus = s_x**2 + s_y**2 - 2 * rho * s_x * s_y
    return (np.exp(-minus / 2) - np.exp(-plus / 2)) / 2


# ------------------------------------------------------------- tangent_kernel


# Wrong on generic inputs with m > 1: both gradients carry 1/sqrt(m), so the kernel carries 1/m (right for m = 1).
@wrong("tangent_kernel", "the kernel is scaled by 1/sqrt(m) in place of 1/m")
def tangent_kernel_1(X, W, a):
    m = len(a)
    Z = X @ W.T
    active = (Z > 0).astype(float)
    features = np.maximum(Z, 0)
    return (features @ features.T + (X @ X.T) * ((active * a**2) @ active.T)) / np.sqrt(m)


# Wrong on generic inputs with m > 1: the neurons' weights are different parameters, their gradients must not be
# added up before the inner product (symmetric, positive semidefinite, and right for m = 1).
@wrong("tangent_kernel", "the gradients in the w_j are summed over the neurons")
def tangent_kernel_2(X, W, a):
    n, m = len(X), len(a)
    Z = X @ W.T
    grad_a = np.maximum(Z, 0) / np.sqrt(m)
    grad_W = (((Z > 0) * a) @ np.ones(m) / np.sqrt(m))[:, None] * X
    J = np.concatenate([grad_a, grad_W], axis=1)
    assert J.shape[0] == n
    return J @ J.T


# Wrong on every a whose entries are not all +1 or -1: the part of W lacks the factor a_j^2 (right for a = +-1).
@wrong("tangent_kernel", "a_j^2 is left out, as if every a_j were a sign")
def tangent_kernel_3(X, W, a):
    Z = torch.as_tensor(X) @ torch.as_tensor(W).T
    step = (Z > 0).double()
    gram = torch.as_tensor(X) @ torch.as_tensor(X).T
    return ((torch.relu(Z) @ torch.relu(Z).T + gram * (step @ step.T)) / W.shape[0]).numpy()


# Wrong on generic inputs with n > 1: neuron j counts for the pair i, k only if it is active at both; here it counts
# if it is active at x_i (the diagonal is right, so n = 1 is; the result is not symmetric).
@wrong("tangent_kernel", "only the neurons active at x_i, whether or not active at x_k")
def tangent_kernel_4(X, W, a):
    m = W.shape[0]
    Z = X @ W.T
    strength = ((Z > 0) * a**2).sum(axis=1)
    return (np.maximum(Z, 0) @ np.maximum(Z, 0).T + strength[:, None] * (X @ X.T)) / m


# Wrong on an a with a zero entry (a = 0 in particular): the gradient in a_j is got back by dividing the neuron's
# contribution by a_j, and a neuron with a_j = 0 is lost, though its output weight is trained (right for all a_j != 0).
@wrong("tangent_kernel", "neurons with a_j = 0 contribute nothing")
def tangent_kernel_5(X, W, a):
    alive = a != 0
    m = len(a)
    contribution = np.maximum(X @ W[alive].T, 0) * a[alive]
    grad_a = contribution / a[alive]
    grad_W = np.einsum("ij,id->ijd", (grad_a > 0) * a[alive], X).reshape(len(X), -1)
    return (grad_a @ grad_a.T + grad_W @ grad_W.T) / m


# Right values, by a way that the statement rules out.
@wrong("tangent_kernel", "automatic differentiation, one row of the Jacobian at a time")
def tangent_kernel_6(X, W, a):
    from torch.func import grad

    def f(parts, x):
        return torch.relu(parts[0] @ x) @ parts[1] / parts[1].numel() ** 0.5

    parts = torch.as_tensor(W), torch.as_tensor(a)
    rows = [torch.cat([g.flatten() for g in grad(f)(parts, x)]) for x in torch.as_tensor(X)]
    J = torch.stack(rows)
    return (J @ J.T).numpy()


# Right values, by a way that the statement rules out.
@wrong("tangent_kernel", "automatic differentiation by its full name")
def tangent_kernel_8(X, W, a):
    W, a = torch.as_tensor(W), torch.as_tensor(a)
    f = lambda W, a, x: torch.relu(W @ x) @ a / len(a) ** 0.5
    rows = [torch.func.grad(f, argnums=(0, 1))(W, a, x) for x in torch.as_tensor(X)]
    J = torch.stack([torch.cat([g.flatten() for g in row]) for row in rows])
    return (J @ J.T).numpy()


# Right values, by a way that the statement rules out.
@wrong("tangent_kernel", "a loop over pairs of inputs")
def tangent_kernel_7(X, W, a):
    K = np.zeros((len(X), len(X)))
    for i, x in enumerate(X):
        for k, z in enumerate(X):
            u, v = W @ x, W @ z
            both = (u > 0) & (v > 0)
            K[i, k] = (u * v + a**2 * (x @ z))[both].sum() / len(a)
    return K


# ------------------------------------------------------------- bias_kernel
# X3 below is [[1., 2.], [-1., 0.5], [0.3, -2.]].


def _angles(S):
    s = np.sqrt(np.diag(S))
    size = np.outer(s, s)
    c = np.clip(S / np.where(size > 0, size, 1), -1, 1)
    return size, np.arccos(c)


def _relu_dual(size, t):
    return size * (np.sin(t) + (np.pi - t) * np.cos(t)) / (2 * np.pi)


# Wrong on X3, depth 2, sigma_w 1.2, sigma_b 0.5, and at depth 1 (not constant).
@wrong("bias_kernel", "one layer too many: depth counted as hidden layers")
def bias_kernel_1(X, depth, sigma_w, sigma_b):
    S = sigma_w**2 * X @ X.T / X.shape[1] + sigma_b**2
    B = np.full(S.shape, float(sigma_b) ** 2)
    for _ in range(depth):
        size, t = _angles(S)
        B = sigma_b**2 + B * sigma_w**2 * (np.pi - t) / (2 * np.pi)
        S = sigma_w**2 * _relu_dual(size, t) + sigma_b**2
    return B


# Wrong on X3, depth 3, sigma_w 1.2, sigma_b 0.5; right for sigma_w² = 2.
@wrong("bias_kernel", "derivative kernel (π - θ)/π whatever sigma_w: assumes sigma_w² = 2")
def bias_kernel_2(X, depth, sigma_w, sigma_b):
    S = sigma_w**2 * X @ X.T / X.shape[1] + sigma_b**2
    B = np.full(S.shape, float(sigma_b) ** 2)
    for _ in range(depth - 1):
        size, t = _angles(S)
        B = sigma_b**2 + B * (1 - t / np.pi)
        S = sigma_w**2 * _relu_dual(size, t) + sigma_b**2
    return B


# Wrong on X3, depth 2, sigma_w 1.2, sigma_b 0.5 (off the diagonal).
@wrong("bias_kernel", "angles of the network without biases")
def bias_kernel_3(X, depth, sigma_w, sigma_b):
    S = sigma_w**2 * X @ X.T / X.shape[1]
    B = np.full(S.shape, float(sigma_b) ** 2)
    for _ in range(depth - 1):
        size, t = _angles(S)
        B = sigma_b**2 + B * sigma_w**2 * (np.pi - t) / (2 * np.pi)
        S = sigma_w**2 * _relu_dual(size, t)
    return B


# Wrong on X3, depth 4, sigma_w 1.2, sigma_b 0.5; right for depth 1, 2 and on the diagonal.
@wrong("bias_kernel", "powers of the last layer's derivative kernel, not the product over layers")
def bias_kernel_4(X, depth, sigma_w, sigma_b):
    n, d = X.shape
    S = sigma_w**2 * X @ X.T / d + sigma_b**2
    D = np.ones((n, n))
    for _ in range(depth - 1):
        size, t = _angles(S)
        D = sigma_w**2 * (np.pi - t) / (2 * np.pi)
        S = sigma_w**2 * _relu_dual(size, t) + sigma_b**2
    return sigma_b**2 * sum(D**l for l in range(depth))


# Wrong on X = [[0., 0.], [1., 2.]], depth 2, sigma_w 1.2, sigma_b 0: nan, true 0.
@wrong("bias_kernel", "divides by the norm: nan for the zero input without biases")
def bias_kernel_5(X, depth, sigma_w, sigma_b):
    S = sigma_w**2 * X @ X.T / X.shape[1] + sigma_b**2
    B = np.full(S.shape, float(sigma_b) ** 2)
    for _ in range(depth - 1):
        s = np.sqrt(np.diag(S))
        t = np.arccos(np.clip(S / s[:, None] / s, -1, 1))
        B = sigma_b**2 + B * sigma_w**2 * (np.pi - t) / (2 * np.pi)
        S = sigma_w**2 * _relu_dual(np.outer(s, s), t) + sigma_b**2
    return B


# Wrong on X = default_rng(0).standard_normal((20, 3)), depth 3, sigma_w 1.2, sigma_b 0.5:
# nan on parts of the diagonal, which spreads to whole rows (115 entries of 400).
@wrong("bias_kernel", "cosines not clipped: nan on the diagonal")
def bias_kernel_6(X, depth, sigma_w, sigma_b):
    S = sigma_w**2 * X @ X.T / X.shape[1] + sigma_b**2
    B = np.full(S.shape, float(sigma_b) ** 2)
    for _ in range(depth - 1):
        s = np.sqrt(np.diag(S))
        size = np.outer(s, s)
        t = np.arccos(S / size)
        B = sigma_b**2 + B * sigma_w**2 * (np.pi - t) / (2 * np.pi)
        S = sigma_w**2 * _relu_dual(size, t) + sigma_b**2
    return B


# ------------------------------------------------------ trained_covariance
# The input: rng = default_rng(1); A, B = rng.standard_normal((2, 6, 9));
# Sigma = A Aᵀ/9, Theta = B Bᵀ/9, n = 3.


# Wrong on the input above; right for Theta = Sigma.
@wrong("trained_covariance", "posterior covariance of Sigma, Theta unused")
def trained_covariance_1(Sigma, Theta, n):
    gain = np.linalg.solve(Sigma[:n, :n], Sigma[:n, n:])
    return Sigma[n:, n:] - Sigma[n:, :n] @ gain


# Wrong on the input above.
@wrong("trained_covariance", "Sigma and Theta exchanged")
def trained_covariance_2(Sigma, Theta, n):
    A = Sigma[n:, :n] @ np.linalg.inv(Sigma[:n, :n])
    B = np.hstack([-A, np.eye(len(Sigma) - n)])
    return B @ Theta @ B.T


# Wrong on the input above; right for Theta = Sigma.
@wrong("trained_covariance", "Sigma** - A Sigma_XX Aᵀ, without the cross terms")
def trained_covariance_3(Sigma, Theta, n):
    A = np.linalg.solve(Theta[:n, :n], Theta[:n, n:]).T
    return Sigma[n:, n:] - A @ Sigma[:n, :n] @ A.T


# Wrong on the input above: not symmetric. Right for Theta = Sigma.
@wrong("trained_covariance", "Sigma** - A Sigma_X*, one term of three")
def trained_covariance_4(Sigma, Theta, n):
    A = np.linalg.solve(Theta[:n, :n], Theta[:n, n:]).T
    return Sigma[n:, n:] - A @ Sigma[:n, n:]


# Wrong on the input above off the diagonal; right on it, thus for n = N - 1.
@wrong("trained_covariance", "twice A Sigma_X* in place of it and its transpose")
def trained_covariance_5(Sigma, Theta, n):
    A = np.linalg.solve(Theta[:n, :n], Theta[:n, n:]).T
    return Sigma[n:, n:] - 2 * A @ Sigma[:n, n:] + A @ Sigma[:n, :n] @ A.T


# Wrong on the input above with Theta multiplied by 0.01.
@wrong("trained_covariance", "adds 0.001 to the diagonal of Theta whatever its scale")
def trained_covariance_6(Sigma, Theta, n):
    T = Theta[:n, :n] + 1e-3 * np.eye(n)
    B = np.hstack([-np.linalg.solve(T, Theta[:n, n:]).T, np.eye(len(Theta) - n)])
    return B @ Sigma @ B.T


# ------------------------------------------------------------- quadratic_norms


# Wrong on non-symmetric M: the second number takes the Frobenius norm of M, not of its symmetric part (the first
# number is right, and on symmetric M both are).
@wrong("quadratic_norms", "F2 with the Frobenius norm of the unsymmetrised M")
def quadratic_norms_1(M):
    d = M.shape[0]
    f1 = np.abs(np.linalg.eigvalsh((M + M.T) / 2)).sum()
    f2 = np.sqrt(d / 2 * ((d + 2) * np.sum(M**2) - np.trace(M) ** 2))
    return f1, f2


# Wrong on non-symmetric M: the nuclear norm (singular values) of M, not of its symmetric part; on M antisymmetric
# f = 0, and this is not (the second number is right, and on symmetric M both are).
@wrong("quadratic_norms", "F1 as the nuclear norm of the unsymmetrised M")
def quadratic_norms_2(M):
    d = len(M)
    S = 0.5 * (M + M.T)
    f2 = np.sqrt(d / 2 * ((d + 2) * np.linalg.norm(S, "fro") ** 2 - np.trace(S) ** 2))
    return np.linalg.norm(M, "nuc"), f2


# Wrong on indefinite M: the absolute value is taken of the sum of the eigenvalues, not of each one (right on M
# whose symmetric part is positive or negative semidefinite, so for d = 1).
@wrong("quadratic_norms", "F1 = |sum of the eigenvalues|")
def quadratic_norms_3(M):
    d = len(M)
    eigenvalues = np.linalg.eigvalsh((M + M.T) / 2)
    f1 = abs(eigenvalues.sum())
    f2 = np.sqrt(d / 2 * ((d + 2) * (eigenvalues**2).sum() - eigenvalues.sum() ** 2))
    return f1, f2


# Wrong on generic inputs with d > 1: tr(M^2) in place of (tr M)^2 (right where the symmetric part has rank one).
@wrong("quadratic_norms", "tr(M^2) in place of (tr M)^2")
def quadratic_norms_4(M):
    S = (M + M.T) / 2
    d = S.shape[0]
    f1 = np.linalg.svd(S, compute_uv=False).sum()
    f2 = (d / 2 * ((d + 2) * np.sum(S * S) - np.trace(S @ S))) ** 0.5
    return f1, f2


# Wrong on M = 0, and on antisymmetric M: scales by the Frobenius norm first, 0/0 = nan where f = 0 (right elsewhere).
@wrong("quadratic_norms", "normalises the symmetric part: nan where f = 0")
def quadratic_norms_5(M):
    S = (M + M.T) / 2
    d = len(S)
    scale = np.linalg.norm(S)
    with np.errstate(invalid="ignore"):
        S = S / scale
    if np.isnan(S).any():
        return float("nan"), float("nan")
    f1 = scale * np.abs(np.linalg.eigvalsh(S)).sum()
    f2 = scale * np.sqrt(d / 2 * (d + 2 - np.trace(S) ** 2))
    return f1, f2


# -------------------------------------------------------------------- leap


# Wrong on [{0, 1, 2}, {0, 1}, {0}]: 3, true 1.
@wrong("leap", "takes the monomials in the order of the list")
def leap_1(monomials):
    known, worst = set(), 0
    for s in monomials:
        worst = max(worst, len(s - known))
        known = known | s
    return worst


# Breaks on []: max of nothing.
@wrong("leap", "fails on the empty list")
def leap_2(monomials):
    rest, known, jumps = list(monomials), set(), []
    while rest:
        s = min(rest, key=lambda t: len(t - known))
        jumps.append(len(s - known))
        known = known | s
        rest.remove(s)
    return max(jumps)


# Wrong on [{0, 1, 2}, {3, 4, 5, 6}, {0, 1, 2, 3, 4}]: 4, true 3.
@wrong("leap", "sorts by degree once and for all")
def leap_3(monomials):
    known, worst = set(), 0
    for s in sorted(monomials, key=len):
        worst = max(worst, len(s.difference(known)))
        known = known.union(s)
    return worst


# Forbidden on every input: it tries all orders (tried with the stairs of four steps).
@wrong("leap", "tries all orders, which the statement forbids")
def leap_4(monomials):
    best = None
    for order in itertools.permutations(monomials):
        known, worst = set(), 0
        for s in order:
            worst = max(worst, len(s - known))
            known = known | s
        best = worst if best is None else min(best, worst)
    return best


# Wrong on [{0, 1}, {2, 3}, {4}, {4, 5, 6, 7}, {5, 6}]: 3, true 2.
@wrong("leap", "next is the one with the largest overlap, not with the fewest new coordinates")
def leap_5(monomials):
    rest, known, worst = list(monomials), set(), 0
    while rest:
        s = max(rest, key=lambda t: (len(t & known), -len(t)))
        rest.remove(s)
        worst = max(worst, len(s - known))
        known = known | s
    return worst


# Right number, but changes [{0}, {0, 1}]: the first set is {0, 1} afterwards.
@wrong("leap", "the set of known coordinates is the caller's first monomial")
def leap_6(monomials):
    if not monomials:
        return 0
    rest = sorted(monomials, key=len)
    known = rest.pop(0)
    worst = len(known)
    while rest:
        rest.sort(key=lambda t: len(t - known))
        s = rest.pop(0)
        worst = max(worst, len(s - known))
        known |= s
    return worst


# ---------------------------------------------------------------- implicit
# The input: rng = default_rng(3); X = rng.standard_normal((24, 8)), which is fewer than the
# 36 entries of a symmetric matrix; rank one: y = (X @ β)², β = (1, 0.5, 0, …, 0);
# rank two: y = x_1² + 0.6 x_2².


def _descend(X, y, U, rate, steps):
    n = len(y)
    for _ in range(steps):
        r = ((X @ U) ** 2).sum(1) - y
        U = U - rate / n * (X.T @ (r[:, None] * (X @ U)))
    return U


# Wrong on the rank-one input above: another matrix, with negative eigenvalues.
@wrong("implicit", "least-squares matrix of least Frobenius norm")
def implicit_1(X, y):
    n, d = X.shape
    A = np.einsum("ni,nj->nij", X, X).reshape(n, d * d)
    M = (np.linalg.pinv(A) @ y).reshape(d, d)
    return (M + M.T) / 2


# Wrong on the rank-one input above: all entries below 0.1, the true ones up to 1.
@wrong("implicit", "stops after 30 steps, before anything happens")
def implicit_2(X, y):
    d = X.shape[1]
    U = 1e-3 * np.random.default_rng(0).standard_normal((d, d))
    U = _descend(X, y, U, 0.03, 30)
    return U @ U.T


# Wrong on the rank-one input above: a matrix of high rank, 38 percent off.
@wrong("implicit", "starts from noise of size one")
def implicit_3(X, y):
    d = X.shape[1]
    U = np.random.default_rng(0).standard_normal((d, d))
    U = _descend(X, y, U, 0.001, 20000)
    return U @ U.T


# Wrong on the rank-one input above: the right eigenvalues, the wrong eigenvectors.
@wrong("implicit", "returns UᵀU in place of UUᵀ")
def implicit_4(X, y):
    d = X.shape[1]
    U = 1e-3 * np.random.default_rng(0).standard_normal((d, d))
    U = _descend(X, y, U, 0.03, 4000)
    return U.T @ U


# Wrong on the rank-two input above: rank one, does not fit. Right for rank one.
@wrong("implicit", "U with a single column: rank one whatever the labels")
def implicit_5(X, y):
    d = X.shape[1]
    U = 1e-3 * np.random.default_rng(0).standard_normal((d, 1))
    U = _descend(X, y, U, 0.03, 4000)
    return U @ U.T


# --------------------------------------------------------- average_hessian


# Wrong on {(2, 0): 0.6, (0, 3): 0.8}: 1.2, true 0.6 √2.
@wrong("average_hessian", "takes the h_k for unnormalised: 2 on the diagonal")
def average_hessian_1(coefficients):
    r = len(next(iter(coefficients)))
    H = np.zeros((r, r))
    for k, c in coefficients.items():
        if sum(k) == 2:
            i = [a for a in range(r) for _ in range(k[a])]
            if i[0] == i[1]:
                H[i[0], i[0]] = 2 * c
            else:
                H[i[0], i[1]] = H[i[1], i[0]] = c
    return H


# Wrong on {(1, 1): 1.0}: zero.
@wrong("average_hessian", "diagonal only, mixed terms forgotten")
def average_hessian_2(coefficients):
    r = len(list(coefficients)[0])
    H = np.zeros((r, r))
    for i in range(r):
        k = tuple(2 if j == i else 0 for j in range(r))
        H[i, i] = math.sqrt(2) * coefficients.get(k, 0.0)
    return H


# Wrong on {(2, 1): 1.0}: √2 in place of zero.
@wrong("average_hessian", "counts h_2(z_i) also where it is multiplied by another factor")
def average_hessian_3(coefficients):
    r = len(next(iter(coefficients)))
    H = np.zeros((r, r))
    for k, c in coefficients.items():
        for i in range(r):
            if k[i] == 2:
                H[i, i] += np.sqrt(2) * c
            for j in range(r):
                if i != j and k[i] == 1 and k[j] == 1 and sum(k) == 2:
                    H[i, j] += c
    return H


# Wrong on {(1, 1): 1.0}: 0.5 off the diagonal, true 1.
@wrong("average_hessian", "splits a mixed coefficient into two halves, as for a quadratic form")
def average_hessian_4(coefficients):
    r = len(next(iter(coefficients)))
    H = np.zeros((r, r))
    for k, c in coefficients.items():
        if sum(k) != 2:
            continue
        where = np.flatnonzero(k)
        if len(where) == 1:
            H[where[0], where[0]] = np.sqrt(2) * c
        else:
            H[where[0], where[1]] += c / 2
            H[where[1], where[0]] += c / 2
    return H


# Wrong on {(0, 3): 0.8}: returns the number 0.0, not a (2, 2) matrix.
@wrong("average_hessian", "a number in place of a matrix when no term has degree two")
def average_hessian_5(coefficients):
    H = 0.0
    for k, c in coefficients.items():
        if sum(k) == 2:
            E = np.sqrt(np.outer(k, k) - np.diag(k))
            H = H + c * E
    return H


# Right matrix, but {(2, 0): 0.6} has the keys (1, 1) and (0, 2) afterwards.
@wrong("average_hessian", "enters absent keys into the caller's dictionary")
def average_hessian_6(coefficients):
    r = len(next(iter(coefficients)))
    H = np.zeros((r, r))
    for i in range(r):
        for j in range(r):
            k = [0] * r
            k[i] += 1
            k[j] += 1
            c = coefficients.setdefault(tuple(k), 0.0)
            H[i, j] = c * (np.sqrt(2) if i == j else 1)
    return H


# ---------------------------------------------------- first_layer_gradient
# The input: rng = default_rng(0); W (4, 3), b (4,), a (4,), X (7, 3), y (7,), drawn with
# rng.standard_normal in this order.


# Wrong on the input above.
@wrong("first_layer_gradient", "forgets the 2 of the square")
def first_layer_gradient_1(W, b, a, X, y):
    Z = X @ W.T + b
    r = np.maximum(Z, 0) @ a - y
    return (r[:, None] * (Z > 0) * a).T @ X / len(y)


# Wrong on the input above.
@wrong("first_layer_gradient", "ReLU in place of its derivative")
def first_layer_gradient_2(W, b, a, X, y):
    act = np.maximum(X @ W.T + b, 0)
    r = act @ a - y
    return 2 / len(y) * (a * act * r[:, None]).T @ X


# Wrong on the input above; right where the network is zero.
@wrong("first_layer_gradient", "gradient at the initialisation: takes f for zero")
def first_layer_gradient_3(W, b, a, X, y):
    on = (X @ W.T + b > 0).astype(float)
    return -2 / len(y) * a[:, None] * (on.T @ (y[:, None] * X))


# Wrong on the input above; right for b = 0.
@wrong("first_layer_gradient", "the bias is missing in the derivative of ReLU")
def first_layer_gradient_4(W, b, a, X, y):
    r = np.maximum(X @ W.T + b, 0) @ a - y
    on = X @ W.T > 0
    return 2 / len(y) * (a * on * r[:, None]).T @ X


# Wrong on integer weights: W = rint(2 W) as integers, the rest as above.
@wrong("first_layer_gradient", "gradient takes the type of W: cut off for integer weights")
def first_layer_gradient_5(W, b, a, X, y):
    G = np.zeros_like(W)
    Z = X @ W.T + b
    r = np.maximum(Z, 0) @ a - y
    for j in range(len(W)):
        G[j] = 2 * a[j] * np.mean((r * (Z[:, j] > 0))[:, None] * X, axis=0)
    return G


# Right gradient, but y of the input above holds y - f(X) afterwards.
@wrong("first_layer_gradient", "subtracts the predictions from the caller's y")
def first_layer_gradient_6(W, b, a, X, y):
    Z = X @ W.T + b
    y -= np.maximum(Z, 0) @ a
    return -2 / len(y) * ((Z > 0) * a * y[:, None]).T @ X


# ------------------------------------------------------------------- gamma


# Wrong on k = 1, P = {1}: 1, true 1/2.
@wrong("gamma", "bits ±1 in place of 0 and 1: twice too large")
def gamma_1(k, P):
    total = 0
    for c in range(k + 1):
        y = 1 if c in P else -1
        total += math.comb(k, c) * y * (2 * c - k) / k
    return total / 2**k


# Wrong on k = 3, P = {3}: 1/4, true 1/8.
@wrong("gamma", "all counts equally likely, no binomial coefficients")
def gamma_2(k, P):
    c = np.arange(k + 1)
    y = np.where(np.isin(c, list(P)), 1.0, -1.0)
    return float(np.mean(y * c / k) - np.mean(y) * 0.5)


# Wrong on k = 3, P = {3}: -1/4, true 1/8; right when the classes are equally likely.
@wrong("gamma", "E[yφ] alone, without the product of the means")
def gamma_3(k, P):
    return sum((1 if c in P else -1) * math.comb(k, c) * c / k for c in range(k + 1)) / 2**k


# Wrong on k = 3, P = {3}: the count k is left out.
@wrong("gamma", "range(k): leaves out the count k")
def gamma_4(k, P):
    Eyphi = Ey = 0.0
    for c in range(k):
        y = 1 if c in P else -1
        Eyphi += y * math.comb(k, c) * c / k / 2**k
        Ey += y * math.comb(k, c) / 2**k
    return Eyphi - Ey / 2


# Breaks on k = 3, P = set() and P = {0, 1, 2, 3}: division by zero, true 0.
@wrong("gamma", "from the means of the two classes: fails when one is empty")
def gamma_5(k, P):
    n = [math.comb(k, c) for c in range(k + 1)]
    n_plus = sum(n[c] for c in P)
    n_minus = 2**k - n_plus
    m_plus = sum(n[c] * c / k for c in P) / n_plus
    m_minus = sum(n[c] * c / k for c in range(k + 1) if c not in P) / n_minus
    p = n_plus / 2**k
    return 2 * p * (1 - p) * (m_plus - m_minus)


# Wrong on k = 5, P = {1, 3, 5}: true 0, the result is random, of size 0.005; and on
# k = 3, P = {3}, by a percent or two.
@wrong("gamma", "mean over 10 000 global random draws")
def gamma_6(k, P):
    phi = np.random.randint(0, 2, (10000, k))
    y = np.where(np.isin(phi.sum(1), list(P)), 1, -1)
    return float(np.mean(y * phi[:, 0]) - np.mean(y) * np.mean(phi[:, 0]))


# ---------------------------------------------------------------- relevant
# The input: rng = default_rng(0), n = 3000, D = 8, d = 10, k = 3; phi = (rng.random((n, D)) <
# q) with q = 0.5 for the patterns 0, 1, 2, and 0.9, 0.9, 0.9, 0.2, 0.2 for the others;
# pattern 7 a copy of pattern 6; y = +1 if all of 0, 1, 2 are there, else -1 (or its negative);
# M = qr(rng.standard_normal((10, 10)))[0][:, :8]; X = phi Mᵀ. The answer is {0, 1, 2}.


# Wrong on the input above: {3, 4, 5}.
@wrong("relevant", "the most frequent patterns")
def relevant_1(X, y, M, k):
    return np.argsort(-(X @ M).mean(0))[:k]


# Wrong on the input above: {3, 4, 5}; right when the classes are equally likely.
@wrong("relevant", "mean of y times pattern, the product of the means not subtracted")
def relevant_2(X, y, M, k):
    score = M.T @ (y[:, None] * X).mean(0)
    return np.argsort(np.abs(score))[-k:]


# Wrong on the input above with the labels negated.
@wrong("relevant", "largest covariance without the absolute value: γ < 0 fails")
def relevant_3(X, y, M, k):
    phi = X @ M
    score = (y - y.mean()) @ phi / len(y)
    return np.argsort(score)[::-1][:k]


# Right answer, but X of the input above is centred afterwards.
@wrong("relevant", "centres the caller's X in place")
def relevant_4(X, y, M, k):
    X -= X.mean(axis=0)
    score = np.abs((y - y.mean()) @ X @ M)
    return np.argpartition(score, -k)[-k:]


# Wrong on the input above, where the patterns 6 and 7 always come together: singular matrix.
@wrong("relevant", "least squares with an inverse: fails when two patterns always come together")
def relevant_5(X, y, M, k):
    phi = X @ M
    phi = phi - phi.mean(0)
    C = np.linalg.inv(phi.T @ phi)
    coef = C @ (phi.T @ (y - y.mean()))
    return np.argsort(-np.abs(coef))[:k]


# ------------------------------------------------------ gaussian_gradients
# The input: rng = default_rng(0); X (6, 3), alpha (6,), B (3, 3) with rng.standard_normal in
# this order, M = B Bᵀ, bandwidth 1.7.


def _gauss(X, M, bandwidth):
    XM = X @ M
    s = (XM * X).sum(1)
    rho2 = np.maximum(s[:, None] + s - 2 * XM @ X.T, 0)
    return np.exp(-rho2 / (2 * bandwidth**2))


# Wrong on the input above: half the gradient.
@wrong("gaussian_gradients", "1/(2σ²): forgets the 2 in the gradient of ρ²")
def gaussian_gradients_1(X, alpha, M, bandwidth):
    A = _gauss(X, M, bandwidth) * alpha
    return -(A.sum(1)[:, None] * X - A @ X) @ M / (2 * bandwidth**2)


# Wrong on the input above; right for bandwidth 1.
@wrong("gaussian_gradients", "no σ² in front of the kernel")
def gaussian_gradients_2(X, alpha, M, bandwidth):
    A = _gauss(X, M, bandwidth) * alpha[None, :]
    return (A @ X - A.sum(1, keepdims=True) * X) @ M


# Wrong on the input above; right when all alpha are equal.
@wrong("gaussian_gradients", "alpha of the point where the gradient is taken, not of the centres")
def gaussian_gradients_3(X, alpha, M, bandwidth):
    A = _gauss(X, M, bandwidth) * alpha[:, None]
    return (A @ X - A.sum(1, keepdims=True) * X) @ M / bandwidth**2


# Wrong on the input above; right for diagonal M.
@wrong("gaussian_gradients", "only the diagonal of M in ρ²")
def gaussian_gradients_4(X, alpha, M, bandwidth):
    diff = X[:, None] - X[None]
    rho2 = (diff**2 * np.diag(M)).sum(-1)
    A = np.exp(-rho2 / (2 * bandwidth**2)) * alpha
    return -np.einsum("ij,ijd->id", A, diff) @ M / bandwidth**2


# Breaks on the input above with the singular M = diag(1, 1, 0).
@wrong("gaussian_gradients", "Cholesky root of M: fails for singular M")
def gaussian_gradients_5(X, alpha, M, bandwidth):
    L = np.linalg.cholesky(M)
    Z = X @ L / bandwidth
    A = np.exp(-((Z[:, None] - Z) ** 2).sum(-1) / 2) * alpha
    return (A @ Z - A.sum(1, keepdims=True) * Z) @ L.T / bandwidth


# Forbidden on every input (tried on the one above): automatic differentiation.
@wrong("gaussian_gradients", "automatic differentiation, which the statement forbids")
def gaussian_gradients_6(X, alpha, M, bandwidth):
    C, al, T = (torch.as_tensor(np.asarray(v, dtype=float)) for v in (X, alpha, M))
    x = C.clone().requires_grad_(True)
    diff = x[:, None] - C[None]
    rho2 = torch.einsum("ijk,kl,ijl->ij", diff, T, diff)
    f = torch.exp(-rho2 / (2 * bandwidth**2)) @ al
    f.sum().backward()
    return x.grad.numpy()


# ---------------------------------------------------- information_exponent
# h_s is He_s/√(s!) below.


def _he(s, z):
    return np.polynomial.hermite_e.hermeval(z, [0] * s + [1])


# Wrong on g = 1 + tanh: 0, true 1.
@wrong("information_exponent", "starts at s = 0: a constant has exponent 0")
def information_exponent_1(g):
    z, w = np.polynomial.hermite_e.hermegauss(50)
    w = w / w.sum()
    size = np.sqrt(w @ g(z) ** 2)
    for s in range(11):
        if abs(w @ (g(z) * _he(s, z))) / math.sqrt(math.factorial(s)) > 1e-6 * size:
            return s


# Wrong on g(z) = 0.001 z + cos z: 2 (or a random number), true 1.
@wrong("information_exponent", "mean over random draws with a threshold of 0.02")
def information_exponent_2(g):
    z = np.random.standard_normal(100000)
    v = g(z)
    v = v - v.mean()
    for s in range(1, 11):
        if abs(np.mean(v * _he(s, z))) / math.sqrt(math.factorial(s)) > 0.02 * v.std():
            return s
    return 10


# Wrong on g = 1e-9 tanh: finds nothing and returns None, true 1.
@wrong("information_exponent", "absolute threshold: a small g has no coefficient")
def information_exponent_3(g):
    z, w = np.polynomial.hermite_e.hermegauss(50)
    w = w / np.sqrt(2 * np.pi)
    for s in range(1, 11):
        if abs(np.sum(w * g(z) * _he(s, z))) / math.sqrt(math.factorial(s)) > 1e-6:
            return s


# Wrong on g = 1 + h_3: 2, true 3; right without a constant.
@wrong("information_exponent", "moments E[g z^s] in place of Hermite coefficients")
def information_exponent_4(g):
    z, w = np.polynomial.hermite_e.hermegauss(50)
    w = w / np.sqrt(2 * np.pi)
    size = np.sqrt(w @ g(z) ** 2)
    for s in range(1, 11):
        if abs(w @ (g(z) * z**s)) / math.sqrt(math.factorial(s)) > 1e-6 * size:
            return s
    return 10


# Wrong on g = h_9 + 0.5 h_12: 8, true 9.
@wrong("information_exponent", "10 nodes: too few for degree 12")
def information_exponent_5(g):
    z, w = np.polynomial.hermite_e.hermegauss(10)
    w = w / w.sum()
    size = np.sqrt(w @ g(z) ** 2)
    for s in range(1, 11):
        if abs(w @ (g(z) * _he(s, z))) / math.sqrt(math.factorial(s)) > 1e-6 * size:
            return s
    return 10


# Wrong on g = h_10 + 3e-8 h_8: 8, true 10, for 3e-8 counts as zero.
@wrong("information_exponent", "compares E[g He_s], not normalised, with the threshold")
def information_exponent_6(g):
    z, w = np.polynomial.hermite_e.hermegauss(50)
    w = w / w.sum()
    v = g(z)
    size = np.sqrt(w @ v**2)
    for s in range(1, 11):
        if abs(w @ (v * _he(s, z))) > 1e-6 * size:
            return s
    return 10
