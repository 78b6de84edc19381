"""The laws: one file each, parameters, equations and experiment in that order."""

from limitlab.laws.base import Law as Law
from limitlab.laws.parameters import parameter as parameter

__all__ = [
    "Law",
    "parameter",
]
