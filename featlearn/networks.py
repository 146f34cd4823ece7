r"""Two-layer ReLU networks, trained as one batched computation."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from featlearn import validate
from featlearn.notebook import progress
from featlearn.seeding import stream


class TwoLayerEnsemble:
    r"""B independent networks $f_b(x) = a_b^\top \mathrm{ReLU}(W_b x + c_b) + e_b$, both layers trained.

    Full-batch Adam on the mean squared error, with a step that falls to zero like a cosine and decay
    of the weights $W, a$. All B networks take each step together: one batched product, no loop.

    Initialisation: $w_j \sim N(0, I/d)$, $c_j \sim N(0, 1)$, $a_j \sim N(0, 1/\text{width})$, $e = 0$.

    Parameters
    ----------
    width
        Hidden units.
    steps
        Steps of Adam.
    learning_rate
        Its first step.
    weight_decay
        Decoupled decay of W and a.
    random_state
        Numpy generator of the initial weights.
    show_progress
        Show a bar while training.
    """

    def __init__(
        self,
        width: int = 128,
        *,
        steps: int = 1000,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        random_state: np.random.Generator | None = None,
        show_progress: bool = False,
    ) -> None:
        self.width, self.steps = validate.integer(width, "width"), validate.integer(steps, "steps")
        self.learning_rate = validate.real(learning_rate, "learning_rate", above=0)
        self.weight_decay = validate.real(weight_decay, "weight_decay", at_least=0)
        self.random_state = None if random_state is None else validate.generator(random_state, "random_state")
        self.show_progress = show_progress

    def _initialise(self, batch: int, d: int, like: Tensor) -> None:
        rng = stream("networks/two-layer") if self.random_state is None else self.random_state

        def normal(*shape: int, scale: float = 1.0) -> Tensor:
            return torch.as_tensor(scale * rng.standard_normal(shape)).to(like).requires_grad_()

        self.W = normal(batch, d, self.width, scale=1 / math.sqrt(d))
        self.c = normal(batch, 1, self.width)
        self.a = normal(batch, self.width, 1, scale=1 / math.sqrt(self.width))
        self.e = torch.zeros(batch, 1, 1).to(like).requires_grad_()

    def _forward(self, X: Tensor) -> Tensor:
        hidden = torch.baddbmm(self.c, X, self.W).relu()
        return torch.baddbmm(self.e, hidden, self.a)[..., 0]

    def fit(self, X: Any, y: Any) -> TwoLayerEnsemble:
        """Train on X of shape (B, n, d) and y of shape (B, n); the dtype of X is the precision."""
        X, y = validate.as_tensor(X, "X", 3), validate.as_tensor(y, "y", 2)
        if y.shape != X.shape[:2]:
            raise ValueError(f"y must have shape {tuple(X.shape[:2])} to go with X, got {tuple(y.shape)}")
        y = y.to(X)
        self._initialise(X.shape[0], X.shape[2], X)
        groups = [
            {"params": [self.W, self.a], "weight_decay": self.weight_decay},
            {"params": [self.c, self.e], "weight_decay": 0.0},
        ]
        optimiser = torch.optim.AdamW(groups, lr=self.learning_rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, self.steps)
        for _ in progress(range(self.steps), "training", show=self.show_progress):
            optimiser.zero_grad()
            (self._forward(X) - y).square().mean(dim=1).sum().backward()
            optimiser.step()
            schedule.step()
        return self

    @torch.no_grad()
    def predict(self, X: Any) -> Tensor:
        """The (B, m) outputs for X of shape (B, m, d), or (m, d) shared by all networks."""
        if not hasattr(self, "W"):
            raise ValueError("call fit before predict")
        X = validate.as_tensor(X, "X", (2, 3)).to(self.W)
        if X.ndim == 2:
            X = X.expand(len(self.W), *X.shape)
        if X.shape[0] != self.W.shape[0] or X.shape[2] != self.W.shape[1]:
            wanted = f"({self.W.shape[0]}, m, {self.W.shape[1]})"
            raise ValueError(f"X must have shape {wanted}, got {tuple(X.shape)}")
        return self._forward(X)
