"""Finding laws by name or by subject: whatever `limitlab.laws` exports, spelt the way the user likes."""

from __future__ import annotations

import importlib

import limitlab.laws
from limitlab._core.draws import is_builtin
from limitlab._core.law import Law
from limitlab.errors import did_you_mean


def all_laws() -> dict[str, type[Law]]:
    """Every law that `limitlab.laws` exports, by class name.

    >>> "Ridge" in all_laws()
    True
    """
    return {name: law for name in limitlab.laws.__all__ if (law := _law(name)) is not None}


def find_law(name: str) -> type[Law]:
    """The law of this name; `marchenko-pastur`, `marchenko_pastur` and `MarchenkoPastur` are the same. Only it is imported.

    >>> find_law("early-stopping").__name__
    'EarlyStopping'
    """
    exported = {_letters(known): known for known in limitlab.laws.__all__ if known[0].isupper()}
    law = _law(exported.get(_letters(name), ""))
    if law is None:
        raise ValueError(f"there is no law {name!r}: {did_you_mean(name, all_laws())}")
    return law


def subject_of(law: type[Law]) -> str:
    """The subject under which a law is filed: the first line of its package's docstring.

    >>> subject_of(find_law("ridge"))
    'Regression'
    """
    if not is_builtin(law):
        return "Laws of your own"
    package = law.__module__.rpartition(".")[0]
    return (importlib.import_module(package).__doc__ or package).split("\n")[0].rstrip(".")


def laws_by_subject() -> dict[str, list[type[Law]]]:
    """The laws of every subject, subjects in alphabetical order."""
    grouped: dict[str, list[type[Law]]] = {}
    for law in all_laws().values():
        grouped.setdefault(subject_of(law), []).append(law)
    return dict(sorted(grouped.items()))


def _law(name: str) -> type[Law] | None:
    """The exported law of this exact name, or None if there is none."""
    value = getattr(limitlab.laws, name, None) if name else None
    return value if isinstance(value, type) and issubclass(value, Law) and value is not Law else None


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
