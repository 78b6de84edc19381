"""Online SGD.

Stochastic gradient descent in high dimension, mostly with a new sample at every step. The laws predict the overlap with a hidden
direction and the time to find it (single-index models, PCA, mixtures, spiked tensors, XOR), and the error of least squares.
"""
