"""Approximation."""
