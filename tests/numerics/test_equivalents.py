"""Tests of deterministic equivalents against closed forms, their equations, limits and the sample spectrum."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.numerics import equivalents as eq
from limitlab.numerics.spectra import SampleSpectrum

S, W = np.array([0.2, 1.0, 3.0]), np.array([0.3, 0.4, 0.3])

spectra = st.lists(st.tuples(st.floats(1e-3, 1e3), st.floats(1e-2, 3.0)), min_size=1, max_size=6)


def split(groups):
    return np.array([s for s, _ in groups]), np.array([m for _, m in groups])


@settings(max_examples=80)
@given(groups=spectra, log_ridge=st.floats(-12, 6))
def test_defining_equation_without_cancellation(groups, log_ridge):
    s, m = split(groups)
    ridge = 10**log_ridge * s.mean()
    found = eq.ridge_equivalent(ridge, s, m)
    # kappa (1 - df1) = lambda, with 1 - df1 evaluated from the unlearned shares
    gap = eq.rank_gap(s, m) + (m * found.kappa / (s + found.kappa)).sum()
    scale = found.kappa * (abs(eq.rank_gap(s, m)) + 1 + m.sum()) + ridge
    assert abs(found.kappa * gap - ridge) <= 1e-14 * scale
    assert 0 < found.df2 <= found.df1 < min(1.0, m.sum()) * (1 + 1e-12)
    np.testing.assert_allclose([found.gap1, found.gap2], [1 - found.df1, 1 - found.df2], atol=1e-11)


@settings(max_examples=40)
@given(groups=spectra, log_ridge=st.floats(-3, 3))
def test_derivative(groups, log_ridge):
    s, m = split(groups)
    ridge = 10**log_ridge * s.mean()
    step = 1e-5 * ridge
    low, high = eq.effective_ridge([ridge - step, ridge + step], s, m)
    np.testing.assert_allclose((high - low) / (2 * step), eq.ridge_equivalent(ridge, s, m).derivative, rtol=1e-5)


@pytest.mark.parametrize("ratio", [0.1, 0.5, 1.0, 2.0, 30.0])
def test_isotropic_closed_form(ratio):
    ridge = np.geomspace(1e-6, 1e4, 50)
    kappa = eq.effective_ridge(ridge, [1.0], [ratio])
    shift = ratio + ridge - 1
    np.testing.assert_allclose(kappa, (shift + np.sqrt(shift**2 + 4 * ridge)) / 2, rtol=1e-9)
    # a group that is split in two has the same result, which Newton's method computes
    np.testing.assert_allclose(eq.effective_ridge(ridge, [1.0, 1.0], [ratio / 3, 2 * ratio / 3]), kappa, rtol=1e-13)


def test_without_ridge():
    below, at, above = eq.effective_ridge(0.0, S, np.array([[0.5], [1.0], [2.0]]) * W)
    assert below == at == 0
    np.testing.assert_allclose(eq.df1(above, S, 2 * W), 1, rtol=1e-14)
    assert eq.ridge_equivalent(0.0, S, W).gap2 == 0
    assert np.isinf(eq.ridge_equivalent(0.0, S, W).derivative)
    np.testing.assert_allclose(eq.effective_ridge(1e-14, S, 2 * W), above, rtol=1e-12)


def test_rank_decides_not_dimension():
    # p = 3 n with n / 2 directions that have variance is the same as p = n / 2
    thin, full = eq.ridge_equivalent(0.1, [0.0, 1.0], [2.5, 0.5]), eq.ridge_equivalent(0.1, [1.0], [0.5])
    np.testing.assert_allclose(thin, full, rtol=1e-15)
    assert eq.effective_ridge(0.0, [0.0, 1.0, 2.0], [5.0, 0.25, 0.25]) == 0
    assert float(eq.rank_gap([0.1] * 3, [0.1 + 0.2, 0.3, 0.4])) == 0  # 1 up to rounding


@settings(max_examples=60)
@given(groups=spectra, share=st.floats(1e-6, 1 - 1e-9))
def test_negative_ridge(groups, share):
    s, m = split(groups)
    m = m * 2.5 / m.sum()
    limit = float(eq.negative_ridge_limit(s, m))
    assert limit < 0
    edge = float(eq.edge_kappa(s, m))
    np.testing.assert_allclose(eq.df2(edge, s, m), 1, rtol=1e-9)
    found = eq.ridge_equivalent(share * limit, s, m)
    assert found.kappa > edge
    gap = eq.rank_gap(s, m) + (m * found.kappa / (s + found.kappa)).sum()
    assert abs(found.kappa * gap - share * limit) <= 1e-14 * found.kappa * m.sum()
    assert 0 < found.gap2 < 1


def test_edges_are_those_of_the_sample_spectrum():
    for ratio in (1.5, 4.0):
        support = SampleSpectrum(S, W, ratio=ratio).support()
        np.testing.assert_allclose(-eq.negative_ridge_limit(S, ratio * W), support[0][0], rtol=1e-10)
        np.testing.assert_allclose(eq.right_edge(S, ratio * W), support[-1][1], rtol=1e-10)
    many = np.geomspace(0.01, 5, 200)
    np.testing.assert_allclose(
        eq.right_edge(many, np.full(200, 0.003)), SampleSpectrum(many, ratio=0.6).support()[-1][1], rtol=1e-10
    )


@settings(max_examples=60)
@given(groups=spectra, x=st.floats(-2, 20), log_y=st.floats(-6, 1))
def test_resolvent_ridge_is_the_companion_transform(groups, x, log_y):
    s, m = split(groups)
    s = s / s.max()
    z = x + 1j * 10**log_y
    kappa = eq.resolvent_ridge(z, s, m)
    assert kappa.imag < 0
    gap = eq.rank_gap(s, m) + (m * kappa / (s + kappa)).sum()
    assert abs(kappa * gap + z) <= 1e-12 * (abs(kappa) * (1 + m.sum()) + abs(z))


def test_resolvent_ridge_against_another_solver():
    z = np.array([0.3 + 0.01j, 1.0 + 1e-4j, 5.0 + 0.5j, -1.0 + 0.2j])
    other = SampleSpectrum(S, W, ratio=1.5)
    # 1/kappa = companion transform = gamma m(z) - (1 - gamma)/z
    np.testing.assert_allclose(1 / eq.resolvent_ridge(z, S, 1.5 * W), 1.5 * other.stieltjes(z) - (1 - 1.5) / z, rtol=1e-9)
    np.testing.assert_allclose(
        eq.resolvent_ridge(z.conj(), S, 1.5 * W), eq.resolvent_ridge(z, S, 1.5 * W).conj(), rtol=1e-12
    )


def test_broadcasting():
    ridge, ratio = np.geomspace(1e-3, 10, 5), np.array([0.3, 1.0, 3.0])
    grid = eq.ridge_equivalent(ridge[:, None], S, ratio[:, None] * W)
    assert all(part.shape == (5, 3) for part in grid)
    for i, lam in enumerate(ridge):
        for j, gamma in enumerate(ratio):
            np.testing.assert_allclose([part[i, j] for part in grid], eq.ridge_equivalent(lam, S, gamma * W), rtol=1e-13)


def test_infinite_ridge():
    found = eq.ridge_equivalent(np.inf, S, W)
    assert (found.kappa, found.df1, found.df2, found.gap1, found.gap2) == (np.inf, 0, 0, 1, 1)


@pytest.mark.parametrize(
    ("ridge", "s", "m", "words"),
    [
        (-0.1, [1.0], [0.5], "at least 0 unless there are more"),
        (-0.5, [1.0], [2.0], r"ridge = -0.5 .* above -0.17157"),
        (np.nan, [1.0], [2.0], "nan"),
        (0.1, [-1.0], [2.0], "eigenvalues"),
        (0.1, [0.0], [2.0], "eigenvalues"),
        (0.1, [1.0, 2.0], [2.0], "load"),
        (0.1, [1.0], [-2.0], "load"),
    ],
)
def test_refusals(ridge, s, m, words):
    with pytest.raises(ValueError, match=words):
        eq.effective_ridge(ridge, s, m)


def test_real_axis_is_refused():
    with pytest.raises(ValueError, match="real axis"):
        eq.resolvent_ridge(1.0, S, W)
