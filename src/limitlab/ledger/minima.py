"""Claims about global minima: which one is found depends on the start (L9); five layers with a squared hinge (L11)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Criterion, Number, above, agrees, at_least, below, between, near, true
from limitlab.lab.measures import effort, largest, sigmas, smallest, standard_error, words
from limitlab.laws.descent.least_squares import LeastSquaresDescent
from limitlab.laws.landscapes.double_descent import width_double_descent
from limitlab.laws.landscapes.minima import digits_minima
from limitlab.laws.regression.ridge import exact_ridgeless

_AREA = "Uniform convergence and real networks"

STARTS = ("random_start", "random_labels_start", "large_start", "wrong_start")


@claim(
    "L9",
    _AREA,
    "There are many global minima; the one that is reached depends on the start, and bad ones exist.",
    laws=("LeastSquaresDescent",),
    figure="global-minima",
)
def many_minima(quick: bool) -> Outcome:
    """Linear: the nearest interpolant and its exact error. A network on digits from four starts, all with zero train loss."""
    law = LeastSquaresDescent(ratio=1.5, start_distance=5**0.5, noise=0.5, steps=0)
    criteria: list[Criterion] = []
    for ratio, p in ((1.5, 60), (3.0, 120)):
        point = law.replace(ratio=ratio)
        runs = point.simulate_batch(p, range(60 if quick else 300)).excess_risk.values
        exact = exact_ridgeless(point.count("ratio", p), p, noise=0.5, signal_energy=5.0)["excess_risk"]
        criteria.append(
            below(
                f"excess risk at p/n = {ratio:g}, p = {p}, gap to its exact mean in standard errors",
                sigmas(runs, exact),
                4.0,
            )
        )
    comparison = compare(LeastSquaresDescent.check_points()[2], seeds=60 if quick else 200, **effort(quick))
    found = [digits_minima(seed=seed) for seed in range(3 if quick else 10)]
    errors = {name: np.array([getattr(one, name) for one in found]) for name in STARTS}
    means = {name: float(values.mean()) for name, values in errors.items()}
    ordered = [one.random_start < min(one.random_labels_start, one.large_start) < one.wrong_start for one in found]
    further = [one.distances[3] / one.distances[0] for one in found]
    measured: dict[str, Number] = {}
    for name in STARTS:
        measured[f"errors on test images, {words(name)}"] = means[name]
        measured[f"standard error, {words(name)}"] = standard_error(errors[name])
    return Outcome(
        (
            *criteria,
            agrees("descent from a start of its own", comparison),
            below("largest train loss of the networks, all starts", largest(loss for one in found for loss in one.train_losses), 1e-11),
            true("random start best and wrong start worst for every seed", all(ordered)),
            near("errors on test images from a random start", means["random_start"], 0.05, 0.04),
            near("errors on test images from a start with wrong labels of other images", means["wrong_start"], 0.58, 0.04),
            above("least distance of the worst end from the first start over that of the best", smallest(further), 2.0),
        ),
        measured,
        note="The network part is an observation on the digits; the errors of the middle two starts depend on the optimiser.",
    )  # fmt: skip


@claim(
    "L11",
    _AREA,
    "Five layers with quadratic hinge loss interpolate below p = n; the test loss peaks there and falls again (qualitative: the place of "
    "the threshold depends on the optimiser).",
    laws=("WidthDoubleDescent",),
    figure="five-layers",
)
def five_layers(quick: bool) -> Outcome:
    """A sweep of widths on the digits with wrong labels, Levenberg-Marquardt on the unsatisfied margins."""
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 16)
    samples, flips, seeds, iterations = 200, 0.2, 6, 200
    if not quick:
        widths, samples, flips, seeds, iterations = (2, 3, 4, 5, 6, 7, 8, 12, 20), 300, 0.1, 4, 300
    found = width_double_descent(widths, samples, flips, depth=5, loss="squared_hinge", seeds=seeds, iterations=iterations)
    ratio, test = found.parameters_over_samples.values, found.test_loss.median("seed").values
    train, done = found.train_loss.median("seed").values, (found.train_loss < 1e-11).mean("seed").values
    top, one = int(test.argmax()), int(np.argmin(np.abs(ratio - 1.02)))
    below_n = int(np.flatnonzero(ratio < 0.9)[-1])
    low, high = np.quantile(found.test_loss.values, [0.25, 0.75], axis=1)
    return Outcome(
        (
            above("median train loss at the smallest p/n above 0.2", float(train[ratio > 0.2][0]), 0.05),
            at_least(f"share of runs that interpolate at p/n = {ratio[below_n]:.2f}", float(done[below_n]), 0.3 if quick else 0.5),
            at_least(f"share of runs that interpolate at p/n = {ratio[one]:.2f}", float(done[one]), 0.5 if quick else 0.75),
            between("p/n at the peak of the test loss (median over seeds)", float(ratio[top]), 0.2, 1.1),
            above("test loss at the peak over that at the largest width", float(test[top] / test[-1]), 1.5 if quick else 2.0),
            above("test loss at the peak over that at the smallest width", float(test[top] / test[0]), 2.0),
        ),
        {
            "samples": samples,
            "seeds": seeds,
            "iterations": iterations,
            "test loss at the peak": float(test[top]),
            "its quartiles": f"{low[top]:.3g} to {high[top]:.3g}",
            "test loss at the largest width": float(test[-1]),
            "quartiles there": f"{low[-1]:.3g} to {high[-1]:.3g}",
        },
        note="Qualitative. More iterations move the threshold down; a second descent of the share of errors is not claimed.",
        decisive=not quick,
    )  # fmt: skip
