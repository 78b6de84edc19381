"""The names that the author of a law needs, re-exported from `limitlab._core`."""

from limitlab._core.cost import Cost
from limitlab._core.declaration import Experiment, observable, parameter, shared
from limitlab._core.draws import Draw
from limitlab._core.headline import Headline, Mark
from limitlab._core.law import Law, Values
from limitlab._core.registry import all_laws, find_law, load_laws
from limitlab._core.results import CLOSED_FORM
from limitlab.models.channels import CoefficientPrior, OutputChannel
from limitlab.numerics.spectra import Spectrum

__all__ = [
    "CLOSED_FORM",
    "CoefficientPrior",
    "Cost",
    "Draw",
    "Experiment",
    "Headline",
    "Law",
    "Mark",
    "OutputChannel",
    "Spectrum",
    "Values",
    "all_laws",
    "find_law",
    "load_laws",
    "observable",
    "parameter",
    "shared",
]
