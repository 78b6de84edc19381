"""Spectra of sample covariances.

Eigenvalues of sample covariance matrices with as many features as samples: the Marchenko-Pastur law, any population spectrum, spikes, and
the smallest eigenvalue of square matrices.
"""
