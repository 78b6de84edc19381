"""What works for any law: sweeps, comparisons, plans, claims, figures, stored results."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
