"""Functions for any law, such as sweeps, comparisons, plans, claims, figures and stored results."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
