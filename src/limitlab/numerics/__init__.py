"""Mathematics that knows nothing of learning: Gaussian expectations, spectra, deterministic equivalents, roots."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
