"""Dynamics of two-layer networks."""
