"""Transformers as particles."""
