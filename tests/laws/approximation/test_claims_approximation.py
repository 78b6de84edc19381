"""The claims about approximation can fail: each notices a fault planted in what it tests."""

import numpy as np

from limitlab.laws.approximation import _claims as approximation
from limitlab.laws.approximation.quadratic import QuadraticTarget


def test_a_staircase_that_is_one_degree_off_is_noticed(monkeypatch):
    """Random features in place of tangent ones: the exponents are larger by one."""
    honest = approximation.half_width
    monkeypatch.setattr(approximation, "half_width", lambda model, *rest: honest("rf", *rest))
    assert abs(approximation.half_slope("nt", 2, (8, 12, 18), 2) - 1) > approximation.HALF_SLOPE


def test_a_network_that_grows_with_the_dimension_is_noticed(monkeypatch):
    monkeypatch.setattr(approximation, "half_slope", lambda model, degree, *rest, **more: degree - 1)
    honest = approximation.aligned_risk
    monkeypatch.setattr(approximation, "aligned_risk", lambda dimension, degree: dimension / 10 * honest(dimension, degree))
    assert not approximation.one_direction.run(quick=True).passed


def test_a_forgotten_intercept_is_noticed(monkeypatch):
    """Without a free intercept the target's mean is part of what has to be explained."""
    honest = QuadraticTarget.random_projection

    def without(self, rng):
        share = float(self.spectrum().sum()) ** 2 / self.target_variance()
        return (honest(self, rng) + share) / (1 + share)

    monkeypatch.setattr(QuadraticTarget, "random_projection", without)
    assert not approximation.quadratic_targets.run(quick=True).passed


def test_sgd_with_too_long_steps_is_noticed(monkeypatch):
    honest = approximation.one_pass

    def long_steps(*arguments, step, steps):
        return honest(*arguments, step=8 * step, steps=steps // 8)

    monkeypatch.setattr(approximation, "one_pass", long_steps)
    B = approximation.spectra_of(20, 5)["positive spectrum"]
    gaps = [
        np.abs(sgd - flow).max() / flow[0] for sgd, flow, _ in (approximation.sgd_path(B, 5, seed, 6.0) for seed in range(2))
    ]
    assert max(gaps) > approximation.FOLLOWS


def test_an_untrained_network_is_noticed(monkeypatch):
    monkeypatch.setattr(
        approximation, "trained_relu_risk", lambda rng, target, dimension, width, steps, batch: 2.0 * dimension
    )
    assert not approximation.relu_ordering.run(quick=True).passed
