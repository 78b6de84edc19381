"""Claims about the length of the steps and about deviations from the flow (J32, J33, J42, J48)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest, log_slope, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.online_sgd._claims.effective import at_infinity
from limitlab.laws.online_sgd.growth import GrowthExponents, Point, fitted, growth_exponents
from limitlab.laws.online_sgd.large_deviation import SgdLargeDeviation
from limitlab.laws.online_sgd.mixture import OnlineMixture
from limitlab.laws.online_sgd.pca import OnlinePCA
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor

Array = NDArray[np.float64]

AREA = "Online SGD"


@claim("J32", AREA, SpikedTensor, OnlinePCA, OnlineMixture, figure="growth-exponents", items=("J-29", "J-37"))
def growing_moments(check: Check) -> None:
    """The examples satisfy the moment conditions of the limit theorems. For the spiked matrix no step longer than order 1/N does.

    The check compares fitted growth exponents with their bounds (by quadrature for phase retrieval). A heavy-tailed control must fail.
    """
    sizes, samples = ((100, 200, 400, 800), 1000) if check.quick else ((50, 100, 200, 400, 800), 4000)
    matrix = SpikedTensor(order=2).growth_exponents(sizes, samples)
    check.near("spiked matrix: exponent of E|H|^8", matrix.norm_eighth, 4.0, 0.15)
    exact = log_slope(sizes, [matrix_eighth(n) for n in sizes]).value
    name = "spiked matrix: exponent of E|H|^8, less that of its closed form at these N"
    check.near(name, matrix.norm_eighth - exact, 0.0, 4 * matrix.errors["norm_eighth"] + 0.01)
    check.show("spiked matrix: exponent of the closed form of E|H|^8 at these N", exact)
    check.near("spiked matrix: exponent of E<H, grad u>^4", matrix.directional_fourth, 0.0, 0.15)
    check.near("spiked matrix: exponent of the variance of <Hess u, H H'>", matrix.curvature_variance, 1.0, 0.15)
    check.near("spiked matrix: exponent of the largest localizable step", matrix.largest_step_exponent, -1.0, 0.05)
    check.true(
        "steps N^-1 and N^-1.5 are localizable, N^-0.8 is not",
        [matrix.localizable(s) for s in (-1, -1.5, -0.8)] == [True, True, False],
    )
    sizes = (50, 100, 200, 400) if check.quick else (50, 100, 200, 400, 800)
    pca = online_pca(sizes, 4000)
    check.near("online PCA: exponent of the second moment along the signal", pca.directional_second, 0.0, 0.15)
    check.near("online PCA: exponent of E|H|^5", pca.norm_fifth, 2.5, 0.15)
    clusters = online_mixture(sizes, 4000)
    check.near("two clusters: exponent of the second moment along the axis", clusters.directional_second, 0.0, 0.15)
    check.near("two clusters: exponent of E|H|^5", clusters.norm_fifth, 2.5, 0.15)
    check.true("two clusters: these moments are regular and measured reliably", clusters.regular and clusters.reliable)
    steepest = [
        largest(float(OnlineMixture(field=h).population_slope(m)) for m in np.linspace(0.05, 0.95, 10)) for h in (0.0, 0.4)
    ]
    check.below(
        "two clusters: largest slope of the population loss on (0, 1), equal and unequal weights", largest(steepest), 0.0
    )
    retrieval = float(np.polyfit(np.log(sizes), [np.log(phase_retrieval_fifth(n)) for n in sizes], 1)[0])
    check.near("phase retrieval: exponent of E|H|^5, by quadrature", retrieval, 2.5, 0.05)
    if not check.quick:
        check_xor_moments(check)
    heavy = [student_inputs(sizes, 4000, seed) for seed in range(3)]
    slopes = np.linspace(0.05, 0.95, 10)
    largest_slope = largest(float(OnlinePCA(snr=1.0).population_slope(m)) for m in slopes)
    check.below("online PCA: largest slope of the population loss on (0, 1)", largest_slope, 0.0)
    check.true(
        "Student inputs with 3 degrees of freedom are not regular, or not reliably so",
        not any(exponents.regular and exponents.reliable for exponents in heavy),
    )
    check.show(
        "Student inputs: exponents of the second moment",
        ", ".join(f"{exponents.directional_second:.2f}" for exponents in heavy),
    )
    check.show("Student inputs: exponents of E|H|^5", ", ".join(f"{exponents.norm_fifth:.2f}" for exponents in heavy))
    check.note(
        "Corrections of the source: the remark on the sign of the slope belongs to assumption B. The inequality that the source "
        "derives from Jensen's inequality is a lower bound. The moment conditions contain the Hessian of the statistic, not of the loss."
    )


def check_xor_moments(check: Check) -> None:
    """Check the moment conditions of an XOR network at steps of order 1/N."""
    network = xor_growth((20, 40, 80, 160), 3000)
    check.below("XOR network: exponent of E|H|^8, which must be at most 4 for steps 1/N", network.norm_eighth, 4.15)
    check.below("XOR network: exponent of E<H, grad u>^4, which must be at most 2", network.directional_fourth, 0.5)
    check.below(
        "XOR network: exponent of the variance of <Hess u, H H'>, which must be at most 3", network.curvature_variance, 3.15
    )
    check.true(
        "XOR network: steps N^-1 are localizable, N^-0.5 are not",
        [network.localizable(s) for s in (-1, -0.5)] == [True, False],
    )


def xor_growth(sizes: Sequence[int], samples: int, snr: float = 0.2) -> GrowthExponents:
    """Return growth exponents of an XOR network with two neurons at fixed noise, for the statistics v, overlaps and Gram matrix."""
    import jax
    import jax.numpy as jnp

    def split(x: Any) -> tuple[Any, Any]:
        return x[:2], x[2:].reshape(2, -1)

    def loss(x: Any, sample: Any) -> Any:
        (v, w), (y, label) = split(x), sample
        f = v @ jax.nn.relu(w @ y)
        return jnp.logaddexp(0.0, f) - label * f

    def summary(x: Any) -> Any:
        v, w = split(x)
        return jnp.concatenate(
            [v, w[:, :2].ravel(), jnp.array([w[0, 2:] @ w[0, 2:], w[0, 2:] @ w[1, 2:], w[1, 2:] @ w[1, 2:]])]
        )

    def sampler(key: Any, count: int, size: int) -> Any:
        noise, cluster = jax.random.split(key)
        chosen = jax.random.randint(cluster, (count,), 0, 4)
        centre = jnp.eye(2, size)[chosen // 2] * (1 - 2.0 * (chosen % 2))[:, None]
        return centre + jax.random.normal(noise, (count, size)) / math.sqrt(snr), (chosen < 2).astype(float)

    def points(size: int) -> list[Array]:
        w = np.zeros((2, size))
        w[0, :3], w[1, :4] = (0.4, 0.1, 0.8), (-0.2, 0.5, 0.3, 0.7)
        return [np.concatenate([[0.9, -0.6], w.ravel()])]

    return growth_exponents(loss, summary, sampler, points, sizes, samples, seed=32)


def online_pca(sizes: Sequence[int], samples: int) -> GrowthExponents:
    """Return growth exponents of the spherical gradients of -<y, x>^2, y = g v + z, at three overlaps with v."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng(size)
        for m in (0.0, 0.5, 0.9):
            x = np.zeros(size)
            x[:2] = m, np.sqrt(1 - m * m)
            y = rng.standard_normal((samples, size))
            y[:, 0] += rng.standard_normal(samples)
            yield spherical_noise(-2 * (y @ x)[:, None] * y, x)

    return fitted(at, sizes)


def online_mixture(sizes: Sequence[int], samples: int, field: float = 0.4) -> GrowthExponents:
    """Return growth exponents of the spherical gradients of -log cosh(<y, x> + h), y = eps v + z, at three overlaps with v."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng([32, size])
        for m in (0.0, 0.5, 0.9):
            x = np.zeros(size)
            x[:2] = m, np.sqrt(1 - m * m)
            y = rng.standard_normal((samples, size))
            y[:, 0] += np.where(rng.random(samples) < 1 / (1 + math.exp(-2 * field)), 1.0, -1.0)
            yield spherical_noise(-np.tanh(y @ x + field)[:, None] * y, x)

    return fitted(at, sizes)


def student_inputs(sizes: Sequence[int], samples: int, seed: int) -> GrowthExponents:
    """Return growth exponents of the control, linear regression on inputs with infinite third moments."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng([seed, size])
        a = rng.standard_t(3, (samples, size)) / np.sqrt(3)
        x = np.eye(size)[1] * np.sqrt(0.75) + np.eye(size)[0] * 0.5
        yield spherical_noise(2 * (a @ x - a[:, 0])[:, None] * a, x)

    return fitted(at, sizes)


def spherical_noise(gradients: Array, x: Array) -> Point:
    """Return the noise of gradients projected to the tangent space of the sphere at x. The only statistic is the first coordinate."""
    forces = gradients - (gradients @ x)[:, None] * x
    return Point(forces - forces.mean(axis=0), np.eye(x.size)[:1], np.zeros((1, x.size, x.size)))


def matrix_eighth(size: int) -> float:
    """Return E|H|^8 / 8^4 for the noise of the spiked matrix at unit weights, where |H|^2 / 8 is chi^2_{N-1} + 2 chi^2_1.

    >>> matrix_eighth(1) == 16 * 105
    True
    """
    first, second, third, fourth = (
        2 ** (j - 1) * math.factorial(j - 1) * (size - 1 + 2**j) for j in (1, 2, 3, 4)
    )  # cumulants
    return float(fourth + 4 * third * first + 3 * second**2 + 6 * second * first**2 + first**4)


def phase_retrieval_fifth(size: int) -> float:
    """Return E |grad|^5 for the loss (<a, x>^2 - <a, v>^2)^2 on the sphere at overlap 0, by quadrature.

    Exponents from sampled values scatter by 0.3.

    The gradient is 4 (u^2 - b^2) u times a vector of squared length b^2 + chi^2 with size - 2 degrees of freedom.
    """
    from scipy.stats import chi2

    x, w = np.polynomial.hermite_e.hermegauss(60)
    w = w / w.sum()
    levels, shares = np.polynomial.legendre.leggauss(80)
    rest = chi2.ppf((levels + 1) / 2, size - 2)
    length = (x[:, None] ** 2 + rest) ** 2.5 @ (shares / 2)  # given b
    force = np.abs(4 * (x[:, None] ** 2 - x**2) * x[:, None]) ** 5  # rows u, columns b
    return float(w @ force @ (w * length))


@claim("J33", AREA, SgdLargeDeviation, figure="sgd-large-deviation", items=("J-36",))
def large_deviations(check: Check) -> None:
    """In fixed dimension SGD with a small step deviates from its flow with probability exp(-I(eps)/step), and I depends on
    the whole distribution of the noise.

    The check extrapolates -step log P (exact or from weighted draws) from steps down to 1/160 (full check: 1/320), and compares the result
    with the Legendre transform.
    """
    gaussian = SgdLargeDeviation(deviation=0.5, times=1.0, noise_law="gaussian")
    sign = gaussian.replace(noise_law="sign", paths=20_000 if check.quick else 200_000)
    sizes = (40, 80, 160) if check.quick else (80, 160, 320)
    exact = [gaussian.exact_probability(size) for size in sizes]
    curves = {
        "Gaussian": [-float(np.log(p)) / size for p, size in zip(exact, sizes, strict=True)],
        "sign": [float(sign.simulate(size, 0).rate) for size in sizes],
    }
    limits = {"Gaussian": float(gaussian.theory().rate), "sign": float(sign.theory().rate)}
    fitted = {name: extrapolated(sizes, curve) for name, curve in curves.items()}
    for name in fitted:
        check.near_relative(f"extrapolated rate of {name} noise", fitted[name], limits[name], 0.01)
    check.above("extrapolated rate of signs over that of Gaussian noise", fitted["sign"] / fitted["Gaussian"], 1.15)
    check.below("smallest probability in the table (Gaussian noise)", exact[-1], 1e-20)
    counted = -float(np.log(sign.exact_probability(20))) / 20
    drawn = [float(law.simulate(20, 1).rate) for law in (sign, gaussian)]
    check.near("weighted draws of signs against all 2^20 paths at step 1/20", drawn[0], counted, 1e-3)
    check.near(
        "weighted draws of Gaussian noise against the transfer operator at step 1/20",
        drawn[1],
        -float(np.log(gaussian.exact_probability(20))) / 20,
        2e-3,
    )
    for name, curve in curves.items():
        for size, value in zip(sizes, curve, strict=True):
            check.show(f"rate at step 1/{size}, {name} noise", value)
    check.note(
        "An estimate by counting runs would need more than 1e20 runs. Correction of the source: the path that interpolates between the "
        "steps is X_k + (t/step - k)(X_{k+1} - X_k)."
    )


def extrapolated(sizes: Sequence[int], values: Sequence[float]) -> float:
    """Return the limit I of a fit I + A delta + B delta log(1/delta) to three or more values at delta = 1/size.

    >>> round(extrapolated((10, 20, 40), [1 + 2 / n + 3 / n * np.log(n) for n in (10, 20, 40)]), 9)
    1.0
    """
    step = 1 / np.asarray(sizes, dtype=float)
    table = np.stack([np.ones_like(step), step, step * np.log(1 / step)], axis=1)
    return float(np.linalg.lstsq(table, np.asarray(values), rcond=None)[0][0])


INPUTS, TRUTH, LABEL_NOISE = np.array([1.0, 0.4]), np.array([0.7, -0.5]), 0.6
"""Variances of two inputs, true weights and label noise of the check of the functional central limit theorem."""


@claim("J42", AREA, SgdLargeDeviation, items=("J-36",))
def fluctuations_in_fixed_dimension(check: Check) -> None:
    """In fixed dimension the path of SGD with step delta is its flow plus sqrt(delta) times a Gaussian process Z, with
    dZ = -Hess phi(x(t)) Z dt + Sigma(x(t))^(1/2) dB, where Sigma is the covariance of the gradient.

    The check runs SGD for linear regression with two inputs, whose noise depends on the place. Covariances of Z at two times and at equal
    times are extrapolated in delta. The distribution of a component is compared with a Gaussian law.
    """
    from scipy import stats

    times, runs = (0.3, 1.0), 20_000 if check.quick else 200_000
    sizes = (40, 80) if check.quick else (80, 160, 320)
    start = np.array([2.0, 1.0])
    early, late = limit_covariance(start, times[0]), limit_covariance(start, times[1])
    decay = np.exp(-2 * INPUTS * (times[1] - times[0]))
    targets = np.concatenate([early[np.triu_indices(2)], late[np.triu_indices(2)], (decay[:, None] * early).ravel()])
    rows, errors = [], []
    for size in sizes:
        paths = regression_paths(np.random.default_rng([42, size]), start, 1 / size, times, runs)
        z = (paths - paths.mean(axis=0)) * math.sqrt(size)
        first, second = z[:, 0], z[:, 1]
        products = [
            *(first[:, i] * first[:, j] for i, j in ((0, 0), (0, 1), (1, 1))),
            *(second[:, i] * second[:, j] for i, j in ((0, 0), (0, 1), (1, 1))),
            *(second[:, i] * first[:, j] for i in (0, 1) for j in (0, 1)),
        ]
        rows.append([float(part.mean()) for part in products])
        errors.append([standard_error(part) for part in products])
    limit, error = at_infinity(sizes, np.array(rows), np.array(errors))
    check.below(
        "largest z of ten covariances at one and two times, extrapolated to delta = 0",
        largest(np.abs(limit - targets) / error),
        4.0,
    )
    diagonal = [0, 2, 3, 5]
    weight = (targets[diagonal] / error[diagonal]) ** 2
    mean = float(weight @ (limit[diagonal] / targets[diagonal]) / weight.sum())
    check.near(
        "extrapolated variance of Z over its limit, mean over components and times", mean, 1.0, 4 / math.sqrt(weight.sum())
    )
    check.below("standard error of this ratio", 1 / math.sqrt(weight.sum()), 0.02 if check.quick else 0.012)
    fine = 400
    paths = regression_paths(np.random.default_rng([42, fine]), start, 1 / fine, times[:1], 4000)
    scaled = (paths[:, 0] @ np.ones(2) - paths[:, 0].mean(axis=0).sum()) * math.sqrt(fine / early.sum())
    check.above(
        "Kolmogorov-Smirnov p-value of the Gaussian law at delta = 1/400", float(stats.kstest(scaled, "norm").pvalue), 1e-4
    )
    for name, value, target in zip(("first", "second"), (limit[0], limit[3]), (targets[0], targets[3]), strict=True):
        check.show(f"variance of the first component at the {name} time, extrapolated", float(value))
        check.show(f"the same variance of the process, {name} time", float(target))


def limit_covariance(start: Array, time: float) -> Array:
    """Return the covariance of Z at a time, from dC/dt = -2 (S C + C S) + Sigma, with Sigma = 4 ((e'Se + tau^2) S + S e e' S)."""
    from scipy.integrate import quad

    def rate(s: float, i: int, j: int) -> float:
        error = (start - TRUTH) * np.exp(-2 * INPUTS * s)
        level = float(INPUTS @ error**2) + LABEL_NOISE**2
        noise = 4 * (level * INPUTS[i] * (i == j) + INPUTS[i] * error[i] * INPUTS[j] * error[j])
        return float(noise * math.exp(-2 * (INPUTS[i] + INPUTS[j]) * (time - s)))

    return np.array([[quad(rate, 0, time, args=(i, j))[0] for j in range(2)] for i in range(2)])


def regression_paths(rng: np.random.Generator, start: Array, step: float, times: Sequence[float], runs: int) -> Array:
    """Return the weights (runs, times, 2) of SGD on the squared error of linear regression."""
    x, rows, done = np.tile(start, (runs, 1)), [], 0
    for time in times:
        while done < round(time / step):
            a = rng.standard_normal((runs, 2)) * np.sqrt(INPUTS)
            residual = (a * (x - TRUTH)).sum(axis=1) - LABEL_NOISE * rng.standard_normal(runs)
            x = x - 2 * step * residual[:, None] * a
            done += 1
        rows.append(x)
    return np.stack(rows, axis=1)


@claim("J48", AREA, SgdLargeDeviation, items=("J-25",))
def flow_in_fixed_dimension(check: Check) -> None:
    """In fixed dimension the interpolated path of SGD converges to gradient flow on the population loss as the step tends to zero.

    The check runs SGD on the squared error of a single neuron tanh(<x, a>) with two inputs. Measured: the largest distance of a path from
    the flow up to time 2, which falls like the square root of the step, and the distance of the mean path, which falls like the step. The
    flow of another population loss must not be the limit.
    """
    runs, counts = (400, (20, 160, 640)) if check.quick else (3000, (20, 320, 1280))
    start, end = np.array([1.5, -1.0]), 2.0
    distances, biases, others, shares = [], [], [], []
    for count in counts:
        times, path = neuron_paths(np.random.default_rng([48, count]), start, 1 / count, end, runs)
        flow, other = (neuron_flow(start, times, slope) for slope in (1.0, 2.5))
        gaps = np.linalg.norm(path - flow, axis=2).max(axis=1)
        distances.append(gaps)
        shares.append(float(np.mean(gaps > 0.3)))
        others.append(float(np.linalg.norm(path - other, axis=2).max(axis=1).mean()))
        last = path[:, -1] - flow[-1]
        biases.append((np.linalg.norm(last.mean(axis=0)), float(np.sqrt(last.var(axis=0, ddof=1).sum() / runs))))
    means = [float(part.mean()) for part in distances]
    errors = np.array([standard_error(np.log(part)) for part in distances])
    exponent = log_slope(counts[1:], means[1:])  # at the largest step the distance is not small
    check.near(
        "exponent in the step of the mean of the largest distance from the flow up to t = 2",
        -exponent.value, 0.5, 0.02 + 4 * float(errors.max()) / math.log(counts[-1] / counts[1]),
    )  # fmt: skip
    check.below("share of paths further than 0.3 from the flow at the smallest step", shares[-1], 0.01)
    check.above("the same share at the largest step", shares[0], 0.3)
    gap, error = biases[-1]
    check.below(
        "distance of the mean path from the flow at t = 2 and the smallest step", float(gap), 4 * error + 3 / counts[-1]
    )
    check.above("least mean distance from the flow for longer weights of the labels", smallest(others), 0.15)
    for count, mean in zip(counts, means, strict=True):
        check.show(f"mean of the largest distance, step 1/{count}", mean)


NEURON = np.array([0.5, 0.8])
"""Weights of the neuron that writes the labels."""


def neuron_paths(rng: np.random.Generator, start: Array, step: float, end: float, runs: int) -> tuple[Array, Array]:
    """Return times, which are steps and middles of steps, and the interpolated paths (runs, times, 2) of SGD for a neuron tanh."""
    x, rows = np.tile(start, (runs, 1)), [np.tile(start, (runs, 1))]
    for _ in range(round(end / step)):
        a = rng.standard_normal((runs, 2))
        value = np.tanh((a * x).sum(axis=1))
        residual = value - np.tanh(a @ NEURON) - 0.5 * rng.standard_normal(runs)
        after = x - 2 * step * (residual * (1 - value**2))[:, None] * a
        rows += [(x + after) / 2, after]
        x = after
    return np.arange(len(rows)) * step / 2, np.stack(rows, axis=1)


def neuron_flow(start: Array, times: Array, slope: float = 1.0) -> Array:
    """Return gradient flow (times, 2) on E (tanh(<x, a>) - tanh(slope <x*, a>))^2, with averages by quadrature."""
    from limitlab.numerics.ode import states_at

    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    a = np.stack(np.meshgrid(nodes, nodes), axis=-1).reshape(-1, 2)
    w = np.outer(weights, weights).ravel() / (2 * np.pi)
    labels = np.tanh(slope * a @ NEURON)

    def rates(_: float, x: Array) -> Array:
        value = np.tanh(a @ x)
        return np.asarray(-2 * (w * (value - labels) * (1 - value**2)) @ a)

    return np.asarray(states_at(rates, start, times, tolerance=1e-9))
