"""The grid of Gauss and Hermite in several coordinates.

The rest of the module is tested with the activations.
"""

import math

import pytest
import torch

from featlearn import hermite


@pytest.mark.parametrize(("r", "degree"), [(1, 0), (1, 7), (2, 6), (3, 5)])
def test_grid_is_exact_for_moments(r, degree):
    """E[z^k] = (k - 1)!! for even k, in each coordinate and for products."""
    Z, omega = hermite.grid(r, degree)
    assert Z.shape == (len(omega), r) and omega.dtype == torch.float64
    moments = [0 if k % 2 else math.prod(range(k - 1, 0, -2)) for k in range(degree + 1)]
    for k, moment in enumerate(moments):
        for i in range(r):
            assert (omega @ Z[:, i] ** k).item() == pytest.approx(moment, abs=1e-10)
        assert (omega @ Z.prod(dim=1) ** k).item() == pytest.approx(moment**r, abs=1e-9)


def test_grid_of_no_coordinates_is_a_point():
    Z, omega = hermite.grid(0, 3)
    assert Z.shape == (1, 0) and omega.tolist() == [1.0] and omega.dtype == torch.float64


@pytest.mark.parametrize(("r", "degree", "name"), [(-1, 2, "r"), (2, -1, "degree"), (1.5, 2, "r")])
def test_errors_name_the_argument(r, degree, name):
    with pytest.raises((ValueError, TypeError), match=f"^{name} must"):
        hermite.grid(r, degree)
