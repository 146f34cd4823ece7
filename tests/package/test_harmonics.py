"""Harmonic analysis on the sphere against Monte Carlo and an explicit operator."""

import numpy as np
import pytest
from scipy.special import eval_gegenbauer, hyp0f1

from featlearn import harmonics


def test_sphere():
    X = harmonics.sphere(2000, 5, np.random.default_rng(0))
    np.testing.assert_allclose((X**2).sum(axis=1), 5)
    np.testing.assert_allclose(X.T @ X / 2000, np.eye(5), atol=0.12)


def test_ball_volume():
    assert harmonics.ball_volume(1) == pytest.approx(2)
    assert harmonics.ball_volume(2) == pytest.approx(np.pi)
    assert harmonics.ball_volume(3) == pytest.approx(4 * np.pi / 3)


@pytest.mark.parametrize("d", [3, 4, 7])
def test_harmonic_dimensions_add_up_to_all_polynomials(d):
    """Degrees k, k-2, ... together have as many harmonics as there are monomials of degree k."""
    from math import comb

    for k in range(6):
        assert sum(harmonics.harmonic_dimension(d, j) for j in range(k, -1, -2)) == comb(
            d + k - 1, k
        )
    assert [harmonics.harmonic_dimension(3, k) for k in range(4)] == [1, 3, 5, 7]


def test_energies_of_a_known_function():
    """z² = 1 + (z² - 1) on the sphere of radius √d; the second part is the degree-2 harmonic."""
    d = 6
    energies = harmonics.ridge_energies(lambda z: z * z, d, [0, 1, 2, 3, 4])
    fourth = 3 * d / (d + 2)
    np.testing.assert_allclose(energies, [1, 0, fourth - 1, 0, 0], atol=1e-10)


def test_energies_of_the_absolute_value():
    energies = harmonics.ridge_energies(abs, 10, range(0, 31, 2), kinks=[0.0])
    assert energies.sum() == pytest.approx(1, abs=2e-3)
    rng = np.random.default_rng(1)
    x = harmonics.sphere(400_000, 10, rng)[:, 0]
    P = eval_gegenbauer(2, 4.0, x / np.sqrt(10)) / eval_gegenbauer(2, 4.0, 1.0)
    assert energies[1] == pytest.approx(
        harmonics.harmonic_dimension(10, 2) * np.mean(np.abs(x) * P) ** 2, rel=0.03
    )


def test_energies_in_high_dimension():
    """E|z|P_2 has a closed form.

    A_2 follows from the second and fourth moments of a kinked Gaussian limit.
    """
    d = 3000
    energies = harmonics.ridge_energies(abs, d, [0, 2], kinks=[0.0])
    assert energies[0] == pytest.approx(2 / np.pi, rel=1e-3)
    assert energies[1] == pytest.approx(1 / np.pi, rel=2e-3)


def test_bound_against_linear_programming():
    from scipy.optimize import linprog

    degrees, energies, d = [1, 2, 3], [0.2, 0.5, 0.3], 5
    dims = np.array([harmonics.harmonic_dimension(d, k) for k in degrees])
    for n in (0, 3, 10, 30, 100):
        best = linprog(
            -np.array(energies) / dims, A_ub=[np.ones(3)], b_ub=[n], bounds=[(0, N) for N in dims]
        )
        want = sum(energies) + best.fun
        assert harmonics.fixed_feature_bound(n, d, degrees, energies) == pytest.approx(
            want, abs=1e-12
        )


def test_bound_is_attained_by_the_best_features():
    """All harmonics of degree ≤ 1 as features.

    The error on g(u·x) is exactly the energy above degree 1.
    """
    d, rng = 4, np.random.default_rng(2)
    X = harmonics.sphere(100_000, d, rng)
    u = np.eye(d)[0]
    f = np.maximum(X @ u, 0)
    features = np.column_stack([np.ones(len(X)), X])
    residual = f - features @ np.linalg.lstsq(features, f, rcond=None)[0]
    degrees = list(range(41))
    energies = harmonics.ridge_energies(lambda z: max(z, 0.0), d, degrees, kinks=[0.0])
    assert harmonics.fixed_feature_bound(d + 1, d, degrees, energies) == pytest.approx(
        np.mean(residual**2), rel=0.02
    )


@pytest.mark.parametrize("d", [3, 6])
def test_gegenbauer_polynomials_obey_the_addition_theorem(d):
    """E_u[P_j(u·x) P_k(u·x')] = δ P_k(x·x') / N, by Monte Carlo over u."""
    rng = np.random.default_rng(0)
    U = harmonics.sphere(400_000, d, rng) / d**0.5
    x, y = harmonics.sphere(2, d, rng) / d**0.5
    for j, k in [(1, 1), (2, 2), (3, 3), (1, 3)]:
        mean = np.mean(harmonics.gegenbauer(j, U @ x, d) * harmonics.gegenbauer(k, U @ y, d))
        expected = (j == k) * harmonics.gegenbauer(k, x @ y, d) / harmonics.harmonic_dimension(d, k)
        assert mean == pytest.approx(expected, abs=3e-3)


def test_zonal_eigenvalues_sum_up_to_the_kernel():
    t, d, degrees = np.linspace(-1, 1, 11), 5, range(25)
    spectrum = harmonics.zonal_eigenvalues(np.exp, d, degrees)
    total = sum(
        harmonics.harmonic_dimension(d, k) * s * harmonics.gegenbauer(k, t, d)
        for k, s in zip(degrees, spectrum, strict=True)
    )
    np.testing.assert_allclose(total, np.exp(t), rtol=1e-10)


def test_zonal_eigenvalues_of_one_polynomial_and_in_high_dimension():
    degree = 30
    found = harmonics.zonal_eigenvalues(
        lambda t: harmonics.gegenbauer(degree, t, 5), 5, [3, degree]
    )
    assert found[0] == 0
    assert found[1] == pytest.approx(1 / harmonics.harmonic_dimension(5, degree), rel=1e-10)
    d = 20_000
    assert harmonics.zonal_eigenvalues(np.exp, d, [2])[0] == pytest.approx(
        hyp0f1(d / 2 + 2, 0.25) / (d * (d + 2)), rel=1e-6
    )


@pytest.mark.parametrize(("n", "ridge"), [(0.5, 1e-3), (7, 1e-9), (40, 0.3), (500, 1e-2)])
def test_learnability_spends_the_samples(n, ridge):
    spectrum, counts = np.array([1.0, 0.1, 1e-3, 0.0]), np.array([1.0, 5.0, 30.0, 100.0])
    c = harmonics.learnability(spectrum, counts, n, ridge)
    kappa = spectrum[0] / c[0] - spectrum[0]
    assert counts @ c + ridge / kappa == pytest.approx(n, rel=1e-9)
    assert np.all(np.diff(c) <= 0)
    assert c[-1] == 0


@pytest.mark.parametrize("scale", [1e-300, 1e-150, 1e150, 1e300])
def test_learnability_does_not_depend_on_the_unit(scale):
    spectrum, counts = np.array([1.0, 0.1, 1e-3]), np.array([1.0, 5.0, 30.0])
    wanted = harmonics.learnability(spectrum, counts, 7, 1e-2)
    found = harmonics.learnability(scale * spectrum, counts, 7, scale * 1e-2)
    np.testing.assert_allclose(found, wanted, rtol=1e-9)


def test_learnability_at_extreme_ridges():
    """Everything is learned where the ridge is tiny, nothing where it is huge."""
    spectrum, counts = np.array([1e200, 1e-200]), np.array([2.0, 3.0])
    np.testing.assert_allclose(harmonics.learnability(spectrum, counts, 50, 1e-300), 1)
    np.testing.assert_allclose(harmonics.learnability(spectrum, counts, 3, 1e300), 0, atol=1e-90)


def test_learnability_is_what_ridge_regression_learns():
    """Gaussian features with a known covariance.

    The mean of Σ^{1/2}Xᵀ(XΣXᵀ + δ)⁻¹XΣ^{1/2} over samples.
    """
    rng, n = np.random.default_rng(1), 60
    spectrum = np.repeat([1.0, 0.2, 0.01], [10, 40, 150])
    shares = []
    for _ in range(20):
        X = rng.standard_normal((n, 200)) * np.sqrt(spectrum)
        shares.append(np.einsum("ni,nm,mi->i", X, np.linalg.inv(X @ X.T + 0.5 * np.eye(n)), X))
    mean = np.mean(shares, axis=0)
    c = harmonics.learnability([1.0, 0.2, 0.01], [10, 40, 150], n, 0.5)
    for k, part in enumerate((slice(10), slice(10, 50), slice(50, 200))):
        assert mean[part].mean() == pytest.approx(c[k], abs=0.01)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: harmonics.sphere(0, 3, np.random.default_rng(0)), "n must be at least 1"),
        (lambda: harmonics.harmonic_dimension(1, 2), "d must be at least 2"),
        (lambda: harmonics.harmonic_dimension(3, -1), "degree must be at least 0"),
        (lambda: harmonics.ridge_energies(abs, 2, [0]), "d must be at least 3"),
        (
            lambda: harmonics.fixed_feature_bound(3, 5, [1, 2], [1.0]),
            "degrees and energies must have the same length",
        ),
        (lambda: harmonics.ball_volume(0), "d must be at least 1"),
        (lambda: harmonics.gegenbauer(2, 0.5, 2), "d must be at least 3"),
        (lambda: harmonics.learnability([1.0], [1.0, 2.0], 3, 0.1), "vectors of one length"),
        (lambda: harmonics.learnability([-1.0], [1.0], 3, 0.1), "eigenvalues must be at least 0"),
        (lambda: harmonics.learnability([np.nan], [1.0], 3, 0.1), "eigenvalues must be finite"),
        (lambda: harmonics.zonal_eigenvalues(np.log, 5, [0, 1, 2]), r"h\(t\) must be finite"),
        (lambda: harmonics.zonal_eigenvalues(lambda t: t[:3], 5, [0]), "h must act entry by entry"),
        (lambda: harmonics.harmonic_dimension(10**7, 10**7), "degree must be at most 10000"),
        (lambda: harmonics.harmonic_dimension(10**300, 3), "d must be at most 1000000000"),
        (lambda: harmonics.gegenbauer(5000, 1e8, 10**8), "degree, t and d must be smaller"),
        (lambda: harmonics.sphere(10**10, 3, np.random.default_rng(0)), "n and d must be smaller"),
        (lambda: harmonics.ridge_energies(abs, 5, [0], kinks=[2.0]), "kinks must lie between"),
        (lambda: harmonics.ridge_energies(lambda z: np.nan, 5, [0]), r"g\(x\) must be finite"),
        (lambda: harmonics.fixed_feature_bound(3, 5, [1, 1], [1.0, 1.0]), "degrees must differ"),
        (lambda: harmonics.learnability([1.0], [1.0], 3, 0.0), "ridge must be greater than 0"),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
