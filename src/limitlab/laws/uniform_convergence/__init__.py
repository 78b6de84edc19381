"""Uniform convergence.

How far can the training error and the test error of *any* model of a class be apart? The laws give the largest deviation over
linear models in high dimension, over finitely many models, and over thresholds on the line; functions give Rademacher complexities.
"""
