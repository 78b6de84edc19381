"""Mathematics without reference to learning, for example Gaussian expectations, spectra, deterministic equivalents and roots."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
