"""Streams by name: the same everywhere, moved as a whole by FEATLEARN_SEED."""

import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from featlearn.seeding import seed, stream


def test_known_values():
    """The same on every machine: these digits were written down once."""
    assert stream("a").integers(1_000_000, size=3).tolist() == [549968, 599396, 739962]
    assert torch.randint(1_000_000, (3,), generator=stream("a", "torch")).tolist() == [
        221642,
        552264,
        764113,
    ]


@given(st.text(min_size=1).filter(str.strip), st.text(min_size=1).filter(str.strip))
def test_fresh_and_independent(first, second):
    draws = stream(first).standard_normal(4)
    assert np.array_equal(draws, stream(first).standard_normal(4))
    if first != second:
        assert not np.array_equal(draws, stream(second).standard_normal(4))


def test_seed_moves_every_stream(monkeypatch):
    before = stream("x").standard_normal(3), torch.randn(3, generator=stream("x", "torch"))
    monkeypatch.setenv("FEATLEARN_SEED", "7")
    assert seed() == 7
    assert not np.array_equal(before[0], stream("x").standard_normal(3))
    assert not torch.equal(before[1], torch.randn(3, generator=stream("x", "torch")))


def test_other_process_same_stream():
    code = "from featlearn import stream; print(stream('x').integers(10**9))"
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert int(printed) == stream("x").integers(10**9)


def test_global_state_is_untouched():
    numpy_before, torch_before = np.random.get_state()[1].copy(), torch.get_rng_state()  # noqa: NPY002
    stream("x").standard_normal(5)
    torch.randn(5, generator=stream("x", "torch"))
    assert np.array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    assert torch.equal(torch_before, torch.get_rng_state())


def test_errors_name_the_argument(monkeypatch):
    with pytest.raises(ValueError, match="name must not be empty"):
        stream("")
    with pytest.raises(TypeError, match="name must be a string"):
        stream(3)
    with pytest.raises(ValueError, match="backend must be one of 'numpy', 'torch', got 'jax'"):
        stream("x", "jax")
    monkeypatch.setenv("FEATLEARN_SEED", "one")
    with pytest.raises(ValueError, match="FEATLEARN_SEED must be an integer, got 'one'"):
        stream("x")
