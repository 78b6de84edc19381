"""Kernels and lazy training."""
