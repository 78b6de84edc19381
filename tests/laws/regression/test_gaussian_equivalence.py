"""Gaussian equivalence: one limit for two kinds of features, draws that share everything else, the regime, planted faults."""

import warnings

import numpy as np
import pytest

import limitlab as ll
from limitlab.laws import GaussianEquivalence, MarginEquivalence, RandomFeaturesRidge
from limitlab.laws.classification import random_features_margin
from limitlab.laws.classification.random_features_margin import LabelledFeatures
from limitlab.laws.regression import gaussian_equivalence
from limitlab.laws.regression.gaussian_equivalence import COMPARED
from limitlab.models.activations import Moments
from limitlab.models.random_features import draw_weights, linear_features, nonlinear_features

SMALL = dict(width_ratio=1.5, sample_ratio=2.0, ridge=0.01, noise=0.5)


def test_theory_is_that_of_random_features():
    law, twin = GaussianEquivalence(activation="tanh", **SMALL), RandomFeaturesRidge(activation="tanh", **SMALL)
    found, limit = law.theory(), twin.theory()
    for name in COMPARED:
        assert float(found[name]) == float(found[f"linear_{name}"]) == float(limit[name])
        assert float(found[f"{name}_gap"]) == 0
    at_the_peak = law.replace(width_ratio=2.0, ridge=0.0).theory()
    assert np.isinf(at_the_peak.bias)
    assert float(at_the_peak.bias_gap) == 0


@pytest.mark.parametrize("labels", ["averaged", "drawn"])
def test_nonlinear_side_is_the_other_law_s_draw(labels):
    law, twin = GaussianEquivalence(labels=labels, **SMALL), RandomFeaturesRidge(labels=labels, **SMALL)
    found = law.simulate(40, 5)
    for name in COMPARED:
        np.testing.assert_allclose(found[f"{name}_gap"], found[name] - found[f"linear_{name}"], rtol=1e-12)
    if labels == "averaged":
        path = {name: np.asarray(getattr(twin, name)) for name in twin.path_parameters()}
        same = twin.measured(law.draw(40, 5), **path)
        for name in COMPARED:
            assert float(found[name]) == float(same[name])


def test_both_sides_share_their_labels():
    """A linear activation has no noise to replace: the two regressions are the same, drawn labels included."""
    law = GaussianEquivalence(activation="identity", labels="drawn", nonlinear_signal=0.5, **SMALL)
    run = law.simulate(30, 1)
    for name in COMPARED:
        np.testing.assert_allclose(run[name], run[f"linear_{name}"], rtol=1e-9)


@pytest.mark.parametrize("activation", ["relu", "erf"])
def test_agrees(activation):
    law = GaussianEquivalence(activation=activation, **SMALL)
    assert ll.compare(law, sizes=[25, 50, 100], seeds=16, resolution=0.1).verdict == "agree"


def test_outside_the_proportional_regime():
    law = GaussianEquivalence(width_ratio=8.0, sample_ratio=2.0)
    with pytest.warns(UserWarning, match=r"N = 240 and n = 60 is outside the proportional regime.*180"):
        law.simulate(30, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        law.simulate(50, 0)


@pytest.mark.parametrize(
    "fault",
    [dict(mean=None), dict(nonlinear=0.0), dict(nonlinear=1.3), dict(linear=0.9)],
    ids=["mu0", "no noise", "mu*", "mu1"],
)
def test_wrong_features_are_noticed(fault, monkeypatch):
    """Features without the mean, without the noise, or with a moment that is off by some per cent."""

    def wrong(rng, X, weights, mu):
        scale = {name: 1.0 if factor is None else factor for name, factor in fault.items()}
        mean = 0.0 if "mean" in fault else mu.mean
        changed = Moments(mean, mu.linear * scale.get("linear", 1.0), mu.nonlinear * scale.get("nonlinear", 1.0))
        return linear_features(rng, X, weights, changed)

    monkeypatch.setattr(gaussian_equivalence, "linear_features", wrong)
    law = GaussianEquivalence(activation="relu", width_ratio=1.5, sample_ratio=2.0, ridge=0.01, constant=1.0, noise=0.2)
    assert ll.compare(law, sizes=[25, 50, 100], seeds=16).verdict == "disagree"


# -- the largest margin ----------------------------------------------------------------------------------------------------


def test_margins_share_weights_inputs_and_labels():
    """A linear activation has no noise to replace: both classifiers see the same data, also when labels are random."""
    law = MarginEquivalence(activation="identity", width_ratio=0.8, sample_ratio=0.5, link="logit", link_strength=2.0)
    run = law.simulate(30, 1)
    assert float(run.margin) > 0
    np.testing.assert_allclose(run.margin, run.linear_margin, rtol=1e-7)
    assert abs(float(run.classification_error_gap)) < 0.05  # one is exact, the other on fresh inputs


def test_no_random_number_serves_labels_and_features():
    """Weights, inputs, labels, then the noise of the linear features: in this order, from one stream."""
    law = MarginEquivalence(activation="tanh", width_ratio=3.0, sample_ratio=1.5, link="logit", link_strength=2.0)
    nonlinear = LabelledFeatures(law.side("nonlinear"), law.draw(20, 3))
    linear = nonlinear.with_features_of(law.side("linear"))
    rng, side = law.draw(20, 3).rng, law.side("linear")
    weights, X = draw_weights(rng, 60, 20), rng.standard_normal((30, 20))
    y = side.labels.draw(rng, X[:, 0])
    np.testing.assert_array_equal(linear.y, y)
    np.testing.assert_array_equal(nonlinear.y, y)
    np.testing.assert_array_equal(linear.features, linear_features(rng, X, weights, side.moments))
    np.testing.assert_array_equal(nonlinear.features, nonlinear_features(X, weights, law.activation))


def test_margins_agree_with_each_other():
    law = MarginEquivalence(activation="tanh", width_ratio=3.0, sample_ratio=2.0)
    gaps = ["margin_gap", "classification_error_gap"]
    assert ll.compare(law, sizes=[20, 40, 80], seeds=20, observables=gaps).verdict == "agree"


def test_margin_without_noise_on_the_features_is_noticed(monkeypatch):
    monkeypatch.setattr(
        random_features_margin,
        "linear_features",
        lambda rng, X, weights, mu: linear_features(rng, X, weights, Moments(mu.mean, mu.linear, 0.5 * mu.nonlinear)),
    )
    result = ll.compare(MarginEquivalence(), sizes=[20, 40, 80], seeds=20)
    assert result.verdict == "disagree"


def test_margin_outside_its_range():
    found = MarginEquivalence(width_ratio=0.5).theory()
    assert float(found.margin) == float(found.margin_gap) == float(found.classification_error_gap) == 0
    with pytest.warns(UserWarning, match="outside the proportional regime"):
        MarginEquivalence(width_ratio=8.0).simulate(20, 0)
    with pytest.raises(ValueError, match="link"):
        MarginEquivalence(activation="relu", link=lambda t: 0.3 + 0 * t)
