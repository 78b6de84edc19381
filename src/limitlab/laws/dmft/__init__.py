"""Dynamics of two-layer networks.

Gradient flow and descent of two-layer networks on as many samples as weights, followed by equations for correlation and response functions
of two times. The laws give train and test error along training, the threshold of interpolation, and the regimes of small and large width.
"""
