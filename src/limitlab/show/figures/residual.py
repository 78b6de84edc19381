"""Figure of the residual of descent on separable data."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.descent.logistic import LogisticDescent
from limitlab.ledger.support_vectors import separable_data_sets
from limitlab.plotting.style import COLOURS, MARKERS, finish, new_figure, theory_line


def residual(quick: bool = True) -> Figure:
    """The residual of w(t) in the span of the support vectors falls like a power of t; across it, it settles."""
    figure, (left, right) = new_figure(columns=2)
    times = np.linspace(5, 100, 60 if quick else 200)
    for index, (X, y) in zip(range(4), separable_data_sets(), strict=False):
        law = LogisticDescent.from_data(X, y)
        found = law.residual(times)
        inside = np.array([law.flow.in_span(one) for one in found])
        size, across = np.linalg.norm(inside, axis=1), np.linalg.norm(found - inside, axis=1)
        seen = size > 1e-9
        options: dict[str, Any] = {
            "color": COLOURS[index],
            "marker": MARKERS[index],
            "markevery": 6,
            "linestyle": "",
            "fillstyle": "none",
        }
        left.plot(times[seen], size[seen], label=rf"$|S|={law.support.size}$, $\varrho={law.residual_rate:.3f}$", **options)
        last = np.flatnonzero(seen)[-1]
        line = size[last] * np.exp(-law.residual_rate * (times - times[last]))
        theory_line(left, times[times > 30 * seen.mean()], line[times > 30 * seen.mean()], index, linewidth=1.2)
        right.plot(times, across, **options)
    finish(
        left,
        r"$\log t$",
        r"$|P_S(w-\hat w\log t-\tilde w)|$",
        r"lines: $t^{-\varrho}$ through the last point",
        yscale="log",
        ylim=(1e-9, 30),
    )
    finish(right, r"$\log t$", r"part across the span of $S$", "four data sets, $n=9$, $p=6$")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"residual": residual}
