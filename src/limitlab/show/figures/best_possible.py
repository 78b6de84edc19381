"""The figure of the best possible error."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from limitlab.laws.classification.bayes_optimal import BayesOptimal
from limitlab.laws.classification.beside_best import BesideBest
from limitlab.laws.classification.channel_information import information, precision_of
from limitlab.laws.classification.channels import Channel, Prior
from limitlab.laws.classification.max_margin import MaxMargin
from limitlab.plotting.style import finish, new_figure, simulation_points, theory_line


def best_line(axes: Axes, law: BesideBest, label: str = "best possible", less: float = 0.0, **grid: ArrayLike) -> None:
    """The least error that any method can reach with a law's data: a level, or a line over the values of one parameter.

    `less` is subtracted: the noise's square turns test errors into excess risks.
    """
    found = law.gap_to_best(**grid).best_error - less
    if grid:
        axes.plot(next(iter(grid.values())), found, color="0.25", linewidth=1.6, linestyle="-.", label=label)
    else:
        axes.axhline(float(found), color="0.25", linewidth=1.6, linestyle="-.", label=label)


def best_possible(quick: bool = True) -> Figure:
    """Errors of sign labels beside the best possible, and all fixed points of phase retrieval and of +-1 coefficients."""
    figure, (left, right) = new_figure(columns=2)
    samples, few = np.geomspace(0.3, 10, 40), np.array([0.5, 1.0, 2.0, 4.0])
    law, seeds, size = BayesOptimal(channel="sign"), 10 if quick else 60, 200
    best = [float(law.replace(ratio=float(1 / x)).theory().classification_error) for x in samples]
    theory_line(left, samples, best, 0, "best possible")
    margin = [float(MaxMargin(ratio=float(1 / x)).theory().classification_error) for x in samples]
    theory_line(left, samples, margin, 1, "maximum margin", linestyle="--")
    runs = [law.replace(ratio=float(1 / x)).simulate_batch(size, range(seeds)).classification_error_gamp for x in few]
    errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
    simulation_points(left, few, [float(run.mean()) for run in runs], errors, 0, rf"message passing, $p={size}$")
    finish(left, "samples per coefficient $n/p$", "probability of a wrong label", "sign labels", xscale="log", yscale="log")
    q = np.linspace(0.002, 0.998, 150)
    cases = [
        (r"$|z|$, Gaussian", Channel("abs"), Prior("gaussian")),
        (r"sign, $\pm1$", Channel("sign"), Prior("rademacher")),
        (r"$\max(z,0)$, Gaussian", Channel("relu"), Prior("gaussian")),
    ]
    for index, (name, channel, prior) in enumerate(cases):
        alpha = [precision_of(prior, float(x)) / information(channel, float(x)) for x in q]
        theory_line(right, alpha, q, index, name)
    finish(
        right,
        "samples per coefficient $n/p$",
        "squared overlap $q$",
        "all fixed points; hard where a line turns back",
        xlim=(0, 2.2),
    )
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {"best-possible": best_possible}
