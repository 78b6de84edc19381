"""Figure of the Gaussian averages: Hermite series of activations."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from limitlab.models.activations import Activation, hermite, moments
from limitlab.plotting.style import COLOURS, MARKERS, finish, new_figure, theory_line

ACTIVATIONS = ("relu", "abs", "gelu", "tanh", "erf")


def hermite_series(quick: bool = True) -> Figure:
    """Squared Hermite coefficients of five activations, and the share of their second moment beyond each degree."""
    figure, (left, right) = new_figure(columns=2)
    degrees = np.arange(61 if quick else 121)
    for index, name in enumerate(ACTIVATIONS):
        squares = hermite(Activation(name), int(degrees[-1])) ** 2
        seen = (squares > 1e-20) & (degrees > 0)
        style: dict[str, Any] = dict(color=COLOURS[index], marker=MARKERS[index], markersize=4)
        left.plot(degrees[seen], squares[seen], linewidth=1, label=name, **style)
        whole = moments(Activation(name))
        beyond = 1 - np.cumsum(squares) / (whole.mean**2 + whole.linear**2 + whole.nonlinear**2)
        shown = beyond > 1e-12
        theory_line(right, degrees[shown][1:], beyond[shown][1:], index, name)
    finish(
        left,
        "degree $k$",
        "squared coefficient $u_k^2$",
        "kinks make slow tails",
        xscale="log",
        yscale="log",
        ylim=(1e-12, 2),
    )
    finish(
        right,
        "degree $K$",
        r"$1-\sum_{k\leq K}u_k^2\,/\,\mathbb{E}\,s(Z)^2$",
        "what the series misses",
        yscale="log",
        ylim=(1e-12, 2),
    )
    return figure


FIGURES = {"hermite-series": hermite_series}
