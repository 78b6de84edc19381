"""Random features: the best ridge, the thresholds that say when none is best, and plans."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import limitlab as ll
from limitlab.laws import RandomFeaturesRidge
from limitlab.laws.regression._random_features_point import best_ridge, fixed_point, ridgeless_width, slopes, snr_threshold
from limitlab.laws.regression.random_features import risk
from limitlab.models.activations import moments

RELU = moments("relu").linear, moments("relu").nonlinear
INF = np.inf
logs = st.floats(-1.5, 2.5)
moment = st.floats(0.1, 1.5)


@settings(max_examples=60)
@given(log_psi1=logs, log_psi2=logs, log_ridge=st.floats(-4, 2), mu1=moment, mus=moment)
def test_slopes_are_derivatives(log_psi1, log_psi2, log_ridge, mu1, mus):
    """dB/dlambda = -B_t t^2 / det, against central differences."""
    psi1, psi2, lam, step = 10**log_psi1, 10**log_psi2, 10**log_ridge, 1e-5
    point = fixed_point(psi1, psi2, lam, mu1, mus)
    values = risk(psi1, psi2, lam * np.exp([-step, step]), mu1, mus)
    for name, slope in zip(("bias", "variance"), slopes(point, mu1, mus), strict=True):
        numeric = (values[name][1] - values[name][0]) / (2 * step)
        exact = -slope / point.det**2 * point.t**2 / point.det * lam
        np.testing.assert_allclose(numeric, exact, rtol=1e-5, atol=1e-9 * float(values[name].max()), err_msg=name)


@settings(max_examples=60)
@given(log_psi1=logs, log_psi2=logs, mu1=moment, mus=moment, log_snr=st.floats(-2, 4))
def test_nothing_beats_the_best_ridge(log_psi1, log_psi2, mu1, mus, log_snr):
    psi1, psi2, snr = 10**log_psi1, 10**log_psi2, 10**log_snr
    best = float(best_ridge(psi1, psi2, mu1, mus, snr))
    sizes = dict(signal=snr**0.5, noise=1.0)
    least = float(risk(psi1, psi2, best, mu1, mus, **sizes)["excess_risk"])
    others = risk(psi1, psi2, np.concatenate([[0.0], np.logspace(-10, 6, 400)]), mu1, mus, **sizes)["excess_risk"]
    assert least <= others.min() * (1 + 1e-12)
    above = snr >= float(snr_threshold(psi1, psi2, mu1, mus))
    assert (best == 0) == above, "without a ridge exactly above the threshold"


def test_wide_optimum_has_a_closed_form():
    psi2, rho = np.array([0.4, 3.0, 300.0])[:, None], np.array([0.01, 0.5, 2.0, 2.7])
    expected = np.maximum(0, RELU[0] ** 2 / rho - RELU[1] ** 2) / psi2
    np.testing.assert_allclose(best_ridge(INF, psi2, *RELU, rho), expected, rtol=1e-9)


def test_best_ridge_at_the_ends():
    assert best_ridge(2.0, 3.0, *RELU, 0.0) == INF  # no signal
    assert best_ridge(2.0, 3.0, 0.0, 1.0, 5.0) == INF  # features that see none
    assert best_ridge(2.0, 3.0, 1.0, 0.0, INF) == 0  # linear, no noise: least squares is exact
    assert best_ridge(INF, INF, *RELU, 2.0) == 0
    np.testing.assert_allclose(best_ridge(INF, 3.0, 1.0, 0.0, 2.0), 1 / 6, rtol=1e-9)
    law = RandomFeaturesRidge(noise=0.0, nonlinear_signal=0.0)
    assert law.signal_to_noise() == INF
    assert law.optimal_ridge() > 0  # N/d = 2 is narrow
    with pytest.raises(ValueError, match="signal_to_noise = -1"):
        best_ridge(2.0, 3.0, *RELU, -1.0)


def test_generic_optimum_agrees_at_the_defaults():
    law = RandomFeaturesRidge()
    found = ll.optimal(law, over="ridge")
    np.testing.assert_allclose(found.ridge, law.optimal_ridge(), rtol=1e-9)
    assert not found.attrs["at_bound"]


def test_thresholds():
    assert snr_threshold(INF, 3.0, 0.0, 1.0) == 0  # nothing depends on the ridge
    assert snr_threshold(3.0, INF, *RELU) == 0
    assert snr_threshold(3.0, 4.0, 1.0, 0.0) == INF
    widths = np.geomspace(12, 1e6, 60)
    falling = snr_threshold(widths, 3.0, *RELU)
    assert (np.diff(falling) < 0).all()
    np.testing.assert_allclose(falling[-1], (RELU[0] / RELU[1]) ** 2, rtol=1e-3)
    samples = np.geomspace(0.1, 30, 12)
    edge = ridgeless_width(samples, *RELU)
    assert (edge > samples).all()
    assert np.isinf(snr_threshold(edge * 0.999, samples, *RELU)).all()
    assert np.isfinite(snr_threshold(edge * 1.001, samples, *RELU)).all()
    assert np.isinf(ridgeless_width(3.0, 1.0, 0.0))
    assert np.isinf(ridgeless_width(3.0, 0.0, 1.0))
    with pytest.raises(ValueError, match="sample_ratio = inf"):
        ridgeless_width(INF, *RELU)


def test_only_one_change_of_sign_in_width():
    """The ridgeless width is a border: B_t is positive at every smaller width beyond n, negative at every larger one."""
    for name in ("relu", "tanh", "erf"):
        mu = moments(name)
        for samples in (0.2, 1.0, 5.0):
            edge = float(ridgeless_width(samples, mu.linear, mu.nonlinear))
            widths = samples * (1 + np.geomspace(1e-4, 1e8, 500))
            slope, _ = slopes(fixed_point(widths, samples, 0.0, mu.linear, mu.nonlinear), mu.linear, mu.nonlinear)
            np.testing.assert_array_equal(slope > 0, widths < edge)
            under, _ = slopes(fixed_point(samples * np.linspace(0.01, 0.99, 50), samples, 0.0, *RELU), *RELU)
            assert (under > 0).all()


def test_plans():
    law = RandomFeaturesRidge(ridge=1e-3, noise=0.5)
    width = ll.plan(law, target={"test_error": 0.6}, solve_for="width_ratio")
    np.testing.assert_allclose(width.test_error, 0.6, rtol=1e-12)
    np.testing.assert_allclose(law.replace(width_ratio=float(width.width_ratio)).theory().test_error, 0.6, rtol=1e-12)
    both_sides = ll.plan(law, target={"test_error": 1.2}, solve_for="width_ratio")
    assert both_sides.solutions.size == 3  # down, up to the peak, down again
    samples = ll.plan(law, target={"test_error": 0.6}, solve_for="sample_ratio")
    np.testing.assert_allclose(samples.test_error, 0.6, rtol=1e-12)
    with pytest.raises(ValueError, match="out of reach"):
        ll.plan(law, target={"test_error": 0.2}, solve_for="width_ratio")
