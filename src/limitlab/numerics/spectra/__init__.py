"""Spectra of large covariance matrices (population spectra, and the spectra of sample covariance matrices with any of them)."""

from limitlab.numerics.spectra import marchenko_pastur as marchenko_pastur
from limitlab.numerics.spectra import silverstein as silverstein
from limitlab.numerics.spectra._population import Spectrum as Spectrum
from limitlab.numerics.spectra._sample import SampleSpectrum as SampleSpectrum

__all__ = ["SampleSpectrum", "marchenko_pastur", "silverstein"]
