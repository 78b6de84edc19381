"""The comparison must catch a wrong theory: faults that have been made in the literature or in code (many more: tests/faults)."""

import numpy as np
import pytest

import limitlab as ll
from limitlab.laws import EarlyStopping, MarchenkoPastur, NearestNeighbours, Ridge

RIDGE = Ridge(ratio=0.5, ridge=0.2, noise=0.7)
OVER = Ridge(ratio=2.0, ridge=0.1, noise=0.7, eigenvalues=(0.5, 2.0), weights=(0.5, 0.5), signal_energy=(0.5, 0.5))


class FactorTwo(Ridge):
    """Errors with a factor 1/2 too few."""

    def predicted(self, **grid):
        values = dict(super().predicted(**grid))
        return {**values, "test_error": 2 * np.asarray(values["test_error"])}


class HalfVariance(Ridge):
    """A factor 1/2 in the variance alone."""

    def predicted(self, **grid):
        values = dict(super().predicted(**grid))
        return {**values, "variance": np.asarray(values["variance"]) / 2}


class MissingNoise(Ridge):
    """The excess risk reported as the test error."""

    def predicted(self, **grid):
        values = dict(super().predicted(**grid))
        return {**values, "test_error": values["excess_risk"]}


class VarianceForDeviation(Ridge):
    """The noise's standard deviation used as its variance."""

    def predicted(self, **grid):
        return super().predicted(**{**grid, "noise": np.sqrt(grid["noise"])})


class SumInsteadOfMean(Ridge):
    """The penalty of sum + lambda |b|^2 instead of mean + lambda |b|^2, here with n = 10."""

    def predicted(self, **grid):
        return super().predicted(**{**grid, "ridge": grid["ridge"] / 10})


class UpsideDownRatio(Ridge):
    """n/p for p/n."""

    def predicted(self, **grid):
        return super().predicted(**{**grid, "ratio": 1 / grid["ratio"]})


class NoFeedback(Ridge):
    """The ridge itself in place of the effective ridge, as if the sample covariance were the population's."""

    def predicted(self, **grid):
        values = dict(super().predicted(**grid))
        return {**values, "effective_ridge": self.ridge, "degrees_of_freedom": self.ratio / (1 + self.ridge)}


class SlowClock(EarlyStopping):
    """Time counted with the factor 2 of a loss without 1/2."""

    def predicted(self, **grid):
        return super().predicted(**{**grid, "times": grid["times"] / 2})


class EdgeWithoutRoot(MarchenkoPastur):
    """Edges (1 +- gamma)^2 in place of (1 +- sqrt gamma)^2."""

    def predicted(self, **grid):
        return {**super().predicted(**grid), "largest_eigenvalue": self.variance * (1 + self.ratio) ** 2}


class WrongSecondMoment(MarchenkoPastur):
    """Second moment 1 + 1/gamma in place of 1 + gamma."""

    def predicted(self, **grid):
        return {**super().predicted(**grid), "second_moment": self.variance**2 * (1 + 1 / self.ratio)}


class WrongExponent(NearestNeighbours):
    """Radii that shrink as n^(-2/d) in place of n^(-1/d)."""

    def predicted(self, **grid):
        return super().predicted(**{**grid, "smoothness": grid["smoothness"] / 2})


def _as(kind, law):
    return kind(**dict(law))


FLOW = EarlyStopping(ratio=0.5, noise=0.5, times=(0.5, 2.0, 8.0))
SPECTRUM = MarchenkoPastur(ratio=0.2)
CUSP = NearestNeighbours(samples=200, neighbours=5, dimension=2, smoothness=1.0, amplitude=1.5, noise=0.5)

FAULTS = [
    _as(FactorTwo, RIDGE),
    _as(HalfVariance, RIDGE),
    _as(HalfVariance, OVER),
    _as(MissingNoise, RIDGE),
    _as(MissingNoise, OVER),
    _as(VarianceForDeviation, RIDGE),
    _as(SumInsteadOfMean, RIDGE),
    _as(SumInsteadOfMean, OVER),
    _as(UpsideDownRatio, RIDGE),
    _as(NoFeedback, RIDGE),
    _as(SlowClock, FLOW),
    _as(EdgeWithoutRoot, SPECTRUM),
    _as(WrongSecondMoment, SPECTRUM),
    _as(WrongExponent, CUSP),
]
SOUND = [RIDGE, OVER, FLOW, SPECTRUM, CUSP]


@pytest.mark.parametrize("law", FAULTS, ids=lambda law: f"{type(law).__name__}-{getattr(law, 'ratio', '')}")
def test_fault_is_caught(law):
    assert ll.compare(law).verdict == "disagree"


@pytest.mark.parametrize("law", SOUND, ids=lambda law: f"{type(law).__name__}-{getattr(law, 'ratio', '')}")
def test_unmodified_law_raises_no_alarm_for_twenty_seeds(law):
    seeds = [range(1000 * number, 1000 * number + 20) for number in range(20)]
    verdicts = {some.start: ll.compare(law, law.simulation.sizes[:2], some) for some in seeds}
    assert not {seed: result.explanation for seed, result in verdicts.items() if result.verdict == "disagree"}
