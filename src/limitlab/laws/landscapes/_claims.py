"""Claims about interpolating networks and about the landscapes of their risks (J31, L3, L4, L11, M9, M18)."""

from __future__ import annotations

import functools
import itertools
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest, log_slope, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.landscapes._linear_network_training import (
    critical_point,
    linear_descent,
    linear_flow,
    linear_risk,
    quadratic_descent,
    quadratic_risk,
)
from limitlab.laws.landscapes.double_descent import width_double_descent
from limitlab.laws.landscapes.hessian import hessian_inertia, hessian_parts
from limitlab.laws.landscapes.interpolating import RandomLabels, WidthDoubleDescent
from limitlab.laws.landscapes.linear_network import LinearNetwork, crossing, saddle_index
from limitlab.models.optimisers import double_precision_jax

# -- interpolating ------------------------------------------------------------------------------------------------

_AREA = "Uniform convergence and real networks"


@claim("L3", _AREA, WidthDoubleDescent, figure="width-double-descent", quick_decides=False, items=("L-8", "T-3"))
def peak(check: Check) -> None:
    """On images, the test error of a two-layer network peaks where it starts to interpolate and falls again with width.

    Measured: a sweep of widths on the digits with 10 % wrong labels, trained to interpolation, and the limit of the second descent.
    """
    samples, seeds, widths = (
        (120, 8, (2, 5, 8, 9, 10, 12, 16, 40, 80))
        if check.quick
        else (300, 10, (3, 9, 14, 18, 22, 24, 26, 30, 35, 50, 100, 200))
    )
    runs = width_double_descent(widths, samples, 0.1, seeds=seeds)
    ratio, test = runs.parameters_over_samples.values, runs.test_loss
    # medians over seeds, because a narrow network may have an output with a very large slope, which would dominate a mean
    mean, error = test.median("seed").values, 1.25 * robust_spread(test.values) / np.sqrt(seeds)
    top = int(mean.argmax())
    check.between("p/n at the peak of the test error (median over seeds)", float(ratio[top]), 0.8, 1.2)
    check.above("test error at the peak over that at the largest width", float(mean[top] / mean[-1]), 2.0)
    check.above("test error at the peak over that at the smallest width", float(mean[top] / mean[0]), 2.0)
    check.above(
        "fall from the peak to the largest width in standard errors",
        float((mean[top] - mean[-1]) / np.hypot(error[top], error[-1])),
        3.0,
    )
    # close to the threshold some starts of small networks do not reach interpolation
    beyond = runs.train_loss.values[ratio > (1.25 if check.quick else 1.03)]
    check.below("largest train error past the threshold", largest(beyond.ravel()), 1e-10)
    check.above("train error at half the threshold", float(runs.train_loss.values[ratio < 0.6].min(axis=1).max()), 1e-3)
    point = WidthDoubleDescent.check_points()[0]
    check.agree("the end of the second descent", point, seeds=120 if check.quick else 300)
    if not check.quick:
        check.extrapolated("the end of the second descent", point, (150, 300), 1500, ["excess_risk"])
    check.show("samples", samples)
    check.show("seeds", seeds)
    check.show("largest p/n", float(ratio[-1]))
    check.show("test error at the peak", float(mean[top]))
    check.show("test error at the end", float(mean[-1]))


def robust_spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standard deviation along the last axis from the quartiles, as for a Gaussian.

    >>> bool(abs(robust_spread(np.random.default_rng(0).standard_normal(10_000)) - 1) < 0.05)
    True
    """
    low, high = np.quantile(values, [0.25, 0.75], axis=-1)
    return np.asarray((high - low) / 1.349)


@claim("L4", _AREA, RandomLabels, WidthDoubleDescent, figure="random-labels", quick_decides=False, items=("L-11", "T-3"))
def fits_noise(check: Check) -> None:
    """A network fits random labels. With some labels corrupted it interpolates and still has a small error on clean data.

    Measured: a sweep over the share of wrong labels at a width of several times the threshold.
    """
    samples, seeds = (200, 4) if check.quick else (400, 10)
    width = 8 * samples // 12
    wrong = (0.0, 0.1, 0.2, 0.5)
    runs = [width_double_descent([width], samples, share, seeds=seeds).isel(width=0) for share in wrong]
    errors = [float(run.test_classification_error.mean()) for run in runs]
    check.below(
        "largest train error over all shares of wrong labels", largest(float(run.train_loss.max()) for run in runs), 1e-10
    )
    check.between("share of errors on clean images after training on random labels", errors[-1], 0.4, 0.6)
    check.below("share of errors on clean images with 10 % of the labels wrong", errors[1], 0.25)
    check.above("what 10 % of wrong labels cost, share of errors", errors[1] - errors[0], 0.0)
    point = RandomLabels.check_points()[0]
    check.agree("random labels in the limit of infinite width", point, seeds=150 if check.quick else 500)
    if not check.quick:
        check.extrapolated("random labels in the limit of infinite width", point, (150, 300), 800, ["excess_risk"])
    for share, error in zip(wrong, errors, strict=True):
        check.show(f"wrong on clean images with {share:.0%} wrong labels", error)


# -- landscapes ---------------------------------------------------------------------------------------------------


COUNTED, CLOSE = 1e-3, 1e-4
"""Residuals close to interpolation, for the number of negative eigenvalues and for the lowest one.

Terms of second order change the lowest eigenvalue by a share of the order of the residual. At the smaller residual some negative
eigenvalues are so close to 0 that they count as flat.
"""


@claim("J31", "Implicit bias, interpolation, spectra", figure="hessian-inertia", items=("J-16",))
def hessian_signs(check: Check) -> None:
    """At a random start the Hessian of a network with more parameters than samples has a number of negative eigenvalues of the order of
    the input dimension (half of all eigenvalues at fixed width). At interpolation p - n eigenvalues are 0.

    Checked: counts at random starts, at interpolation and close to it, and the curvature on the kernel of the Jacobian.
    """
    cases = ((10, 10, 40), (10, 20, 40), (10, 20, 80))
    exact = [hessian_inertia(d, width, n) for d, width, n in cases]
    wrong = sum(
        (inertia.negative, inertia.zero, inertia.positive) != (0, width * (d + 1) - n, n)
        for inertia, (d, width, n) in zip(exact, cases, strict=True)
    )
    check.equal("cases of 3 at interpolation that do not have n positive, p - n zero and no negative eigenvalues", wrong, 0)
    dimensions = (10, 20) if check.quick else (10, 20, 40)
    counts = [
        hessian_inertia(d, 10, n * d, interpolate=False, seed=seed).negative / d
        for d in dimensions
        for n in (2, 8)
        for seed in range(3)
    ]
    shares = [count * d / (10 * (d + 1)) for count, d in zip(counts, np.repeat(dimensions, 6), strict=True)]
    check.above("least share of negative eigenvalues at a random start", smallest(shares), 0.4)
    check.below("largest share of negative eigenvalues at a random start", largest(shares), 0.6)
    check.near("share of negative eigenvalues at a random start, mean", float(np.mean(shares)), 0.5, 0.025)
    check.show("negative eigenvalues per input dimension at width 10, mean", float(np.mean(counts)))
    equal_counts, slopes = [], []
    for seed in range(2 if check.quick else 6):
        for residual in (COUNTED, CLOSE):
            jacobian, bend = hessian_parts(10, 20, 80, True, seed, residual=residual)
            kernel = np.linalg.svd(jacobian)[2][80:]
            inside = np.linalg.eigvalsh(kernel @ bend @ kernel.T)
            near = hessian_inertia(10, 20, 80, seed=seed, residual=residual)
            if residual == COUNTED:
                equal_counts.append(near.negative == int(np.sum(inside < 0)))
            else:
                slopes.append(near.eigenvalues[0] / inside[0])
    check.true("close to interpolation as many negative eigenvalues as E on the kernel of the Jacobian", all(equal_counts))
    check.near("lowest eigenvalue close to interpolation over that on the kernel, mean", float(np.mean(slopes)), 1.0, 0.02)
    far = hessian_inertia(10, 20, 80, residual=1.0).negative
    check.above(
        "negative eigenvalues at residual 1 minus those at 1e-3",
        far - hessian_inertia(10, 20, 80, residual=1e-3).negative,
        10,
    )
    check.show("negative eigenvalues at residual 1", far)
    check.note(
        "The source says that the number of negative eigenvalues is of the order of the input dimension. It is (N/2) d at width N, "
        "which is half of all parameters."
    )


# -- mean field ends ----------------------------------------------------------------------------------------------

AREA = "Mean field"

SPECTRUM = (3.0, 2.0, 1.0, 0.5)


@claim("M9", AREA, LinearNetwork, figure="linear-network", items=("M-1",))
def no_spurious_minima(check: Check) -> None:
    """Linear and quadratic two-layer networks have no spurious local minima, and every critical point but the best is a strict
    saddle of known index. A linear network learns its modes one after another, in closed form.

    Compared: indices with numerical Hessians, risks of descents from random starts, modes with the flow, half times of random starts.
    """
    hidden = (2,) if check.quick else (1, 2, 3)
    wrong, curvature, points = 0, [], 0
    for width in hidden:
        for size in range(width + 1):
            for selected in itertools.combinations(range(len(SPECTRUM)), size):
                for quadratic in (False, True):
                    law = saddle_index(SPECTRUM, width, selected, "quadratic" if quadratic else "linear")
                    negative, lowest = numerical_index(SPECTRUM, width, selected, quadratic)
                    wrong, points = wrong + (negative != law.negative), points + 1
                    curvature.append(abs(lowest - law.lowest))
    check.equal(f"critical points of {points} whose number of negative eigenvalues is not that of the formula", wrong, 0)
    check.below("largest gap of the lowest eigenvalue", largest(curvature), 1e-8)
    runs, rng = 30 if check.quick else 100, np.random.default_rng(0)
    ends = [linear_descent(rng, np.diag(SPECTRUM), 2, runs) - sum(s**2 for s in SPECTRUM[2:])]
    values = np.array([3.0, 2.2, 1.5, 1.0, 0.6, 0.3])
    for width in (1, 3) if check.quick else (1, 2, 3, 5, 6, 8):
        ends.append(quadratic_descent(rng, np.diag(values), width, runs // 2) - 2 * np.sum(values[width:] ** 2))
    check.below("largest distance of a descent's risk from the global minimum", largest(np.concatenate(ends)), 1e-6)
    check.below("largest gap of the modes from the integrated flow, aligned start", mode_gap(), 1e-8)
    growth = half_time_growth(SPECTRUM, 3 if check.quick else 20)
    laws = [np.log(100) / (4 * s) for s in SPECTRUM]
    for k in range(3):
        check.near_relative(
            f"half time of mode {k + 1} per factor 10 in the scale of a random start", growth[k], laws[k], 0.1
        )
    check.agree("modes and half times of networks on finitely many samples", LinearNetwork.check_points()[0])
    check.show("half time of mode 4 per factor 10 (modes interact: not asserted)", growth[3])
    check.show("its law", laws[3])
    check.show("descents", sum(map(len, ends)))
    check.note("The source contains the statement about landscapes. The exact dynamics is an addition of limitlab.")


def numerical_index(
    spectrum: tuple[float, ...], hidden: int, learned: tuple[int, ...], quadratic: bool
) -> tuple[int, float]:
    """Return the number of negative eigenvalues of the Hessian, and the lowest one (0 if none is), by automatic derivatives."""
    hessian = _hessian(spectrum, hidden, quadratic)(critical_point(spectrum, hidden, learned, quadratic))
    values = np.linalg.eigvalsh(np.asarray(hessian))
    return int(np.sum(values < -1e-9)), min(float(values[0]), 0.0) if values[0] < -1e-9 else 0.0


@functools.cache
def _hessian(spectrum: tuple[float, ...], hidden: int, quadratic: bool) -> Any:
    jax = double_precision_jax()
    risk, target = quadratic_risk if quadratic else linear_risk, np.diag(spectrum)
    return jax.jit(jax.hessian(lambda w: risk(w, target, hidden)))


def mode_gap() -> float:
    """Return the largest gap between closed form and integrated flow for one network with an aligned start."""
    law = LinearNetwork(singular_values=SPECTRUM, start=0.001, times=(0.5, 1.0, 2.0, 4.0))
    root = np.sqrt(law.start) * np.eye(len(SPECTRUM))
    grid = np.linspace(0, 4, 1601)  # the spacing 0.0025 is also the step
    path = linear_flow((root, root), np.diag(SPECTRUM), np.eye(len(SPECTRUM)), grid)
    strengths = np.einsum("tkk->tk", path)[np.searchsorted(grid, np.array(law.times) - 1e-9)]
    return float(np.abs(strengths - law.theory().modes.values).max())


def half_time_growth(spectrum: tuple[float, ...], draws: int) -> list[float]:
    """Return the mean growth of the half times when a random start is made ten times smaller."""
    size, growth = len(spectrum), []
    grid = np.linspace(0, 12, 1200)
    for seed in range(draws):
        first = np.random.default_rng(seed).standard_normal((2, size, size))
        halves = []
        for scale in (1e-3, 1e-4):
            path = linear_flow((scale * first[0], scale * first[1]), np.diag(spectrum), np.eye(size), grid)
            strengths = np.einsum("tkk->tk", path)
            halves.append([crossing(grid, a, s / 2) for a, s in zip(strengths.T, spectrum, strict=True)])
        growth.append(np.subtract(halves[1], halves[0]))
    return [float(value) for value in np.mean(growth, axis=0)]


# -- minima -------------------------------------------------------------------------------------------------------


@claim("L11", _AREA, WidthDoubleDescent, figure="five-layers", quick_decides=False, items=("L-10", "T-3"))
def five_layers(check: Check) -> None:
    """Networks of five layers with quadratic hinge loss interpolate below p = n. The test loss has a peak there and falls again for
    larger p. (The claim is qualitative, because the threshold depends on the optimiser.)

    Measured: a sweep of widths on the digits with wrong labels, by Levenberg-Marquardt on the unsatisfied margins.
    """
    widths: tuple[int, ...] = (2, 3, 4, 5, 6, 8, 16)
    samples, flips, seeds, iterations = 200, 0.2, 6, 200
    if not check.quick:
        widths, samples, flips, seeds, iterations = (2, 3, 4, 5, 6, 7, 8, 12, 20), 300, 0.1, 4, 300
    runs = width_double_descent(widths, samples, flips, depth=5, loss="squared_hinge", seeds=seeds, iterations=iterations)
    ratio, test = runs.parameters_over_samples.values, runs.test_loss.median("seed").values
    train, done = runs.train_loss.median("seed").values, (runs.train_loss < 1e-11).mean("seed").values
    check.above("median train loss at the smallest p/n above 0.2", float(train[ratio > 0.2][0]), 0.05)
    top, threshold = int(test.argmax()), int(np.argmin(np.abs(ratio - 1.02)))
    below_n = int(np.flatnonzero(ratio < 0.9)[-1])
    check.at_least(
        f"share of runs that interpolate at p/n = {ratio[below_n]:.2f}", float(done[below_n]), 0.3 if check.quick else 0.5
    )
    check.at_least(
        f"share of runs that interpolate at p/n = {ratio[threshold]:.2f}",
        float(done[threshold]),
        0.5 if check.quick else 0.75,
    )
    check.between("p/n at the peak of the test loss (median over seeds)", float(ratio[top]), 0.2, 1.1)
    check.above(
        "test loss at the peak over that at the largest width", float(test[top] / test[-1]), 1.5 if check.quick else 2.0
    )
    check.above("test loss at the peak over that at the smallest width", float(test[top] / test[0]), 2.0)
    low, high = np.quantile(runs.test_loss.values, [0.25, 0.75], axis=1)
    check.show("samples", samples)
    check.show("seeds", seeds)
    check.show("iterations", iterations)
    check.show("test loss at the peak", float(test[top]))
    check.show("its quartiles", f"{low[top]:.3g} to {high[top]:.3g}")
    check.show("test loss at the largest width", float(test[-1]))
    check.show("quartiles there", f"{low[-1]:.3g} to {high[-1]:.3g}")
    check.note(
        "Qualitative. More iterations move the threshold down; a second descent of the share of errors is not claimed."
    )


# -- convexity near a teacher -----------------------------------------------------------------------------------------


@claim("M18", "Mean field", items=("M-2",))
def convex_near_the_teacher(check: Check) -> None:
    """The risk of a two-layer network is strongly convex near the weights of its teacher.

    The least eigenvalue of the Hessian of E (y - sum_i s(<w_i, x>))^2 at orthonormal teachers is computed exactly. It is positive for tanh,
    sigmoid and squared rectified neurons, and 0 for linear and for quadratic neurons, where teachers are not unique. Hessians on n samples
    approach it like sqrt(d/n). They are positive definite in a ball around the teacher, inside which gradient descent converges at the
    rate of this eigenvalue, and have negative eigenvalues far away.
    """
    k, d = 3, 6
    bounds = {name: teacher_curvature(name, k) for name in ("tanh", "sigmoid", "squared relu", "linear", "square")}
    check.above(
        "least eigenvalue at the teacher: tanh, sigmoid, squared relu",
        smallest([bounds[n] for n in list(bounds)[:3]]),
        0.001,
    )
    check.below(
        "absolute least eigenvalue for linear and quadratic neurons",
        largest(abs(bounds[n]) for n in ("linear", "square")),
        1e-9,
    )
    for name, value in bounds.items():
        check.show(f"least eigenvalue of the Hessian at the teacher, {name}", value)
    ratios, draws = ((80, 320, 1280), 20) if check.quick else ((80, 320, 1280), 200)
    spreads, means, least = [], [], []
    for ratio in ratios:
        rows = np.array([sampled_curvature("tanh", k, d, ratio * d, 0.0, seed) for seed in range(draws)])
        spreads.append(float(rows.std(ddof=1)))
        means.append((float(rows.mean()), standard_error(rows)))
        least.append(float(rows.min()))
    error = 4 * math.sqrt(1 / draws) / math.log(ratios[-1] / ratios[0])
    check.near(
        "tanh: exponent in n of the spread of the least eigenvalue on samples", log_slope(ratios, spreads).value, -0.5, error
    )
    weights = np.array(
        [1 / 3, -2.0, 8 / 3]
    )  # remove the terms n^(-1/2), because the least eigenvalue is degenerate, and 1/n
    limit, error = weights @ [m for m, _ in means], float(np.linalg.norm(weights * [e for _, e in means]))
    check.near("tanh: mean of the least eigenvalue, extrapolated in n", float(limit), bounds["tanh"], 4 * error)
    check.above("tanh: least eigenvalue on samples at the largest n/d, smallest of all draws", least[-1], 0.0)
    near = [sampled_curvature("tanh", k, d, 320 * d, 0.15, seed) for seed in range(draws)]
    far = [sampled_curvature("tanh", k, d, 320 * d, 3.0, seed) for seed in range(draws)]
    check.above("tanh: least eigenvalue at distance 0.15 from the teacher, smallest of all draws", smallest(near), 0.0)
    check.below("tanh: least eigenvalue at distance 3 from the teacher, largest of all draws", largest(far), 0.0)
    rate, expected = descent_rate("tanh", k, d, 0.15)
    check.near_relative(
        "tanh: rate of the last stage of descent over that of the least eigenvalue on its inputs", rate / expected, 1, 0.01
    )
    check.near_relative("tanh: this rate over twice the least eigenvalue", rate / (2 * bounds["tanh"]), 1, 0.04)
    check.note(
        "The factor 2 of the squared error is part of the Hessian. Cited conditions need n of order d times a power of the width."
    )


def neuron_functions(name: str) -> tuple[Any, Any, Any]:
    """Return an activation and its first two derivatives."""
    from scipy.special import expit

    def sigmoid_slope(z: Any) -> Any:
        return expit(z) * (1 - expit(z))

    return {
        "tanh": (np.tanh, lambda z: 1 - np.tanh(z) ** 2, lambda z: -2 * np.tanh(z) * (1 - np.tanh(z) ** 2)),
        "sigmoid": (expit, sigmoid_slope, lambda z: sigmoid_slope(z) * (1 - 2 * expit(z))),
        "squared relu": (lambda z: np.maximum(z, 0) ** 2, lambda z: 2 * np.maximum(z, 0), lambda z: 2.0 * (z > 0)),
        "linear": (lambda z: z, np.ones_like, np.zeros_like),
        "square": (np.square, lambda z: 2 * z, lambda z: 2 * np.ones_like(z)),
    }[name]


def teacher_curvature(name: str, k: int) -> float:
    """Return the least eigenvalue of 2 E (grad f)(grad f)' at k orthonormal weights, in more than k dimensions.

    Perpendicular to the teacher this is 2 Var s'. In its span it is that of the matrix with entries 2 E s'(z_i) s'(z_j) z_a z_b, products
    of moments of single coordinates.
    """
    from limitlab.numerics.gaussian import hermite_rule

    z, w = hermite_rule(400)
    slope = neuron_functions(name)[1](z)
    moment = np.array([[w @ (slope**power * z**order) for order in range(3)] for power in range(3)])
    entries = np.empty((k, k, k, k))
    for i, a, j, b in np.ndindex(entries.shape):
        entries[i, a, j, b] = np.prod([moment[(c == i) + (c == j), (c == a) + (c == b)] for c in range(k)])
    inside = np.linalg.eigvalsh(entries.reshape(k * k, k * k))[0]
    across = moment[2, 0] - moment[1, 0] ** 2
    return 2 * float(min(inside, across))


def sampled_curvature(name: str, k: int, d: int, n: int, distance: float, seed: int) -> float:
    """Return the least eigenvalue of the Hessian on n samples at a random place at this distance from the teacher."""
    value, slope, bend = neuron_functions(name)
    rng = np.random.default_rng([18, seed, n])
    x, teacher = rng.standard_normal((n, d)), np.eye(k, d)
    away = rng.standard_normal((k, d))
    w = teacher + distance * away / np.linalg.norm(away)
    z = x @ w.T
    residual = value(z).sum(axis=1) - value(x @ teacher.T).sum(axis=1)
    gradients = (slope(z)[:, :, None] * x[:, None, :]).reshape(n, k * d)
    hessian = 2 * gradients.T @ gradients / n
    for i in range(k):
        block = slice(i * d, (i + 1) * d)
        hessian[block, block] += 2 * (x * (residual * bend(z[:, i]))[:, None]).T @ x / n
    return float(np.linalg.eigvalsh(hessian)[0])


def descent_rate(name: str, k: int, d: int, distance: float) -> tuple[float, float]:
    """Return the rate at which the risk of gradient descent falls at late times, and that of the least eigenvalue, from its eigenvector."""
    value, slope, _ = neuron_functions(name)
    rng = np.random.default_rng(18)
    half = rng.standard_normal((5000, d))
    x, teacher = np.concatenate([half, -half]), np.eye(k, d)
    labels = value(x @ teacher.T).sum(axis=1)
    gradients = (slope(x @ teacher.T)[:, :, None] * x[:, None, :]).reshape(len(x), k * d)
    step, risks = 0.25, []
    eigenvalues, vectors = np.linalg.eigh(2 * gradients.T @ gradients / len(x))
    w = teacher + distance * vectors[:, 0].reshape(k, d)
    for _ in range(round(12 / (step * float(eigenvalues[0])))):
        z = x @ w.T
        residual = value(z).sum(axis=1) - labels
        risks.append(float(np.mean(residual**2)))
        w = w - step * 2 * (slope(z) * residual[:, None]).T @ x / len(x)
    return float(np.log(risks[-2] / risks[-1])) / step, -2 * float(np.log(1 - step * eigenvalues[0])) / step
