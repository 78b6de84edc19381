# Written by `python -m limitlab._core.index`; do not edit.
"""Building blocks of experiments, such as activations, data distributions, data sets, networks and optimisers."""

from . import activations as activations
from . import attention as attention
from . import channels as channels
from . import data as data
from . import datasets as datasets
from . import designs as designs
from . import links as links
from . import logistic as logistic
from . import losses as losses
from . import online as online

__all__ = [
    "activations",
    "attention",
    "channels",
    "data",
    "datasets",
    "designs",
    "links",
    "logistic",
    "losses",
    "online",
]
