# ruff: noqa
"""Right answers in unusual forms, written from the statements alone by somebody who had not seen the
checks; the style is that of many students.

RIGHT       correct for every legal input, as the statement is read in the most usual way
BORDERLINE  defensible, but a strict reading of the statement might refuse them
"""

import functools
import heapq
import itertools
import math
from fractions import Fraction

import numpy as np
import scipy.linalg
import scipy.special
import torch

RIGHT = {}
BORDERLINE = {}


def answer(name, sentence, into=None):
    """Decorator that files an answer under its exercise."""

    def file(function):
        (RIGHT if into is None else into).setdefault(name, []).append((sentence, function))
        return function

    return file


def _t(x):
    """A float64 tensor that shares no memory with x."""
    return torch.tensor(np.array(x, dtype=np.float64))


def _f(x):
    """A float64 array that shares no memory with x."""
    return np.array(x, dtype=np.float64)


# --------------------------------------------------------------------------- centre


@answer("centre", "torch: P K P with the projection P as a tensor, returns a tensor")
def centre_torch(K):
    K = _t(K)
    n = K.shape[0]
    P = torch.eye(n, dtype=K.dtype) - torch.full((n, n), 1 / n, dtype=K.dtype)
    return torch.einsum("ij,jk,kl->il", P, K, P)


@answer(
    "centre",
    "complex: deletes the zero frequency of the two-dimensional FFT, returns its real part",
)
def centre_fft(K):
    F = np.fft.fft2(_f(K))
    F[0, :] = 0
    F[:, 0] = 0
    return np.fft.ifft2(F).real


@answer(
    "centre",
    "plain Python: nested comprehensions over lists with math.fsum, returns a list of lists",
)
def centre_lists(K):
    K = [[float(v) for v in row] for row in K]
    n = len(K)
    rows = [math.fsum(row) / n for row in K]
    columns = [math.fsum(column) / n for column in zip(*K)]
    total = math.fsum(rows) / n
    return [[K[i][j] - rows[i] - columns[j] + total for j in range(n)] for i in range(n)]


@answer("centre", "classical scaling: -1/2 of the doubly centred squared distances")
def centre_distances(K):
    K = _f(K)
    D = np.diag(K)[:, None] + np.diag(K)[None, :] - 2 * K
    D -= D.mean(0, keepdims=True)
    D -= D.mean(1, keepdims=True)
    return -D / 2


@answer(
    "centre",
    "projects on an orthonormal basis of the complement of the ones (Householder) and comes back",
)
def centre_householder(K):
    K = _f(K)
    n = len(K)
    Q = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, : n - 1]]))[0]
    B = Q[:, 1:]
    C = B @ (B.T @ K @ B) @ B.T
    return (C + C.T) / 2


def _remove_mean(A, axis=0, *, mean=np.mean):
    return A - mean(A, axis=axis, keepdims=True)


answer(
    "centre",
    "a lambda that removes the column means, then those of the transpose, by functools.reduce",
)(lambda K, *args: functools.reduce(lambda A, _: _remove_mean(A).T, range(2), _f(K)))


# --------------------------------------------------------------------------- leave_one_out


@answer("leave_one_out", "Cholesky; the diagonal of the inverse as squared column norms of L^-1")
def loo_cholesky(K, y, ridge):
    G = _f(K)
    G[np.diag_indices_from(G)] += ridge
    L = scipy.linalg.cholesky(G, lower=True)
    Linv = scipy.linalg.solve_triangular(L, np.eye(len(G)), lower=True)
    return (Linv.T @ (Linv @ _f(y))) / (Linv**2).sum(0)


@answer("leave_one_out", "eigendecomposition of K, never of K + ridge, einsum")
def loo_eigh(K, y, ridge):
    s, Q = np.linalg.eigh(_f(K))
    s = 1 / (s + ridge)
    return np.einsum("ik,k,jk,j->i", Q, s, Q, _f(y), optimize=True) / np.einsum(
        "ik,k,ik->i", Q, s, Q
    )


@answer(
    "leave_one_out",
    "torch: the Hessian of y'(K + ridge)^-1 y/2 by autograd; returns a tensor with requires_grad",
)
def loo_hessian(K, y, ridge):
    K, y = _t(K), _t(y).requires_grad_()
    G = K + ridge * torch.eye(len(K), dtype=K.dtype)
    energy = y @ torch.linalg.solve(G, y) / 2
    (gradient,) = torch.autograd.grad(energy, y, create_graph=True)
    H = torch.stack([torch.autograd.grad(g, y, retain_graph=True)[0] for g in gradient])
    return gradient / H.diagonal()


@answer(
    "leave_one_out",
    "the sweep operator, one pivot after another in place, returns a list of floats",
)
def loo_sweep(K, y, ridge):
    A = _f(K) + ridge * np.eye(len(K))
    for k in range(len(A)):
        pivot = A[k, k]
        column, row = A[:, k].copy(), A[k].copy()
        A -= np.outer(column, row) / pivot
        A[:, k], A[k] = -column / pivot, row / pivot
        A[k, k] = 1 / pivot
    return (A @ _f(y) / A.diagonal()).tolist()


@answer(
    "leave_one_out",
    "y as a column, the inversion an optional keyword argument, a quotient of columns that is flattened at the end",
)
def loo_hat(K, y, ridge, *, inverse=np.linalg.inv):
    K = _f(K)
    R = inverse(K + ridge * np.identity(K.shape[0]))
    y = _f(y)[:, None]
    return np.divide(R @ y, np.diag(R)[:, None]).ravel()


@answer(
    "leave_one_out",
    "the textbook (y - Hy)/(1 - diag H): loses digits for a tiny ridge, undefined for ridge 0",
    BORDERLINE,
)
def loo_textbook(K, y, ridge):
    K, y = _f(K), _f(y)
    H = np.linalg.solve(K + ridge * np.eye(len(K)), K).T
    return (y - H @ y) / (1 - np.diag(H))


# --------------------------------------------------------------------------- periodic


@answer("periodic", "complex: points on the unit circle, exp(Re(z conj z') - 1)")
def periodic_complex(X, Y=None):
    Y = X if Y is None else Y
    z, v = (np.exp(2j * np.pi * _f(A)[:, 0]) for A in (X, Y))
    return np.exp(np.outer(z, v.conj()).real - 1)


@answer("periodic", "Gaussian kernel of the circle embedding with scipy's cdist")
def periodic_circle(X, Y=None):
    from scipy.spatial.distance import cdist

    def circle(A):
        t = 2 * np.pi * _f(A)
        return np.hstack([np.cos(t), np.sin(t)])

    P = circle(X)
    return np.exp(-cdist(P, P if Y is None else circle(Y), "sqeuclidean") / 2)


@answer(
    "periodic", "Fourier series with Bessel coefficients: sum of ive(k, 1) cos(2 pi k (x - x'))"
)
def periodic_bessel(X, Y=None, terms=26):
    X = _f(X) % 1
    Y = X if Y is None else _f(Y) % 1
    k = np.arange(terms)
    c = scipy.special.ive(k, 1.0) * np.where(k == 0, 1, 2)
    return np.cos(2 * np.pi * (X - Y.T)[..., None] * k) @ c


periodic_scalar = np.vectorize(
    lambda x, y: math.exp(-2 * math.sin(math.pi * (x - y)) ** 2), otypes=[float]
)


@answer("periodic", "numpy.vectorize of a scalar function with math, broadcast")
def periodic_vectorize(X, Y=None):
    return periodic_scalar(np.asarray(X), np.transpose(X if Y is None else Y))


@answer("periodic", "torch in and out, with the double angle instead of the square")
def periodic_torch(X, Y=None):
    X = _t(X)
    Y = X if Y is None else _t(Y)
    return torch.exp(torch.cos(2 * math.pi * (X - Y.mT)) - 1)


# --------------------------------------------------------------------------- fourier_pairs


@answer("fourier_pairs", "complex exponential viewed as reals, so cosines and sines interleave")
def pairs_view(X, W):
    Z = np.exp(1j * (_f(X) @ _f(W).T)) / math.sqrt(len(W))
    return np.ascontiguousarray(Z).view(np.float64)


@answer("fourier_pairs", "torch, sines before cosines, returns a tensor")
def pairs_torch(X, W):
    angles = torch.einsum("nd,qd->nq", _t(X), _t(W))
    return torch.cat([angles.sin(), angles.cos()], dim=1).div(W.shape[0] ** 0.5)


@answer(
    "fourier_pairs", "plain Python generators and math, returns a list of lists, columns backwards"
)
def pairs_lists(X, W):
    X, W = np.asarray(X).tolist(), np.asarray(W).tolist()
    q = len(W)

    def row(x):
        for w in W:
            angle = sum(a * b for a, b in zip(w, x))
            yield math.cos(angle) / math.sqrt(q)
            yield math.sin(angle) / math.sqrt(q)

    return [list(row(x))[::-1] for x in X]


@answer(
    "fourier_pairs",
    "only cosines: the frequencies twice, with the phases 0 and pi/2, columns shuffled",
)
def pairs_phases(X, W):
    W = _f(W)
    q = len(W)
    W2, phase = np.tile(W, (2, 1)), np.repeat([0, np.pi / 2], q)
    order = np.random.default_rng(0).permutation(2 * q)
    return np.cos(_f(X) @ W2[order].T - phase[order]) / np.sqrt(q)


@answer(
    "fourier_pairs",
    "the frequency -w for the sine: conjugate exponential, real part beside imaginary part",
)
def pairs_conjugate(X, W):
    Z = np.exp(-1j * np.inner(_f(X), _f(W)))
    return np.concatenate([Z.real, Z.imag], axis=-1) / np.sqrt(Z.shape[1])


@answer(
    "fourier_pairs",
    "each pair turned by 45 degrees: cos(t - pi/4), cos(t + pi/4); same inner products",
    BORDERLINE,
)
def pairs_turned(X, W):
    angles = _f(X) @ _f(W).T
    return np.hstack([np.cos(angles - np.pi / 4), np.cos(angles + np.pi / 4)]) / np.sqrt(len(W))


# --------------------------------------------------------------------------- laplace_features


@answer(
    "laplace_features",
    "the tangent of a uniform angle for w, phase on [-pi, pi], returned as float32",
)
def laplace_tan(X, p, rng):
    w = np.tan(np.pi * (rng.random(p) - 0.5))
    b = rng.uniform(-np.pi, np.pi, p)
    return (math.sqrt(2 / p) * np.cos(_f(X) * w + b)).astype(np.float32)


@answer(
    "laplace_features",
    "scipy.stats.cauchy with random_state=rng, sine instead of cosine, returns a tensor",
)
def laplace_scipy(X, p, rng):
    from scipy.stats import cauchy, uniform

    w = cauchy.rvs(size=(1, p), random_state=rng)
    b = uniform.rvs(scale=2 * np.pi, size=p, random_state=rng)
    return torch.as_tensor(np.sqrt(2 / p) * np.sin(_f(X) @ w + b))


@answer("laplace_features", "quotient of two normals for w, phase uniform on [0, pi) only")
def laplace_quotient(X, p, rng):
    top, bottom = rng.standard_normal((2, p))
    return np.cos(np.outer(_f(X)[:, 0], top / bottom) + np.pi * rng.random(p)) * (2 / p) ** 0.5


@answer(
    "laplace_features",
    "phase 0 or pi/2 by a coin: each feature is a cosine or a sine, drawn one by one in a generator; unbiased, but twice the variance on the diagonal at x = 0",
    BORDERLINE,
)
def laplace_coin(X, p, rng):
    x = _f(X).ravel()

    def columns():
        for _ in range(p):
            w = rng.standard_cauchy()
            yield np.sin(w * x) if rng.integers(2) else np.cos(w * x)

    return np.sqrt(2 / p) * np.stack(list(columns()), axis=1)


@answer(
    "laplace_features",
    "Student's t with one degree of freedom, phase drawn before the frequency, real part of a complex exponential",
)
def laplace_student(X, p, rng, *, scale=1.0):
    phase = np.exp(2j * np.pi * rng.random(p))
    w = scale * rng.standard_t(1, size=p)
    return (np.exp(1j * _f(X) * w) * phase).real * np.sqrt(2) / np.sqrt(p)


# --------------------------------------------------------------------------- relu_correlation


@answer("relu_correlation", "torch, returns a tensor (0-d for a number)")
def relu_torch(rho, depth):
    rho = _t(rho).clamp(-1, 1)
    for _ in range(depth):
        rho = ((1 - rho**2).sqrt() + rho * (math.pi - rho.acos())) / math.pi
        rho = rho.clamp(-1, 1)
    return rho


@answer(
    "relu_correlation",
    "recursion that halves the depth, with the angle instead of the correlation; depth 0 hands the argument back",
)
def relu_angle(rho, depth):
    if depth == 0:
        return rho
    if depth > 1:
        return relu_angle(relu_angle(rho, depth // 2), depth - depth // 2)
    theta = np.arccos(np.clip(rho, -1, 1))
    return np.cos(theta) + (np.sin(theta) - theta * np.cos(theta)) / np.pi


@functools.cache
def relu_scalar(rho, depth):
    rho = min(1.0, max(-1.0, rho))
    if depth == 0:
        return rho
    if depth > 1:
        return relu_scalar(relu_scalar(rho, depth // 2), depth - depth // 2)
    return min(
        1.0, (math.sqrt((1 - rho) * (1 + rho)) + rho * (math.pi / 2 + math.asin(rho))) / math.pi
    )


@answer(
    "relu_correlation", "numpy.vectorize of a cached scalar recursion, a python float for a number"
)
def relu_vectorize(rho, depth):
    result = np.vectorize(lambda r: relu_scalar(float(r), int(depth)), otypes=[float])(rho)
    return result.item() if np.ndim(rho) == 0 else result


@answer("relu_correlation", "complex logarithm for the angle, functools.reduce for the layers")
def relu_complex(rho, depth):
    def layer(r, _):
        s = np.sqrt(np.maximum(0, 1 - r * r))
        theta = np.log(r + 1j * s).imag
        return np.clip((s + r * (np.pi - theta)) / np.pi, -1, 1)

    return functools.reduce(layer, range(depth), np.clip(_f(rho), -1, 1))


class ReluMap:
    """Callable object; the layer is a method, and arctan2 gives the angle."""

    def layer(self, r):
        s = np.sqrt((1 - r) * (1 + r))
        return np.minimum((s + r * np.arctan2(s, -r)) / np.pi, 1.0)

    def __call__(self, rho, depth, *args, **kwargs):
        r = np.minimum(1.0, np.maximum(-1.0, rho))
        while depth > 0:
            r, depth = self.layer(r), depth - 1
        return r


answer("relu_correlation", "an object with __call__, arctan2 instead of arccos")(ReluMap())


@answer(
    "relu_correlation",
    "float32 throughout: right to about 1e-6 up to 30 layers, 1e-4 at 3000",
    BORDERLINE,
)
def relu_float32(rho, depth):
    r = np.clip(np.asarray(rho, dtype=np.float32), -1, 1).astype(np.float32)
    pi = np.float32(np.pi)
    for _ in range(depth):
        r = np.clip(
            (np.sqrt((1 - r) * (1 + r)) + r * (pi - np.arccos(r))) / pi,
            np.float32(-1),
            np.float32(1),
        )
    return r


# --------------------------------------------------------------------------- sine_dual


@answer(
    "sine_dual",
    "one exponential and expm1 with the sign taken out: no cancellation for small variances",
)
def sine_expm1(q_x, q_xy, q_y):
    a = np.abs(q_xy)
    return -0.5 * np.sign(q_xy) * np.exp(a - np.add(q_x, q_y) / 2) * np.expm1(-2.0 * a)


@answer("sine_dual", "torch, broadcasts, returns a tensor")
def sine_torch(q_x, q_xy, q_y):
    q_x, q_xy, q_y = torch.broadcast_tensors(_t(q_x), _t(q_xy), _t(q_y))
    return torch.exp(-(q_x - 2 * q_xy + q_y) / 2).sub(torch.exp(-(q_x + 2 * q_xy + q_y) / 2)) / 2


@answer(
    "sine_dual",
    "sine as a sum of complex exponentials, a sum over the four pairs of signs by itertools.product",
)
def sine_signs(q_x, q_xy, q_y):
    q_x, q_xy, q_y = _f(q_x), _f(q_xy), _f(q_y)
    total = 0j
    for s, t in itertools.product((1, -1), repeat=2):
        total = total + (s / 2j) * (t / 2j) * np.exp(-(q_x + q_y) / 2 - s * t * q_xy)
    return total.real


@answer("sine_dual", "scaled Bessel function of order 1/2 for the hyperbolic sine")
def sine_bessel(q_x, q_xy, q_y):
    a = np.abs(_f(q_xy))
    scaled = np.sqrt(np.pi * a / 2) * scipy.special.ive(0.5, a)
    return np.copysign(scaled, q_xy) * np.exp(a - (_f(q_x) + _f(q_y)) / 2)


def _sine_numbers(x, c, y):
    if c < 0:
        return -_sine_numbers(x, -c, y)
    return 0.5 * (math.exp(c - (x + y) / 2) - math.exp(-c - (x + y) / 2))


answer(
    "sine_dual", "a bare numpy.vectorize object around a scalar recursion that uses the oddness"
)(np.vectorize(_sine_numbers, otypes=[float]))


# --------------------------------------------------------------------------- tangent_kernel


@answer("tangent_kernel", "torch, the Jacobian stacked explicitly; returns a tensor")
def tangent_torch(X, W, a):
    X, W, a = (torch.tensor(np.array(v, dtype=float)) for v in (X, W, a))
    Z = X @ W.T
    grad_W = ((Z > 0) * a).unsqueeze(2) * X.unsqueeze(1)  # (n, m, d)
    J = torch.cat([grad_W.flatten(1), Z.clamp(min=0)], dim=1) / math.sqrt(len(a))
    return J @ J.T


@answer("tangent_kernel", "two einsums over everything; returns a list of lists")
def tangent_einsum(X, W, a):
    Z = np.einsum("id,jd->ij", X, W)
    D = np.heaviside(Z, 0.0)
    of_W = np.einsum("ij,kj,j,j,id,kd->ik", D, D, a, a, X, X, optimize=True)
    of_a = np.einsum("ij,kj,ij,kj->ik", D, D, Z, Z, optimize=True)
    return ((of_W + of_a) / len(W)).tolist()


def grad(x, W, a):
    """The gradient of the network at x in all weights, by hand."""
    z = W @ x
    return np.concatenate([np.outer((z > 0) * a, x).ravel(), np.maximum(z, 0)]) / len(a) ** 0.5


@answer("tangent_kernel", "a helper called grad, which is written by hand")
def tangent_helper(X, W, a):
    J = np.array([grad(x, W, a) for x in X])
    return J @ J.T


class _NeuronByNeuron:
    """The kernel as a sum over the neurons, folded from a generator of their (n, n) shares."""

    @staticmethod
    def shares(X, W, a):
        gram = np.inner(X, X)
        for w, b in zip(W, a):
            z = X @ w
            both = np.outer(z > 0, z > 0)
            yield np.where(both, np.outer(z, z) + b * b * gram, 0.0)

    def __call__(self, X, W, a):
        return functools.reduce(np.add, self.shares(X, W, a)) / len(a)


tangent_object = answer("tangent_kernel", "an object with __call__, neuron by neuron")(
    _NeuronByNeuron()
)


@answer("tangent_kernel", "gradient rows from a generator, the Gram matrix through the SVD")
def tangent_svd(X, W, a):
    m, d = W.shape

    def gradients():
        for x in X:
            z = W @ x
            gradient = np.empty((m, d + 1))  # neuron j: its w_j, then its a_j
            gradient[:, :d] = np.where(z > 0, a, 0.0)[:, None] * x
            gradient[:, d] = (z + abs(z)) / 2
            yield gradient.ravel() / np.sqrt(m)

    U, s, _ = np.linalg.svd(np.stack(list(gradients())), full_matrices=False)
    return np.asarray((U * s**2) @ U.T, dtype=float)


# --------------------------------------------------------------------------- bias_kernel


@answer("bias_kernel", "torch, one recursion that returns Sigma and the kernel together")
def bias_torch(X, depth, sigma_w, sigma_b):
    X = _t(X)

    def layer(l):
        if l == 1:
            S = sigma_w**2 * X @ X.mT / X.shape[1] + sigma_b**2
            return S, torch.full_like(S, sigma_b**2)
        S, B = layer(l - 1)
        scale = torch.outer(S.diagonal(), S.diagonal()).sqrt()
        rho = torch.where(scale > 0, S / scale, torch.zeros_like(S)).clamp(-1, 1)
        theta = rho.acos()
        dual = scale * ((1 - rho**2).sqrt() + (math.pi - theta) * rho) / (2 * math.pi)
        return (
            sigma_w**2 * dual + sigma_b**2,
            sigma_b**2 + sigma_w**2 * (math.pi - theta) / (2 * math.pi) * B,
        )

    return layer(depth)[1]


@answer(
    "bias_kernel",
    "collects the derivative kernels first and sums products from the top layer down, arctan2",
)
def bias_products(X, depth, sigma_w, sigma_b):
    X = _f(X)
    S = sigma_w**2 * (X @ X.T) / X.shape[1] + sigma_b**2
    dots = []
    for _ in range(depth - 1):
        q = np.multiply.outer(np.diag(S), np.diag(S))
        sine = np.sqrt(np.maximum(q - S**2, 0))
        beta = np.arctan2(sine, -S)  # pi - theta
        dots.append(sigma_w**2 * beta / (2 * np.pi))
        S = sigma_w**2 * (sine + beta * S) / (2 * np.pi) + sigma_b**2
    tails = itertools.accumulate(reversed(dots), np.multiply, initial=np.ones_like(S))
    return sigma_b**2 * sum(tails)


@answer(
    "bias_kernel",
    "entry by entry with numbers only: lru_cache, math, complex phase; returns a list of lists",
)
def bias_scalars(X, depth, sigma_w, sigma_b):
    import cmath

    X = np.asarray(X, dtype=float).tolist()
    n, d = len(X), len(X[0])
    w2, b2 = float(sigma_w) ** 2, float(sigma_b) ** 2

    @functools.cache
    def angle(i, j, l):
        q = sigma(i, i, l) * sigma(j, j, l)
        if i == j or q == 0:
            return 0.0
        c = sigma(i, j, l)
        return cmath.phase(complex(c, math.sqrt(max(q - c * c, 0.0))))

    @functools.cache
    def sigma(i, j, l):
        if i > j:
            return sigma(j, i, l)
        if l == 1:
            return w2 * math.fsum(a * b for a, b in zip(X[i], X[j])) / d + b2
        t = angle(i, j, l - 1)
        size = math.sqrt(sigma(i, i, l - 1) * sigma(j, j, l - 1))
        return w2 * size * (math.sin(t) + (math.pi - t) * math.cos(t)) / (2 * math.pi) + b2

    for l, i, j in itertools.product(range(1, depth), range(n), range(n)):
        angle(i, j, l)  # fills the caches from below, so the recursion stays shallow

    def kernel(i, j):
        terms = (
            w2 * (math.pi - angle(min(i, j), max(i, j), l)) / (2 * math.pi) for l in range(1, depth)
        )
        return functools.reduce(lambda total, factor: b2 + factor * total, terms, b2)

    return [[kernel(i, j) for j in range(n)] for i in range(n)]


@answer("bias_kernel", "correlations and variances apart; arcsine law; sigma_b = 0 handled first")
def bias_arcsine(X, depth, sigma_w, sigma_b):
    X = np.asarray(X) * 1.0
    n, d = X.shape
    if sigma_b == 0:
        return np.zeros((n, n))
    gram = np.einsum("ik,jk->ij", X, X) / d * sigma_w**2 + sigma_b**2
    q = gram.diagonal().copy()
    rho = np.clip(gram / np.sqrt(q[:, None] * q), -1, 1)
    np.fill_diagonal(rho, 1.0)
    B = np.full((n, n), float(sigma_b) ** 2)
    for _ in range(1, depth):
        half = 0.25 + np.arcsin(rho) / (2 * np.pi)
        B = sigma_b**2 + sigma_w**2 * half * B
        cov = (
            sigma_w**2 * np.sqrt(np.outer(q, q)) * (np.sqrt(1 - rho**2) / (2 * np.pi) + half * rho)
            + sigma_b**2
        )
        q = sigma_w**2 * q / 2 + sigma_b**2
        rho = np.clip(cov / np.sqrt(np.outer(q, q)), -1, 1)
    return B


class BiasKernel:
    def layers(self, X, sigma_w, sigma_b):
        q = sigma_w**2 * (X**2).mean(1) + sigma_b**2
        c = sigma_w**2 * (X @ X.T) / X.shape[1] + sigma_b**2
        while True:
            size = np.sqrt(np.outer(q, q))
            theta = np.arccos(
                np.clip(np.divide(c, size, out=np.ones_like(c), where=size > 0), -1, 1)
            )
            np.fill_diagonal(theta, 0.0)
            yield theta
            c = (
                sigma_w**2 * size * (np.sin(theta) + (np.pi - theta) * np.cos(theta)) / (2 * np.pi)
                + sigma_b**2
            )
            q = sigma_w**2 * q / 2 + sigma_b**2

    def __call__(self, X, depth, sigma_w, sigma_b, **options):
        X = _f(X)
        total = np.full((len(X), len(X)), float(sigma_b) ** 2)
        for theta in itertools.islice(self.layers(X, sigma_w, sigma_b), depth - 1):
            total = sigma_b**2 + sigma_w**2 * (0.5 - theta / (2 * np.pi)) * total
        return total


answer(
    "bias_kernel",
    "an object with __call__, the angles come from a generator, the diagonal is exact",
)(BiasKernel())


# --------------------------------------------------------------------------- trained_covariance


@answer(
    "trained_covariance",
    "torch: [-A, I] times a Cholesky factor of Sigma, then its Gram matrix; returns a tensor",
)
def spread_torch(Sigma, Theta, n):
    Sigma, Theta = _t(Sigma), _t(Theta)
    N = len(Sigma)
    A = torch.linalg.solve(Theta[:n, :n], Theta[:n, n:]).mT
    P = torch.cat([-A, torch.eye(N - n, dtype=A.dtype)], dim=1)
    R = P @ torch.linalg.cholesky(Sigma)
    return R @ R.mT


@answer(
    "trained_covariance",
    "Gaussian elimination of Theta, one training point at a time, the same row and column steps on Sigma",
)
def spread_elimination(Sigma, Theta, n):
    S, T = _f(Sigma), _f(Theta)
    for i in range(n):
        factor = T[i + 1 :, i] / T[i, i]
        T[i + 1 :] -= np.outer(factor, T[i])
        S[i + 1 :] -= np.outer(factor, S[i])
        S[:, i + 1 :] -= np.outer(S[:, i], factor)
    return S[n:, n:]


@answer(
    "trained_covariance",
    "through the precision matrix of Theta: its lower block rows, multiplied by the inverse of the corner",
)
def spread_precision(Sigma, Theta, n):
    rows = np.linalg.inv(_f(Theta))[n:]
    P = np.linalg.inv(rows[:, n:]) @ rows
    return np.einsum("ia,ab,jb->ij", P, _f(Sigma), P)


@answer(
    "trained_covariance",
    "four terms multiplied out, eigendecomposition of the training block, returns a list of lists",
)
def spread_terms(Sigma, Theta, n):
    S, T = _f(Sigma), _f(Theta)
    s, Q = np.linalg.eigh(T[:n, :n])
    A = ((T[n:, :n] @ Q) / s) @ Q.T
    C = S[n:, n:] - A @ S[:n, n:] - S[n:, :n] @ A.T + A @ S[:n, :n] @ A.T
    return C if C.size == 0 else C.tolist()


@answer(
    "trained_covariance",
    "posterior covariance of Sigma plus the excess (A - A*) Sigma (A - A*)', scipy's assume_a='pos'",
)
def spread_excess(Sigma, Theta, n):
    S, T = _f(Sigma), _f(Theta)
    if n == 0:
        return S

    def weights(K):
        return scipy.linalg.solve(K[:n, :n], K[:n, n:], assume_a="pos")

    best = weights(S)
    D = weights(T) - best
    return S[n:, n:] - S[n:, :n] @ best + D.T @ S[:n, :n] @ D


# --------------------------------------------------------------------------- quadratic_norms


@answer("quadratic_norms", "torch, singular values; returns one tensor of two entries")
def norms_torch(M):
    M = torch.tensor(np.array(M, dtype=float))
    S = (M + M.T) / 2
    d = S.shape[0]
    s = torch.linalg.svdvals(S)
    return torch.stack([s.sum(), torch.sqrt(d / 2 * ((d + 2) * s.square().sum() - S.trace() ** 2))])


@answer("quadratic_norms", "a generator, to be unpacked into the two numbers", BORDERLINE)
def norms_generator(M):
    S = np.add(M, np.transpose(M)) / 2
    d = len(S)
    yield math.fsum(map(abs, np.linalg.eigvalsh(S)))
    yield math.sqrt(d * ((d + 2) * np.vdot(S, S) - np.trace(S) ** 2) / 2)


class _TraceFree:
    """S = S0 + (t/d) I with S0 trace free: F2^2 = d(d+2)/2 |S0|^2 + t^2."""

    def __call__(self, M):
        S = np.asarray(M, dtype=float)
        S = S - (S - S.T) / 2
        d, t = S.shape[0], S.trace()
        S0 = S - t / d * np.eye(d)
        return [
            np.linalg.norm(S, "nuc"),
            math.hypot(math.sqrt(d * (d + 2) / 2) * np.linalg.norm(S0), t),
        ]


norms_object = answer(
    "quadratic_norms", "an object with __call__, trace-free part; returns a list"
)(_TraceFree())


@answer(
    "quadratic_norms",
    "positive part of the spectrum and pairs of eigenvalues; returns an array of shape (2,)",
)
def norms_spectrum(M):
    # sum |l| = 2 sum l_+ - sum l, and d sum l^2 - (sum l)^2 = (1/2) sum_ij (l_i - l_j)^2
    l = np.linalg.eigvalsh(np.einsum("ij->ji", M) * 0.5 + np.multiply(M, 0.5))
    d = l.size
    gaps = np.subtract.outer(l, l)
    return np.array(
        [2 * l.clip(min=0).sum() - l.sum(), np.sqrt(d * (l @ l) + d / 4 * (gaps**2).sum())]
    )


# --------------------------------------------------------------------------- leap


@answer(
    "leap", "smallest threshold t for which the closure under steps of at most t covers every set"
)
def leap_threshold(monomials):
    def covers(t):
        known, rest = set(), list(monomials)
        while True:
            near = [S for S in rest if len(set(S) - known) <= t]
            if not near:
                return not rest
            rest = [S for S in rest if len(set(S) - known) > t]
            known = known.union(*near)

    return next(t for t in itertools.count() if covers(t))


@answer("leap", "functools.reduce over pairs (leap so far, frozenset of what each set still lacks)")
def leap_reduce(monomials, *args):
    def step(state, _):
        worst, missing = state
        if not missing:
            return state
        nearest = min(missing, key=len)
        return max(worst, len(nearest)), frozenset(S - nearest for S in missing if nearest != S)

    return functools.reduce(step, monomials, (0, frozenset(map(frozenset, monomials))))[0]


@answer("leap", "coordinates relabelled as bits of an integer, a generator that yields the steps")
def leap_bits(monomials):
    label = {c: i for i, c in enumerate(set().union(*monomials))}
    masks = [sum(1 << label[c] for c in S) for S in monomials]

    def steps():
        while masks:
            masks.sort(key=lambda m: bin(m).count("1"))
            new = masks.pop(0)
            masks[:] = [m & ~new for m in masks]
            yield bin(new).count("1")

    return max(steps(), default=0)


@answer("leap", "boolean incidence matrix, returns a numpy integer")
def leap_matrix(monomials):
    coordinates = sorted(set().union(*monomials))
    A = np.array([[c in S for c in coordinates] for S in monomials], dtype=bool)
    A = A.reshape(len(monomials), len(coordinates))
    worst = np.int64(0)
    while len(A):
        size = A.sum(1)
        i = size.argmin()
        worst = np.maximum(worst, size[i])
        A = np.delete(A & ~A[i], i, axis=0)
    return worst


@answer(
    "leap",
    "a heap with stale entries and counters of missing coordinates (linear in the total size, up to logarithms)",
)
def leap_heap(monomials):
    missing = [len(set(S)) for S in monomials]
    where = {}
    for i, S in enumerate(monomials):
        for c in set(S):
            where.setdefault(c, []).append(i)
    heap = [(m, i) for i, m in enumerate(missing)]
    heapq.heapify(heap)
    done, known, best = set(), set(), 0
    while heap:
        m, i = heapq.heappop(heap)
        if i in done or m != missing[i]:
            continue
        done.add(i)
        best = max(best, m)
        for c in set(monomials[i]) - known:
            known.add(c)
            for j in where[c]:
                missing[j] -= 1
                if j not in done:
                    heapq.heappush(heap, (missing[j], j))
    return best


# --------------------------------------------------------------------------- implicit


@answer(
    "implicit",
    "iterates M itself, M <- (I - lr G) M (I - lr G), which is the same descent in U; halves lr if it blows up",
)
def implicit_matrix(X, y, lr=0.03, steps=6000):
    X, y = _f(X), _f(y)
    n, d = X.shape
    U = 1e-3 * np.random.default_rng(1).standard_normal((d, d))
    M = U @ U.T
    for _ in range(steps):
        r = ((X @ M) * X).sum(1) - y
        if not np.abs(r).max() < 1e6:
            return implicit_matrix(X, y, lr / 2, 2 * steps)
        if np.abs(r).max() < 1e-9:
            break
        T = np.eye(d) - lr / n * (X.T * r) @ X
        M = T @ M @ T
        M = (M + M.T) / 2
    return M


@answer(
    "implicit",
    "torch.optim.SGD with momentum, the gradient written by hand into U.grad; returns a tensor with requires_grad",
)
def implicit_sgd(X, y, lr=0.02, steps=1500):
    X, y = _t(X), _t(y)
    n, d = X.shape
    U = (
        1e-3 * torch.randn(d, d, dtype=X.dtype, generator=torch.Generator().manual_seed(3))
    ).requires_grad_()
    optimiser = torch.optim.SGD([U], lr=lr, momentum=0.8, foreach=False)
    for t in range(steps):
        with torch.no_grad():
            Z = X @ U
            r = (Z * Z).sum(1) - y
            U.grad = X.mT @ (r[:, None] * Z) / n
        if t % 20 == 0 and not r.abs().max().item() < 1e6:
            return implicit_sgd(X, y, lr / 2, 2 * steps)
        optimiser.step()
    return U @ U.T


@answer(
    "implicit",
    "torch autograd without an optimiser, U.data changed in place, learning rate 0.08 after the escape; takes about a second on a busy machine",
    BORDERLINE,
)
def implicit_autograd(X, y, scale=1.0):
    X, y = _t(X), _t(y)
    n, d = X.shape
    U = (
        1e-3 * torch.randn(d, d, dtype=X.dtype, generator=torch.Generator().manual_seed(11))
    ).requires_grad_()
    for _ in range(1500):
        loss = ((X @ U) ** 2).sum(1).sub(y).square().mean() / 4
        (g,) = torch.autograd.grad(loss, U)
        if not torch.isfinite(loss):
            return implicit_autograd(X, y, scale / 2)
        U.data -= scale * (0.03 if loss > 1e-2 else 0.08) * g
    return (U @ U.T).detach().numpy()


@answer(
    "implicit", "float32, uniform noise from an unseeded generator, einsum; returns a float32 array"
)
def implicit_float32(X, y, lr=0.03, steps=6000):
    X, y = np.asarray(X, dtype=np.float32), np.asarray(y, dtype=np.float32)
    n, d = X.shape
    U = (1e-3 * np.random.default_rng().uniform(-1, 1, (d, d))).astype(np.float32)
    for _ in range(steps):
        Z = X @ U
        r = np.einsum("ij,ij->i", Z, Z) - y
        if not np.abs(r).max() < 1e6:
            return implicit_float32(X, y, lr / 2, 2 * steps)
        U = U - np.float32(lr / n) * (X.T @ (r[:, None] * Z))
    return U @ U.T


@answer(
    "implicit",
    "descent with a backtracking (Armijo) step that grows again, so no learning rate is chosen",
)
def implicit_armijo(X, y, steps=4000):
    X, y = _f(X), _f(y)
    n, d = X.shape
    U = 1e-3 * np.random.default_rng(7).standard_normal((d, d))
    lr = 0.03

    def loss(U):
        return (((X @ U) ** 2).sum(1) - y) @ (((X @ U) ** 2).sum(1) - y) / (4 * n)

    now = loss(U)
    for _ in range(steps):
        Z = X @ U
        G = X.T @ (((Z**2).sum(1) - y)[:, None] * Z) / n
        size = (G**2).sum()
        if now < 1e-18 or size < 1e-30:
            break
        lr = min(2 * lr, 0.1)
        while (trial := loss(U - lr * G)) > now - lr * size / 2 and lr > 1e-12:
            lr /= 2
        U, now = U - lr * G, trial
    return U @ U.T


@answer("implicit", "starts from 1e-3 times a random orthogonal matrix, returns a list of lists")
def implicit_orthogonal(X, y, lr=0.03):
    X, y = _f(X), _f(y)
    n, d = X.shape
    U = 1e-3 * np.linalg.qr(np.random.default_rng(5).standard_normal((d, d)))[0]
    with np.errstate(all="ignore"):
        for _ in range(int(round(180 / lr))):
            Z = X @ U
            U = U - lr * X.T @ ((np.square(Z).sum(axis=1) - y)[:, None] * Z) / n
    return (U @ U.T).tolist() if np.isfinite(U).all() else implicit_orthogonal(X, y, lr / 2)


@answer(
    "implicit",
    "torch.optim.LBFGS from the same small noise: a descent, but not plain gradient descent",
    BORDERLINE,
)
def implicit_lbfgs(X, y):
    X, y = _t(X), _t(y)
    d = X.shape[1]
    U = (
        1e-3 * torch.randn(d, d, dtype=X.dtype, generator=torch.Generator().manual_seed(0))
    ).requires_grad_()
    optimiser = torch.optim.LBFGS(
        [U],
        lr=1.0,
        max_iter=500,
        history_size=5,
        line_search_fn="strong_wolfe",
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
    )

    def closure():
        optimiser.zero_grad()
        loss = ((X @ U).square().sum(1) - y).square().mean() / 4
        loss.backward()
        return loss

    optimiser.step(closure)
    return (U @ U.T).detach()


# --------------------------------------------------------------------------- average_hessian


@answer(
    "average_hessian",
    "applies the derivative to the dictionary twice and reads off the constant term",
)
def hessian_derivatives(coefficients):
    def derivative(g, i):
        out = {}
        for k, c in g.items():
            if k[i] > 0:
                lower = k[:i] + (k[i] - 1,) + k[i + 1 :]
                out[lower] = out.get(lower, 0) + c * math.sqrt(k[i])
        return out

    r = len(next(iter(coefficients)))
    zero = (0,) * r
    return np.array(
        [
            [derivative(derivative(coefficients, i), j).get(zero, 0.0) for j in range(r)]
            for i in range(r)
        ],
        dtype=float,
    )


@answer("average_hessian", "dictionary look-ups only, returns a list of lists")
def hessian_lookup(coefficients):
    r = len(list(coefficients)[0])

    def entry(i, j):
        key = tuple((m == i) + (m == j) for m in range(r))
        return float(coefficients.get(key, 0)) * (math.sqrt(2) if i == j else 1.0)

    return [[entry(i, j) for j in range(r)] for i in range(r)]


@functools.cache
def _hermite_mean(k, derivative):
    """sqrt(k!) E[d-th derivative of h_k] by exact moments of the Gaussian, as a Fraction."""
    p = [[Fraction(1)], [Fraction(0), Fraction(1)]]
    for m in range(1, k):
        nxt = [Fraction(0)] + p[m]
        for i, c in enumerate(p[m - 1]):
            nxt[i] -= m * c
        p.append(nxt)
    q = p[k]
    for _ in range(derivative):
        q = [i * c for i, c in enumerate(q)][1:]
    return sum((c * math.prod(range(1, i, 2)) for i, c in enumerate(q) if i % 2 == 0), Fraction(0))


@answer(
    "average_hessian",
    "exact rational Gaussian moments of the Hermite polynomials, term by term and factor by factor",
)
def hessian_moments(coefficients):
    r = len(min(coefficients))
    H = np.zeros((r, r))
    for k, c in coefficients.items():
        scale = math.sqrt(math.prod(math.factorial(int(m)) for m in k))
        for i, j in itertools.product(range(r), repeat=2):
            mean = Fraction(1)
            for m in range(r):
                mean *= _hermite_mean(int(k[m]), (m == i) + (m == j))
                if not mean:
                    break
            if mean:
                H[i, j] += float(c) * float(mean) / scale
    return H


@answer("average_hessian", "torch.index_put with accumulate, plus its transpose, returns a tensor")
def hessian_sparse(coefficients):
    r = len(next(iter(coefficients.keys())))
    rows, columns, values = [], [], []
    for k, c in coefficients.items():
        if sum(k) == 2:
            i, j = [m for m in range(r) for _ in range(int(k[m]))]
            (
                rows.append(i),
                columns.append(j),
                values.append(float(c) * (0.5**0.5 if i == j else 1.0)),
            )
    where = tuple(torch.tensor(v, dtype=torch.long) for v in (rows, columns))
    A = torch.zeros(r, r, dtype=torch.float64).index_put(
        where, torch.tensor(values, dtype=torch.float64), accumulate=True
    )
    return A + A.T


@answer(
    "average_hessian", "outer products: c / sqrt(k!) (k k' - diag k) for the degrees k of sum two"
)
def hessian_outer(coefficients):
    K = np.array(list(coefficients), dtype=int)
    c = np.array(list(coefficients.values()), dtype=float)
    K, c = K[K.sum(1) == 2], c[K.sum(1) == 2]
    c = c / np.sqrt(scipy.special.factorial(K).prod(1))
    return np.einsum("t,ti,tj->ij", c, K, K) - np.diag(c @ K)


# --------------------------------------------------------------------------- first_layer_gradient


@answer(
    "first_layer_gradient", "torch autograd with create_graph, returns a tensor with requires_grad"
)
def gradient_autograd(W, b, a, X, y):
    W, b, a, X, y = map(_t, (W, b, a, X, y))
    W.requires_grad_()
    f = torch.relu(torch.nn.functional.linear(X, W, b)) @ a
    return torch.autograd.grad((f - y).square().mean(), W, create_graph=True)[0]


@answer(
    "first_layer_gradient",
    "plain Python loops over samples and neurons with lists, returns a list of lists",
)
def gradient_loops(W, b, a, X, y):
    W, b, a, X, y = (np.asarray(v, dtype=float).tolist() for v in (W, b, a, X, y))
    G = [[0.0] * len(W[0]) for _ in W]
    for x, t in zip(X, y):
        z = [sum(u * v for u, v in zip(w, x)) + c for w, c in zip(W, b)]
        error = sum(aj * max(zj, 0.0) for aj, zj in zip(a, z)) - t
        for j, zj in enumerate(z):
            if zj > 0:
                for k, xk in enumerate(x):
                    G[j][k] += 2 * error * a[j] * xk / len(X)
    return G


@answer("first_layer_gradient", "one einsum of four factors with numpy.heaviside(., 0)")
def gradient_einsum(W, b, a, X, y):
    W, b, a, X, y = map(_f, (W, b, a, X, y))
    Z = X @ W.T + b
    return (
        2 / len(y) * np.einsum("i,j,ij,ik->jk", np.maximum(Z, 0) @ a - y, a, np.heaviside(Z, 0), X)
    )


@answer(
    "first_layer_gradient", "complex step: the imaginary part of the loss at W + ih, entry by entry"
)
def gradient_complex(W, b, a, X, y, h=1e-40):
    W, b, a, X, y = map(_f, (W, b, a, X, y))
    Z = X @ W.T + b
    G = np.empty_like(W)
    f = np.where(Z > 0, Z, 0) @ a
    for j, k in np.ndindex(*W.shape):
        shifted = f + a[j] * np.where(Z[:, j] > 0, 1j * h * X[:, k], 0)
        G[j, k] = np.mean((shifted - y) ** 2).imag / h
    return G


@answer(
    "first_layer_gradient", "mean over samples of outer products, by functools.reduce over rows"
)
def gradient_reduce(W, b, a, X, y):
    W, b, a, X, y = map(_f, (W, b, a, X, y))

    def add(total, sample):
        x, t = sample
        active = a * (W @ x + b > 0)
        return total + np.outer(active, x) * (active @ (W @ x + b) - t)

    return functools.reduce(add, zip(X, y), np.zeros_like(W)) * (2.0 / len(X))


# --------------------------------------------------------------------------- gamma


@answer("gamma", "exact with fractions, returns a Fraction")
def gamma_fraction(k, P):
    law = [Fraction(math.comb(k, c), 2**k) for c in range(k + 1)]
    label = [1 if c in P else -1 for c in range(k + 1)]
    both = sum(q * s * Fraction(c, k) for c, (q, s) in enumerate(zip(law, label)))
    return both - sum(q * s for q, s in zip(law, label)) / 2


@answer(
    "gamma",
    "half the difference of two probabilities: the other k - 1 bits, pattern on minus pattern off, scipy.stats.binom",
)
def gamma_binom(k, P):
    from scipy.stats import binom

    others = np.arange(k)
    on, off = (np.isin(others + s, list(P)) for s in (1, 0))
    return binom.pmf(others, k - 1, 0.5) @ (on.astype(float) - off) / 2


@answer(
    "gamma",
    "backward induction: the mean of the label given the sum so far, one bit averaged out at a time",
)
def gamma_induction(k, P):
    values = [1.0 if c in P else -1.0 for c in range(k + 1)]
    while len(values) > 2:
        values = [(off + on) / 2 for off, on in zip(values, values[1:])]
    return (values[1] - values[0]) / 4


@answer(
    "gamma",
    "law of the count by repeated convolution, covariance with the count divided by k, returns numpy.float32",
)
def gamma_convolve(k, P, *args):
    law = functools.reduce(np.convolve, [np.array([0.5, 0.5])] * k)
    c = np.arange(k + 1)
    y = np.where([int(v) in P for v in c], 1.0, -1.0)
    return np.float32(((c - k / 2) * law) @ y / k)


@answer("gamma", "torch with the law from math.comb, both means apart, returns a 0-d tensor")
def gamma_torch(k, P):
    q = torch.tensor([math.comb(k, c) / 2**k for c in range(k + 1)], dtype=torch.float64)
    y = -torch.ones(k + 1, dtype=torch.float64)
    y[sorted(int(c) for c in P)] = 1
    phi = torch.arange(k + 1, dtype=torch.float64) / k
    return (q * y * phi).sum() - (q * y).sum() * (q * phi).sum()


# --------------------------------------------------------------------------- relevant


@answer("relevant", "torch.topk of the covariances in float32, returns a tensor of indices")
def relevant_topk(X, y, M, k):
    X, y, M = (_t(v).float() for v in (X, y, M))
    return ((y - y.mean()) @ X @ M / len(y)).abs().topk(k).indices


@answer(
    "relevant",
    "slope of the least squares fit of each pattern on (1, y), returns a set of python integers",
)
def relevant_regression(X, y, M, k):
    y = _f(y)
    slope = np.linalg.lstsq(np.column_stack([np.ones_like(y), y]), _f(X) @ _f(M), rcond=None)[0][1]
    return set(np.argsort(-np.abs(slope))[:k].tolist())


@answer("relevant", "difference of the two class means, argpartition, largest in no order")
def relevant_classes(X, y, M, k):
    X, y = _f(X), np.asarray(y)
    score = np.abs(_f(M).T @ (X[y > 0].mean(0) - X[y < 0].mean(0)))
    return np.argpartition(score, len(score) - k)[len(score) - k :]


@answer("relevant", "numpy.cov of the stacked rows (with n - 1), heapq.nlargest, returns a list")
def relevant_cov(X, y, M, k):
    C = np.cov(np.vstack([(_f(X) @ _f(M)).T, _f(y)]))[-1, :-1]
    return heapq.nlargest(k, range(len(C)), key=lambda j: abs(C[j]))


answer("relevant", "a lambda, a tuple from the sorted pairs of score and index")(
    lambda X, y, M, k: tuple(
        j
        for _, j in sorted(
            zip(
                (
                    -abs(
                        np.einsum("nd,n,dj->j", _f(X), _f(y) - np.mean(_f(y)), _f(M), optimize=True)
                    )
                ).tolist(),
                itertools.count(),
            )
        )[:k]
    )
)


# --------------------------------------------------------------------------- gaussian_gradients


@answer("gaussian_gradients", "all differences in one (n, n, d) tensor and einsum")
def gauss_einsum(X, alpha, M, bandwidth):
    X, alpha, M = map(_f, (X, alpha, M))
    MD = (X[:, None] - X[None]) @ M
    rho2 = np.einsum("ijk,ijk->ij", MD, X[:, None] - X[None])
    return -np.einsum("ij,j,ijk->ik", np.exp(-rho2 / (2 * bandwidth**2)), alpha, MD) / bandwidth**2


@answer(
    "gaussian_gradients",
    "torch, a Laplacian of the weighted graph times X M, on centred points; returns a tensor",
)
def gauss_laplacian(X, alpha, M, bandwidth):
    X, alpha, M = map(_t, (X, alpha, M))
    X = X - X.mean(0)
    G = X @ M @ X.mT
    rho2 = (G.diagonal()[:, None] + G.diagonal() - 2 * G).clamp(min=0)
    A = torch.exp(-rho2 / (2 * bandwidth**2)) * alpha
    return (A - torch.diag(A.sum(1))) @ X @ M / bandwidth**2


def radial_gradients(X, alpha, M, bandwidth, *, slope):
    """Gradients for k = F(rho^2), slope(rho^2, bandwidth) = F'."""
    X, alpha, M = map(_f, (X, alpha, M))
    Z = X @ M
    q = (Z * X).sum(1)
    A = 2 * slope(q[:, None] + q - Z @ X.T - X @ Z.T, bandwidth) * alpha
    return A.sum(1, keepdims=True) * Z - A @ Z


answer("gaussian_gradients", "functools.partial of gradients for any radial profile")(
    functools.partial(radial_gradients, slope=lambda s, h: -np.exp(-s / (2 * h * h)) / (2 * h * h))
)


@answer(
    "gaussian_gradients",
    "one row after another in a generator (a loop over points, not pairs), returns a list of arrays",
)
def gauss_rows(X, alpha, M, bandwidth):
    X, alpha, M = map(_f, (X, alpha, M))

    def rows():
        for x in X:
            D = X - x
            yield (
                (alpha * np.exp(-((D @ M) * D).sum(1) / (2.0 * bandwidth**2)))
                @ D
                @ M
                / bandwidth**2
            )

    return list(rows())


@answer(
    "gaussian_gradients",
    "complex step in each of the d directions: neither a tape nor a loop over pairs",
    BORDERLINE,
)
def gauss_complex(X, alpha, M, bandwidth, h=1e-30):
    X, alpha, M = map(_f, (X, alpha, M))
    columns = []
    for e in np.eye(X.shape[1]):
        D = (X + 1j * h * e)[:, None] - X[None]
        columns.append((np.exp(-((D @ M) * D).sum(-1) / (2 * bandwidth**2)) @ alpha).imag / h)
    return np.stack(columns, axis=1)


# --------------------------------------------------------------------------- information_exponent


@answer(
    "information_exponent",
    "g of the Jacobi matrix: the first row of the matrix function holds all coefficients",
)
def exponent_jacobi(g):
    s, Q = np.linalg.eigh(
        np.diag(np.sqrt(np.arange(1.0, 64)), 1) + np.diag(np.sqrt(np.arange(1.0, 64)), -1)
    )
    row = Q @ (np.asarray(g(s)) * Q[0])
    return 1 + int(np.argmax(np.abs(row[1:11]) >= 1e-6 * np.linalg.norm(row)))


@answer(
    "information_exponent",
    "trapezoidal rule on [-16, 16] (spectrally accurate under the Gaussian), three-term recursion in a generator",
)
def exponent_trapezoid(g):
    z = np.arange(-2048, 2049) / 128
    w = np.exp(-(z**2) / 2)
    w = w / w.sum()
    values = np.asarray(g(z.copy()), dtype=float)
    size = math.sqrt((w * values**2).sum())

    def hermite():
        before, now = np.zeros_like(z), np.ones_like(z)
        for s in itertools.count(1):
            before, now = now, (z * now - math.sqrt(s - 1) * before) / math.sqrt(s)
            yield s, now

    return next(s for s, h in hermite() if abs((w * values * h).sum()) >= 1e-6 * size or s == 10)


@answer(
    "information_exponent",
    "QR of the weighted Vandermonde matrix at scipy's nodes instead of any Hermite polynomial; returns a numpy integer",
)
def exponent_qr(g):
    z, w = scipy.special.roots_hermitenorm(60)
    root = np.sqrt(w / w.sum())
    Q = np.linalg.qr(root[:, None] * np.polynomial.legendre.legvander(z / z.max(), 10))[0]
    values = root * g(z)
    return np.flatnonzero(abs(Q.T @ values)[1:] >= 1e-6 * np.linalg.norm(values))[0] + 1


@answer(
    "information_exponent",
    "scipy.integrate.quad after scaling g to norm one, g called with arrays of one entry",
)
def exponent_quad(g):
    from scipy.integrate import quad

    def mean(f):
        density = lambda z: f(z) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)
        return sum(
            quad(density, lo, lo + 4, epsabs=1e-10, epsrel=1e-9, limit=200)[0]
            for lo in range(-16, 16, 4)
        )

    def value(z):
        return float(np.asarray(g(np.array([z])))[0])

    scale = max(abs(value(z)) for z in np.linspace(-4, 4, 41)) or 1.0
    norm = math.sqrt(mean(lambda z: (value(z) / scale) ** 2)) * scale
    for s in range(1, 11):
        h = scipy.special.hermitenorm(s)
        if abs(mean(lambda z: value(z) / norm * h(z) / math.sqrt(math.factorial(s)))) >= 1e-6:
            return s
    return 10


@answer(
    "information_exponent",
    "Gauss-Hermite for the weight exp(-x^2), nodes stretched, hermevander, all sums in torch",
)
def exponent_physicist(g):
    x, w = np.polynomial.hermite.hermgauss(50)
    z = math.sqrt(2) * x
    values = torch.as_tensor(np.asarray(g(z), dtype=float))
    w = torch.as_tensor(w / math.sqrt(math.pi))
    V = torch.as_tensor(np.polynomial.hermite_e.hermevander(z, 10)) / torch.tensor(
        [math.factorial(s) ** 0.5 for s in range(11)], dtype=torch.float64
    )
    c = torch.einsum("i,i,is->s", w, values, V).abs()[1:]
    return int((c >= 1e-6 * (w * values**2).sum().sqrt()).nonzero()[0, 0]) + 1
