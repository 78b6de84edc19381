"""limitlab: a laboratory for the limit laws of learning.

Every law can be predicted, simulated and compared:

>>> import limitlab as ll
>>> law = ll.laws.Ridge(ratio=2.0, ridge=0.1, noise=0.5)
>>> round(float(law.theory().test_error), 6)
0.936529

Names are loaded when first used, so that `import limitlab` is quick and pulls in neither JAX nor matplotlib nor scikit-learn.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limitlab import applied, lab, laws, ledger, models, numerics, show, testing
    from limitlab._core.results import package_version
    from limitlab.applied.forecast import Forecast, ForecastClassifier
    from limitlab.applied.stopping import stop
    from limitlab.lab.compare import compare
    from limitlab.lab.figures import make_figure as figure
    from limitlab.lab.plan import optimal, plan
    from limitlab.lab.reproduce import reproduce
    from limitlab.lab.sweep import sweep
    from limitlab.show.explorer import explore

    __version__: str = package_version()

_MODULES = ("applied", "lab", "laws", "ledger", "models", "numerics", "show", "testing")
_HOMES = {
    "Forecast": "limitlab.applied.forecast",
    "ForecastClassifier": "limitlab.applied.forecast",
    "compare": "limitlab.lab.compare",
    "explore": "limitlab.show.explorer",
    "figure": "limitlab.show.figures",
    "optimal": "limitlab.lab.plan",
    "plan": "limitlab.lab.plan",
    "reproduce": "limitlab.lab.reproduce",
    "stop": "limitlab.applied.stopping",
    "sweep": "limitlab.lab.sweep",
}

__all__ = [
    "Forecast",
    "ForecastClassifier",
    "__version__",
    "applied",
    "compare",
    "explore",
    "figure",
    "lab",
    "laws",
    "ledger",
    "models",
    "numerics",
    "optimal",
    "plan",
    "reproduce",
    "show",
    "stop",
    "sweep",
    "testing",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"limitlab.{name}")
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), {"figure": "make_figure"}.get(name, name))
        globals()[name] = value
        return value
    if name == "__version__":
        from importlib.metadata import version

        return version("limitlab")
    if name.startswith("_"):
        raise AttributeError(f"module 'limitlab' has no attribute {name!r}")
    from limitlab import laws
    from limitlab.errors import did_you_mean

    where = "it is limitlab.laws." + name if name in laws.__all__ else did_you_mean(name, __all__)
    raise AttributeError(f"limitlab has no {name!r}: {where}")


def __dir__() -> list[str]:
    return __all__
