"""Claims about margins and implicit bias: the largest margin on random features (T8), where descent ends (J1, J2, L5)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab._core.blas import single_threaded
from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Number, above, agrees, at_most, below
from limitlab.lab.measures import effort, largest, log_slope, sigmas, smallest, words
from limitlab.laws.classification.convex_loss import ConvexLoss
from limitlab.laws.classification.max_margin import MaxMargin
from limitlab.laws.classification.random_features_margin import LabelledFeatures, RandomFeaturesMargin
from limitlab.laws.descent.least_squares import LeastSquaresDescent
from limitlab.laws.descent.logistic import LogisticDescent
from limitlab.laws.descent.separable_flow import TAILS, LeastSquares, SeparableFlow, gradient_descent
from limitlab.models.activations import Activation, Moments
from limitlab.numerics.margin import hard_margin

Array = NDArray[np.float64]

IMPLICIT_BIAS = "Implicit bias, interpolation, spectra"
STANDARD_ERRORS = 3.0


# -- T8: the largest margin on random features --------------------------------------------------------------------------------

WIDTHS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
SAMPLE_RATIO = 2.0
SEPARABILITY_WIDTH = 0.76843356
"""N/d from which ReLU features separate n = 2d points with sign labels."""


@claim(
    "T8",
    "Random features and margins",
    "Max-margin classification on random features: margin, error and share of support vectors have explicit limits, and the data "
    "can be separated above an explicit width.",
    laws=("RandomFeaturesMargin", "MaxMargin", "ConvexLoss"),
    figure="max-margin",
)
def largest_margin(quick: bool) -> Outcome:
    """Margin and error over the width against hard-margin solutions; the threshold; the limit of small ridge."""
    size, seeds, widths = (50, 40, (1.5, 3.0)) if quick else (200, 40, WIDTHS)
    measured: dict[str, Number] = {}
    z, contrast = [], []
    soft_classifier = compare(ConvexLoss.check_points()[0], seeds=60 if quick else 300, **effort(quick))
    with single_threaded():
        for width in widths:
            law = RandomFeaturesMargin(width_ratio=width, sample_ratio=SAMPLE_RATIO)
            theory, runs = law.theory(), law.simulate_batch(size, range(seeds))
            for name in ("margin", "classification_error", "support_fraction"):
                z.append(sigmas(runs[name].values, float(theory[name])))
                measured[f"{words(name)} at N/d = {width:g} simulated"] = float(runs[name].mean())
                measured[f"{words(name)} at N/d = {width:g} in theory"] = float(theory[name])
            linear = Moments(law.moments.mean, law.moments.linear, 0.0)  # the features without their nonlinear part
            wrong = float(law.replace(activation=linear).theory()["classification_error"])
            contrast.append(sigmas(runs["classification_error"].values, wrong))
    limits = [RandomFeaturesMargin(width_ratio=float(w)).theory() for w in np.geomspace(0.8, 100, 8)]
    margins, errors = ([float(limit[name]) for limit in limits] for name in ("margin", "classification_error"))
    threshold = RandomFeaturesMargin().separability_width()
    soft = [ConvexLoss(loss="squared_hinge", ridge=ridge).theory() for ridge in (1e-4, 1e-5, 1e-6)]
    hard = RandomFeaturesMargin(width_ratio=1.5).theory()
    distance = [abs(float(each["classification_error"] - hard["classification_error"])) for each in soft]
    return Outcome(
        (
            at_most(
                f"largest z of margin, error and support at d = {size}, {len(widths)} widths", largest(z), STANDARD_ERRORS
            ),
            agrees(
                "the linear classifier of largest margin:", compare(MaxMargin, seeds=150 if quick else 600, **effort(quick))
            ),
            agrees("a logistic classifier with a ridge on random features:", soft_classifier),
            above("smallest z of the error of linear features", smallest(contrast), 10),
            above("smallest growth of the margin between 8 widths", smallest(np.diff(margins)), 0),
            below("largest change of the error between 8 widths", largest(np.diff(errors)), 0),
            below(
                f"distance of the separability threshold N/d from {SEPARABILITY_WIDTH}",
                abs(threshold - SEPARABILITY_WIDTH),
                1e-8,
            ),
            below("share of draws separable 15% below the threshold", separable_share(0.85 * threshold, quick), 0.5),
            above("share of draws separable 15% above the threshold", separable_share(1.15 * threshold, quick), 0.5),
            below("gap of the squared hinge's error to the margin's at ridge 1e-6", distance[2], 1e-5),
            above("shrinkage of the squared hinge's gap from ridge 1e-4 to 1e-5", distance[0] / distance[1], 5),
            above("shrinkage of the squared hinge's gap from ridge 1e-5 to 1e-6", distance[1] / distance[2], 5),
        ),
        measured,
        note=(
            "ReLU, n = 2d, sign labels. The source states the equivalence of nonlinear and Gaussian features for the largest margin as "
            "a conjecture, and does not name the link of its figure; labels here are the sign of a linear function."
        ),
    )


def separable_share(width: float, quick: bool) -> float:
    """Share of draws that can be separated at this width (ReLU, n = 2d, sign labels)."""
    size, seeds = (60, 20) if quick else (150, 40)
    law = RandomFeaturesMargin(width_ratio=width, sample_ratio=SAMPLE_RATIO)
    drawn = (LabelledFeatures(law, law.draw(size, seed)) for seed in range(seeds))
    with single_threaded():
        return float(np.mean([hard_margin(data.y[:, None] * data.features).separable for data in drawn]))


# -- J1: least squares --------------------------------------------------------------------------------------------------------


@claim(
    "J1",
    IMPLICIT_BIAS,
    "Gradient descent from zero on overparametrised least squares ends at the interpolant of least norm.",
    laws=("LeastSquaresDescent",),
    figure="least-squares-descent",
)
def least_norm(quick: bool) -> Outcome:
    """Descent step by step against the pseudo-inverse; the rate; the part of a start that the data do not see."""
    cases = ((40, 100), (20, 30), (30, 200)) if quick else ((40, 100), (20, 30), (30, 200), (150, 400), (300, 900))
    distance, bound, kept, norm = [], [], [], []
    for n, p in cases:
        rng = np.random.default_rng([n, p])
        problem = LeastSquares(rng.standard_normal((n, p)), rng.standard_normal(n))
        wanted = np.linalg.pinv(problem.X) @ problem.y
        steps = int(np.ceil(np.log(1e-13) / np.log(problem.best_rate)))
        distance.append(_distance(problem.descend(steps), wanted))
        for k in (steps // 8, steps // 4, steps // 2):
            bound.append(_distance(problem.descend(k), wanted) / problem.best_rate**k)
        start = rng.standard_normal(p)
        end = problem.descend(steps, start=start)
        free = start - np.linalg.pinv(problem.X) @ (problem.X @ start)
        kept.append(_distance(end, wanted + free))
        norm.append(float(np.linalg.norm(end) / np.linalg.norm(wanted)))
    comparison = compare(LeastSquaresDescent, seeds=100 if quick else 500, **effort(quick))
    return Outcome(
        (
            below("largest relative distance from the pseudo-inverse solution, from 0", largest(distance), 1e-10),
            at_most("largest distance over the power of the best rate", largest(bound), 1 + 1e-9),
            below("largest distance from the solution plus the start's part in the kernel", largest(kept), 1e-10),
            above("smallest norm of the end over the least, from other starts", smallest(norm), 1),
            agrees("the limit of distance, rate, largest step and norm for random data", comparison),
        ),
        note="With the mean square as the loss, steps below n/lambda_max(XX') converge; an affine space of codimension n needs rank n.",
    )


def _distance(theta: Array, wanted: Array) -> float:
    return float(np.linalg.norm(theta - wanted) / np.linalg.norm(wanted))


# -- J2: separable data -------------------------------------------------------------------------------------------------------


@claim(
    "J2",
    IMPLICIT_BIAS,
    "Gradient descent on the exponential or logistic loss of separable data is w_hat log t + r with r convergent: its direction "
    "tends to that of the largest margin like C/log t.",
    laws=("LogisticDescent",),
    figure="direction-gap",
)
def separable_data(quick: bool) -> Outcome:
    """Gradient flow in log t: remainder, direction gap, growth of the norm; plain descent at the same times."""
    shapes = ((30, 10), (30, 60)) if quick else ((30, 10), (40, 100), (100, 60), (60, 200))
    late, early = np.geomspace(1e4, 1e6, 5), (100, 1000) if quick else (100, 1000, 5000)
    product, power, growth, inside, without_n, plain = [], [], [], [], [], []
    for n, p in shapes:
        rng = np.random.default_rng([n, p])
        X = rng.standard_normal((n, p))
        for loss in TAILS[: 1 if quick and n > p else 2]:
            flow = SeparableFlow(np.sign(X[:, :1]) * X, loss)
            gap = flow.direction_gap(late)
            product.append(abs(gap[-1] * late[-1] / flow.gap_constant - 1))
            power.append(abs(log_slope(late, gap).value + 1))
            norms = np.linalg.norm(flow.weights(late), axis=1)
            growth.append(abs(np.diff(norms)[-1] / np.diff(late)[-1] * flow.hard_margin.margin - 1))
            support = flow.vectors[flow.hard_margin.support]
            reached = support @ flow.remainders([flow.settled])[0]
            inside.append(np.abs(reached - support @ flow.correction).max())
            without_n.append(np.abs(reached - support @ flow.correction - np.log(n)).max())
            step = 0.1 / float(np.linalg.eigvalsh(flow.vectors.T @ flow.vectors / n)[-1])
            walked = gradient_descent(flow, step, early)
            flowed = flow.weights(np.log(step * np.array(early)))
            plain.append(_distance(walked[-1], flowed[-1]))
    point, sizes = LogisticDescent.check_points()[0], (12, 24, 48) if quick else (24, 48, 96)
    comparison = compare(point, sizes, 180 if quick else 400, **effort(quick, 90.0))
    return Outcome(
        (
            below("largest error of C as direction gap times log t, log t = 1e6", largest(product), 1e-4),
            below("largest error of the exponent -1 of the gap over two decades of log t", largest(power), 1e-3),
            below("largest error of 1/margin as the growth of |w| with log t", largest(growth), 1e-4),
            below("largest error of -log(n alpha) as the remainder on support vectors", largest(inside), 1e-8),
            above("smallest error of -log alpha, without n, as the remainder", smallest(without_n), 1),
            below("largest relative distance of plain descent from the flow at equal times", largest(plain), 0.01),
            agrees("the margin of w for random data, in the max-margin limit,", comparison),
        ),
        note=(
            "The remainder tends to -log(n alpha_i), not -log alpha_i, and to a constant: terms of order log log t appear only for "
            "degenerate data. The margin is 1/|w_hat| (a margin normalised to 1 carries no information). In the step bound "
            "the largest eigenvalue enters to the first power."
        ),
    )


# -- L5: the linearised network -----------------------------------------------------------------------------------------------


@claim(
    "L5",
    "Uniform convergence and real networks",
    "Gradient descent on the linearised network ends at the interpolant nearest to its start, the ridge solution as lambda falls "
    "to 0.",
    laws=("LeastSquaresDescent",),
)
def linearised(quick: bool) -> Outcome:
    """Gradient descent on a network linearised at its start, against the nearest interpolant and ridge with a small penalty."""
    cases = ((20, 5, 30), (30, 10, 40)) if quick else ((20, 5, 30), (30, 10, 40), (60, 20, 100), (100, 30, 200))
    nearest, ridges, from_zero, slopes = [], [], [], []
    for n, d, width in cases:
        rng = np.random.default_rng([n, d, width])
        X, y = rng.standard_normal((n, d)), rng.standard_normal(n)
        start, outputs, jacobian = linearised_network(rng, X, width)
        problem = LeastSquares(jacobian, y - outputs)
        steps = int(np.ceil(np.log(1e-12) / np.log(problem.best_rate)))
        # f(theta) = f0 + J (theta - theta0): descent on it from theta0 is descent for theta - theta0 from 0.
        moved = LeastSquares(jacobian, y - outputs + jacobian @ start).descend(min(steps, 200_000), start=start) - start
        interpolant = np.linalg.pinv(jacobian) @ (y - outputs)
        nearest.append(_distance(moved, interpolant))
        gram = jacobian @ jacobian.T / n
        gaps = []
        for ridge in (1e-4, 1e-6, 1e-8):
            penalty = ridge * np.linalg.eigvalsh(gram)[0] * n
            solution = jacobian.T @ np.linalg.solve(jacobian @ jacobian.T + penalty * np.eye(n), y - outputs)
            gaps.append(_distance(solution, interpolant))
        ridges.append(gaps[-1])
        slopes.append(abs(np.log(gaps[0] / gaps[1]) / np.log(100) - 1))
        least = np.linalg.pinv(jacobian) @ (y - outputs + jacobian @ start)  # the interpolant nearest to zero instead
        from_zero.append(_distance(start + moved, least))
    return Outcome(
        (
            below("largest distance of descent from the interpolant nearest to its start", largest(nearest), 1e-8),
            below(
                "largest distance of the ridge solution from that interpolant at the smallest ridge", largest(ridges), 1e-7
            ),
            below("largest error of the exponent 1 of the ridge solution's distance in lambda", largest(slopes), 1e-3),
            above("smallest distance of descent from the interpolant of least norm", smallest(from_zero), 0.1),
        ),
        note="Tanh networks, linearised at their start. The interpolant of least norm is nearest to zero instead of the start.",
    )


def linearised_network(rng: np.random.Generator, X: Array, width: int) -> tuple[Array, Array, Array]:
    """Parameters, outputs and Jacobian of f(x) = sum_j a_j tanh(<w_j, x>)/sqrt(width) at a random start."""
    tanh = Activation("tanh")
    a, W = rng.standard_normal(width), rng.standard_normal((width, X.shape[1])) / np.sqrt(X.shape[1])
    hidden = X @ W.T
    by_first = (tanh.derivative(hidden) * a)[:, :, None] * X[:, None, :] / np.sqrt(width)
    by_second = tanh(hidden) / np.sqrt(width)
    jacobian = np.hstack([by_first.reshape(len(X), -1), by_second])
    return np.concatenate([W.ravel(), a]), by_second @ a, jacobian
