"""Spectra of sample covariances.

Eigenvalues of sample covariance matrices whose number of features is comparable to the number of samples. The laws are the
Marchenko-Pastur law, the spectrum for any population with spikes, and the smallest eigenvalue of square matrices.
"""
