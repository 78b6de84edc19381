"""Spectral alignment.

The laws describe the spectra of the test Hessian and of the second moment of the gradients during SGD on a mixture of Gaussians and on
the XOR mixture. An outlier is an eigenvalue outside the continuous part (bulk) of such a spectrum. The laws give the number and the
positions of the outliers, and the alignment of the weights with their eigenvectors.
"""
