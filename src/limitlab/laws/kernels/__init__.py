"""Kernels and lazy training.

Infinitely wide networks train like kernel methods. Functions give their kernels for dense, convolutional and residual layers. The laws
compare networks of finite width with the kernel, give the flow of the predictions, and certify that training stays lazy.
"""
