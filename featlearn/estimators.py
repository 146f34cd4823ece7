"""What the estimators of this package share: scikit-learn's conventions, with tensors inside.

Arrays are checked by scikit-learn itself. Tensors are checked here and stay on their device.
What goes in comes out: predictions at an array are an array, at a tensor a tensor.
"""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from sklearn.metrics import r2_score
from sklearn.utils import validation
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from featlearn import validate
from featlearn.validate import Array


class TensorEstimator(BaseEstimator):
    """An estimator that takes arrays or tensors.

    Parameters are stored as given and checked in `fit`.
    """

    n_features_in_: int

    def _by_sklearn(self, X: Any, y: Any = None, **options: Any) -> Any:
        """scikit-learn's checks; a message that names no argument gets one."""
        validate.unmasked(X, "X")
        validate.unmasked(y, "y")
        check = getattr(validation, "validate_data", None)  # since 1.6
        arguments = {"dtype": [np.float64, np.float32], **options}
        if y is not None:
            arguments |= {"y": y, "multi_output": True, "y_numeric": True}
        try:
            if check is None:
                return self._validate_data(X, **arguments)
            return check(self, X, **arguments)
        except (ValueError, TypeError) as error:
            if re.search(r"\b[Xy]\b", str(error)):
                raise
            names = "X" if y is None else "X and y"
            raise type(error)(f"{names} must be valid: {error}") from error

    def _fit_data(self, X: Array, y: Array) -> tuple[Tensor, Tensor]:
        """Copies of X (n, d) and y, (n,) or (n, k), as tensors on one device.

        X keeps its precision.
        """
        if isinstance(X, Tensor) or isinstance(y, Tensor):
            X = self._fit_inputs(validate.as_tensor(X, "X", 2, like=(y,)))
            y = validate.as_tensor(y, "y", (1, 2)).to(X.device)
        else:
            if y is None:
                raise ValueError(
                    "y must be given: it requires y to be passed, but the target y is None"
                )
            X, y = self._by_sklearn(X, y)
            X, y = torch.as_tensor(np.array(X)), validate.as_tensor(y, "y", (1, 2))
        validate.same_length(X, "X", y, "y")
        return X, y.detach().clone()

    def _fit_inputs(self, X: Array) -> Tensor:
        """A copy of X (n, d) as a tensor."""
        if not isinstance(X, Tensor):
            return torch.as_tensor(np.array(self._by_sklearn(X)))
        X = validate.as_tensor(X, "X", 2).detach().clone()
        self.n_features_in_ = X.shape[1]
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_
        return X

    def _new_data(self, X: Array) -> Tensor:
        """X (m, d) after a fit, as a tensor."""
        check_is_fitted(self)
        if not isinstance(X, Tensor):
            return torch.as_tensor(np.array(self._by_sklearn(X, reset=False)))
        validate.columns(validate.as_tensor(X, "X", 2), "X", self.n_features_in_)
        return X

    @staticmethod
    def _returned(values: Tensor, X: Array) -> Tensor | np.ndarray:
        """`values` as they are where X is a tensor, as an array where it is not."""
        return values if isinstance(X, Tensor) else values.detach().cpu().numpy()


class TensorRegressor(TensorEstimator):
    """A regressor, for one output or several."""

    _estimator_type = "regressor"

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        from sklearn.utils import RegressorTags

        tags.estimator_type = "regressor"
        tags.regressor_tags = RegressorTags()
        tags.target_tags.required = True
        tags.target_tags.multi_output = True
        return tags

    def _more_tags(self) -> dict[str, bool]:
        """The same for scikit-learn before 1.6."""
        return {"multioutput": True, "requires_y": True}

    def predict(self, X: Array) -> Tensor | np.ndarray:
        """The values at the rows of X."""
        raise NotImplementedError

    def score(self, X: Array, y: Array, sample_weight: Any = None) -> float:
        r"""The coefficient of determination $R^2$ of the predictions at X."""
        y = validate.as_tensor(y, "y", (1, 2)).detach().cpu()
        values = torch.as_tensor(self.predict(X)).detach().cpu()
        validate.same_length(values, "X", y, "y")
        score = float(r2_score(y.numpy(), values.numpy(), sample_weight=sample_weight))
        if math.isnan(score) and len(y) > 1:
            raise ValueError("y must have smaller entries: its variance overflows")
        return score
