"""Implicit bias of descent."""
