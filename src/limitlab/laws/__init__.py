"""The laws, one folder per subject.

A name is imported when it is first used, so that one law does not load the libraries of all the others. The modules promise the
names of their `__all__`; the stub `__init__.pyi` lists them and is written by `python -m limitlab._core.index`.
"""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
