"""The list of laws that a visitor can choose from: by subject, filtered by words."""

from __future__ import annotations

from collections.abc import Mapping

from limitlab._core.law import Law
from limitlab._core.registry import all_laws, subject_of
from limitlab.show.explorer._declared import axes_of, curves_of


def explorable() -> dict[str, type[Law]]:
    """The laws that have a number to draw along and something to draw.

    >>> "Ridge" in explorable()
    True
    """
    return {name: law for name, law in all_laws().items() if axes_of(law) and curves_of(law())}


def matching(laws: Mapping[str, type[Law]], words: str) -> dict[str, list[str]]:
    """The laws about which every word is said somewhere (in name, question, subject, regime, parameters or observables), by subject.

    >>> from limitlab.laws import OnlinePCA, Ridge
    >>> matching({"Ridge": Ridge, "OnlinePCA": OnlinePCA}, "ridge penal")
    {'Regression': ['Ridge']}
    """
    wanted = words.lower().split()
    found: dict[str, list[str]] = {}
    for name, law in laws.items():
        if all(word in _said(law) for word in wanted):
            found.setdefault(subject_of(law), []).append(name)
    return dict(sorted(found.items()))


def listed(found: Mapping[str, list[str]]) -> tuple[dict[str, str], list[str]]:
    """Entries of a list with a heading per subject, and the headings, which cannot be chosen.

    >>> listed({"Regression": ["Ridge"]})
    ({'REGRESSION': '# Regression', 'Ridge': 'Ridge'}, ['# Regression'])
    """
    entries: dict[str, str] = {}
    for subject, names in found.items():
        entries |= {subject.upper(): f"# {subject}", **{name: name for name in names}}
    return entries, [value for value in entries.values() if value.startswith("# ")]


def _said(law: type[Law]) -> str:
    parameters = [f"{name} {meta.words}" for name, meta in law.parameters().items()]
    observables = [f"{name} {meta.long_name}" for name, meta in law.outputs().items()]
    return " ".join([law.__name__, law.title(), subject_of(law), law.regime, *parameters, *observables]).lower()
