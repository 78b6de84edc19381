"""Claims about very many tokens and very many layers: the mean-field equation (J28), residual networks (J29)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import agrees, at_most, below, near
from limitlab.lab.measures import Slope, effort, largest, log_slope, slope
from limitlab.laws.attention.circle import CircleMeanField, growth_rates, most_unstable, poisson_radius
from limitlab.laws.attention.circle_density import spectral_density
from limitlab.laws.attention.residual import ResidualFlow
from limitlab.models.attention.circle import angle_moments, circle_flow, density_quantiles
from limitlab.models.attention.clusters import circle_clusters
from limitlab.models.attention.engines import token_paths

AREA = "Transformers"


# -- J28: the density of many tokens ----------------------------------------------------------------------------------


@claim(
    "J28",
    AREA,
    "With many tokens the density on the circle solves a continuity equation; the uniform law breaks into about "
    "argmax sigma_k clusters.",
    laws=("CircleMeanField",),
    figure="instability-spectrum",
)
def mean_field(quick: bool) -> Outcome:
    """Equation against particles and against itself (solvers, linear growth, a closed form); the number of clusters."""
    law = CircleMeanField(beta=4.0, density=((0.5, 0.0), (0.0, 0.3)), times=(1.0, 2.0, 3.0), stratified=False)
    rate, error = fluctuation_rate(law, (50, 200, 800) if quick else (100, 400, 1600), 100 if quick else 400)
    grown = [abs(particle_growth(k) / float(growth_rates(k, 4.0)) - 1) for k in (1, 2, 3)]
    growth = [abs(measured_growth(k) / float(growth_rates(k, 4.0)) - 1) for k in (1, 2, 3)]
    betas = (5.0, 16.0) if quick else (5.0, 9.0, 16.0, 25.0, 50.0)
    tokens, seeds = (2000, 1) if quick else (5000, 4)
    missed = max(abs(seen_clusters(beta, tokens, seed) - most_unstable(beta)) for beta in betas for seed in range(seeds))
    criteria = [
        agrees(
            "the density for stratified tokens, moved pair by pair:",
            compare(CircleMeanField, seeds=40 if quick else 160, **effort(quick)),
        ),
        near("exponent in n of the fluctuations of independent tokens", rate, -0.5, 0.1),
        below("standard error of the exponent of the fluctuations", error, 0.03),
        below(
            "largest relative gap of the growth of three small harmonics of 400 tokens, pair by pair", largest(grown), 0.02
        ),
        below("gap to the closed form of the wrapped Cauchy law at beta = 0", wrapped_cauchy_gap(), 1e-10),
        below("largest relative gap of the growth rates of three small harmonics", largest(growth), 1e-5),
        at_most("largest distance of the number of clusters at t = 10 from argmax sigma_k", missed, 2),
    ]
    if not quick:
        criteria.append(below("largest gap between finite volumes and the Fourier solution", solver_gap(law), 1e-5))
    return Outcome(tuple(criteria))


def solver_gap(law: CircleMeanField) -> float:
    """Largest difference between the moments of the Fourier solution and those of finite volumes."""
    fourier, volumes = (law.replace(solver=solver).theory() for solver in ("fourier", "volumes"))
    return largest(float(np.abs(fourier[name] - volumes[name]).max()) for name in law.observables)


def fluctuation_rate(law: CircleMeanField, sizes: tuple[int, ...], draws: int) -> Slope:
    """Exponent of the root-mean-square gap of the moments against the number of tokens, with its standard error."""
    theory, times = law.theory(), np.atleast_1d(law.times)
    limit = np.concatenate([theory[name].values for name in law.observables])
    spreads, errors = [], []
    for size in sizes:
        squares = []
        for seed in range(draws):
            start = density_quantiles(law.density, np.random.default_rng([seed, size]).random(size))
            moments = angle_moments(circle_flow(start, law.beta, times, step=0.1))
            found = np.concatenate([moments[name] for name in law.observables])
            squares.append(float(np.mean((found - limit) ** 2)))
        spreads.append(0.5 * np.log(np.mean(squares)))
        errors.append(0.5 * np.std(squares, ddof=1) / np.mean(squares) / np.sqrt(draws))
    x = np.log(sizes) - np.mean(np.log(sizes))
    # not weighted: with few draws an error and the spread that it belongs to are small together
    return Slope(slope(x, spreads).value, float(np.sqrt((x**2) @ np.asarray(errors) ** 2) / (x @ x)))


def particle_growth(k: int, beta: float = 4.0, size: float = 1e-3, tokens: int = 400) -> float:
    """Growth rate of a small harmonic of evenly placed tokens that attend to each other, pair by pair."""
    density = tuple((size if degree == k else 0.0, 0.0) for degree in range(1, k + 1))
    theta = density_quantiles(density, (np.arange(tokens) + 0.5) / tokens)
    paths = token_paths(np.stack([np.cos(theta), np.sin(theta)], axis=-1), beta, [0.0, 1.0], tolerance=1e-10)
    angles = np.arctan2(paths[..., 1], paths[..., 0])
    waves = np.abs(np.exp(1j * k * angles).mean(axis=-1))
    return float(np.log(waves[1] / waves[0]))


def wrapped_cauchy_gap(start: float = 0.3, time: float = 1.5) -> float:
    """Gap between the density at beta = 0 from a wrapped Cauchy start and the closed form of its order parameter."""
    harmonics = tuple((2 * start**k, 0.0) for k in range(1, 40))
    law = CircleMeanField(beta=0.0, density=harmonics, times=time)
    return abs(float(law.theory().cos1) - float(poisson_radius(start, time)))


def measured_growth(k: int, beta: float = 4.0, size: float = 1e-6) -> float:
    """Growth rate of a small harmonic under the full equation."""
    density = tuple((size if degree == k else 0.0, 0.0) for degree in range(1, k + 1))
    rho, _ = spectral_density(density, beta, [0.0, 1.0])
    waves = np.abs(np.fft.rfft(rho, axis=-1)[:, k])
    return float(np.log(waves[1] / waves[0]))


def seen_clusters(beta: float, tokens: int, seed: int) -> int:
    """Number of clusters of uniform tokens on the circle at t = 10."""
    start = np.random.default_rng([seed, int(beta)]).uniform(0, 2 * np.pi, tokens)
    return circle_clusters(circle_flow(start, beta, 10.0, step=0.2))


# -- J29: residual networks -------------------------------------------------------------------------------------------


@claim(
    "J29",
    AREA,
    "A residual network with steps T/L is the Euler scheme of a neural ODE, with error of order 1/L.",
    laws=("ResidualFlow",),
    figure="residual-depth",
)
def residual_networks(quick: bool) -> Outcome:
    """Order 1 in the number of layers without noise; agreement of the means with it."""
    depths = np.array([20, 40, 80, 160] if quick else [20, 40, 80, 160, 320, 640])
    errors = ResidualFlow().depth_errors(depths)
    return Outcome(
        (
            near("exponent in 1/L of the error without noise", -log_slope(depths, errors).value, 1, 0.1),
            agrees(
                "the differential equation as the mean over noisy weights",
                compare(ResidualFlow, seeds=200 if quick else 800, **effort(quick)),
            ),
        ),
        {"error of 20 layers": float(errors[0]), "error of 160 layers": float(errors[3])},
        note="The step has to be T/L: a network without it does not tend to the differential equation.",
    )
