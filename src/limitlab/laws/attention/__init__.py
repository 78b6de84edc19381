"""Transformers as particles.

The tokens of a transformer move on a sphere and attract each other. The laws give the time at which they collapse to one point, the
probability of clusters, the densities on the circle, and the limit of infinitely many residual layers.
"""
