"""Claims about uniform convergence over classes of models (L1, L2, L6, L7, L12)."""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest, log_slope, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.uniform_convergence._halfplanes import largest_imbalance
from limitlab.laws.uniform_convergence._intervals import coin_deviations, empirical_minimum
from limitlab.laws.uniform_convergence._networks import Norm, correlation, largest_deviation, largest_value
from limitlab.laws.uniform_convergence.finite_class import FiniteClass
from limitlab.laws.uniform_convergence.rademacher import (
    ascended,
    rademacher_linear,
    rademacher_two_layer,
    switching_supremum,
)
from limitlab.laws.uniform_convergence.thresholds import ThresholdClass, dichotomies
from limitlab.laws.uniform_convergence.uniform_convergence import UniformConvergence
from limitlab.models.activations import Activation
from limitlab.numerics.margin import hard_margin

# -- uniform ------------------------------------------------------------------------------------------------------

_AREA = "Uniform convergence and real networks"


@claim("L1", _AREA, UniformConvergence, figure="uniform-deviation", quick_decides=False, items=("L-5",))
def linear_class(check: Check) -> None:
    """Over linear predictors of norm at most rho, empirical and population risk differ by order rho sqrt(d/n).

    Measured: the Rademacher complexity with its exponents in n, d and rho and its constant, and the exact deviation for squared loss.
    """
    rng, draws = np.random.default_rng(0), 1000 if check.quick else 4000
    base, sizes = (200, 40), (50, 200, 800) if check.quick else (50, 200, 800, 3200)

    def value(n: int, d: int, radius: float = 1.0) -> float:
        return rademacher_linear(rng.standard_normal((n, d)), radius, draws).value

    in_n = log_slope(sizes, [value(n, base[1]) for n in sizes]).value
    check.near("exponent in n of the Rademacher complexity", in_n, -0.5, 0.03)
    in_d = log_slope((10, 40, 160), [value(base[0], d) for d in (10, 40, 160)]).value
    check.near("exponent in d of the Rademacher complexity", in_d, 0.5, 0.05)
    cases = [
        (n, d, rademacher_linear(rng.standard_normal((n, d)), 2.0, draws)) for n, d in ((100, 20), (200, 80), (400, 160))
    ]
    constants = [estimate.value / (2.0 * math.sqrt(d / n)) for n, d, estimate in cases]
    check.near("Rademacher complexity over rho sqrt(d/n), mean of three cases", float(np.mean(constants)), 1.0, 0.05)
    over = [estimate.value / estimate.bound for _, _, estimate in cases]
    check.below("largest ratio of the Rademacher complexity to its bound", largest(over), 1.0)
    # for Gaussian inputs the mean length of sum e_i x_i is below the root of its mean square by this share, to order 1/d
    lost = [(1 + d / n) / (4 * d) for n, d, _ in cases]
    errors = [estimate.standard_error / estimate.bound for _, _, estimate in cases]
    z = [
        abs(x + share - 1) / (error + 1 / d**2) for x, share, error, (_, d, _) in zip(over, lost, errors, cases, strict=True)
    ]
    check.below("largest z of this ratio against 1 - (1 + d/n)/(4d), standard errors plus 1/d^2", largest(z), 4.0)
    check.agree("the exact deviation", UniformConvergence, seeds=200 if check.quick else 400)
    ratios = np.geomspace(1e-4, 1e-2, 5)
    small = [float(UniformConvergence(ratio=ratio, signal=0.5).theory().sup_empirical_minus_population) for ratio in ratios]
    check.near("exponent in d/n of the exact deviation for small d/n", log_slope(ratios, small).value, 0.5, 0.03)
    check.note("For squared loss the deviation grows with the square of rho, because the loss has no bounded slope.")


WIDTHS = (1, 2, 4, 16, 64)


@claim("L2", _AREA, UniformConvergence, figure="uniform-deviation", quick_decides=False, items=("L-6", "D-22"))
def two_layer_class(check: Check) -> None:
    """For two-layer networks of bounded l1 norm gamma the deviation is of order gamma sqrt(d/n) at every width.

    The check maximises the deviation of real networks of 1 to 64 neurons over all weights, for the absolute error. It measures the growth
    with the width and the exponents in n and d. With a bounded l2 norm, the control, the supremum grows like the root of the width. The
    Rademacher complexity of networks is compared with the value of a single neuron, with its bound, and with exact suprema in the plane.
    """
    draws, few = (3, True) if check.quick else (12, False)

    def deviations(n: int, d: int, width: int, norm: Norm = "l1", neurons: int = 64, count: int = draws) -> Array:
        rngs = (np.random.default_rng([n, d, k]) for k in range(count))
        return np.array([largest_deviation(rng, n, d, 1.0, width, norm, neurons) for rng in rngs])

    by_width = {width: deviations(50 if few else 200, 10, width) for width in ((1, 16) if few else WIDTHS)}
    for width, values in by_width.items():
        check.show(f"deviation at width {width}", float(values.mean()))
    growth = [values.mean() / by_width[1].mean() - 1 for values in by_width.values()]
    check.below("largest change of the deviation from width 1, the same data sets", largest(np.abs(growth)), 0.05)
    sizes, dims, fixed = ((50, 200), (5, 20), 100) if few else ((50, 200, 800), (5, 20, 80), 400)
    for name, numbers, cases, target in (
        ("n", sizes, [(n, 5, 4) for n in sizes], -0.5),
        ("d", dims, [(fixed, d, 4) for d in dims], 0.5),
    ):
        runs = [deviations(*case, neurons=16, count=2 * draws) for case in cases]
        exponent = log_slope(numbers, [part.mean() for part in runs], [standard_error(part) for part in runs])
        check.near(
            f"exponent in {name} of the deviation, networks of 4 neurons", exponent.value, target, 4 * exponent.error + 0.05
        )
        check.show(f"standard error of the exponent in {name}", exponent.error)
    free = [deviations(50 if few else 200, 10, width, "l2", count=3 if few else 6).mean() for width in (1, 4, 16)]
    check.above(
        "control: exponent in the width of the deviation with bounded l2 norm", log_slope((1, 4, 16), free).value, 0.35
    )
    check_complexity(check, 3 if few else 16)
    check.note("Suprema in more than two dimensions are found by ascent and are lower estimates.")


def check_complexity(check: Check, draws: int) -> None:
    """Compare Rademacher complexities of networks with that of a single neuron, with the bound, and with exact suprema in the plane."""
    rng = np.random.default_rng(1)
    shares, controls, over, reached = [], [], [], []
    for n, d in ((100, 10),) if check.quick else ((200, 10), (400, 20)):
        X = np.random.default_rng([n, d]).standard_normal((n, d))
        single = rademacher_two_layer(X, 1.5, draws=draws, starts=16)
        patterns = np.asarray(
            1 - 2.0 * np.random.default_rng(0).integers(0, 2, (draws, n)), dtype=np.float64
        )  # those of `rademacher_two_layer`

        def value(width: int, norm: Norm, X: Array = X, patterns: Array = patterns) -> float:
            return float(
                np.mean(
                    [largest_value(X, correlation(signs), 1.5, width, np.random.default_rng(0), norm) for signs in patterns]
                )
            )

        shares += [value(width, "l1") / single.value for width in (2, 16)]
        controls.append(log_slope((1, 4, 16), [single.value, value(4, "l2"), value(16, "l2")]).value)
        over.append(single.value / single.bound)
        check.show(f"complexity over gamma sqrt(d/n) at n = {n}, d = {d}", single.value / 1.5 / math.sqrt(d / n))
    for k in range(6 if check.quick else 30):
        X, signs = rng.standard_normal((60, 2)), 1 - 2.0 * rng.integers(0, 2, 60)
        reached.append(ascended(X, signs, Activation("relu"), 20, np.random.default_rng(k)) / switching_supremum(X, signs))
    check.near(
        "complexity of networks of 2 and 16 neurons over the value of one neuron, smallest", smallest(shares), 1.0, 0.02
    )
    check.near(
        "complexity of networks of 2 and 16 neurons over the value of one neuron, largest", largest(shares), 1.0, 0.02
    )
    # neurons at smaller local maxima lower the estimate with many neurons
    check.near("control: exponent in the width of the complexity with bounded l2 norm", float(np.mean(controls)), 0.5, 0.1)
    check.below("largest ratio of the complexity to its bound", largest(over), 1.0)
    check.above("smallest share of the exact supremum that ascent reaches in the plane", smallest(reached), 0.98)
    check.below("largest share of the exact supremum that ascent reaches in the plane", largest(reached), 1.0 + 1e-9)


# -- classes ------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]


@claim("L6", _AREA, FiniteClass, figure="classes", items=("L-2",))
def finite_class(check: Check) -> None:
    """The risks of one fixed model differ by an amount of order n^(-1/2), and those of the worst of M models by sqrt(2 log(2M)/n) times
    the standard deviation of the loss, to leading order.

    Compared: the mean of the largest of M deviations with the exact law, over n, M and the error rate, and the rate in n of one model.
    """
    sizes, numbers, repeats = (200, 2000, 20_000), (1, 10, 100, 1000), 1 if check.quick else 8
    for p, models in ((0.5, 10), (0.5, 1000), (0.1, 100), (0.1, 1000)):
        law = FiniteClass(models=models, error_rate=p)
        limit, worst = float(law.theory().largest_deviation), 0.0
        for n in sizes:
            runs = law.simulate_batch(n, range(repeats))
            error = float(runs.largest_deviation_std.mean()) / math.sqrt(400 * repeats)
            allowed = 4 * error + 0.5 / math.sqrt(n * p * (1 - p))  # four standard errors, and the lattice of the losses
            worst = max(worst, abs(float(runs.largest_deviation.mean()) - limit) / allowed)
        check.below(f"largest gap to the law over n at M = {models}, p = {p:g}, in units of what is allowed", worst, 1.0)
    single = FiniteClass(models=1, error_rate=0.3)
    plain = [float(single.simulate_batch(n, range(4 * repeats)).largest_deviation.mean()) / math.sqrt(n) for n in sizes]
    check.near("exponent in n of the deviation of one model", log_slope(sizes, plain).value, -0.5, 0.02)
    grows = [float(FiniteClass(models=models).theory().largest_deviation) for models in numbers]
    huge = [FiniteClass(models=10**k) for k in (3, 6, 12)]
    share = [float(law.theory().largest_deviation) / law.leading_term() for law in huge]
    check.true("the leading term is approached from below as M grows", share[0] < share[1] < share[2] < 1)
    check.agree("the law", FiniteClass)
    for models, value in zip(numbers, grows, strict=True):
        check.show(f"mean of the largest deviation at M = {models}", value)
    check.note("The leading term sqrt(2 log 2M) is too high by 0.4 to 0.6 for M up to 10,000. Only its growth is claimed.")


@claim("L7", _AREA, ThresholdClass, figure="classes", items=("L-3", "L-4"))
def infinite_class(check: Check) -> None:
    """Over an infinite class the deviation is of order sqrt(d_VC/n), for any number of parameters.

    Checked: two exact laws for thresholds, Cover's count, halfplanes at several n, and one parameter that fits all labels.
    """
    check.agree("thresholds", ThresholdClass, seeds=25 if check.quick else 200)
    laws = {noise: ThresholdClass(label_noise=noise) for noise in ("none", "coin")}
    shift = {}
    for place in (0.3, 0.5):
        runs = ThresholdClass(threshold=place).simulate_batch(1600, range(20 if check.quick else 100))
        shift[place] = float(runs.largest_deviation.mean()), standard_error(runs.largest_deviation.values)
    (first, error), (second, other) = shift.values()
    check.below(
        "deviation at c = 0.3 minus that at c = 0.5, in standard errors", abs(first - second) / math.hypot(error, other), 5.0
    )
    rng = np.random.default_rng(0)
    cases = ((1, 6), (2, 4), (2, 7), (3, 5)) if check.quick else ((1, 6), (2, 3), (2, 4), (2, 7), (3, 4), (3, 5), (3, 7))
    counted = [(d, n, separable_labellings(rng.standard_normal((n, d)))) for d, n in cases]
    sizes, repeats = ((40, 160), 150) if check.quick else ((50, 100, 200, 400), 200)
    planes = {n: np.array([coin_deviation(rng.standard_normal((n, 2)), rng) for _ in range(repeats)]) for n in sizes}
    means = [float(value.mean()) for value in planes.values()]
    errors = [standard_error(value) for value in planes.values()]
    points = 10
    for noise, law in laws.items():
        check.show(f"mean over thresholds, labels {noise}", float(law.theory().largest_deviation))
    for n, mean in zip(sizes, means, strict=True):
        check.show(f"halfplanes, coin labels, n = {n}", mean)
    check.show("halfplanes over sqrt(d_VC)", float(np.mean(means)) / math.sqrt(3))
    check.show("thresholds over sqrt(d_VC)", float(laws["coin"].theory().largest_deviation) / math.sqrt(2))
    for d, n, value in counted:
        check.equal(f"labellings of {n} points by halfspaces of R^{d}", value, dichotomies(n, d))
    check.near(
        "exponent in n of the deviation over halfplanes",
        log_slope(sizes, np.array(means) / np.sqrt(sizes), np.array(errors) / np.sqrt(sizes)).value,
        -0.5,
        0.1,
    )
    check.between("deviation over halfplanes with coin labels, times sqrt(n)", float(np.mean(means)), 1.2, 1.5)
    check.equal(f"labellings of {points} points by the sign of sin(w x)", sine_labellings(points), 2**points)
    check.note(
        "The class 1{sin(w x) > 0} has one parameter and an infinite d_VC, so few parameters alone are not sufficient."
    )


def separable_labellings(points: Array) -> int:
    """Return the number of labellings of the points by affine halfspaces, counted one by one.

    >>> separable_labellings(np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.1]]))
    14
    """
    lifted = np.column_stack([points, np.ones(len(points))])
    signs = (np.array([1.0, *rest]) for rest in itertools.product((-1.0, 1.0), repeat=len(points) - 1))
    return 2 * sum(hard_margin(pattern[:, None] * lifted).separable for pattern in signs)


def coin_deviation(points: Array, rng: np.random.Generator) -> float:
    """Return sqrt(n) times the largest |error - 1/2| over all halfplanes, for random labels."""
    signs = 1.0 - 2.0 * rng.integers(0, 2, len(points))
    return largest_imbalance(points, signs) / (2 * math.sqrt(len(points)))


def sine_labellings(points: int) -> int:
    """Return the number of labellings of x_i = 2^-i by the classifiers 1{sin(w x) > 0} with w = pi (1 + sum (1 - y_i) 2^i).

    >>> sine_labellings(3)
    8
    """
    x = 0.5 ** np.arange(1, points + 1)
    labels = np.array(list(itertools.product((0, 1), repeat=points)))
    frequency = 1 + ((1 - labels) * 2 ** np.arange(1, points + 1)).sum(axis=1)
    turns = (frequency[:, None] * x) % 2  # sin(pi turns), with no rounding of pi times a large number
    return int((((turns > 0) & (turns < 1)) == labels).all(axis=1).sum())


INTERVALS = (1, 2, 4, 8, 16)
"""Numbers k of intervals; unions of at most k intervals have d_VC = 2 k."""


@claim("L12", _AREA, ThresholdClass, figure="classes", quick_decides=False, items=("L-3", "L-7"))
def growth_with_dimension(check: Check) -> None:
    """The largest deviation over a class is of order sqrt(d_VC/n), and the model with the least empirical risk has an excess risk of at
    most twice the deviation.

    The class contains the unions of at most k intervals of the line, with d_VC = 2 k. All suprema are exact (dynamic programming). The
    check measures the exponents in d_VC and in n for labels that are fair coins. Then labels are those of a member of the class, of which a
    fifth is flipped, and the check compares the excess risk with the deviation.
    """
    sizes, draws = ((2000, 8000), 120) if check.quick else ((1000, 4000, 16_000), 240)
    dimensions = [2 * k for k in INTERVALS]
    runs = {n: coin_deviations(np.random.default_rng([n, draws]), n, INTERVALS[-1], draws) for n in sizes}
    means = {n: values.mean(axis=0)[[k - 1 for k in INTERVALS]] for n, values in runs.items()}
    last = sizes[-1]
    in_dimension = log_slope(dimensions, means[last]).value
    # corrections are of relative order (d_VC/n)^(1/2): the exponent is 0.486 at n = 4000
    check.near(
        f"exponent in d_VC of the deviation, coin labels, n = {last}", in_dimension, 0.5, 0.03 if check.quick else 0.02
    )
    for i, k in enumerate(INTERVALS):
        in_n = log_slope(sizes, [means[n][i] for n in sizes]).value
        check.near(f"exponent in n of the deviation, d_VC = {2 * k}", in_n, -0.5, 0.05)
        check.show(
            f"deviation over sqrt(d_VC/n), d_VC = {2 * k}, n = {last}", float(means[last][i]) / math.sqrt(2 * k / last)
        )
    shares, counts = list[float](), (300, 1200) if check.quick else (300, 1200, 4800)
    for k in (1, 4, 16):
        results = [empirical_minimum(np.random.default_rng([n, k]), n, k, 60, 0.2) for n in counts]
        shares += [largest(result.excess / (2 * result.deviation)) for result in results]
        check.above(
            f"smallest excess risk of the empirical minimiser, d_VC = {2 * k}", smallest(min(r.excess) for r in results), 0.0
        )
        fall = log_slope(counts, [result.deviation.mean() for result in results]).value
        check.near(f"exponent in n of the deviation, labels of a member of the class, d_VC = {2 * k}", fall, -0.5, 0.05)
        faster = log_slope(counts, [result.excess.mean() for result in results]).value
        check.below(f"exponent in n of the mean excess risk, d_VC = {2 * k}", faster, -0.5)
        check.show(f"mean excess risk at n = {counts[-1]}, d_VC = {2 * k}", float(results[-1].excess.mean()))
    check.at_most("largest excess risk over twice the deviation", largest(shares), 1.0)
    check.note("With labels of this kind the excess risk falls like d_VC/n, faster than the deviation.")
