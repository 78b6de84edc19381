"""Loading of public names at first use, with `lazy_loader`. A misspelt name gets a hint."""

from __future__ import annotations

from collections.abc import Callable
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
