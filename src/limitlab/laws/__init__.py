"""The laws: one file each, parameters, equations and experiment in that order."""

from limitlab.laws.base import Law as Law
from limitlab.laws.parameters import parameter as parameter
from limitlab.laws.regression.nearest_neighbours import NearestNeighbours as NearestNeighbours
from limitlab.laws.regression.singular_kernel import SingularKernelSmoother as SingularKernelSmoother

__all__ = [
    "Law",
    "NearestNeighbours",
    "SingularKernelSmoother",
    "parameter",
]
