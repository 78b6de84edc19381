"""The best possible error: reference values, thresholds, closed forms, message passing, bad input."""

import math
from functools import partial

import numpy as np
import pytest

from limitlab.laws import BayesOptimal, LogisticCalibration, Ridge
from limitlab.laws.classification._channels import Channel, Prior, information, precision_of, recovered
from references import label, reference

entries = partial(reference, "best_possible")


@pytest.mark.parametrize("entry", entries("bayes_optimal"), ids=label)
def test_reference_values(entry):
    found = BayesOptimal(**entry["inputs"]).theory()
    for name, want in entry["outputs"].items():
        if name == "phase":
            assert found.phase == want
        else:
            assert float(found[name]) == pytest.approx(want, rel=entry["tolerance"], abs=entry["tolerance"]), name


@pytest.mark.parametrize("entry", entries("bayes_thresholds"), ids=label)
def test_reference_values_of_thresholds(entry):
    found = BayesOptimal(**entry["inputs"]).thresholds()
    for name, want in entry["outputs"].items():
        assert found[name] == pytest.approx(want, rel=entry["tolerance"]), name


def test_gaussian_labels_and_coefficients_are_the_best_ridge():
    law = Ridge(ratio=2.0, noise=0.5)
    best = float(law.replace(ridge=law.optimal_ridge()).theory().test_error)
    assert float(BayesOptimal(ratio=2.0, channel="gaussian", noise=0.5).theory().test_error) == pytest.approx(
        best, rel=1e-11
    )


def test_a_sparse_prior_helps():
    found = BayesOptimal(ratio=1.5, channel="gaussian", noise=0.4, prior="sparse", density=0.1).theory()
    assert float(found.excess_risk) == pytest.approx(0.0678, abs=1e-4)
    plain, full = (BayesOptimal(ratio=1.5, channel="gaussian", noise=0.4, prior=p).theory() for p in ("gaussian", "sparse"))
    assert float(plain.excess_risk) == pytest.approx(float(full.excess_risk), rel=1e-12)


def test_tuned_logistic_regression_is_nearly_the_best():
    fit = LogisticCalibration(ratio=0.5, signal=3.0, ridge=0.0802 / 9, fit_intercept=False)
    errors = [float(fit.replace(ridge=float(r)).theory().classification_error) for r in np.geomspace(0.005, 0.5, 25)]
    best = float(BayesOptimal(ratio=0.5, channel="logit", link_strength=3.0).theory().classification_error)
    assert best <= min(errors) < best + 1.2e-4


def test_channels_by_monte_carlo():
    """I(q) is the mean square of the pull that the experiment uses, over drawn labels."""
    rng, q, draws = np.random.default_rng(0), 0.4, 200_000
    omega, w = math.sqrt(q) * rng.standard_normal(draws), rng.standard_normal(draws)
    for channel in (
        Channel("sign"), Channel("flip", 0.15), Channel("probit", 1.5), Channel("abs"), Channel("relu"), Channel("abs", noise=0.3),
        Channel("relu", noise=0.3),
    ):  # fmt: skip
        y = channel.draw(rng, omega + math.sqrt(1 - q) * w)
        pulls = channel.pull(y, omega, 1 - q) ** 2
        assert pulls.mean() == pytest.approx(information(channel, q), abs=5 * pulls.std() / math.sqrt(draws)), channel
        assert abs(channel.pull(y, omega, 1 - q).mean()) < 0.02


@pytest.mark.parametrize("prior", [Prior("rademacher"), Prior("sparse", 0.2)])
def test_priors_by_monte_carlo(prior):
    rng, r, draws = np.random.default_rng(1), 1.7, 200_000
    x = prior.draw(rng, draws)
    mean, variance = prior.posterior(x + rng.standard_normal(draws) / math.sqrt(r), 1 / r)
    assert np.mean(mean * x) == pytest.approx(recovered(prior, r), abs=0.01)
    assert np.mean(mean**2) == pytest.approx(recovered(prior, r), abs=0.01)
    assert np.mean(variance) == pytest.approx(1 - recovered(prior, r), abs=0.01)
    assert precision_of(prior, recovered(prior, r)) == pytest.approx(r, rel=1e-10)


def test_phases_of_phase_retrieval():
    phases = [BayesOptimal(ratio=1 / alpha, channel="abs").theory().phase for alpha in (0.4, 0.8, 1.05, 1.3)]
    assert phases == ["impossible", "easy", "hard", "easy"]
    assert float(BayesOptimal(ratio=1 / 1.3, channel="abs").theory().overlap_gamp) == 1


def test_free_entropy_of_perfect_recovery():
    law = BayesOptimal(ratio=0.8, channel="sign", prior="rademacher")
    assert law.free_entropy(1.0) == pytest.approx(0.25 * math.log(2), rel=1e-6)
    points = law.fixed_points()
    assert [point.overlap for point in points] == sorted(point.overlap for point in points)


def test_relu_has_no_hard_phase():
    found = BayesOptimal(channel="relu").thresholds()
    assert found["information_samples"] == found["algorithmic_samples"] == pytest.approx(2, abs=1e-6)
    for law in (BayesOptimal(channel="sign"), BayesOptimal(channel="flip", link_strength=0.1)):
        assert list(law.thresholds()) == ["weak_recovery_samples"]


def test_flipped_labels_pin_down_signs():
    """With +-1 coefficients enough flipped labels give perfect recovery, first in principle and later by message passing."""
    law = BayesOptimal(channel="flip", link_strength=0.1, prior="rademacher")
    found = law.thresholds()
    assert 1.2447 < found["information_samples"] < found["algorithmic_samples"]
    middle = (found["information_samples"] + found["algorithmic_samples"]) / 2
    for samples, phase in ((0.9 * found["information_samples"], "easy"), (middle, "hard")):
        assert law.replace(ratio=1 / samples).theory().phase == phase
    assert float(law.replace(ratio=0.9 / found["algorithmic_samples"]).theory().overlap_gamp) == 1


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (dict(channel="flip", link_strength=0.6), "link_strength"),
        (dict(channel="logit", link_strength=0.0), "link_strength"),
        (dict(channel="gaussian"), "noise"),
        (dict(prior="sparse", density=0.0), "density"),
    ],
)
def test_bad_input(given, complaint):
    with pytest.raises(ValueError, match=complaint):
        BayesOptimal(**given)


def test_far_ends():
    """Labels without information, hardly any samples, very many samples."""
    assert BayesOptimal(channel="flip", link_strength=0.5).theory().phase == "impossible"
    few = BayesOptimal(ratio=1e8, channel="sign").theory()
    assert float(few.overlap) == pytest.approx(2 / math.pi * 1e-8, rel=1e-3)
    many = BayesOptimal(ratio=1e-9, channel="gaussian", noise=0.5).theory()
    assert float(many.estimation_error) == pytest.approx(0.25e-9, rel=1e-5)
    assert 0 < float(BayesOptimal(ratio=1e-4, channel="sign").theory().classification_error) < 1e-3


def test_bad_overlap():
    with pytest.raises(ValueError, match="q = 2"):
        BayesOptimal().free_entropy(2)
