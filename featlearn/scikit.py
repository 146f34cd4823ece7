"""Kernels of this package inside scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.gaussian_process.kernels import Kernel
from torch import Tensor


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
        if not callable(kernel):
            raise TypeError(f"kernel must be callable, got {type(kernel).__name__}")
        self.kernel = kernel

    def __call__(self, X: Any, Y: Any = None, eval_gradient: bool = False) -> Any:
        """The (n, m) array of the kernel; with `eval_gradient` also its (n, n, 0) gradient."""
        if eval_gradient and Y is not None:
            raise ValueError("eval_gradient must be off where Y is given")
        K = self.kernel(X) if Y is None else self.kernel(X, Y)
        K = K.detach().cpu().numpy()
        return (K, np.empty((*K.shape, 0))) if eval_gradient else K

    def diag(self, X: Any) -> np.ndarray:
        """The (n,) values $k(x, x)$."""
        return np.concatenate([self(X[i : i + 256]).diagonal() for i in range(0, len(X), 256)])

    def is_stationary(self) -> bool:
        """False: nothing is known of the kernel."""
        return False
