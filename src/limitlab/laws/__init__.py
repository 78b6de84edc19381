"""The laws: one file each, parameters, equations and experiment in that order.

The exports are listed in `__init__.pyi`, which readers, type checkers and the loader below all share. A law is imported when it is
first used, so that one law does not pay for the libraries of all the others.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
