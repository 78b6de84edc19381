# Written by `python -m limitlab._core.index`; do not edit.
"""Mathematics without reference to learning, for example Gaussian expectations, spectra, deterministic equivalents and roots."""

from . import equivalents as equivalents
from . import gaussian as gaussian
from . import lanczos as lanczos
from . import margin as margin
from . import ode as ode
from . import roots as roots
from . import special as special
from . import spectra as spectra
from . import sphere as sphere
from . import two_time as two_time

__all__ = [
    "equivalents",
    "gaussian",
    "lanczos",
    "margin",
    "ode",
    "roots",
    "special",
    "spectra",
    "sphere",
    "two_time",
]
