"""The statistics of a comparison: extrapolation, coverage, Holm."""

import numpy as np
import pytest

from limitlab.lab import judging as statistics

SIZES = np.array([50.0, 100.0, 200.0, 400.0])


@pytest.mark.parametrize("rate", [0.5, 2 / 3, 1.0, 2.0])
def test_extrapolation_removes_the_declared_power_exactly(rate):
    gaps = (0.3 - 4.0 * SIZES**-rate)[:, None]
    fit = statistics.extrapolate(SIZES, gaps, np.full((4, 1), 0.01), draws=20, rate=rate)
    assert fit.intercept[0] == pytest.approx(0.3, abs=1e-12)
    assert fit.correction[0] == pytest.approx(-4.0 * 400**-rate, abs=1e-12)


def test_extrapolated_intercept_has_its_stated_standard_error():
    rng = np.random.default_rng(0)
    errors = np.array([0.04, 0.03, 0.02, 0.01])[:, None] * np.ones(4000)
    gaps = 2 / SIZES[:, None] + errors * rng.standard_normal(errors.shape)
    fit = statistics.extrapolate(SIZES, gaps, errors, draws=30, rate=1.0)
    assert fit.intercept.std() == pytest.approx(fit.standard_error[0], rel=0.05)
    assert abs(fit.intercept.mean()) < 5 * fit.standard_error[0] / np.sqrt(4000)


def test_exact_laws_use_the_weighted_mean():
    gaps = np.array([[1.0], [3.0]])
    errors = np.array([[1.0], [0.5]])
    fit = statistics.extrapolate(SIZES[:2], gaps, errors, draws=10, rate=np.inf)
    assert fit.intercept[0] == pytest.approx((1 * 1 + 4 * 3) / 5)
    assert fit.correction[0] == 0
    assert fit.standard_error[0] == pytest.approx(5**-0.5)


def test_degrees_of_freedom_lie_between_one_size_and_all():
    errors = np.array([[1.0], [1.0], [1.0], [1.0]])
    fit = statistics.extrapolate(SIZES, 0 * errors, errors, draws=11, rate=np.inf)
    assert fit.freedom[0] == pytest.approx(40)


def test_fitted_rate_finds_the_power_and_refuses_noise():
    rate, error = statistics.fitted_rate(SIZES, 5 * SIZES**-0.75, 0.01 * SIZES**-0.75)
    assert rate == pytest.approx(0.75, abs=3 * error + 1e-12)
    assert np.isnan(statistics.fitted_rate(SIZES, 0.1 / SIZES, np.ones(4))[0])


def test_holm_keeps_the_family_wise_error():
    rng = np.random.default_rng(1)
    false_alarms = np.mean([statistics.holm(rng.random(8), 0.05).any() for _ in range(4000)])
    assert abs(false_alarms - 0.05) < 5 * np.sqrt(0.05 * 0.95 / 4000)


def test_student_functions_are_inverse():
    freedom = np.array([3.0, 19.0, 1000.0])
    np.testing.assert_allclose(statistics.two_sided_p(statistics.critical(0.01, freedom), freedom), 0.01, rtol=1e-8)
