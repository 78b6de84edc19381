"""Implicit bias of descent.

A least-squares problem with more unknowns than samples has many minimisers, and gradient descent selects one of them. The logistic loss of
separable data has no minimiser, and gradient descent diverges along a limiting direction. The laws give the selected minimiser for least
squares, and the direction and the residual of the weights for separable data.
"""
