"""Finding laws by name: whatever `limitlab.laws` exports, spelt the way the user likes."""

from __future__ import annotations

import limitlab.laws
from limitlab.errors import did_you_mean
from limitlab.laws.base import Law


def all_laws() -> dict[str, type[Law]]:
    """Every law that `limitlab.laws` exports, by class name, in the order of the exports.

    >>> "Ridge" in all_laws()
    True
    """
    exported = ((name, getattr(limitlab.laws, name)) for name in limitlab.laws.__all__)
    return {name: law for name, law in exported if isinstance(law, type) and issubclass(law, Law) and law is not Law}


def find_law(name: str) -> type[Law]:
    """The law of this name; `marchenko-pastur`, `marchenko_pastur` and `MarchenkoPastur` are the same.

    >>> find_law("early-stopping").__name__
    'EarlyStopping'
    """
    laws = all_laws()
    spelt = {_letters(known): law for known, law in laws.items()}
    if _letters(name) in spelt:
        return spelt[_letters(name)]
    raise ValueError(f"there is no law {name!r}: {did_you_mean(name, laws)}")


def _letters(name: str) -> str:
    return name.replace("-", "").replace("_", "").lower()
