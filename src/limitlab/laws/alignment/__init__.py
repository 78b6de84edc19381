"""Spectral alignment.

SGD on a classification problem aligns the weights of a network with the outliers of the Hessian and of the gradient covariance. The laws
give the overlaps in the course of training, the spectra of both matrices for a mixture of Gaussians and for XOR, and how many eigenvalues
leave the bulk.
"""
