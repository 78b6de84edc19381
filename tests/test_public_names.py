"""The public names are a promise: this file pins them, and checks that every one of them explains itself.

A name that is gone or renamed fails; a new one is welcome, and is pinned at a release with `python tests/test_public_names.py`, which
rewrites the list next to it.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import limitlab

PINNED = Path(__file__).with_name("public_names.txt")


def module_names() -> list[str]:
    """Every public module of the package."""
    walked = pkgutil.walk_packages(limitlab.__path__, prefix="limitlab.")
    return ["limitlab", *(found.name for found in walked if not any(part.startswith("_") for part in found.name.split(".")))]


def own(module: ModuleType) -> Iterator[tuple[str, Any]]:
    """Public functions and classes that a module defines itself, with their names."""
    for name, value in vars(module).items():
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isroutine(value)):
            continue
        if getattr(value, "__module__", None) == module.__name__:
            yield name, value


def public_names(module: ModuleType) -> list[str]:
    """What a module promises: its `__all__`, or else the public functions and classes that it defines."""
    return sorted(module.__all__) if hasattr(module, "__all__") else sorted(name for name, _ in own(module))


def promised_modules() -> list[str]:
    """The modules whose names are pinned: the verbs, the laws, the numerics, the contract suite."""
    return [
        name
        for name in module_names()
        if name in ("limitlab", "limitlab.laws", "limitlab.ledger", "limitlab.testing")
        or name.startswith("limitlab.numerics.")
    ]


def listing() -> str:
    """The list as it is committed: one line per name."""
    return "".join(
        f"{module}.{name}\n" for module in promised_modules() for name in public_names(importlib.import_module(module))
    )


def test_no_public_name_is_gone() -> None:
    gone = set(PINNED.read_text(encoding="utf-8").split()) - set(listing().split())
    assert not gone, f"gone: {sorted(gone)}; see the docstring of this file"


@pytest.mark.parametrize("package", ["limitlab.laws"])
def test_found_exports_are_what_the_files_say(package: str) -> None:
    """`__all__` of a package whose exports are found: every name comes from the module that lists it."""
    module = importlib.import_module(package)
    for name in module.__all__:
        home = importlib.import_module(module._HOMES[name])
        assert name in home.__all__
        assert getattr(module, name) is getattr(home, name)


def test_every_pinned_name_can_be_used() -> None:
    for line in PINNED.read_text(encoding="utf-8").split():
        module, name = line.rsplit(".", 1)
        assert getattr(importlib.import_module(module), name) is not None


@pytest.mark.parametrize("name", module_names())
def test_everything_public_has_a_docstring(name: str) -> None:
    module = importlib.import_module(name)
    assert (module.__doc__ or "").strip(), f"module {name} has no docstring"
    silent = []
    for label, value in own(module):
        if not (inspect.getdoc(value) or "").strip():
            silent.append(label)
        if inspect.isclass(value):
            members = ((key, member) for key, member in vars(value).items() if not key.startswith("_"))
            silent += [
                f"{label}.{key}"
                for key, member in members
                if isinstance(member, (property, classmethod, staticmethod)) or inspect.isfunction(member)
                if not (inspect.getdoc(getattr(value, key)) or "").strip()
            ]
    assert not silent, f"{name}: no docstring on {', '.join(silent)}"


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no_such_verb"):
        limitlab.no_such_verb  # noqa: B018


if __name__ == "__main__":
    PINNED.write_text(listing(), encoding="utf-8")
