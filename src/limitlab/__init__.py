"""A laboratory for the limit laws of learning.

Every law can be predicted, simulated and compared:

>>> import limitlab as ll
>>> law = ll.laws.Ridge(ratio=2.0, ridge=0.1, noise=0.5)
>>> round(float(law.theory().test_error), 6)
0.936529

Names are loaded when they are first used, so that `import limitlab` is fast and loads neither JAX nor matplotlib nor scikit-learn.
"""

from __future__ import annotations

from typing import Any

from limitlab._core.lazy import attach_stub

_load, __dir__, __all__ = attach_stub(__name__, __file__)
__all__ = sorted([*__all__, "__version__"])


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("limitlab")
    if name not in __all__ and not name.startswith("_"):
        from limitlab import laws

        if name in laws.__all__:
            raise AttributeError(f"limitlab has no {name!r}: it is limitlab.laws.{name}")
    return _load(name)
