"""Spectra of large sample covariance matrices (the Marchenko-Pastur law and its extension to any population spectrum)."""

from limitlab.numerics.spectra import marchenko_pastur as marchenko_pastur
from limitlab.numerics.spectra import silverstein as silverstein
from limitlab.numerics.spectra._sample import SampleSpectrum as SampleSpectrum

__all__ = ["SampleSpectrum", "marchenko_pastur", "silverstein"]
