"""Approximation.

How well can random features, tangent features and trained networks represent a target in high dimension? The laws give the
unexplained share of a target of every polynomial degree, the errors for quadratic targets, and the error caused by a
finite number of neurons in a fixed dimension.
"""
