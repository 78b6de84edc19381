"""Exports that are found, not listed: a package exports what the `__all__` of its files name.

A file of such a package says once what it gives to the outside; nothing else has to be edited. Nothing is imported to find out.
"""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from limitlab.errors import did_you_mean

_ALL = re.compile(r"^__all__ = (\[.*?\])", re.MULTILINE | re.DOTALL)


def found(package: str, folders: Iterable[str]) -> dict[str, str]:
    """Exported names and the modules that define them, from the text of the package's files.

    >>> import limitlab.laws
    >>> found("limitlab.laws", limitlab.laws.__path__)["Ridge"]
    'limitlab.laws.regression.ridge'
    """
    homes: dict[str, str] = {}
    for folder in map(Path, folders):
        for path in sorted(folder.rglob("*.py")):
            listed = (
                _ALL.search(path.read_text(encoding="utf-8")) if path.parent != folder or path.stem != "__init__" else None
            )
            if listed is None:
                continue
            parts = [part for part in path.relative_to(folder).with_suffix("").parts if part != "__init__"]
            for name in ast.literal_eval(listed[1]):
                if name in homes:
                    raise ImportError(f"{name!r} is exported twice: by {homes[name]} and by {'.'.join([package, *parts])}")
                homes[name] = ".".join([package, *parts])
    return dict(sorted(homes.items()))


def lazily(package: str, homes: dict[str, str]) -> Callable[[str], Any]:
    """A module's `__getattr__` that imports a name's home when the name is first used."""

    def get(name: str) -> Any:
        if name not in homes:
            hint = "" if name.startswith("_") else f": {did_you_mean(name, homes)}"
            raise AttributeError(f"{package} has no {name!r}{hint}")
        value = getattr(importlib.import_module(homes[name]), name)
        setattr(importlib.import_module(package), name, value)
        return value

    return get


def stub(package: str, homes: dict[str, str]) -> str:
    """The exports as a stub file, for readers and type checkers."""
    lines = [f"from {home} import {name} as {name}" for name, home in homes.items()]
    head = f'"""What `{package}` exports. Written when the package is installed; the names are found in its files."""'
    return "\n".join([head, "", *lines, "", "__all__: list[str]", ""])
