"""Transformers as particles.

The tokens of a transformer move on a sphere and attract each other. The laws give the time at which they collapse to one point, the
share of pairs of tokens that have merged, the density of very many tokens on the circle, and the limit of infinitely many residual layers.
"""
