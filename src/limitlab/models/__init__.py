"""Building blocks of experiments, such as activations, data distributions, data sets, networks and optimisers."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
