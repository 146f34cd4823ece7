"""Data that travel with the package: results of runs too long for a notebook, and an extract of
MNIST.

Each stored result carries the command, the commit and the machine that made it. The extract has its
attribution and licence in ``MNIST.md``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
import torch
from sklearn.datasets import fetch_openml
from torch import Tensor

from featlearn import validate


def load(name: str) -> dict[str, Any]:
    """The stored result `name`, such as ``"solvers"``."""
    known = sorted(
        path.name.removesuffix(".json")
        for path in files(__name__).iterdir()
        if path.name.endswith(".json")
    )
    validate.one_of(name, "name", known)
    return json.loads(files(__name__).joinpath(f"{name}.json").read_text(encoding="utf-8"))


@dataclass(frozen=True, eq=False)
class Digits:
    """Training and test images as rows of 784 grey values in [0, 1] (float32), and the digits they
    show (int64).
    """

    train: Tensor
    train_digits: Tensor
    test: Tensor
    test_digits: Tensor


def mnist(whole: bool = False) -> Digits:
    """MNIST: 6,000 training and 2,000 test images from the package, or all 60,000 and 10,000,
    fetched once from OpenML.
    """
    if validate.flag(whole, "whole"):
        images, labels = fetch_openml(
            "mnist_784", version=1, return_X_y=True, as_frame=False, parser="liac-arff"
        )
        parts = images[:60000], labels[:60000], images[60000:], labels[60000:]
    else:
        with files(__name__).joinpath("mnist_8k.npz").open("rb") as file, np.load(file) as stored:
            parts = tuple(
                stored[f"{part}_{what}"]
                for part in ("train", "test")
                for what in ("images", "labels")
            )
    return Digits(*(_images(part) if i % 2 == 0 else _labels(part) for i, part in enumerate(parts)))


def _images(values: np.ndarray) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float32).reshape(len(values), -1)) / 255


def _labels(values: np.ndarray) -> Tensor:
    return torch.as_tensor(np.asarray(values).astype(np.int64))
