"""Kernels and lazy training.

Infinitely wide networks train like kernel methods. Functions give their kernels for dense, convolutional and residual layers; the laws give
the deviation of finite networks from the kernel, the flow of the predictions, and certificates that training stays lazy.
"""
