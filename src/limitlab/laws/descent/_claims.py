"""Claims about the solution that gradient descent selects (J1, J2, J30, L5, L9)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest, log_slope, sigmas, slope, smallest, standard_error, words
from limitlab.lab.claims import claim
from limitlab.laws.classification.perceptron import Perceptron
from limitlab.laws.descent._separable_flow import TAILS, LeastSquares, SeparableFlow, gradient_descent
from limitlab.laws.descent.least_squares import LeastSquaresDescent
from limitlab.laws.descent.logistic import LogisticDescent, at_late_times
from limitlab.laws.landscapes.minima import digits_minima
from limitlab.laws.regression.ridge import exact_ridgeless
from limitlab.models.activations import Activation
from limitlab.numerics.margin import hard_margin

# -- margins ------------------------------------------------------------------------------------------------------

Array = NDArray[np.float64]

IMPLICIT_BIAS = "Implicit bias, interpolation, spectra"


@claim("J1", IMPLICIT_BIAS, LeastSquaresDescent, figure="least-squares-descent", items=("J-1", "J-2"))
def least_norm(check: Check) -> None:
    """Gradient descent from zero on overparametrised least squares ends at the interpolant of least norm.

    Every algorithm that interpolates and stays in the row space of the inputs ends there, for example SGD and descent with momentum.

    Compared with the pseudo-inverse: the end of descent, its rate, and the part of the start in the kernel of the inputs, and then the ends
    of SGD and of descent with momentum. As a control, descent with the signs of the gradient leaves the row space.
    """
    cases = ((40, 100), (20, 30), (30, 200)) if check.quick else ((40, 100), (20, 30), (30, 200), (150, 400), (300, 900))
    distance, bound, with_kernel_part, norm = [], [], [], []
    for n, p in cases:
        rng = np.random.default_rng([n, p])
        problem = LeastSquares(rng.standard_normal((n, p)), rng.standard_normal(n))
        solution = np.linalg.pinv(problem.X) @ problem.y
        steps = int(np.ceil(np.log(1e-13) / np.log(problem.best_rate)))
        distance.append(_distance(problem.descend(steps), solution))
        for k in (steps // 8, steps // 4, steps // 2):
            bound.append(_distance(problem.descend(k), solution) / problem.best_rate**k)
        start = rng.standard_normal(p)
        end = problem.descend(steps, start=start)
        free = start - np.linalg.pinv(problem.X) @ (problem.X @ start)
        with_kernel_part.append(_distance(end, solution + free))
        norm.append(float(np.linalg.norm(end) / np.linalg.norm(solution)))
    check.below("largest relative distance from the pseudo-inverse solution, from 0", largest(distance), 1e-10)
    check.at_most("largest distance over the power of the best rate", largest(bound), 1 + 1e-9)
    check.below("largest distance from the solution plus the start's part in the kernel", largest(with_kernel_part), 1e-10)
    check.above("smallest norm of the end over the least, from other starts", smallest(norm), 1)
    others: dict[str, list[float]] = {}
    for n, p in ((10, 40), (20, 60)):
        rng = np.random.default_rng([n, p, 1])
        problem = LeastSquares(rng.standard_normal((n, p)), rng.standard_normal(n))
        solution = np.linalg.pinv(problem.X) @ problem.y
        for name, end in other_algorithms(rng, problem).items():
            others.setdefault(name, []).append(_distance(end, solution))
    for name in ("sgd", "momentum"):
        check.below(f"largest relative distance of {name} from the pseudo-inverse solution", largest(others[name]), 1e-9)
    check.above("control: smallest distance of descent with the signs of the gradient", smallest(others["signs"]), 0.1)
    check.agree(
        "the limit of distance, rate, largest step and norm for random data",
        LeastSquaresDescent,
        seeds=100 if check.quick else 500,
        together=True,
    )
    check.note(
        "With the mean square as the loss, steps below n/lambda_max(XX') converge. The solutions form a space of dimension p - n only if "
        "the rank of X is n."
    )


def other_algorithms(rng: np.random.Generator, problem: LeastSquares) -> dict[str, Array]:
    """Return the ends from 0 of SGD with one sample per step, of descent with momentum 0.8 and of descent with signs of the gradient.

    All of them end at an interpolant. The steps of the descent with signs fall by a constant factor.
    """
    X, y, n = problem.X, problem.y, len(problem.y)
    ends = {name: np.zeros(X.shape[1]) for name in ("sgd", "momentum", "signs")}
    step = 1 / float((X**2).sum(axis=1).max())
    for i in rng.integers(0, n, 600 * n):
        ends["sgd"] += step * (y[i] - X[i] @ ends["sgd"]) * X[i]
    speed = np.zeros(X.shape[1])
    for _ in range(1500):
        speed = 0.8 * speed + 0.5 * problem.largest_step / n * X.T @ (y - X @ ends["momentum"])
        ends["momentum"] += speed
    length = 0.01
    for _ in range(6000):
        ends["signs"] += length * np.sign(X.T @ (y - X @ ends["signs"]))
        length *= 0.997
    return ends


def _distance(theta: Array, solution: Array) -> float:
    return float(np.linalg.norm(theta - solution) / np.linalg.norm(solution))


@claim("J2", IMPLICIT_BIAS, LogisticDescent, figure="direction-gap", items=("J-3",))
def separable_data(check: Check) -> None:
    """On separable data, gradient descent on the exponential or logistic loss is w_hat log t + r from any start, where r
    converges. Its direction tends to the direction of the largest margin like C/log t.

    Checked in log t: remainder, direction gap and growth of the norm of gradient flow, and gradient descent at equal times. The flow and
    descent begin at 0 and at a random start. The part of r in the span of the support vectors does not depend on the start.
    """
    shapes = ((30, 10), (30, 60)) if check.quick else ((30, 10), (40, 100), (100, 60), (60, 200))
    late, early = np.geomspace(1e4, 1e6, 5), (100, 1000) if check.quick else (100, 1000, 5000)
    product, power, growth, inside, without_n, plain = [], [], [], [], [], []
    moved = list[float]()
    for n, p in shapes:
        rng = np.random.default_rng([n, p])
        X = rng.standard_normal((n, p))
        for loss in TAILS[: 1 if check.quick and n > p else 2]:
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
            away = SeparableFlow(flow.vectors, loss, origin=tuple(rng.standard_normal(p) / np.sqrt(p)))
            gap = away.direction_gap(late)
            product.append(abs(gap[-1] * late[-1] / away.gap_constant - 1))
            power.append(abs(log_slope(late, gap).value + 1))
            inside.append(np.abs(support @ (away.remainders([away.settled])[0] - flow.correction)).max())
            if p > len(support):  # the part of the start across the span of the support vectors remains
                moved.append(abs(away.gap_constant / flow.gap_constant - 1))
            # the curvature of the exponential loss is proportional to the loss, which is above 1 at this start
            shorter = step / max(1.0, float(np.mean(np.exp(-flow.vectors @ away.first))))
            walked, flowed = gradient_descent(away, shorter, early), away.weights(np.log(shorter * np.array(early)))
            plain.append(_distance(walked[-1], flowed[-1]))
    check.below("largest error of C as direction gap times log t, log t = 1e6", largest(product), 1e-4)
    check.below("largest error of the exponent -1 of the gap over two decades of log t", largest(power), 1e-3)
    check.below("largest error of 1/margin as the growth of |w| with log t", largest(growth), 1e-4)
    check.below("largest error of -log(n alpha) as the remainder on support vectors", largest(inside), 1e-8)
    check.above("smallest error of -log alpha, without n, as the remainder", smallest(without_n), 1)
    check.below("largest relative distance of plain descent from the flow at equal times", largest(plain), 0.01)
    check.above("largest relative change of C from the start at 0 to a random start", largest(moved), 0.1)
    check_margins_of_random_data(check)
    check.note(
        "Corrections of the source: the remainder tends to a constant, with margins -log(n alpha_i) and not -log alpha_i. Terms of "
        "order log log t appear only for degenerate data. The margin is 1/|w_hat|, whatever the normalisation of the weights. The "
        "bound of the step contains the first power of the largest eigenvalue."
    )


def check_margins_of_random_data(check: Check) -> None:
    """Compare the margin of w on random data with the largest margin, whose mean over many data sets is compared with its limit.

    The integration of the flow is needed on a few data sets only, because the first comparison is exact.
    """
    law, sizes = LogisticDescent.check_points()[0], (24, 48) if check.quick else (24, 48, 96)
    gaps = []
    for size in sizes:
        for seed in range(10 if check.quick else 40):
            vectors = labelled_inputs(law, size, seed)
            gaps.append(
                abs(
                    at_late_times(SeparableFlow(vectors, law.loss), law.log_time)["margin"] / hard_margin(vectors).margin - 1
                )
            )
    check.below("largest relative gap between the margin of w and the largest margin, random data", largest(gaps), 1e-8)
    limit, draws = float(law.theory().margin), 1500 if check.quick else 3000
    margins = np.array([[hard_margin(labelled_inputs(law, size, seed)).margin for seed in range(draws)] for size in sizes])
    errors = margins.std(axis=1, ddof=1) / np.sqrt(draws)
    inverse = 1 / np.asarray(sizes, dtype=float)
    line = slope(inverse, margins.mean(axis=1), errors)
    weight = errors**-2
    centre = np.average(inverse, weights=weight)
    mean = np.average(margins.mean(axis=1), weights=weight) - centre * line.value
    error = float(np.hypot(weight.sum() ** -0.5, centre * line.error))
    check.near(
        "mean margin of w for random data over the max-margin limit, extrapolated in 1/p", mean / limit, 1, 4 * error / limit
    )
    check.show("standard error of this ratio", error / limit)


def labelled_inputs(law: LogisticDescent, size: int, seed: int) -> Array:
    """Return the vectors y_i x_i of the first data set of a draw. With fewer samples than features it can always be separated."""
    draw = law.draw(size, seed)
    X = draw.rng.standard_normal((draw.count("ratio"), size))
    return np.asarray(law.labels.draw(draw.rng, X[:, 0])[:, None] * X)


@claim("L5", "Uniform convergence and real networks", LeastSquaresDescent, items=("L-13", "L-16"))
def linearised(check: Check) -> None:
    """Gradient descent on a linearised network ends at the interpolant nearest to its start, the limit of ridge for lambda to 0.

    Gradient descent on a network linearised at its start is compared with the nearest interpolant and with ridge at small penalties.
    """
    cases = ((20, 5, 30), (30, 10, 40)) if check.quick else ((20, 5, 30), (30, 10, 40), (60, 20, 100), (100, 30, 200))
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
    check.below("largest distance of descent from the interpolant nearest to its start", largest(nearest), 1e-8)
    check.below("largest distance of the ridge solution from that interpolant at the smallest ridge", largest(ridges), 1e-7)
    check.below("largest error of the exponent 1 of the ridge solution's distance in lambda", largest(slopes), 1e-3)
    check.above("smallest distance of descent from the interpolant of least norm", smallest(from_zero), 0.1)
    check.note(
        "Tanh networks, linearised at their start. The interpolant of least norm is nearest to zero instead of the start."
    )


def linearised_network(rng: np.random.Generator, X: Array, width: int) -> tuple[Array, Array, Array]:
    """Return parameters, outputs and Jacobian of f(x) = sum_j a_j tanh(<w_j, x>)/sqrt(width) at a random start."""
    tanh = Activation("tanh")
    a, W = rng.standard_normal(width), rng.standard_normal((width, X.shape[1])) / np.sqrt(X.shape[1])
    hidden = X @ W.T
    by_first = (tanh.derivative(hidden) * a)[:, :, None] * X[:, None, :] / np.sqrt(width)
    by_second = tanh(hidden) / np.sqrt(width)
    jacobian = np.hstack([by_first.reshape(len(X), -1), by_second])
    return np.concatenate([W.ravel(), a]), by_second @ a, jacobian


# -- support vectors ----------------------------------------------------------------------------------------------

ON_MARGIN = 1e-9


@claim("J30", "Implicit bias, interpolation, spectra", LogisticDescent, Perceptron, figure="residual", items=("J-4",))
def few_support_vectors(check: Check) -> None:
    """Almost every data set has at most d support vectors, and descent differs from its leading term w_hat log t by a bounded vector.

    Checked: the number and share of samples on the margin, sign vectors as a counterexample, the residual and its rate in log t.
    """
    draws = 20 if check.quick else 80
    dimensions = (5, 20, 60) if check.quick else (5, 20, 60, 120)
    over, shares = 0, dict[float, Array]()
    for ratio in (0.8, 2.0):
        for p in dimensions:
            n, counts = round(p / ratio), []
            for seed in range(draws):
                vectors = np.random.default_rng([p, n, seed]).standard_normal((n, p))
                if hard_margin(vectors).separable:
                    counts.append(on_margin(vectors))
            over += int(np.sum(np.array(counts) > min(n, p)))
            shares[ratio] = np.array(counts) / n
    check.at_most("data sets with more samples on the margin than min(n, p)", over, 0)
    for ratio, values in shares.items():
        limit = float(Perceptron(ratio=ratio).theory().support_fraction)
        name = f"share of support vectors at p/n = {ratio:g}, p = {dimensions[-1]}"
        check.below(f"{name}, distance from Phi(kappa) in standard errors", sigmas(values, limit), 5.0)
        check.show(name, float(values.mean()))
        check.show(f"Phi(kappa) at p/n = {ratio:g}", limit)
    lattice = [on_margin(sign_vectors(np.random.default_rng(seed))) > 4 for seed in range(60 if check.quick else 300)]
    check.above("share of sign vectors in R^4 with more than 4 samples on the margin", float(np.mean(lattice)), 0.5)
    check_residuals(check, 6 if check.quick else 20)
    check.show("share of sign data with more than 4 support vectors", float(np.mean(lattice)))
    check.note("The residual is not only bounded. It converges, like t^-rate in the span of the support vectors.")


def on_margin(vectors: Array) -> int:
    """Return the number of samples whose margin equals the smallest one, with or without weight in w_hat."""
    solution = hard_margin(vectors)
    return int((vectors @ solution.direction < solution.margin * (1 + ON_MARGIN)).sum())


def sign_vectors(rng: np.random.Generator, samples: int = 12) -> Array:
    """Return y x for distinct x in {-1, 1}^4, labelled by a hyperplane with whole coefficients that contains none of them."""
    cube = 1.0 - 2.0 * ((np.arange(16)[:, None] >> np.arange(4)) & 1)
    normal = rng.integers(1, 4, 4).astype(float)
    normal[0] += 1 - normal.sum() % 2  # an odd sum of odd multiples is never 0
    x = cube[rng.permutation(16)[:samples]]
    return np.asarray(np.sign(x @ normal)[:, None] * x)


def check_residuals(check: Check, data_sets: int, dimension: int = 6) -> None:
    """Check the rate at which the residual falls in the span of the support vectors, and that its part across that span converges."""
    rises, rates, settles = [], [], []
    for X, y in itertools.islice(separable_data_sets(dimension), data_sets):
        law = LogisticDescent.from_data(X, y)
        flow, rate = law.flow, law.residual_rate
        times = np.array([6.0, 8.0, 10.0, 12.0, 16.0, 32.0]) / rate
        residuals = law.residual(times)
        inside = np.array([flow.in_span(vector) for vector in residuals])
        across, size = residuals - inside, np.linalg.norm(inside, axis=1)
        settles.append(float(np.linalg.norm(across[5] - across[4])))
        if flow.exponents[1] < 1.5 * rate:  # the next power of t changes the rate by at least about 0.5 e^-6 at these times
            continue
        rises.append(
            float(np.max(np.diff(size[size > 1e-8]), initial=0.0))
        )  # smaller values are rounding errors of the flow
        if size[4] > 1e-8:
            rates.append(abs(float(np.log(size[3] / size[4])) / (times[4] - times[3]) / rate - 1))
    rise = "largest rise of the residual in the span of the support vectors, log t from 6 to 32 over the rate"
    check.at_most(rise, largest(rises), 0.0)
    check.at_most("largest relative error of the rate, log t from 12 to 16 over the rate", largest(rates), 0.01)
    check.above("data sets whose rate could be measured", len(rates), data_sets / 3)
    change = "largest change of the residual across that span, log t from 16 to 32 over the rate"
    check.at_most(change, largest(settles), 1e-4)


def separable_data_sets(dimension: int = 6, samples: int = 9) -> Iterator[tuple[Array, Array]]:
    """Yield inputs and labels of random data sets that can be separated."""
    for seed in itertools.count():
        rng = np.random.default_rng([7, seed])
        X = rng.standard_normal((samples, dimension))
        y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(samples))
        if hard_margin(y[:, None] * X).separable:
            yield X, y


# -- minima -------------------------------------------------------------------------------------------------------

_AREA = "Uniform convergence and real networks"

STARTS = ("random_start", "random_labels_start", "large_start", "wrong_start")


@claim("L9", _AREA, LeastSquaresDescent, figure="global-minima", items=("L-8", "L-12"))
def many_minima(check: Check) -> None:
    """There are many global minima. The start determines which of them descent reaches, and some of them have a large test error.

    Checked: the nearest interpolant and its exact error in least squares, and a network on digits from four starts, all with
    train loss 0.
    """
    law = LeastSquaresDescent(ratio=1.5, start_distance=5**0.5, noise=0.5, steps=0)
    for ratio, p in ((1.5, 60), (3.0, 120)):
        point = law.replace(ratio=ratio)
        runs = point.simulate_batch(p, range(60 if check.quick else 300)).excess_risk.values
        exact = exact_ridgeless(point.count("ratio", p), p, noise=0.5, signal_energy=5.0)["excess_risk"]
        check.below(
            f"excess risk at p/n = {ratio:g}, p = {p}, gap to its exact mean in standard errors", sigmas(runs, exact), 4.0
        )
    check.agree("descent from a start of its own", LeastSquaresDescent.check_points()[2], seeds=60 if check.quick else 200)
    networks = [digits_minima(seed=seed) for seed in range(3 if check.quick else 10)]
    errors = {name: np.array([getattr(network, name) for network in networks]) for name in STARTS}
    means = {name: float(values.mean()) for name, values in errors.items()}
    ordered = [
        network.random_start < min(network.random_labels_start, network.large_start) < network.wrong_start
        for network in networks
    ]
    further = [network.distances[3] / network.distances[0] for network in networks]
    check.below(
        "largest train loss of the networks, all starts",
        largest(loss for network in networks for loss in network.train_losses),
        1e-11,
    )
    check.true("random start best and wrong start worst for every seed", all(ordered))
    check.near("errors on test images from a random start", means["random_start"], 0.05, 0.04)
    check.near("errors on test images from a start with wrong labels of other images", means["wrong_start"], 0.58, 0.04)
    check.above("least distance of the worst end from the first start over that of the best", smallest(further), 2.0)
    for name in STARTS:
        check.show(f"errors on test images, {words(name)}", means[name])
        check.show(f"standard error, {words(name)}", standard_error(errors[name]))
    check.note(
        "The statement about networks is an observation on images of digits. The errors of the second and the third start depend on the "
        "optimiser."
    )
