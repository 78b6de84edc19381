"""Checks of claims J28 (the mean-field equation of many tokens) and J29 (residual networks); listed in `attention`."""

from __future__ import annotations

import numpy as np

from limitlab.lab.compare import compare
from limitlab.laws.attention.circle import CircleMeanField, growth_rates, most_unstable, poisson_radius
from limitlab.laws.attention.residual import ResidualFlow
from limitlab.ledger.claims import Number, Outcome
from limitlab.models.attention.circle import circle_flow, spectral_density
from limitlab.models.attention.clusters import circle_clusters

SIGMAS = 5.0


def check_mean_field(quick: bool) -> Outcome:
    """Equation against particles and against itself (solvers, linear growth, a closed form); the number of clusters."""
    law = CircleMeanField(beta=4.0, density=((0.5, 0.0), (0.0, 0.3)), times=(1.0, 2.0, 3.0), stratified=False)
    fourier = law.theory()
    volumes = law.replace(solver="volumes").theory() if not quick else fourier
    rate, error = fluctuation_rate(law, (100, 200, 400) if quick else (100, 400, 1600), 16 if quick else 80)
    radius = wrapped_cauchy_gap()
    growth = max(abs(measured_growth(k) / float(growth_rates(k, 4.0)) - 1) for k in (1, 2, 3))
    betas = (5.0, 16.0) if quick else (5.0, 9.0, 16.0, 25.0, 50.0)
    tokens, seeds = (2000, 1) if quick else (5000, 4)
    off = max(abs(seen_clusters(beta, tokens, seed) - most_unstable(beta)) for beta in betas for seed in range(seeds))
    agreed = compare(CircleMeanField(), (50, 100, 200), 20 if quick else 60).verdict
    measured: dict[str, Number] = dict(
        agreement_of_particles=agreed,
        fluctuation_rate=rate,
        fluctuation_rate_error=error,
        solvers_differ_by=float(max(np.abs(fourier[name] - volumes[name]).max() for name in law.observables)),
        wrapped_cauchy_gap=radius,
        growth_rate_gap=growth,
        largest_miss_of_the_cluster_number=int(off),
    )
    solvers = float(measured["solvers_differ_by"]) < 1e-5
    particles = agreed == "agree" and abs(rate + 0.5) < SIGMAS * error and error < 0.12
    return Outcome(
        passed=bool(particles and solvers and radius < 1e-10 and growth < 1e-5 and off <= 2),
        criterion=(
            "moments of stratified tokens agree with the density; those of independent tokens fluctuate like n^-1/2 within "
            "5 standard errors; finite volumes within 1e-5 of the Fourier solution (full check); wrapped Cauchy closed form to 1e-10; "
            "growth rates of small harmonics to 1e-5; the number of clusters at t = 10 within 2 of argmax sigma_k"
        ),
        measured=measured,
    )


def fluctuation_rate(law: CircleMeanField, sizes: tuple[int, ...], draws: int) -> tuple[float, float]:
    """Exponent of the root-mean-square gap of the moments against the number of tokens, with its standard error."""
    theory = law.theory()
    limit = np.concatenate([theory[name].values for name in law.observables])
    spreads, errors = [], []
    for size in sizes:
        squares = []
        for seed in range(draws):
            run = law.experiment(size, seed)
            found = np.concatenate([np.asarray(run[name]) for name in law.observables])
            squares.append(float(np.mean((found - limit) ** 2)))
        spreads.append(0.5 * np.log(np.mean(squares)))
        errors.append(0.5 * np.std(squares, ddof=1) / np.mean(squares) / np.sqrt(draws))
    x = np.log(sizes) - np.mean(np.log(sizes))
    slope = float(x @ np.asarray(spreads) / (x @ x))
    return slope, float(np.sqrt((x**2) @ np.asarray(errors) ** 2) / (x @ x))


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


def check_residual(quick: bool) -> Outcome:
    """Order 1 in the number of layers without noise; agreement of the means with it."""
    depths = np.array([20, 40, 80, 160] if quick else [20, 40, 80, 160, 320, 640])
    errors = ResidualFlow().depth_errors(depths)
    order = float(-np.polyfit(np.log(depths), np.log(errors), 1)[0])
    comparison = compare(ResidualFlow(), seeds=80 if quick else 200)
    return Outcome(
        passed=bool(abs(order - 1) < 0.1 and comparison.passed),
        criterion="errors fall like L^-1 within 0.1; with noise in the weights the means of the observables agree with the equation",
        measured=dict(order=order, comparison=comparison.verdict, error_20=float(errors[0]), error_160=float(errors[3])),
        note="The step has to be T/L: a network without it does not tend to the differential equation.",
    )
