"""Scaling laws.

The loss as a power law of width, samples, steps and compute. The laws derive the exponents from power-law spectra, and compute the least
loss at a given compute.
"""
