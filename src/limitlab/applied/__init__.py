"""Tools that use the laws on your own data or network: learning curves, when to stop training, sizes of studies, Hessian spectra."""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
