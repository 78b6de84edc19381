"""The laws: one file each, declaration, equations and experiment in that order, grouped by subject.

A law is exported by the `__all__` of its own file and imported when it is first used, so that one law does not pay for the
libraries of all the others.
"""

from limitlab.exports import found, lazily
from limitlab.laws.base import Law as Law
from limitlab.laws.base import Values as Values
from limitlab.laws.draws import Draw as Draw
from limitlab.laws.observables import observable as observable
from limitlab.laws.observables import shared as shared
from limitlab.laws.parameters import parameter as parameter

_HOMES = found(__name__, __path__)
__all__ = sorted(_HOMES)
__getattr__ = lazily(__name__, _HOMES)


def __dir__() -> list[str]:
    return __all__
