"""Names of limitlab that are known before the modules that define them are imported.

Public names are loaded at first use, with `lazy_loader`. Built-in laws, claims and figures are listed in `index.json`. `import
limitlab` and the help page of the command line import this module, so it must not import NumPy or pydantic.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import lazy_loader

from limitlab.errors import did_you_mean


def attach_stub(package: str, file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a package whose names are listed in its stub, `__init__.pyi`.

    >>> import limitlab.laws
    >>> limitlab.laws.Rigde
    Traceback (most recent call last):
        ...
    AttributeError: limitlab.laws has no 'Rigde': did you mean 'Ridge'?
    """
    load, _, names = lazy_loader.attach_stub(package, file)

    def get(name: str) -> Any:
        if name in names:
            return load(name)
        hint = "" if name.startswith("_") else f": {did_you_mean(name, names)}"
        raise AttributeError(f"{package} has no {name!r}{hint}")

    return get, lambda: sorted(names), sorted(names)


@functools.cache
def index() -> dict[str, dict[str, Any]]:
    """Return the built-in laws, claims and figures with the modules that define them.

    >>> index()["laws"]["Ridge"]
    'limitlab.laws.regression.ridge'
    """
    content: dict[str, dict[str, Any]] = json.loads((files("limitlab") / "_core" / "index.json").read_text(encoding="utf-8"))
    return content
