"""The laws, one folder per subject.

A name is imported when it is first used, so that one law does not load the libraries of all the others. The promised names
are those in the `__all__` of the modules. The stub `__init__.pyi` lists them. `python -m limitlab._core.index` writes this stub.
"""

from limitlab._core.lazy import attach_stub

__getattr__, __dir__, __all__ = attach_stub(__name__, __file__)
