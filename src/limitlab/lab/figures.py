"""The figures behind the claims, by id; each subject file lists its own. Nothing is imported until a figure is asked for."""

from __future__ import annotations

import functools
import importlib
import inspect
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from limitlab.errors import did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@functools.cache
def all_figures() -> dict[str, Callable[[bool], Figure]]:
    """Every figure by id: a function that draws it, from small experiments (True) or larger ones (False).

    They are found in the files beside this one: whatever is in a file's `FIGURES`.

    >>> "ridge-double-descent" in all_figures()
    True
    """
    found: dict[str, Callable[[bool], Figure]] = {}
    for file in pkgutil.iter_modules(__path__, f"{__name__}."):
        for name, draw in getattr(importlib.import_module(file.name), "FIGURES", {}).items():
            if name in found:
                raise ImportError(f"figure {name!r} is drawn twice")
            found[name] = draw
    return found


def describe_figures() -> dict[str, str]:
    """What every figure shows: the first line of its docstring, by id."""
    return {name: (inspect.getdoc(draw) or name).split("\n")[0] for name, draw in all_figures().items()}


def find_figure(name: str) -> str:
    """The id of a figure, from the id spelt with - or _, or from the id of a claim that it shows.

    >>> find_figure("ridge_double_descent")
    'ridge-double-descent'
    """
    figures = all_figures()
    spelt = {known.lower().replace("_", "-"): known for known in figures}
    wanted = name.lower().replace("_", "-")
    if wanted in spelt:
        return spelt[wanted]
    from limitlab.ledger import all_claims

    claim = all_claims().get(name.upper())
    if claim is None:
        raise ValueError(f"there is no figure {name!r}: {did_you_mean(name, figures)}")
    if claim.figure is None or claim.figure not in figures:
        raise ValueError(f"claim {claim.id} has no figure: `limitlab figure --list` lists those there are")
    return claim.figure


def make_figure(name: str, quick: bool = True) -> Figure:
    """Draw a figure by id.

    Parameters
    ----------
    name
        Id of the figure, or of a claim that has one.
    quick
        Small experiments (seconds) or larger ones.
    """
    return all_figures()[find_figure(name)](quick)
