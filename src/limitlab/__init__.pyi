"""limitlab: a laboratory for the limit laws of learning."""

from . import applied as applied
from . import errors as errors
from . import lab as lab
from . import laws as laws
from . import models as models
from . import numerics as numerics
from . import plotting as plotting
from . import show as show
from . import testing as testing
from ._core.files import checkpointing as checkpointing
from ._core.cost import limits as limits
from ._core.registry import load_laws as load_laws
from .applied.forecast import Forecast as Forecast
from .applied.forecast import ForecastClassifier as ForecastClassifier
from .applied.stopping import stop as stop
from .lab._compare import compare as compare
from .lab._plan import optimal as optimal
from .lab._plan import plan as plan
from .lab._reproduce import reproduce as reproduce
from .lab._sweep import sweep as sweep
from .lab.store import caching as caching
from .lab.figures import figure as figure
from .lab.claims import verify as verify
from .numerics.spectra import Spectrum as Spectrum
from .show.explorer import explore as explore

__version__: str
__all__ = [
    "Forecast",
    "ForecastClassifier",
    "Spectrum",
    "__version__",
    "applied",
    "caching",
    "checkpointing",
    "compare",
    "errors",
    "explore",
    "figure",
    "lab",
    "laws",
    "limits",
    "load_laws",
    "models",
    "numerics",
    "optimal",
    "plan",
    "plotting",
    "reproduce",
    "show",
    "stop",
    "sweep",
    "testing",
    "verify",
]
