"""The headline view of a law, which is the first picture that a reader sees of it.

Explorer, report, `limitlab figure LAW`, `predict --plot`, gallery and documentation draw the same view. A law declares it once:

    headline = Headline(
        "Worst exactly at one feature per sample",
        x="ratio", over=(0.1, 10.0, 161), scale="log", show=("test_error",),
        curves=("ridge", (1e-3, 1e-2, 0.1)), at=dict(noise=0.5),
        size=100, draws=6, places=(0.2, 0.5, 1.0, 2.0, 4.0), sliders=("ratio", "noise"),
        marks=(Mark("x", 1.0, "one feature per sample"),),
    )  # fmt: skip

A law without the declaration gets a view that is derived from its parameters. A headline view is an illustration. The verdict on a law
comes from `compare`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["Headline", "Mark"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Mark:
    """A landmark of a headline view, drawn as a grey line across the panel.

    Parameters
    ----------
    axis
        "x" for a vertical line, "y" for a horizontal line.
    value
        The position, or a function of the law that returns it. A landmark that is not finite is not drawn.
    label
        What is there, in a few words.
    each
        Whether every curve of the view has its own landmark.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> Mark("x", 1.0, "one feature per sample").position(Ridge())
    1.0
    """

    axis: Literal["x", "y"]
    value: float | Callable[[Any], float]
    label: str
    each: bool = False

    def position(self, law: Any) -> float:
        """Return the position of the landmark for a law."""
        return float(self.value(law) if callable(self.value) else self.value)


@dataclass(frozen=True)
class Headline:
    """The declaration of the headline view of a law.

    Parameters
    ----------
    finding
        What the view shows, in at most eight words. It is the title.
    x
        The parameter or coordinate on the horizontal axis, "size" for the size of the experiment, or (for a law with a method
        `headline_line`) the words of the axis.
    over
        Smallest value, largest value and number of values of the line.
    scale, y_scale
        Scales of the axes.
    whole
        Whether the values on the axis are whole numbers.
    show
        One or two observables.
    panels
        Whether two observables have different units, and so a panel each.
    curves
        A parameter and two or three of its values, each of which is a curve.
    at
        Parameters that differ from their defaults.
    size
        The size of every experiment. None makes the size equal to the value on the axis.
    draws
        Number of draws of every point.
    places
        Values on the axis at which experiments run.
    sliders
        Parameters that a reader should move first.
    marks
        Landmarks.

    Notes
    -----
    Three methods of a law replace parts of the view if the law has them: `headline_line(values)` returns observables along the axis,
    `headline_points(size, seeds, places)` returns draws as arrays of shape (seeds, places), and `headline_histogram(size, seed)`
    returns the samples of one draw, which are drawn as a histogram.

    Examples
    --------
    >>> view = Headline("More noise, larger error", x="noise", over=(0.0, 2.0, 5), show=("test_error",))
    >>> view.values().tolist()
    [0.0, 0.5, 1.0, 1.5, 2.0]
    """

    finding: str
    x: str
    over: tuple[float, float, int]
    show: tuple[str, ...]
    scale: Literal["linear", "log"] = "linear"
    y_scale: Literal["linear", "log"] = "linear"
    whole: bool = False
    panels: bool = False
    curves: tuple[str, tuple[Any, ...]] | None = None
    at: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None
    draws: int = 4
    places: tuple[float, ...] = ()
    sliders: tuple[str, ...] = ()
    marks: tuple[Mark, ...] = ()

    def values(self) -> Array:
        """Return the values on the horizontal axis at which the line is computed."""
        low, high, count = self.over
        grid = np.geomspace(low, high, count) if self.scale == "log" else np.linspace(low, high, count)
        return np.unique(np.round(grid)) if self.whole else grid


def headline_of(law: type[Any]) -> Headline:
    """Return the headline view that a law declares, or one that is derived from its declaration.

    The derived view shows the first observable along the first coordinate with several values, or else along the first number that the
    prediction takes as an array.

    >>> from limitlab.laws import Ridge
    >>> headline_of(Ridge).x
    'ratio'
    """
    declared: Headline | None = law.headline
    if declared is not None:
        return declared
    metas, show = law.parameters(), tuple(law.outputs())[:1]
    derived = Headline(law.title(), x="size", over=(10.0, 1000.0, 41), scale="log", show=show)
    for name, meta in metas.items():
        default = meta.default
        if meta.kind == "coordinate" and np.ndim(default) == 1 and len(default) > 1:
            return replace(derived, x=name, over=(float(min(default)), float(max(default)), 61), scale="linear")
        if name in law.array_parameters() and meta.kind == "physics" and isinstance(default, (int, float)):
            return replace(derived, x=name, scale=meta.scale, whole=isinstance(default, int), over=_around(default, meta))
    return derived


def _around(default: float, meta: Any) -> tuple[float, float, int]:
    """Return a range around a default that respects the bounds of a parameter."""
    reach = abs(default) or 1.0
    low, high = (reach / 10, reach * 10) if meta.scale == "log" else (default - reach, default + reach)
    inside = 1e-3 * reach
    low = max(
        [
            low,
            *(bound for bound in (meta.least,) if bound is not None),
            *(b + inside for b in (meta.above,) if b is not None),
        ]
    )
    high = min(
        [
            high,
            *(bound for bound in (meta.most,) if bound is not None),
            *(b - inside for b in (meta.below,) if b is not None),
        ]
    )
    return (low, high if math.isfinite(high) else low + 2 * reach, 61)
