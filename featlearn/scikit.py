"""Kernels of this package inside scikit-learn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from torch import Tensor

from featlearn import validate
from featlearn.validate import Array


class GaussianProcessKernel(Kernel):
    r"""A kernel callable in the form that scikit-learn's `GaussianProcessRegressor` asks for.

    It has no hyperparameters of its own and can be added to and multiplied with scikit-learn's
    kernels, whose hyperparameters are then fitted. `KernelRidge` needs no such form: it takes a
    kernel callable as it is, which it calls for each pair of points, or the matrix, which is
    faster, with ``kernel="precomputed"``.

    Parameters
    ----------
    kernel
        A kernel callable, such as `featlearn.ntk.NTK` or
        ``functools.partial(empirical_ntk, model)``.

    Examples
    --------
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import ConstantKernel, WhiteKernel
    >>> from featlearn.ntk import NTK
    >>> k = ConstantKernel() * GaussianProcessKernel(NTK(depth=3)) + WhiteKernel()
    >>> model = GaussianProcessRegressor(k).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.0])
    """

    def __init__(self, kernel: Callable[..., Tensor]) -> None:
        self.kernel = validate.function(kernel, "kernel")

    def __call__(
        self, X: Array, Y: Array | None = None, eval_gradient: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """The (n, m) array of the kernel; with `eval_gradient` also its (n, n, 0) gradient."""
        if validate.flag(eval_gradient, "eval_gradient") and Y is not None:
            raise ValueError("eval_gradient must be off where Y is given")
        K = self._matrix(X, Y)
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def _matrix(self, X: Array, Y: Array | None = None) -> np.ndarray:
        points = {"X": X} if Y is None else {"X": X, "Y": Y}
        n = [len(validate.as_tensor(Z, name, (1, 2, 3, 4))) for name, Z in points.items()]
        K = validate.as_tensor(self.kernel(*points.values()), "kernel(X, Y)", 2)
        if K.shape != (n[0], n[-1]):
            raise ValueError(f"kernel must return shape {(n[0], n[-1])}, got {tuple(K.shape)}")
        return K.detach().cpu().numpy()

    def diag(self, X: Array) -> np.ndarray:
        """The (n,) values $k(x, x)$."""
        count = len(validate.as_tensor(X, "X", (1, 2, 3, 4)))
        rows = X if isinstance(X, Tensor) else np.asarray(X)
        blocks = [self._matrix(rows[i : i + 256]).diagonal() for i in range(0, count, 256)]
        return np.concatenate(blocks)

    def is_stationary(self) -> bool:
        """False: nothing is known of the kernel."""
        return False
