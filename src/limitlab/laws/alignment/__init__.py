"""Spectral alignment."""
