"""Logistic regression with p/n fixed: reference values, known limits, existence, finite data, bad input."""

from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from limitlab.laws import LogisticCalibration
from limitlab.laws.classification.gaussian_score import Score, TrueScore
from limitlab.laws.classification.logistic_system import existence
from limitlab.models.logistic import fit_logistic
from references import label, reference

entries = partial(reference, "best_possible")


@pytest.mark.parametrize("entry", entries("logistic_calibration"), ids=label)
def test_reference_values(entry):
    found = LogisticCalibration(**entry["inputs"]).theory()
    for name, want in entry["outputs"].items():
        assert float(found[name]) == pytest.approx(want, rel=entry["tolerance"], abs=entry["tolerance"]), name
    assert found.attrs["accuracy"] < 1e-8
    assert bool(found.exists)


@pytest.mark.parametrize("entry", entries("logistic_calibration_groups"), ids=label)
def test_reference_values_of_groups(entry):
    law = LogisticCalibration(**entry["inputs"])
    found, want = law.theory(), dict(entry["outputs"])
    gamma = law.truth().signal
    got = {"score_signal": found.bias_factor * gamma, "score_noise": found.noise_scale * law.ratio**0.5}
    for name, value in want.items():
        assert float(got.get(name, found.get(name))) == pytest.approx(value, rel=1e-8), name


@pytest.mark.parametrize("entry", entries("mle_existence"), ids=label)
def test_reference_values_of_existence(entry):
    law = LogisticCalibration(**entry["inputs"])
    assert law.existence_threshold() == pytest.approx(entry["outputs"]["threshold"], rel=1e-8)
    assert law.existence().spread == pytest.approx(entry["outputs"]["spread"], rel=1e-8)


def test_small_ratio_is_classical():
    """p/n -> 0: no bias, the spread of Fisher's information, slope 1, and p/(2n) more log-loss."""
    law = LogisticCalibration(ratio=1e-5, intercept=-0.5, signal=1.2)
    found, none = law.theory(), Score(law.truth(), -0.5, 1.2, 0.0)
    rng = np.random.default_rng(0)
    risk = 1 / (1 + np.exp(0.5 - 1.2 * rng.standard_normal(10**6)))
    assert float(found.bias_factor) == pytest.approx(1, abs=1e-4)
    assert float(found.noise_scale) == pytest.approx(np.mean(risk * (1 - risk)) ** -0.5, rel=2e-3)
    assert float(found.calibration_slope) == pytest.approx(1, abs=1e-3)
    assert float(found.log_loss) - none.losses()["log_loss"] == pytest.approx(1e-5 / 2, rel=1e-3)


def test_without_a_penalty_the_covariance_does_not_matter():
    one = LogisticCalibration(ratio=0.15, intercept=0.5, signal=2.0).theory()
    law = LogisticCalibration(
        ratio=0.15, intercept=0.5, eigenvalues=(3.0, 0.5), weights=(0.4, 0.6), signal_energy=(1.0, 2.0)
    )
    assert law.truth().signal == 2.0
    other = law.theory()
    for name in one.data_vars:
        assert float(one[name]) == pytest.approx(float(other[name]), rel=1e-10), name


def test_the_true_score_is_calibrated():
    score = Score(TrueScore(-0.8, 1.7), -0.8, 1.7, 0.0)
    assert score.calibration() == pytest.approx((1, 0), abs=1e-12)


def test_without_a_signal_existence_is_covers_count():
    """P(no separation) is a sum of binomial probabilities; the normal formula has its mean and spread."""
    case = existence(TrueScore(0.0, 1e-6), fit_intercept=False)
    assert (case.threshold, case.spread) == pytest.approx((0.5, 0.5), abs=1e-9)
    separable = binom.cdf(29, 69, 0.5)  # p = 30 predictors, n = 70 samples in general position
    assert float(case.no_fit_probability(30, 70)) == pytest.approx(separable, abs=0.02)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_the_share_of_fits_that_do_not_exist(fit_intercept):
    """Against 400 simulated data sets; with the other count of parameters the gap would be six standard errors."""
    truth, p, n, draws = TrueScore(-0.8, 1.5), 12, 32, 400
    rng, missing = np.random.default_rng(3), 0
    for _ in range(draws):
        X = rng.standard_normal((n, p))
        y = (rng.random(n) < 1 / (1 + np.exp(0.8 - 1.5 * X[:, 0]))).astype(float)
        missing += not fit_logistic(X, y, intercept=fit_intercept).exists
    want = float(existence(truth, fit_intercept).no_fit_probability(p, n))
    assert missing / draws == pytest.approx(want, abs=0.08)


def test_beyond_the_threshold():
    law = LogisticCalibration(ratio=0.6, intercept=-1.0)
    found = law.theory()
    assert not bool(found.exists)
    assert np.isinf(found.bias_factor)
    assert float(found.calibration_slope) == 0
    assert "auc" not in found
    assert float(LogisticCalibration(ratio=0.6, intercept=-1.0, ridge=0.01).theory().auc) > 0.6
    assert float(law.no_fit_probability(200)) > 0.99
    assert float(law.replace(ridge=0.1).no_fit_probability(200)) == 0
    assert not bool(law.simulate(60, 0).exists)


def test_near_the_threshold():
    """The bias factor grows without bound (8.96 at 0.99 h for gamma^2 = 5, no intercept)."""
    law = LogisticCalibration(signal=5**0.5, fit_intercept=False)
    assert float(law.replace(ratio=0.99 * law.existence_threshold()).theory().bias_factor) == pytest.approx(8.96, abs=0.01)


def test_a_penalty_of_least_log_loss_is_calibrated():
    from scipy.optimize import minimize_scalar

    law = LogisticCalibration(ratio=0.1, intercept=-1.0, signal=1.5)
    best = minimize_scalar(
        lambda x: float(law.replace(ridge=float(np.exp(x))).theory().log_loss), bounds=(-5, 1), method="bounded"
    )
    found = law.replace(ridge=float(np.exp(best.x))).theory()
    assert float(found.calibration_slope) == pytest.approx(0.9999, abs=1e-3)
    assert float(found.log_loss) == pytest.approx(0.5231, abs=5e-5)


def test_prevalence_decides_the_intercept():
    law = LogisticCalibration(prevalence=0.2, signal=1.3)
    assert law.truth().prevalence == pytest.approx(0.2, abs=1e-13)


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (dict(eigenvalues=(1.0, 2.0)), "weights"),
        (dict(signal_energy=(0.0,)), "signal_energy"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        LogisticCalibration(**given)
