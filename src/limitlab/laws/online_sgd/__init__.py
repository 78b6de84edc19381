"""Online SGD.

Stochastic gradient descent with a fresh sample at every step, in high dimension. The laws give the overlap with a hidden direction for
single-index models, PCA, mixtures, spiked tensors and XOR, the time that this takes, and least squares with all its schedules.
"""
