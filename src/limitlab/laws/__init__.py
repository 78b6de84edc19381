"""The laws: one file each, declaration, equations and experiment in that order, grouped by subject.

A law is exported by the `__all__` of its own file and imported when it is first used, so that one law does not pay for the
libraries of all the others.
"""

from limitlab._core.draws import Draw as Draw
from limitlab._core.exports import found, lazily
from limitlab._core.law import Law as Law
from limitlab._core.law import Values as Values
from limitlab._core.observables import observable as observable
from limitlab._core.observables import shared as shared
from limitlab._core.parameters import parameter as parameter

_HOMES = found(__name__, __path__)
__all__ = sorted(_HOMES)
__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
