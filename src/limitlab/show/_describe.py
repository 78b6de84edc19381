"""Descriptions of laws for the command line, with the spelling of parameters and an example."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from limitlab._core.law import Law


def kebab(name: str) -> str:
    """Return the spelling of a parameter on the command line.

    >>> kebab("width_ratio")
    'width-ratio'
    """
    return name.replace("_", "-")


def example(law: type[Law]) -> str:
    """Return a command that predicts this law in a sweep over its first array parameter.

    >>> from limitlab.laws import Ridge
    >>> example(Ridge)
    'limitlab predict Ridge --ratio 0.1:10:50log'
    """
    from limitlab._core.about import kind_of
    from limitlab._core.registry import law_id, laws_option, package_of

    metas, package = law.parameters(), package_of(law)
    load = laws_option(package.name) if package is not None else ""
    numbers = [
        name
        for name, meta in metas.items()
        if meta.kind in ("physics", "coordinate")
        and kind_of(law.model_fields[name].annotation) in ("number", "whole", "series")
    ]
    for name in sorted(numbers, key=lambda name: name not in law.array_parameters()):
        low, high, kind = span(metas[name].default, metas[name].scale)
        if metas[name].allows(low) and metas[name].allows(high):
            return f"limitlab predict {law_id(law)} --{kebab(name)} {low:g}:{high:g}:50{kind}{load}"
    return f"limitlab predict {law_id(law)}{load}"


def span(default: Any, scale: str) -> tuple[float, float, str]:
    """Return an interval around a default value, and its spacing."""
    from limitlab._core.checks import numbers_in

    value = next((abs(item) for item in numbers_in(default) if item), 1.0)
    if scale == "log":
        centre = 10.0 ** round(math.log10(value)) if 0 < value < math.inf else 1.0
        return centre / 10, centre * 10, "log"
    return 0.0, 2 * value, ""


def describe_law(law: type[Law]) -> dict[str, Any]:
    """Return the description of a law as a plain structure, for JSON."""
    from limitlab._core.about import allowed
    from limitlab._core.registry import law_id
    from limitlab.lab.claims import claims_of

    return {
        "name": law_id(law),
        "title": law.title(),
        "status": law.status,
        "regime": law.regime,
        "assumptions": law.assumptions,
        "references": law.references,
        "claims": claims_of(law),
        "observables": [
            {"name": name, "meaning": meta.long_name, "symbol": meta.symbol} for name, meta in law.outputs().items()
        ],
        "size_meaning": law.simulation.size_meaning,
        "parameters": [
            {
                "name": name,
                "symbol": meta.symbol,
                "default": meta.default,
                "allowed": allowed(law, name),
                "description": meta.description,
                "note": meta.note,
                "kind": meta.kind,
                "scale": meta.scale,
            }
            for name, meta in law.parameters().items()
        ],
        "example": example(law),
    }
