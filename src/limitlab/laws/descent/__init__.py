"""Implicit bias of descent.

A problem with many minimisers, or with none, leaves open which solution gradient descent finds. The laws give the limit for least squares,
and the direction and the residual of the weights for separable data.
"""
