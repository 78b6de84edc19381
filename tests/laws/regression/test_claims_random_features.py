"""Claims of random features: the fit of a common rate, and planted faults that their checks must notice."""

import numpy as np
import pytest

from limitlab.lab.check import common_rate
from limitlab.laws.regression import gaussian_equivalence, random_features
from limitlab.laws.regression._claims import random_features as claims
from limitlab.models.activations import Moments
from limitlab.models.random_features import linear_features


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_common_rate_recovers_an_exponent(rate):
    rng, sizes = np.random.default_rng(0), np.array([50, 100, 200])
    amplitude, error = np.array([3.0, -2.0, 0.1, 5.0]), 0.1 * sizes[:, None] ** -rate * np.ones(4)
    pulls = []
    for _ in range(40):
        gaps = amplitude * sizes[:, None] ** -rate + error * rng.standard_normal(error.shape)
        found, uncertainty = common_rate(sizes, gaps, error)
        pulls.append((found - rate) / uncertainty)
    assert abs(np.mean(pulls)) < 5 / 40**0.5
    assert 0.5 < np.std(pulls) < 1.5


def test_limit_without_the_unlearned_part_fails(monkeypatch):
    right = random_features.risk

    def wrong(**given):  # the risk as it is sometimes printed: no F*^2
        values = right(**given)
        return {**values, "excess_risk": values["excess_risk"] - given["nonlinear_signal"] ** 2}

    monkeypatch.setattr(random_features, "risk", wrong)
    assert not claims.limiting_risk.run(quick=True).passed


def test_a_badly_tuned_ridge_fails(monkeypatch):
    monkeypatch.setattr(claims, "best_ridge", lambda *given: np.full(np.broadcast_shapes(*map(np.shape, given)), 0.01))
    falling, curves = claims.tuned_curves(quick=True)
    assert falling < curves
    assert not claims.double_descent.run(quick=True).passed


def test_unequal_features_fail(monkeypatch):
    monkeypatch.setattr(
        gaussian_equivalence,
        "linear_features",
        lambda rng, X, weights, mu: linear_features(rng, X, weights, Moments(mu.mean, mu.linear, 1.2 * mu.nonlinear)),
    )
    assert not claims.equivalence.run(quick=True).passed
