"""Uniform convergence and real networks."""
