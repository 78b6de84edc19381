"""What is drawn and trained: activations, data distributions and data sets, networks, optimisers."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
