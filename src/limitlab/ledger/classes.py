"""Claims about classes of classifiers: finitely many models (L6), infinite classes (L7), the perceptron (L8)."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Criterion, Number, agrees, at_most, below, between, equal, near, true
from limitlab.lab.measures import effort, largest, log_slope, standard_error
from limitlab.laws.classification.perceptron import Perceptron, perceptron_mistakes
from limitlab.laws.uniform_convergence.finite_class import FiniteClass
from limitlab.laws.uniform_convergence.halfplanes import largest_imbalance
from limitlab.laws.uniform_convergence.thresholds import ThresholdClass, dichotomies
from limitlab.numerics.margin import hard_margin

_AREA = "Uniform convergence and real networks"

Array = NDArray[np.float64]


@claim(
    "L6",
    _AREA,
    "One fixed model deviates by n^(-1/2); the worst of M models by sqrt(2 log(2M)/n), to leading order.",
    laws=("FiniteClass",),
    figure="classes",
)
def finite_class(quick: bool) -> Outcome:
    """The mean of the largest of M deviations against the exact law, over n, M and the error rate; the rate in n of one model."""
    sizes, numbers, repeats = (200, 2000, 20_000), (1, 10, 100, 1000), 1 if quick else 8
    criteria: list[Criterion] = []
    for p, models in ((0.5, 10), (0.5, 1000), (0.1, 100), (0.1, 1000)):
        law = FiniteClass(models=models, error_rate=p)
        limit, worst = float(law.theory().largest_deviation), 0.0
        for n in sizes:
            runs = law.simulate_batch(n, range(repeats))
            error = float(runs.largest_deviation_std.mean()) / math.sqrt(400 * repeats)
            allowed = 4 * error + 0.5 / math.sqrt(n * p * (1 - p))  # four standard errors, and the lattice of the losses
            worst = max(worst, abs(float(runs.largest_deviation.mean()) - limit) / allowed)
        criteria.append(
            below(f"largest gap to the law over n at M = {models}, p = {p:g}, in units of what is allowed", worst, 1.0)
        )
    one = FiniteClass(models=1, error_rate=0.3)
    plain = [float(one.simulate_batch(n, range(4 * repeats)).largest_deviation.mean()) / math.sqrt(n) for n in sizes]
    grows = [float(FiniteClass(models=models).theory().largest_deviation) for models in numbers]
    huge = [FiniteClass(models=10**k) for k in (3, 6, 12)]
    share = [float(law.theory().largest_deviation) / law.leading_term() for law in huge]
    return Outcome(
        (
            *criteria,
            near("exponent in n of the deviation of one model", log_slope(sizes, plain).value, -0.5, 0.02),
            true("the leading term is approached from below as M grows", share[0] < share[1] < share[2] < 1),
            *(
                agrees(f"the law at check point {i + 1}", compare(point, **effort(quick)))
                for i, point in enumerate(FiniteClass.check_points())
            ),
        ),
        {f"mean of the largest deviation at M = {models}": value for models, value in zip(numbers, grows, strict=True)},
        note="The leading term sqrt(2 log 2M) is too high by 0.4 to 0.6 for M up to 10,000; only its growth is claimed.",
    )


@claim(
    "L7",
    _AREA,
    "Over an infinite class the deviation is of order sqrt(d_VC/n), whatever the number of parameters.",
    laws=("ThresholdClass",),
    figure="classes",
)
def infinite_class(quick: bool) -> Outcome:
    """Thresholds: two exact laws. Cover's count. Halfplanes flat in n. One parameter that fits all labels."""
    comparisons = [compare(point, seeds=25 if quick else 200, **effort(quick)) for point in ThresholdClass.check_points()]
    laws = {noise: ThresholdClass(label_noise=noise) for noise in ("none", "coin")}
    shift = {}
    for place in (0.3, 0.5):
        runs = ThresholdClass(threshold=place).simulate_batch(1600, range(20 if quick else 100))
        shift[place] = float(runs.largest_deviation.mean()), standard_error(runs.largest_deviation.values)
    (first, error), (second, other) = shift.values()
    rng = np.random.default_rng(0)
    cases = ((1, 6), (2, 4), (2, 7), (3, 5)) if quick else ((1, 6), (2, 3), (2, 4), (2, 7), (3, 4), (3, 5), (3, 7))
    counted = [(d, n, separable_labellings(rng.standard_normal((n, d)))) for d, n in cases]
    sizes, repeats = ((40, 160), 150) if quick else ((50, 100, 200, 400), 200)
    planes = {n: np.array([coin_deviation(rng.standard_normal((n, 2)), rng) for _ in range(repeats)]) for n in sizes}
    means = [float(found.mean()) for found in planes.values()]
    errors = [standard_error(found) for found in planes.values()]
    points = 10
    measured: dict[str, Number] = {
        **{f"mean over thresholds, labels {noise}": float(law.theory().largest_deviation) for noise, law in laws.items()},
        **{f"halfplanes, coin labels, n = {n}": mean for n, mean in zip(sizes, means, strict=True)},
        "halfplanes over sqrt(d_VC)": float(np.mean(means)) / math.sqrt(3),
        "thresholds over sqrt(d_VC)": float(laws["coin"].theory().largest_deviation) / math.sqrt(2),
    }
    return Outcome(
        (
            *(agrees(f"thresholds at check point {i + 1}", one) for i, one in enumerate(comparisons)),
            below("deviation at c = 0.3 minus that at c = 0.5, in standard errors", abs(first - second) / math.hypot(error, other), 5.0),
            *(equal(f"labellings of {n} points by halfspaces of R^{d}", found, dichotomies(n, d)) for d, n, found in counted),
            near(
                "exponent in n of the deviation over halfplanes",
                log_slope(sizes, np.array(means) / np.sqrt(sizes), np.array(errors) / np.sqrt(sizes)).value,
                -0.5,
                0.1,
            ),
            between("deviation over halfplanes with coin labels, times sqrt(n)", float(np.mean(means)), 1.2, 1.5),
            equal(f"labellings of {points} points by the sign of sin(w x)", sine_labellings(points), 2**points),
        ),
        measured,
        note="The class 1{sin(w x) > 0} has one parameter and an infinite d_VC: few parameters alone promise nothing.",
    )  # fmt: skip


@claim(
    "L8",
    _AREA,
    "Rosenblatt's perceptron makes at most (R/margin)^2 mistakes, in any order of presentation.",
    laws=("Perceptron",),
    figure="perceptron",
)
def mistakes_are_bounded(quick: bool) -> Outcome:
    """No violation in cyclic and random orders; mistakes per dimension flat in the dimension; margin and bound against their limits."""
    small, large, seeds = (50, 100, 30) if quick else (100, 200, 40)
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {}
    worst: list[float] = []
    for ratio in (0.8, 2.0, 5.0):
        law = Perceptron(ratio=ratio)
        limit = law.theory()
        runs = {p: law.simulate_batch(p, range(seeds)) for p in (small, large)}
        worst += [float(run.largest_ratio.max()) for run in runs.values()]
        counts = [float(run.mistakes.mean()) for run in runs.values()]
        errors = [standard_error(run.mistakes.values) for run in runs.values()]
        last = runs[large]
        gap = abs(float(last.margin.mean()) - float(limit.margin)) - 4 * standard_error(last.margin.values)
        name = f"at p/n = {ratio:g}"
        change = abs(counts[1] / counts[0] - 1) - (4 * math.hypot(*errors) / counts[0] if quick else 0.0)
        criteria += [
            at_most(f"relative change of mistakes per dimension from p = {small} to {large} {name}", change, 0.15),
            at_most(f"gap of the mean margin beyond 4 standard errors {name}, relative", gap / float(limit.margin), 0.05),
            between(
                f"median bound over its limit {name}",
                float(last.mistake_bound.median() / limit.mistake_bound),
                1.0,
                1.6 if quick else 1.5,
            ),
        ]
        measured[f"mistakes per dimension {name}"] = counts[1]
        measured[f"limit of the bound per dimension {name}"] = float(limit.mistake_bound)
    rng = np.random.default_rng(0)
    for _ in range(20 if quick else 100):
        vectors = rng.standard_normal((40, 40)) + 0.3
        found = hard_margin(vectors)
        bound = float((vectors**2).sum(axis=1).max()) / found.margin**2
        worst += [perceptron_mistakes(vectors[rng.permutation(40)]) / bound for _ in range(3)]
    return Outcome(
        (at_most("largest number of mistakes over its bound, all data sets and orders", largest(worst), 1.0), *criteria),
        measured,
        note="The number of mistakes below the bound is measured, not predicted; the bound itself is approached as sqrt(log(n)/p).",
    )


def separable_labellings(points: Array) -> int:
    """How many labellings of the points an affine halfspace gives, counted one by one.

    >>> separable_labellings(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.1]]))
    14
    """
    lifted = np.column_stack([points, np.ones(len(points))])
    signs = (np.array([1.0, *rest]) for rest in itertools.product((-1.0, 1.0), repeat=len(points) - 1))
    return 2 * sum(hard_margin(pattern[:, None] * lifted).separable for pattern in signs)


def coin_deviation(points: Array, rng: np.random.Generator) -> float:
    """sqrt(n) sup |Rhat - 1/2| over all halfplanes, for labels by tossing coins."""
    signs = 1.0 - 2.0 * rng.integers(0, 2, len(points))
    return largest_imbalance(points, signs) / (2 * math.sqrt(len(points)))


def sine_labellings(points: int) -> int:
    """How many labellings of x_i = 2^-i the classifiers 1{sin(w x) > 0} give, at the frequencies w = pi (1 + sum (1 - y_i) 2^i).

    >>> sine_labellings(3)
    8
    """
    x = 0.5 ** np.arange(1, points + 1)
    labels = np.array(list(itertools.product((0, 1), repeat=points)))
    frequency = 1 + ((1 - labels) * 2 ** np.arange(1, points + 1)).sum(axis=1)
    turns = (frequency[:, None] * x) % 2  # sin(pi turns), with no rounding of pi times a large number
    return int((((turns > 0) & (turns < 1)) == labels).all(axis=1).sum())
