"""The claims about spectra can fail: each notices a fault planted in what it tests."""

import numpy as np

from limitlab.laws import MarchenkoPastur
from limitlab.laws.spectra import _claims as spectra
from limitlab.numerics.spectra import marchenko_pastur as numerics

LAW, CONCENTRATION, EDGES = spectra.law_of_eigenvalues, spectra.concentration, spectra.edges


def test_law_of_a_wrong_ratio_is_noticed(monkeypatch):
    monkeypatch.setattr(MarchenkoPastur, "cdf", lambda self, x: numerics.cdf(x, 1.05 * self.ratio, self.variance))
    assert not LAW.run(quick=True).passed


def test_single_square_root_is_noticed(monkeypatch):
    def one_root(self, z):
        low, high = numerics.edges(self.ratio)
        return (1 - self.ratio - z + np.sqrt((z - low) * (z - high))) / (2 * self.ratio * z)

    monkeypatch.setattr(MarchenkoPastur, "stieltjes", one_root)
    assert not LAW.run(quick=True).passed


def test_slow_concentration_is_noticed(monkeypatch):
    honest = spectra._transform_spread

    def slow(law, size, draws, heights):
        return honest(law, size, draws, heights) * np.sqrt(size)

    monkeypatch.setattr(spectra, "_transform_spread", slow)
    assert not CONCENTRATION.run(quick=True).passed


def test_wrong_cumulant_is_noticed(monkeypatch):
    """Heavier entries than the formula is told: signs that are zero half of the time, with the same variance."""
    honest = np.random.default_rng

    class Heavy:
        def __init__(self, seed):
            self.rng = honest(seed)

        def standard_normal(self, shape):
            return np.sqrt(8) * self.rng.choice([-1, 0, 1], size=shape, p=[1 / 16, 7 / 8, 1 / 16])

        def integers(self, low, high, shape):
            return self.rng.integers(low, high, shape)

    monkeypatch.setattr(spectra.np.random, "default_rng", Heavy)
    ratios, error, _ = spectra._form_spread("gaussian", (50, 200), 1000)
    assert np.max(np.abs(ratios - 1) / error) > 5


def test_edges_off_by_two_per_cent_are_noticed(monkeypatch):
    honest = spectra.extreme_eigenvalues
    monkeypatch.setattr(spectra, "extreme_eigenvalues", lambda *arguments: tuple(1.02 * end for end in honest(*arguments)))
    assert not EDGES.run(quick=True).passed
