"""Tools that apply the laws to your own data or network.

They forecast learning curves, find when to stop training, plan the size of studies, fit scaling laws and compute Hessian spectra.
"""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
