"""Margins and classification."""
