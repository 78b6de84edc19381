"""Spectra of sample covariances."""
