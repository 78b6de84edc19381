"""Dynamics of two-layer networks.

The laws describe gradient flow and gradient descent of two-layer networks on a number of samples proportional to the number of weights.
They solve equations for correlation and response functions of two times. They give train and test error along training, the threshold of
interpolation, and the regimes of small and large width.
"""
