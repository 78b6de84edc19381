"""Claims about the mean field of wide two-layer networks (M1 to M5, M10, M11, M15 to M17)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, erfinv

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import SIGMAS, Check, largest, log_slope, sigmas, smallest, standard_error, words
from limitlab.lab.claims import claim
from limitlab.laws.mean_field._free_energy import ErfNeurons
from limitlab.laws.mean_field._neuron_means import FUNCTIONS, NeuronFlow
from limitlab.laws.mean_field._training import regularised_risk
from limitlab.laws.mean_field.cone import ConeFlow, cone_risk
from limitlab.laws.mean_field.noisy import NoisyMeanField
from limitlab.laws.mean_field.output_scale import OutputScale
from limitlab.laws.mean_field.output_scale_flow import output_scale_flow
from limitlab.laws.mean_field.particles import MeanFieldParticles
from limitlab.laws.mean_field.two_gaussians import TwoGaussians
from limitlab.numerics.ode import states_at

# -- mean field ---------------------------------------------------------------------------------------------------

AREA = "Mean field"

Array = NDArray[np.float64]


@claim("M1", AREA, MeanFieldParticles, figure="mean-field-width", quick_decides=False, items=("M-4", "M-5"))
def particles_follow_the_equation(check: Check) -> None:
    """Particle gradient flow follows the mean-field PDE with an error of order N^(-1/2) on bounded times.

    The check measures exponent and size of the root mean square gap of the risk, and the half time of the risk, at several widths.
    """
    law = MeanFieldParticles(activation="tanh", target_function="sin", teacher_weight=1.5, start_mean=-0.5, start_std=0.7)
    sizes, draws = ((25, 100, 400), 400) if check.quick else ((50, 200, 800, 3200), 800)
    time = 1.0
    gaps = [risk_gaps(law, size, draws, time) for size in sizes]
    rms = np.array([math.sqrt(np.mean(gap**2)) for gap in gaps])
    check.near("exponent in N of the rms gap of the risk", log_slope(sizes, rms).value, -0.5, 0.1)
    check.near_relative(
        "rms gap over the predicted one at the largest N", rms[-1] / float(law.rms_gap(sizes[-1], time)), 1, 0.15
    )
    if not check.quick:
        ratio, error = gap_over_prediction(law, 800, 5000, time)
        check.near("rms gap of 5000 networks of N = 800 over the predicted one", ratio, 1.0, 4 * error)
        check.below("standard error of this ratio", error, 0.0125)
    halves = [half_time(law, size, 40) for size in (sizes[0], sizes[-1])]
    check.near_relative("half time of the risk at the largest N over that at the smallest", halves[1] / halves[0], 1, 0.1)
    check.below("half time of the risk at the largest N", halves[1], 2.0)
    if not check.quick:
        check.agree("limit, fluctuation and bias of the risk", law.replace(times=(0.2, 0.4)))
    for n, gap in zip(sizes, rms, strict=True):
        check.show(f"rms gap at N = {n}", float(gap))


def risk_gaps(law: MeanFieldParticles, size: int, draws: int, time: float) -> Array:
    """Return the difference between the risk over time and its limit, for independent networks."""
    from limitlab.laws.mean_field._training import flow_risks

    start = law.start_mean + law.start_std * np.random.default_rng([size, draws]).standard_normal((draws, size))
    risks = flow_risks(start, law.activation, law.target_function, law.teacher_weight, np.array([time]))[:, 0]
    return np.asarray(risks - float(law.replace(times=time).theory().risk))


def gap_over_prediction(law: MeanFieldParticles, size: int, draws: int, time: float) -> Array:
    """Return the root mean square gap of networks of `size` neurons over its prediction, and the standard error of this ratio."""
    squares = risk_gaps(law, size, draws, time) ** 2 / float(law.rms_gap(size, time)) ** 2
    ratio = math.sqrt(squares.mean())
    return np.array([ratio, standard_error(squares) / (2 * ratio)])


def half_time(law: MeanFieldParticles, size: int, draws: int) -> float:
    """Return the time at which the mean risk of networks of one width is half of its value at the start."""
    from limitlab.laws.mean_field._training import flow_risks

    start = law.start_mean + law.start_std * np.random.default_rng([size, draws, 1]).standard_normal((draws, size))
    times = np.linspace(0, 3, 31)
    risk = flow_risks(start, law.activation, law.target_function, law.teacher_weight, times).mean(axis=0)
    return float(np.interp(-risk[0] / 2, -risk, times))


HORIZONS = (1.0, 2.0, 4.0, 8.0)
"""Lengths T of the time over which the largest gaps are taken."""

RECORDED = (0.0, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
"""Times at which means over neurons are computed."""

SMALL = 5e-5
"""Standard deviation of the neurons at the start near the saddle. They are about 0.03 in size at t = 8."""


@claim("M15", AREA, MeanFieldParticles, figure="neuron-means", items=("M-4",))
def means_over_neurons(check: Check) -> None:
    """Up to a time T the mean of a bounded Lipschitz function over N neurons differs from its limit by K exp(K T) N^(-1/2) at most.

    The neurons have five parameters, a second-layer weight and four first-layer weights, and all of them are trained. The check measures
    the exponent in N of the largest gap up to T of the risk and of three functions, for T = 1, 2, 4 and 8. The growth with T is at most
    exponential. From a small start the gap of the mean of tanh(a) is that of the linearised flow, (s^2 cosh(2 c T)/N)^(1/2) with
    c = 2 |E y x|. From a start of order 1 the constant hardly grows with T.
    """
    flow = NeuronFlow.draw(0)
    sizes = ((25, 200), (100, 100), (400, 25)) if check.quick else ((25, 600), (100, 300), (400, 120), (1600, 60))
    limit = flow.limit(1.0, RECORDED, 1024 if check.quick else 4096)
    rows, errors = zip(*(neuron_gaps(flow, limit, size, draws) for size, draws in sizes), strict=True)
    gaps, spreads = np.array(rows), np.array(errors)  # sizes x horizons x functions
    widths = [size for size, _ in sizes]
    fits = {
        (horizon, name): log_slope(widths, gaps[:, i, j], spreads[:, i, j])
        for i, horizon in enumerate(HORIZONS)
        for j, name in enumerate(FUNCTIONS)
    }
    for (horizon, name), fit in fits.items():
        # the risk has a bias of order 1/N, which is a share of 0.1 of its gap at N = 25
        check.near(
            f"exponent in N of the largest gap of {name} up to T = {horizon:g}", fit.value, -0.5, SIGMAS * fit.error + 0.02
        )
    check.show("largest standard error of these exponents", largest(fit.error for fit in fits.values()))
    if not check.quick:
        check.below("smallest standard error of these exponents", smallest(fit.error for fit in fits.values()), 0.02)
    constants = gaps[0] * math.sqrt(widths[0])
    for j, name in enumerate(FUNCTIONS):
        growth = float(np.log(constants[-1, j] / constants[0, j])) / (HORIZONS[-1] - HORIZONS[0])
        check.at_most(f"growth rate in T of the constant of {name}, start of order 1, over c", growth / flow.growth(), 0.1)
        for i, horizon in enumerate(HORIZONS):
            check.show(f"largest gap of {name} times N^(1/2) up to T = {horizon:g}", float(constants[i, j]))
    constant, error = saddle_constants(flow, 25, 200 if check.quick else 3000)
    rate = flow.growth()
    for horizon, value, spread in zip(HORIZONS, constant, error, strict=True):
        stated = SMALL * math.sqrt(math.cosh(2 * rate * horizon))
        check.near(
            f"small start: gap of tanh a at T = {horizon:g} times N^(1/2) over its value",
            value / stated,
            1,
            SIGMAS * spread / stated + 0.005,
        )
        check.show(f"small start: this gap at T = {horizon:g} times N^(1/2)", value)
    local = math.log(constant[-1] / constant[-2]) / (HORIZONS[-1] - HORIZONS[-2])
    check.near_relative("small start: growth rate of the constant from T = 4 to 8 over c", local / rate, 1, 0.02)
    check.show("c", rate)


def neuron_gaps(flow: NeuronFlow, limit: Array, size: int, draws: int) -> tuple[Array, Array]:
    """Return the root mean square over networks of the largest gaps up to each horizon, and its standard error.

    Both arrays have the shape (horizons, functions).
    """
    start = flow.start(np.random.default_rng([size, draws]).standard_normal((draws, size, 5)), 1.0)
    gaps = np.maximum.accumulate(np.abs(flow.finite(start, RECORDED) - limit[:, None]), axis=0)
    squares = gaps[[RECORDED.index(horizon) for horizon in HORIZONS]] ** 2
    mean, error = mean_and_error(squares.swapaxes(0, 1))
    return np.sqrt(mean), error / (2 * np.sqrt(mean))


def saddle_constants(flow: NeuronFlow, size: int, draws: int) -> tuple[list[float], list[float]]:
    """Return N^(1/2) times the root mean square of the mean of tanh(a) at the horizons from the small start, and standard errors.

    The limit of this mean is 0 up to third order in the neurons.
    """
    start = flow.start(np.random.default_rng([size, draws, 1]).standard_normal((draws, size, 5)), SMALL)
    squares = size * flow.finite(start, HORIZONS)[:, :, 1].T ** 2
    mean, error = mean_and_error(squares)
    return np.sqrt(mean).tolist(), (error / (2 * np.sqrt(mean))).tolist()


@claim("M2", AREA, TwoGaussians, figure="two-gaussians", quick_decides=False, items=("M-6",))
def sgd_and_the_equation(check: Check) -> None:
    """SGD and the PDE for two centred Gaussians have the same risk curves and radius distributions.

    The check compares risk, mean radius and distribution of radii of one-pass SGD, averaged over runs, with the equation.
    """
    separations, width, step, seeds = ((0.4,), 400, 0.04, 3) if check.quick else ((0.2, 0.4, 0.8), 800, 0.024, 4)
    times = (0.05, 0.2, 0.5, 1.0) if check.quick else (0.05, 0.2, 0.5, 2.0, 5.0)
    runs = [sgd_gaps(TwoGaussians(separation=s, times=times, step=step), width, seeds) for s in separations]
    check.below("largest gap of the mean risk", largest(run.risk for run in runs), 0.04)
    check.below("largest gap of the mean radius", largest(run.radius for run in runs), 0.02)
    check.below("largest Wasserstein distance of the radii", largest(run.distribution for run in runs), 0.03)
    falls = [
        float(law.risk[0] - law.risk[-1])
        for law in (TwoGaussians(separation=s, times=(0.0, 1.0)).theory() for s in separations)
    ]
    check.show("fall of the risk up to t = 1", float(min(falls)))
    check.show("neurons", width)
    check.show("runs", seeds)


class SgdGaps(NamedTuple):
    """Largest gaps over time between SGD and the equation in risk, mean radius and (Wasserstein) distribution of radii."""

    risk: float
    radius: float
    distribution: float


def sgd_gaps(law: TwoGaussians, width: int, seeds: int) -> SgdGaps:
    """Return the gaps between the mean of several runs of SGD and the equation."""
    from scipy.stats import wasserstein_distance

    from limitlab.laws.mean_field._training import ramp_risk, ramp_sgd

    limit, times = law.theory(), np.asarray(law.times)
    paths, weights = law.radii(times)
    task, step = (law.separation, law.knots, law.levels), law.step / width
    counts = np.round(times / step).astype(np.int64)
    risks, lengths = np.empty((seeds, times.size)), np.empty((times.size, seeds, width))
    for seed in range(seeds):
        rng = np.random.default_rng([seed, width])
        start = rng.standard_normal((width, law.dimension)) * (law.initial_scale / math.sqrt(law.dimension))
        for column, w in enumerate(ramp_sgd(rng, start, *task, step, counts)):
            risks[seed, column] = ramp_risk(rng, w, *task, law.test_points)
            lengths[column, seed] = np.linalg.norm(w, axis=1)
    distances = [wasserstein_distance(lengths[i].ravel(), paths[i], None, weights) for i in range(times.size)]
    return SgdGaps(
        largest(np.abs(risks.mean(axis=0) - limit.risk.values)),
        largest(np.abs(lengths.mean(axis=(1, 2)) - limit.mean_radius.values)),
        largest(distances),
    )


@claim("M3", AREA, NoisyMeanField, figure="free-energy", items=("M-8",))
def free_energy_falls(check: Check) -> None:
    """Noisy dynamics decreases the free energy towards its unique Boltzmann fixed point.

    The check follows the free energy of the finite volumes from two starts at several temperatures, and compares particles with the law.
    """
    cases = ((5.0, 0.05), (50.0, 0.1)) if check.quick else ((5.0, 0.05), (20.0, 0.1), (50.0, 0.02), (500.0, 0.05))
    steps = 2000 if check.quick else 10_000
    falls = [fall(beta, penalty, start, steps) for beta, penalty in cases for start in (-1.5, 2.5)]
    check.below(
        f"largest increase of the free energy in one of {steps} steps", largest(run.increase for run in falls), 1e-12
    )
    check.above(
        "smallest fall of the free energy from the wrong side of zero", smallest(run.total for run in falls[::2]), 0.5
    )
    check.below("largest distance of the total mass from 1", largest(run.mass for run in falls), 1e-12)
    check.below(
        "largest distance of the last state from the Boltzmann fixed point", largest(run.rest for run in falls), 1e-7
    )
    sizes, draws = ((30, 60, 120), 90) if check.quick else (None, None)
    linear, erf = NoisyMeanField.check_points()
    check.agree("linear neurons, closed form", linear, sizes=sizes, seeds=draws)
    law = erf.replace(times=(0.3, 1.0)) if check.quick else erf
    check.agree("erf neurons, finite volumes", law, seeds=160 if check.quick else None)
    resting = linear.replace(times=math.inf)
    runs = resting.simulate_batch(1000, range(40 if check.quick else 160)).second_moment.values
    target, noise = (
        float(resting.theory().second_moment),
        linear.dimension / (2 * linear.penalty * linear.inverse_temperature),
    )
    check.below("mean square of the weights of linear neurons at rest, z", sigmas(runs, target), SIGMAS)
    check.below("its standard error over the part due to noise", standard_error(runs) / noise, 0.01)
    check.note("The noise is sqrt(2/beta) dW. One source has dW/sqrt(beta), which halves the temperature.")


class Fall(NamedTuple):
    """Largest increase of the free energy in a step, its total fall, the error of the mass, and the distance from rest."""

    increase: float
    total: float
    mass: float
    rest: float


def fall(beta: float, penalty: float, start: float, steps: int, cells: int = 240) -> Fall:
    """Run erf neurons with a teacher at 2 from a Gaussian at `start` until they are at rest."""
    reach = max(math.sqrt(40 / (beta * penalty)), 8.0)
    system = ErfNeurons(beta, penalty, 2.0, reach, cells)
    masses, time = system.gaussian(start, 0.6), 25 / penalty / steps
    energies = [system.free_energy(masses)]
    for _ in range(steps):
        masses = system.advance(masses, time)
        energies.append(system.free_energy(masses))
    mass, rest = abs(float(masses.sum()) - 1), float(np.abs(masses - system.rest()).sum())
    return Fall(largest(np.diff(energies)), energies[0] - energies[-1], mass, rest)


@claim("M4", AREA, OutputScale, figure="output-scale", items=("M-20", "T-2"))
def lazy_slopes(check: Check) -> None:
    """Scaling the output by alpha leads from mean field to the tangent kernel, whose change falls as 1/alpha (1/alpha^2 if symmetric).

    The check compares the slopes in alpha of networks with the predicted slopes, for a generic and a paired start.
    """
    scales, runs = (32.0, 128.0, 512.0), 4 if check.quick else 20  # the next order is a share of about 1/alpha
    for name, slope in (("generic", -1), ("paired", -2)):
        law = OutputScale(initialisation=name, times=2.0)
        for observable in ("kernel_change", "linearisation_distance", "weight_displacement"):
            measured = network_slope(law, observable, scales, runs)
            target = -1 if observable == "weight_displacement" else slope
            check.near(f"{name} start: slope of the {words(observable)} of networks", measured, target, 0.02)
        check.equal(f"{name} start: slope predicted from the symmetry", law.lazy_limit().slope, slope)
    for law in OutputScale.check_points()[: 2 if check.quick else 3]:
        check.agree(f"{law.initialisation} start at alpha = {law.scale:g}", law, seeds=160 if check.quick else None)


def network_slope(law: OutputScale, observable: str, scales: tuple[float, ...], runs: int, width: int = 200) -> float:
    """Return the exponent in alpha of the mean of an observable over networks with the same starts at every alpha."""
    x, y = law.data()
    table = np.empty((runs, len(scales)))
    for run in range(runs):
        start = law.start(np.random.default_rng(run), width)
        for column, scale in enumerate(scales):
            trained = output_scale_flow(x, y, *start, scale, law.times, law.score_shift, tolerance=1e-11)
            apart = np.sqrt(np.mean((trained.residual - trained.linearised_residual) ** 2))
            values = dict(kernel_change=trained.kernel_change[0], linearisation_distance=apart)
            table[run, column] = values.get(observable, trained.displacement[0])
    return log_slope(scales, table.mean(axis=0)).value


@claim("M5", AREA, OutputScale, figure="output-scale", items=("M-20",))
def residuals_follow_the_kernel(check: Check) -> None:
    """The kernel of the current particle measure determines how the residuals change.

    The check measures d|u|^2/dt over <u, H u> by centred differences along trained networks. The law integrates u' = -H u.
    """
    names = ("generic", "paired", "signs")
    ratios = [ratio for name in names for ratio in slope_ratios(name, 4 if check.quick else 20)]
    check.below("largest distance of d|u|^2/dt over <u, H u> from -2", largest(abs(ratio + 2) for ratio in ratios), 1e-4)
    check.agree(
        "risk of networks and of u' = -H u",
        OutputScale.check_points()[0],
        observables=["risk"],
        seeds=60 if check.quick else None,
    )
    check.show("times and networks", len(ratios))
    check.note("One source has d|u|^2/dt = -<u, H u>, without the factor 2.")


def slope_ratios(initialisation: str, networks: int, gap: float = 1e-3) -> list[float]:
    """Return the measured decrease of the squared residual over its predicted decrease, for networks far from the lazy regime."""
    law = OutputScale(initialisation=initialisation, scale=1.0)
    (x, y), ratios = law.data(), []
    for seed in range(networks):
        start = law.start(np.random.default_rng([seed, 5]), 60)
        for time in (0.5, 2.0, 6.0):
            run = output_scale_flow(
                x, y, *start, law.scale, [time - gap, time, time + gap], law.score_shift, tolerance=1e-12
            )
            slope = (run.risk[2] - run.risk[0]) / (2 * gap)
            ratios.append(float(slope / (-run.residual_slope[1] / 2)))
    return ratios


# -- mean field ends ----------------------------------------------------------------------------------------------


@claim("M10", AREA, ConeFlow, figure="cone-flow", items=("M-7", "M-10"))
def stuck_in_a_cone(check: Check) -> None:
    """From positive second layers the risk of the mean-field flow ends at the least value over non-negative measures,
    above its minimum. From a start with full support (both signs) it ends at the minimum.

    The check compares gradient descent to time 200 with non-negative least squares (positive starts) and with 0 (both signs).
    """
    cases = ((2.0, 20), (1.2, 20)) if check.quick else ((2.0, 20), (2.0, 100), (2.6, 20), (1.2, 20), (1.2, 100))
    gaps, least, falling, plateau = [], [], [], []
    both = [float(ConeFlow(angle=2.0, signs="both").simulate(100, seed).risk) for seed in range(1 if check.quick else 3)]
    for angle, size in cases:
        for seed in range(2):
            law = ConeFlow(angle=angle)
            value = cone_risk(angle, law.inputs, law.directions)
            gaps.append(abs(float(law.simulate(size, seed).risk) - value))
            least.append(float(law.trained(law.draw(size, seed))[0].min()))
            free = law.replace(signs="both")
            draw = free.draw(size, seed)
            falling.append(free.risk_at(draw) / free.risk_at(draw, 50.0))
            plateau.append(value)
    check.below("largest gap of a positive start's risk from non-negative least squares", largest(gaps), 1e-5)
    check.above("least second-layer weight at the end of a positive start", smallest(least), 0.0)
    check.below("largest risk with both signs at time 200, 100 neurons", largest(both), 1e-4)
    check.below(
        "largest ratio of the risks with both signs at times 200 and 50 (below 1: the risk decreases)", largest(falling), 0.7
    )
    check.above("least value over non-negative measures", smallest(plateau), 0.1)
    check.agree("risk of positive starts", ConeFlow.check_points()[0])
    check.show("largest gap", largest(gaps))
    check.show("time", 200.0)
    check.note(
        "Positive starts need a > |w|. With a = |w|, steps of finite length change a^2 - |w|^2, so that signs can change. Birth and death "
        "of neurons, which the source also mentions, is not verified."
    )


@claim("M11", AREA, NoisyMeanField, figure="noisy-sgd", items=("M-9",))
def noisy_sgd(check: Check) -> None:
    """Noisy SGD comes within eta of the least regularised risk for every inverse temperature above beta_0(eta) = D / (2 eta)
    and every number of neurons.

    The check runs one-sample SGD of linear neurons at several steps, temperatures and widths, and compares its excess with the exact
    excess at that step and with the limit.
    """
    cases = [(5.0, 20), (20.0, 20), (20.0, 5), (20.0, 1), (80.0, 20)]
    if not check.quick:
        cases += [(20.0, 80), (5.0, 5), (80.0, 80)]
    runs, steps = 20 if check.quick else 200, (0.02, 0.005)
    z, bias, shares = [], [], []
    for beta, neurons in cases:
        law, limit = noisy(beta), float(noisy(beta).theory().stationary_excess)
        for step in steps:
            excesses = excess(law, neurons, step, runs)
            z.append(abs(excesses.mean() - law.sgd_excess(step, neurons)) / (excesses.std(ddof=1) / np.sqrt(runs)))
            check.show(f"excess at beta = {beta:g}, N = {neurons}, step {step:g}", float(excesses.mean()))
            if step == steps[1] and beta <= 20 and neurons >= 5:
                shares.append(max(abs(excesses.mean() / limit - 1) - 2 * excesses.std(ddof=1) / np.sqrt(runs) / limit, 0.0))
        coarse, fine = (law.sgd_excess(step, neurons) - limit for step in steps)
        bias.append(fine / coarse)
    check.below("largest z of SGD against the exact excess at its step", largest(z), SIGMAS)
    check.below("largest share of the step's bias that is left at a quarter of the step", largest(bias), 0.5)
    check.below(
        "largest relative distance from D/(2 beta) at step 0.005, N >= 5, beta <= 20, beyond 2 standard errors",
        largest(shares),
        0.03,
    )
    flow = noisy(5.0)
    diffusion = sigmas(flow.simulate_batch(20, range(runs)).stationary_excess, float(flow.theory().stationary_excess))
    check.below("z of the excess at rest of the stochastic differential equation, N = 20, beta = 5", diffusion, SIGMAS)
    check.note("The source does not give beta_0. For linear neurons it is D/(2 eta), by equipartition.")


def noisy(beta: float) -> NoisyMeanField:
    """Return the law of linear neurons in three dimensions at this inverse temperature."""
    return NoisyMeanField(neuron="linear", dimension=3, inverse_temperature=beta, penalty=0.2, teacher=(1.0, -0.5, 0.5))


def excess(law: NoisyMeanField, neurons: int, step: float, runs: int) -> Array:
    """Return the excess over the least regularised risk for runs of noisy SGD of length 120."""
    teacher, penalty = np.array(law.teacher), law.penalty
    least = penalty * float(teacher @ teacher) / (1 + penalty)
    draws = [
        regularised_risk(
            np.random.default_rng([i, neurons]), teacher, neurons, penalty, law.inverse_temperature, step, 120.0
        )
        for i in range(runs)
    ]
    return np.array(draws) - least


@claim("M16", AREA, TwoGaussians, figure="two-gaussians", items=("M-7",))
def two_gaussians_converge(check: Check) -> None:
    """For a mixture of two centred Gaussians the risk of the flow tends to its minimum over all distributions of the weights.

    The risk is convex in the distribution, so that its excess over the minimum is at most 2 (int Psi d rho - min Psi) with the potential
    Psi = v + int u d rho. This bound is computed along the flow, from several starts. The limit is a point mass in the radius, and its
    risk equals the least risk of a single radius. Other starts, from which no convergence to the minimum follows, are those of M10.
    """
    cases = [(0.4, 0.8)] if check.quick else [(0.2, 0.8), (0.4, 0.8), (0.4, 0.5), (0.4, 1.5)]
    times = (0.0, 1.0, 5.0, 20.0)
    for separation, scale in cases:
        law = TwoGaussians(separation=separation, initial_scale=scale, times=times, solver_steps=200)
        case = f"Delta = {separation:g}, start {scale:g}"
        risks, bounds = law.theory().risk.values, [excess_bound(law, time) for time in (5.0, 20.0)]
        best, radius = least_single_radius(law)
        paths, weights = law.radii([20.0])
        check.below(f"{case}: largest change of the risk from one time to the next", largest(np.diff(risks)), 1e-9)
        check.below(f"{case}: bound on the excess at t = 20", bounds[1], 1e-4)
        check.below(f"{case}: excess at t = 20 over the least risk of a single radius", abs(risks[-1] - best), 1e-4)
        check.near(f"{case}: mean radius at t = 20 over the best single radius", float(paths[0] @ weights) / radius, 1, 0.01)
        check.show(f"{case}: bound on the excess at t = 5", bounds[0])
        check.show(f"{case}: risk at t = 20", float(risks[-1]))


def excess_bound(law: TwoGaussians, time: float) -> float:
    """Return 2 (int Psi d rho_t - min Psi), which bounds the excess of the risk of rho_t over its minimum."""
    (paths,), weights = law.radii([time])
    shares, radii = weights[::4] / weights[::4].sum(), paths[::4]
    grid = np.concatenate(
        [np.linspace(0.0, 4.0, 81), np.geomspace(4.2, 60.0, 15), np.linspace(radii.min(), radii.max(), 15)]
    )
    psi, along = (law.potential(r) + law.interaction(r[:, None], radii) @ shares for r in (grid, radii))
    return 2 * float(along @ shares - min(psi.min(), along.min()))


def least_single_radius(law: TwoGaussians) -> tuple[float, float]:
    """Return the least risk 1 + 2 v(r) + u(r, r) of weights with a single radius, and this radius."""
    from scipy.optimize import minimize_scalar

    fit = minimize_scalar(
        lambda r: 1 + 2 * float(law.potential(r)) + float(law.interaction(r, r)), bounds=(0.3, 6.0), method="bounded"
    )
    return float(fit.fun), float(fit.x)


@claim("M17", AREA, MeanFieldParticles, figure="neuron-means", items=("M-3",))
def finite_networks_solve_the_equation(check: Check) -> None:
    """The empirical distribution of finitely many neurons solves the same equation as the distribution in the limit.

    Compared: neurons that follow N times the numerical gradient of the risk of their network, and atoms that are transported by the
    velocity -2 grad (V + int U d rho) of the equation, from closed forms of the potentials. An atom that is split into equal parts does not
    change the distribution. The distance of the distribution of N random neurons from that of the limit falls like N^(-1/2).
    """
    from scipy.stats import wasserstein_distance

    gaps, split = [], []
    for count in (1, 3, 10):
        start = np.random.default_rng([17, count]).standard_normal(count) * 0.7 - 0.5
        ends = descended(start, 2.0)
        atoms = transported(start, np.full(count, 1 / count), 2.0)
        gaps.append(float(np.max(np.abs(ends - atoms))))
        parts = descended(np.repeat(start, 2), 2.0)
        split.append(float(np.max(np.abs(parts - np.repeat(ends, 2)))))
        check.show(f"largest displacement of {count} neurons", float(np.max(np.abs(ends - start))))
    check.below(
        "largest distance of the neurons of a network from the atoms of the equation, N = 1, 3, 10, t = 2",
        largest(gaps),
        1e-6,
    )
    check.below("largest change of a neuron if all neurons are doubled", largest(split), 1e-6)
    sizes, draws = ((25, 75, 225), 60) if check.quick else ((30, 120, 480), 400)
    law = MeanFieldParticles(activation="erf", target_function="erf", teacher_weight=1.5, start_mean=-0.5, start_std=0.7)
    levels = (np.arange(2000) + 0.5) / 2000
    limit_start = law.start_mean + law.start_std * np.sqrt(2) * erfinv(2 * levels - 1)
    for time in (1.0, 4.0):
        (limit,) = network_flow(limit_start[None], time)
        distances = []
        for size in sizes:
            rng = np.random.default_rng([18, size])
            starts = law.start_mean + law.start_std * rng.standard_normal((draws, size))
            distances.append(np.array([wasserstein_distance(row, limit) for row in network_flow(starts, time)]))
        means = [float(part.mean()) for part in distances]
        errors = [standard_error(part) / mean for part, mean in zip(distances, means, strict=True)]
        spread = 4 * math.hypot(errors[0], errors[-1]) / math.log(sizes[-1] / sizes[0])
        check.near(
            f"exponent in N of the Wasserstein distance at t = {time:g}", log_slope(sizes, means).value, -0.5, spread + 0.02
        )
        check.show(f"mean Wasserstein distance at N = {sizes[-1]}, t = {time:g}", means[-1])


TEACHER = 1.5
"""Weight of the target erf(1.5 x) of the networks of one-weight neurons."""


def network_risk(theta: Array) -> Array:
    """Return E (erf(1.5 x) - (1/N) sum_i erf(theta_i x))^2 of networks along the first axis, by quadrature."""
    x, w = np.polynomial.hermite_e.hermegauss(80)
    f = erf(theta[..., None] * x).mean(axis=-2)
    return np.asarray((erf(TEACHER * x) - f) ** 2 @ w / math.sqrt(2 * math.pi))


def descended(start: Array, end: float) -> Array:
    """Return neurons that follow -N grad R, with the gradient of the risk by differences."""

    def velocity(_: float, theta: Array) -> Array:
        steps = 1e-4 * np.eye(theta.size)
        return np.asarray(-theta.size * (network_risk(theta + steps) - network_risk(theta - steps)) / 2e-4)

    return np.asarray(states_at(velocity, start, np.array([end]), tolerance=1e-9)[0])


def transported(start: Array, shares: Array, end: float) -> Array:
    """Return atoms transported by -2 grad (V + int U d rho), from U(s, t) = (2/pi) arcsin(2 s t / sqrt((1 + 2 s^2) (1 + 2 t^2)))."""

    def slope(s: Array, t: Array) -> Array:
        """Return dU/ds."""
        return np.asarray(4 * t / (np.pi * (1 + 2 * s**2) * np.sqrt(1 + 2 * s**2 + 2 * t**2)))

    def velocity(_: float, theta: Array) -> Array:
        return np.asarray(2 * (slope(theta, np.asarray(TEACHER)) - slope(theta[:, None], theta) @ shares))

    return np.asarray(states_at(velocity, start, np.array([end]), tolerance=1e-9)[0])


def network_flow(starts: Array, end: float) -> Array:
    """Return the neurons of several networks (networks, N) after -N grad R, by a Runge-Kutta method with step 1/4."""
    x, w = np.polynomial.hermite_e.hermegauss(24)
    w = w / math.sqrt(2 * math.pi)

    def velocity(theta: Array) -> Array:
        z = theta[..., None] * x
        residual = erf(TEACHER * x) - erf(z).mean(axis=1, keepdims=True)
        return np.asarray(2 * (residual * np.exp(-(z**2)) * (2 / math.sqrt(math.pi)) * x) @ w)

    theta, h = starts, 0.25
    for _ in range(round(end / h)):
        k1 = velocity(theta)
        k2 = velocity(theta + h / 2 * k1)
        k3 = velocity(theta + h / 2 * k2)
        theta = theta + h / 6 * (k1 + 2 * k2 + 2 * k3 + velocity(theta + h * k3))
    return np.asarray(theta)
