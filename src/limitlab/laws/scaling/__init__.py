"""Scaling laws.

Loss as a power law of width, samples, steps and compute. The laws derive the exponents from power-law spectra and give the frontier of the
best loss at a given compute.
"""
