"""Claims about the step of online SGD: growth of its moments (J32), large deviations (J33), steps below the critical one (J34)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check
from limitlab.lab.claims import claim
from limitlab.lab.measures import largest, log_slope, slope
from limitlab.laws.online_sgd.growth import GrowthExponents, Point, fitted
from limitlab.laws.online_sgd.large_deviation import SgdLargeDeviation
from limitlab.laws.online_sgd.pca import OnlinePCA
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor

Array = NDArray[np.float64]

AREA = "Online SGD"


@claim("J32", AREA, SpikedTensor, OnlinePCA, figure="growth-exponents")
def growing_moments(check: Check) -> None:
    """The moment conditions of the limit theorems hold for the examples, and for the spiked matrix steps of order 1/N are
    the largest localizable ones.

    Fitted growth exponents against the allowed ones; phase retrieval by quadrature; a heavy-tailed control, which has to fail.
    """
    sizes, samples = ((100, 200, 400, 800), 1000) if check.quick else ((50, 100, 200, 400, 800), 4000)
    matrix = SpikedTensor(order=2).growth_exponents(sizes, samples)
    check.near("spiked matrix: exponent of E|H|^8", matrix.norm_eighth, 4.0, 0.15)
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
    retrieval = float(np.polyfit(np.log(sizes), [np.log(phase_retrieval_fifth(n)) for n in sizes], 1)[0])
    check.near("phase retrieval: exponent of E|H|^5, by quadrature", retrieval, 2.5, 0.05)
    heavy = [student_inputs(sizes, 4000, seed) for seed in range(3)]
    slopes = np.linspace(0.05, 0.95, 10)
    pushed = largest(float(OnlinePCA(snr=1.0).population_slope(m)) for m in slopes)
    check.below("online PCA: largest slope of the population loss on (0, 1)", pushed, 0.0)
    check.true(
        "Student inputs with 3 degrees of freedom are not regular, or not reliably so",
        not any(one.regular and one.reliable for one in heavy),
    )
    check.show("Student inputs: exponents of the second moment", ", ".join(f"{one.directional_second:.2f}" for one in heavy))
    check.show("Student inputs: exponents of E|H|^5", ", ".join(f"{one.norm_fifth:.2f}" for one in heavy))
    check.note(
        "Corrections of the source: the remark on the sign of the slope is about assumption B; its Jensen inequality is a lower "
        "bound; localizability needs the Hessian of the statistic, not of the loss."
    )


def online_pca(sizes: Sequence[int], samples: int) -> GrowthExponents:
    """Spherical gradients of -<y, x>^2, y = g v + z, at three overlaps with v."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng(size)
        for m in (0.0, 0.5, 0.9):
            x = np.zeros(size)
            x[:2] = m, np.sqrt(1 - m * m)
            y = rng.standard_normal((samples, size))
            y[:, 0] += rng.standard_normal(samples)
            yield spherical_noise(-2 * (y @ x)[:, None] * y, x)

    return fitted(at, sizes)


def student_inputs(sizes: Sequence[int], samples: int, seed: int) -> GrowthExponents:
    """The control: linear regression on inputs without a third moment. What it squares has no fourth one."""

    def at(size: int) -> Iterator[Point]:
        rng = np.random.default_rng([seed, size])
        a = rng.standard_t(3, (samples, size)) / np.sqrt(3)
        x = np.eye(size)[1] * np.sqrt(0.75) + np.eye(size)[0] * 0.5
        yield spherical_noise(2 * (a @ x - a[:, 0])[:, None] * a, x)

    return fitted(at, sizes)


def spherical_noise(gradients: Array, x: Array) -> Point:
    """Noise of gradients projected on the sphere at x, with the overlap along the first axis as the only statistic."""
    forces = gradients - (gradients @ x)[:, None] * x
    return Point(forces - forces.mean(axis=0), np.eye(x.size)[:1], np.zeros((1, x.size, x.size)))


def phase_retrieval_fifth(size: int) -> float:
    """E |grad|^5 of the loss (<a, x>^2 - <a, v>^2)^2 on the sphere at overlap 0, by quadrature: sampled, it scatters by 0.3.

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


@claim("J33", AREA, SgdLargeDeviation, figure="sgd-large-deviation")
def large_deviations(check: Check) -> None:
    """In fixed dimension SGD with a small step strays from its flow with probability exp(-I(eps)/step), and I depends on the
    whole law of the noise.

    -step log P, exactly or by weighted draws, at steps down to 1/160 (1/320), extrapolated against the Legendre transform.
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
        "Counting would need more than 1e20 runs. The interpolated path of the source must be X_k + (t/step - k)(X_{k+1} - X_k)."
    )


def extrapolated(sizes: Sequence[int], values: Sequence[float]) -> float:
    """The limit of I + A delta + B delta log(1/delta) through three or more values at delta = 1/size.

    >>> round(extrapolated((10, 20, 40), [1 + 2 / n + 3 / n * np.log(n) for n in (10, 20, 40)]), 9)
    1.0
    """
    step = 1 / np.asarray(sizes, dtype=float)
    table = np.stack([np.ones_like(step), step, step * np.log(1 / step)], axis=1)
    return float(np.linalg.lstsq(table, np.asarray(values), rcond=None)[0][0])


@claim("J34", AREA, SpikedTensor, figure="subcritical-steps")
def short_steps(check: Check) -> None:
    """Steps far below 1/N give the flow of the population loss, the limit c -> 0 of the critical equations; the gap is of
    the order of step times dimension.

    Exact chain at steps N^-b: gap to the population flow against N^(1-b); the equations at small c; the comparison at c = 0.
    """
    runs, sizes = (60, (100, 400, 1600)) if check.quick else (400, (100, 400, 1600, 6400))
    population = subcritical(0.0).theory()
    distances = []
    for power in (1.0, 1.25, 1.5):
        gaps, errors = [], []
        for size in sizes:
            law = subcritical(size ** (1 - power))
            found = law.simulate_batch(size, range(runs if size < 6400 else runs // 10))
            residual, error = float(found.residual.mean()), float(found.residual.std(ddof=1)) / np.sqrt(found.sizes["seed"])
            gaps.append(residual - float(population.residual))
            errors.append(error)
            distances.append(abs(residual - float(law.theory().residual)) - 5 * error - 1.5 / size)
            check.show(f"residual at N = {size}, step N^-{power:g}", residual)
        exponent = log_slope(sizes, gaps, np.maximum(errors, 1e-9))
        check.near(f"exponent in N of the residual's gap at steps N^-{power:g}", exponent.value, 1 - power, 0.05)
    check.below(
        "largest gap of the chain to the equation with c = step N, beyond 5 standard errors and 1.5/N",
        largest(distances),
        0.0,
    )
    constants = np.array([0.01, 0.02, 0.05])
    flows = [subcritical(float(c)).theory() for c in constants]
    slopes = [
        slope([0, *constants], [float(one[name]) for one in (population, *flows)]).value for name in ("residual", "overlap")
    ]
    check.near("growth of the residual with c at time 0.6", slopes[0], 0.998, 0.01)
    check.near("growth of the overlap with c at time 0.6", slopes[1], -0.361, 0.01)
    check.agree("chain with steps N^-2 against the population flow", subcritical(0.0).replace(times=(0.1, 0.3)))
    check.note(
        "At b = 1 the gap does not shrink: the critical step has its own limit. What longer steps do (edge of stability) is open."
    )


def subcritical(step: float) -> SpikedTensor:
    """The spiked matrix of the check at one value of step times dimension."""
    return SpikedTensor(order=2, snr=2.0, step=step, start_overlap=0.3, start_residual=0.7, times=0.6)
