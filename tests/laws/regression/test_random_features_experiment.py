"""Random features: experiments against the limit, with averaged and with drawn labels, and planted faults."""

import numpy as np
import pytest

import limitlab as ll
from limitlab.laws import RandomFeaturesRidge
from limitlab.laws.regression import random_features


@pytest.mark.parametrize("activation", ["relu", "tanh", "erf"])
def test_agrees_with_the_limit(activation):
    law = RandomFeaturesRidge(activation=activation, width_ratio=0.8, sample_ratio=2.0, ridge=1e-2)
    assert ll.compare(law, sizes=[25, 50, 100], seeds=12, resolution=0.1).verdict == "agree"


@pytest.mark.slow
@pytest.mark.parametrize("activation", ["relu", "tanh", "erf"])
@pytest.mark.parametrize(("width", "samples"), [(4.0, 2.0), (2.0, 3.0), (0.8, 2.0)])
def test_agrees_with_the_limit_at_large_sizes(activation, width, samples):
    law = RandomFeaturesRidge(activation=activation, width_ratio=width, sample_ratio=samples, ridge=1e-3)
    result = ll.compare(law, sizes=[100, 200, 400], seeds=10)
    assert result.passed, result.explanation


@pytest.mark.parametrize("ridge", [0.0, 1e-2])
def test_no_ridge_and_ridge_on_both_sides(ridge):
    for width in (0.5, 5.0):
        law = RandomFeaturesRidge(activation="tanh", width_ratio=width, sample_ratio=2.0, ridge=ridge)
        assert ll.compare(law, sizes=[25, 50, 100], seeds=12, resolution=0.1).verdict == "agree"


def test_other_parts_of_the_target():
    law = RandomFeaturesRidge(
        activation="relu", width_ratio=1.5, sample_ratio=2.0, ridge=0.01, nonlinear_signal=1.0, constant=0.7, noise=0.2
    )
    assert ll.compare(law, sizes=[25, 50, 100], seeds=12, resolution=0.1).verdict == "agree"


def test_constant_is_not_learned_by_odd_neurons():
    with pytest.warns(UserWarning, match="cannot be learned"):
        law = RandomFeaturesRidge(
            activation="tanh", width_ratio=1.5, sample_ratio=2.0, ridge=0.01, signal=0.0, constant=1.0, noise=0.0
        )
    runs = law.simulate_batch(60, range(30)).excess_risk
    error = float(runs.std("seed", ddof=1)) / 30**0.5
    assert abs(float(runs.mean() - law.theory().excess_risk)) < 5 * error
    learned = law.replace(activation="relu").simulate_batch(60, range(5)).excess_risk
    assert float(learned.mean()) < 0.05


def test_drawn_labels_have_the_same_mean_and_a_larger_spread():
    law = RandomFeaturesRidge(activation="tanh", width_ratio=1.5, sample_ratio=2.0, ridge=0.01, nonlinear_signal=0.5)
    drawn, averaged = (law.replace(labels=labels).simulate_batch(40, range(60)) for labels in ("drawn", "averaged"))
    for name in law.observables:
        gap = float(drawn[name].mean() - averaged[name].mean())
        spread = float(drawn[name].std("seed", ddof=1))
        assert abs(gap) < 5 * spread / 60**0.5, name
        assert spread > float(averaged[name].std("seed", ddof=1)), name
    ratio = float(drawn.excess_risk.std("seed", ddof=1) / averaged.excess_risk.std("seed", ddof=1))
    assert ratio > 3


def test_realised_ratios():
    law = RandomFeaturesRidge(width_ratio=0.333, sample_ratio=2.5)
    assert (law.count("width_ratio", 10), law.count("sample_ratio", 10)) == (3, 25)
    assert (law.realised(10).width_ratio, law.realised(10).sample_ratio) == (0.3, 2.5)
    assert RandomFeaturesRidge(width_ratio=0.001).count("width_ratio", 10) == 1
    weights, X, X_new = law.inputs(law.draw(10, 0))
    assert (weights.shape, X.shape, X_new.shape) == ((3, 10), (25, 10), (50, 10))


def test_one_draw_serves_a_path_of_everything():
    law, size = RandomFeaturesRidge(labels="drawn", noise=0.3), 20
    path = law.experiment(size, 3, ridge=np.array([[0.0], [0.1]]), nonlinear_signal=np.array([0.0, 0.5, 1.0]))
    assert np.shape(path["test_error"]) == (2, 3)
    single = law.replace(ridge=0.1, nonlinear_signal=0.5).simulate(size, 3)
    np.testing.assert_allclose(path["test_error"][1, 1], single.test_error, rtol=1e-9)


# -- planted faults ---------------------------------------------------------------------------------------------------

FAULTS = {
    "no F*^2 in the risk": lambda nonlinear_signal, noise, **_: dict(
        nonlinear_signal=0.0, noise=np.hypot(noise, nonlinear_signal)
    ),
    "mu*^2 for mu*": lambda nonlinear, **_: dict(nonlinear=nonlinear**2),
    "width and samples exchanged": lambda width_ratio, sample_ratio, **_: dict(
        width_ratio=sample_ratio, sample_ratio=width_ratio
    ),
    "variance for standard deviation": lambda noise, **_: dict(noise=noise**2),
    "another factor of the penalty": lambda ridge, width_ratio, **_: dict(ridge=ridge * width_ratio),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_limit_is_noticed(fault, monkeypatch):
    right = random_features.risk
    monkeypatch.setattr(random_features, "risk", lambda **given: right(**{**given, **FAULTS[fault](**given)}))
    law = RandomFeaturesRidge(activation="tanh", width_ratio=1.5, sample_ratio=2.0, ridge=0.03, nonlinear_signal=0.7)
    assert ll.compare(law, sizes=[20, 40, 80], seeds=12).verdict == "disagree"
