"""Claims about finitely many neurons: random features at fixed dimension (M12), sampled measures (T10), interpolation of noise (T11)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Criterion, Number, above, agrees, at_most, below, equal, near, true
from limitlab.lab.measures import effort, largest, log_slope, sigmas, smallest
from limitlab.laws.approximation.exact import unexplained_exact
from limitlab.laws.approximation.fixed_dimension import explicit_weights_error, fixed_dimension_constant
from limitlab.laws.approximation.frank_wolfe import correlated_neuron, frank_wolfe, largest_norm
from limitlab.laws.approximation.sampled_measure import SampledMeasure
from limitlab.laws.approximation.tangent_interpolation import TangentInterpolation, tangent_features, tangent_rank
from limitlab.models.activations import Activation
from limitlab.models.data import sphere
from limitlab.numerics.sphere import harmonic_dimension

AREA = "Approximation"

Array = NDArray[np.float64]


@claim(
    "M12",
    AREA,
    "At fixed d the error of N random features falls at least like 1/N, with a constant of order d^k.",
    laws=("Staircase",),
    figure="fixed-dimension",
)
def fixed_dimension(quick: bool) -> Outcome:
    """Explicit weights against the constant; least squares below it at every N, near 1 for few features; growth with d."""
    rng, draws = np.random.default_rng(0), 100 if quick else 400
    widths = (10, 30, 100, 300) if quick else (10, 30, 100, 300, 1000)
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {}
    for d in (3, 5, 10):
        constant = fixed_dimension_constant(d, 2)
        explicit = [50 * explicit_weights_error(sphere(rng, 50, d), 2) for _ in range(draws)]
        left = {n: float(least_squares_errors(rng, n, d, 4 if quick else 20).mean()) for n in widths}
        scaled = [n * error for n, error in left.items()]
        beyond = [n * error for n, error in left.items() if n > 2 * harmonic_dimension(d, 2)]
        criteria += [
            below(f"N times the error of explicit weights at d = {d}, gap in standard errors", sigmas(explicit, constant), 4.0),
            below(f"largest N times the error of least squares over the constant, d = {d}", largest(scaled) / constant, 1.0),
            true(f"N times the error of least squares falls beyond N = B(d, 2), d = {d}", bool(np.all(np.diff(beyond) < 0))),
        ]  # fmt: skip
        measured |= {
            f"constant at d = {d}": constant,
            f"error of least squares at d = {d}, N = {widths[-1]}": left[widths[-1]],
        }
        if d == 10:
            criteria.append(above("error of least squares for few features (d = 10, N = 10)", left[10], 0.9))
    growth = log_slope((40, 80, 160), [fixed_dimension_constant(d, 2) for d in (40, 80, 160)]).value
    return Outcome(
        (
            *criteria,
            near("exponent in d of the constant of degree 2", growth, 2.0, 0.1),
            true("the constant of degree 3 is infinite for relu", fixed_dimension_constant(5, 3) == float("inf")),
        ),
        measured,
    )


def least_squares_errors(rng: np.random.Generator, width: int, dimension: int, draws: int) -> Array:
    """Errors of the best fit of targets of degree 2 by so many ReLU features, for several draws of the features."""
    return np.array([float(unexplained_exact(sphere(rng, width, dimension), [2])[0]) for _ in range(draws)])


@claim(
    "T10",
    AREA,
    "The risk is convex in the measure over neurons, and N points approximate it at rate 1/N.",
    laws=("SampledMeasure",),
    figure="frank-wolfe",
)
def sampled(quick: bool) -> Outcome:
    """The exact constant of independent sampling; a parabola; the method of Frank and Wolfe below its bound."""
    rng = np.random.default_rng(0)
    X, neurons, weights = greedy_problem(rng)
    law = SampledMeasure(neurons=tuple(map(tuple, neurons.tolist())), weights=tuple(weights.tolist()))
    constant, seeds = float(law.theory().squared_error), range(10 if quick else 60)
    away = {n: sigmas(law.simulate_batch(n, seeds).squared_error.values, constant) for n in (5, 20, 80, 320)}
    y, other = weights @ neurons, rng.dirichlet(np.ones(len(weights))) @ neurons
    target, mix = rng.standard_normal(len(X)), np.linspace(0, 1, 5)
    risks = np.array([np.mean((t * y + (1 - t) * other - target) ** 2) for t in mix])
    bend = np.diff(risks, 2) / (2 * 0.25**2) - np.mean((y - other) ** 2)
    steps = 80 if quick else 400
    found = frank_wolfe(X, y, GREEDY_SCALE, steps)
    k, bound = np.arange(1, steps + 1), 16 * largest_norm(X, GREEDY_SCALE) ** 2
    listed = [n for n in (5, 20, 80, 200, 400) if n <= steps]
    products = [n * float(found.errors[n]) for n in listed]
    shares, comparisons = [], [compare(point, **effort(quick)) for point in SampledMeasure.check_points()]
    for place in listed[:3]:
        part = frank_wolfe(X, y, GREEDY_SCALE, place)
        residual = y - np.maximum(X @ part.neurons.T, 0.0) @ part.second_layer
        few, many = (abs(correlated_neuron(np.random.default_rng(1), X, residual, count)[1]) for count in (2000, 20_000))
        shares.append(few / max(few, many))
    return Outcome(
        (
            *(below(f"N times the error of {n} sampled neurons in standard errors", gap, 4.0) for n, gap in away.items()),
            below("largest error of the curvature of the risk along a mixture", float(np.abs(bend).max()), 1e-10),
            below("largest k times the error of Frank and Wolfe over its bound", float((k * found.errors[1:]).max()) / bound, 1.0),
            at_most("rise of k times the error over the listed k, relative", largest(np.diff(products)) / products[0], 0.1),
            above("smallest share of the best correlation that the search for a neuron reaches", smallest(shares), 0.99),
            *(agrees(f"sampling at check point {i + 1}", one) for i, one in enumerate(comparisons)),
        ),
        {"constant": constant, "16 B^2": bound, **{f"k times the error at k = {n}": n * float(found.errors[n]) for n in listed}},
        note="The bound assumes the best neuron at every step; the search is not convex and its tolerance is the measured share.",
    )  # fmt: skip


GREEDY_SCALE = 1.0


def greedy_problem(rng: np.random.Generator, inputs: int = 400, dimension: int = 5) -> tuple[Array, Array, Array]:
    """Inputs, six neurons +-relu(<w, x>) with unit w as rows of values, and their shares."""
    X, w = rng.standard_normal((inputs, dimension)), sphere(rng, 6, dimension)
    signs = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0])
    return X, GREEDY_SCALE * signs[:, None] * np.maximum(w @ X.T, 0.0), np.array([0.3, 0.2, 0.2, 0.1, 0.1, 0.1])


@claim(
    "T11",
    AREA,
    "The linearised (tangent) network interpolates from N d = n on, with two exceptions.",
    laws=("TangentInterpolation",),
    figure="tangent-interpolation",
)
def tangent_transition(quick: bool) -> Outcome:
    """Train error on both sides; the smallest eigenvalue closes there; ranks of the quadratic activation; dead inputs of relu."""
    law, size, seeds = TangentInterpolation(width=10.0), 20, range(4 if quick else 20)
    gaps, smallest_values = [], {}
    for ratio in (0.8, 0.95, 1.0, 1.05, 1.25, 2.0, 4.0):
        point = law.replace(samples_over_parameters=ratio)
        runs = point.simulate_batch(size, seeds).train_error
        gaps.append(abs(float(runs.mean()) - float(point.realised(size).theory().train_error)))
        smallest_values[ratio] = closing(ratio, 10, size)
    shapes = ((10, 4), (20, 8), (20, 15))
    square = [tangent_rank(d, n, "square") for d, n in shapes]
    plain = {name: tangent_rank(20, 8, name) for name in ("relu", "tanh")}
    four = TangentInterpolation(width=4.0, samples_over_parameters=0.75)
    floor = four.simulate_batch(20, range(100 if quick else 600)).train_error.values
    comparisons = [compare(point, **effort(quick)) for point in TangentInterpolation.check_points()[:2]]
    return Outcome(
        (
            below("largest gap of the train error to the law over n/(N d)", largest(gaps), 0.02),
            below(
                "smallest eigenvalue at N d = n over the larger of those at 0.8 and 1.25",
                smallest_values[1.0] / max(smallest_values[0.8], smallest_values[1.25]),
                0.02,
            ),
            *(
                equal(f"rank of the quadratic features, d = {d}, N = {n}", rank, n * d - n * (n - 1) // 2)
                for (d, n), rank in zip(shapes, square, strict=True)
            ),
            *(equal(f"rank of the {name} features, d = 20, N = 8", rank, 160) for name, rank in plain.items()),
            below("train error of 4 relu neurons with n < N d, gap to 2^-4 in standard errors", sigmas(floor, 0.0625), 4.0),
            *(agrees(f"the law at check point {i + 1}", one) for i, one in enumerate(comparisons)),
        ),
        {f"smallest eigenvalue at n/(N d) = {ratio:g}": value for ratio, value in smallest_values.items()},
        note="The quadratic network is an exception: its features have rank N d - N (N - 1)/2, and its transition is not at N d = n.",
    )  # fmt: skip


def closing(ratio: float, width: int, dimension: int, draws: int = 3) -> float:
    """Median over draws of the smallest eigenvalue of the smaller of Z'Z/n and ZZ'/n, for ReLU tangent features."""
    found = []
    for seed in range(draws):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((round(ratio * width * dimension), dimension))
        Z = tangent_features(X, sphere(rng, width, dimension), Activation("relu"))
        found.append(float(np.linalg.svd(Z, compute_uv=False)[-1]) ** 2 / len(X))
    return float(np.median(found))
