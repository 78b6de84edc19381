"""The figures by id. A figure is imported only when it is drawn.

A module with figures lists the functions that draw them in the dictionary `FIGURES`. The dictionary `ITEMS` of the module names the items
of the lecture notes that a figure covers, as in `ITEMS = {"ridge-double-descent": ("J-7",)}`.
"""

from __future__ import annotations

import importlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from limitlab._core.arguments import explained
from limitlab._core.lazy import index
from limitlab._core.registry import find_law, packages
from limitlab.errors import Refused, did_you_mean

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from limitlab._core.law import Law

    Draw = Callable[[bool], Figure]

__all__ = ["all_figures", "animate", "describe_figures", "figure", "find_figure"]


@explained
def figure(name: str, quick: bool = True) -> Figure:
    """Draw a figure by its id, by the id of a claim that it shows, or by the name of a law.

    Parameters
    ----------
    name
        Id of the figure, or of a claim that has a figure. The id of a figure of another package is `package:id`. The name of a law, such
        as `Ridge`, draws its headline view.
    quick
        Whether to use small experiments (seconds) or larger ones.

    Examples
    --------
    >>> figure("hermite-series")                                     # doctest: +ELLIPSIS
    <Figure size ...>
    >>> figure("EquiangularTokens")                                  # doctest: +ELLIPSIS
    <Figure size ...>
    """
    try:
        drawing = _drawing(find_figure(name))
    except Refused:
        law = _law_named(name)
        if law is None:
            raise
        from limitlab.plotting.headline import headline_view

        return headline_view(law).figure()
    return drawing(quick)


def _law_named(name: str) -> type[Law] | None:
    """Return the law with a name, or None if there is none."""
    try:
        return find_law(name)
    except ValueError:
        return None


@explained
def all_figures() -> dict[str, Draw]:
    """Return a dictionary from the id of every figure to the function that draws it.

    The function is called with True for small experiments and with False for larger experiments.

    >>> "ridge-double-descent" in all_figures()
    True
    """
    return {name: _drawing(name) for name in describe_figures()}


@explained
def describe_figures() -> dict[str, str]:
    """Return the description of every figure in one line, by id. For built-in figures nothing is imported.

    >>> describe_figures()["marchenko-pastur"]
    'Draw histograms of sample eigenvalues and the Marchenko-Pastur density, for three ratios.'
    """
    builtin = {name: str(entry["shows"]) for name, entry in index()["figures"].items()}
    return builtin | {name: (inspect.getdoc(draw) or name).split("\n")[0] for name, draw in _foreign("FIGURES").items()}


def items_of_figures() -> dict[str, tuple[str, ...]]:
    """Return the ids of the items of the lecture notes that every figure covers. For built-in figures nothing is imported."""
    builtin = {name: tuple(entry["items"]) for name, entry in index()["figures"].items()}
    return builtin | {name: tuple(items) for name, items in _foreign("ITEMS").items()}


@explained
def find_figure(name: str) -> str:
    """Return the id of a figure, from its id with - or _, or from the id of a claim that it shows.

    >>> find_figure("ridge_double_descent"), find_figure("j5")
    ('ridge-double-descent', 'marchenko-pastur')
    """
    from limitlab.lab.claims import find_claims

    known = describe_figures()
    spelt = {figure_id.lower().replace("_", "-"): figure_id for figure_id in known}
    wanted = name.lower().replace("_", "-")
    if wanted in spelt:
        return spelt[wanted]
    same = [figure_id for short, figure_id in spelt.items() if short.partition(":")[2] == wanted]
    if len(same) > 1:
        raise Refused(f"figure {name!r} is ambiguous: write one of {', '.join(sorted(same))}")
    if same:
        return same[0]
    try:
        (claim,) = find_claims([name])
    except ValueError as error:
        if "ambiguous" in str(error):
            raise
        raise Refused(f"there is no figure {name!r}: {did_you_mean(name, known)}") from None
    if claim.figure is None or claim.figure not in known:
        raise Refused(f"claim {claim.id} has no figure: `limitlab figure --list` lists all figures")
    return claim.figure


@explained
def animate(name: str, path: str | os.PathLike[str], **options: Any) -> Path:
    """Write the animation that belongs to a figure, as a GIF or as an HTML page with controls, and return its path.

    Parameters
    ----------
    name
        Id of the figure: `tokens-on-sphere`, `two-gaussians`, or one of another author.
    path
        The file to write; its name ends in `.gif` or `.html`.
    options
        Options of that animation, such as `frames=60` and `seed=0`.
    """
    known: dict[str, Callable[..., Any]] = dict(_foreign("ANIMATIONS"))
    for figure_id, entry in index()["figures"].items():
        if entry["animated"]:
            known[figure_id] = importlib.import_module(entry["module"]).ANIMATIONS[figure_id]
    if name not in known:
        raise Refused(f"there is no animation {name!r}: {did_you_mean(name, known)}")
    return Path(known[name](path, **options))


def _drawing(name: str) -> Draw:
    """Return the function that draws a figure. Only its module is imported."""
    entry = index()["figures"].get(name)
    drawings = importlib.import_module(entry["module"]).FIGURES if entry else _foreign("FIGURES")
    return drawings[name]


def _foreign(table: str) -> dict[str, Any]:
    """Return the figures of packages and files of other authors, by id."""
    drawings: dict[str, Any] = {}
    for package in packages().values():
        for module in package.modules("_figures"):
            drawings |= {f"{package.name}:{name}": draw for name, draw in getattr(module, table, {}).items()}
    return drawings
