"""Figures of the step of online SGD: below the critical one, large deviations, growth of moments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from matplotlib.figure import Figure

from limitlab.lab.compare import compare
from limitlab.lab.extrapolated import extrapolated
from limitlab.laws.online_sgd.growth import ALLOWED
from limitlab.laws.online_sgd.large_deviation import SgdLargeDeviation
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor
from limitlab.plotting.style import finish, new_figure, reading_key, simulation_points, theory_line


def subcritical_steps(quick: bool = True) -> Figure:
    """Overlap over time at several steps, and the gap of the residual to the population flow against the dimension."""
    figure, (left, right) = new_figure(columns=2)
    times = np.linspace(0, 1.2, 80)
    base = SpikedTensor(order=2, snr=2.0, start_overlap=0.3, start_residual=0.7)
    few, size = (0.2, 0.5, 0.8, 1.1), 400
    for index, step in enumerate((0.0, 0.1, 0.5, 1.0)):
        law = base.replace(step=step, times=tuple(times))
        theory_line(
            left, times, law.theory().overlap, index, rf"$c = {step:g}$" + (" (population flow)" if step == 0 else "")
        )
        runs = law.replace(times=few).simulate_batch(size, range(5 if quick else 20)).overlap
        simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / np.sqrt(runs.sizes["seed"]), index)
    finish(left, "time $t$", "overlap $m$", rf"$k = 2$, $\lambda = 2$; points: the chain at $N = {size}$")
    sizes, still = np.array([50, 100, 200, 400, 800, 1600]), base.replace(step=0.0, times=0.6)
    population = float(still.theory().residual)
    for index, power in enumerate((1.0, 1.25, 1.5)):
        laws = [still.replace(step=float(n) ** (1 - power)) for n in sizes]
        theory_line(
            right, sizes, [float(law.theory().residual) - population for law in laws], index, rf"step $N^{{-{power:g}}}$"
        )
        runs = [law.simulate_batch(int(n), range(10 if quick else 60)).residual for law, n in zip(laws, sizes, strict=True)]
        gaps, errors = (
            [float(run.mean()) - population for run in runs],
            [float(run.std(ddof=1)) / np.sqrt(run.size) for run in runs],
        )
        simulation_points(right, sizes, gaps, errors, index)
    finish(
        right,
        "dimension $N$",
        "gap of the residual $q$",
        "gap to the population flow at $t = 0.6$",
        xscale="log",
        yscale="log",
    )
    return figure


def sgd_large_deviation(quick: bool = True) -> Figure:
    """Rate of straying against the step, and against the distance, for Gaussian noise and signs of the same variance."""
    figure, (left, right) = new_figure(columns=2)
    sizes = np.array([20, 40, 80, 160] if quick else [20, 40, 80, 160, 320])
    for index, law_of_noise in enumerate(NOISE):
        law = SgdLargeDeviation(deviation=0.5, times=1.0, noise_law=law_of_noise, paths=20_000)
        limit = float(law.theory().rate)
        runs = [law.simulate_batch(int(size), range(4)).rate for size in sizes]
        simulation_points(
            left,
            1 / sizes,
            [float(run.mean()) for run in runs],
            [float(run.std(ddof=1)) / 2 for run in runs],
            index,
            NOISE[law_of_noise],
        )
        found = compare(law, sizes.tolist(), 4, observables=["rate"], progress=False)
        simulation_points(left, [0.0], *extrapolated(found, "rate"), index)
        theory_line(left, [0, 0.05], [limit, limit], index)
    reading_key(left, r"limit $I(\varepsilon)$", r"first points: extrapolated to $\delta = 0$")
    finish(
        left,
        r"step $\delta$",
        r"$-\delta\log P$",
        r"$\varepsilon = 0.5$, $T = 1$; at $\delta = 1/160$ $P$ is $3\cdot10^{-21}$",
    )
    distances = np.linspace(0.02, 0.62, 60)
    for index, law_of_noise in enumerate(NOISE):
        law = SgdLargeDeviation(times=1.0, noise_law=law_of_noise)
        theory_line(
            right,
            distances,
            [float(law.replace(deviation=float(e)).theory().rate) for e in distances],
            index,
            NOISE[law_of_noise],
        )
    right.axvline(1 - np.exp(-1), color="0.4", linestyle=":", linewidth=1.5, label="furthest path of signs")
    finish(right, r"distance $\varepsilon$", r"rate $I(\varepsilon)$", "$T = 1$, noise of variance 1")
    return figure


def growth_of_moments(quick: bool = True) -> Figure:
    """Moments of the spiked matrix's noise against the dimension, and what steps N^-s allow them."""
    figure, (left, right) = new_figure(columns=2)
    sizes = (50, 100, 200, 400) if quick else (50, 100, 200, 400, 800)
    found = SpikedTensor(order=2).growth_exponents(sizes, 1000 if quick else 4000)
    names = {
        "norm_eighth": r"$\mathbb{E}|H|^8$",
        "directional_fourth": r"$\mathbb{E}\langle H,\nabla u\rangle^4$",
        "curvature_variance": r"$\mathrm{Var}\langle\nabla^2u, HH^\top\rangle$",
    }
    s = np.linspace(0, 1.6, 50)
    for index, (name, words) in enumerate(names.items()):
        theory_line(left, s, ALLOWED[name] * s, index, f"{words}: allowed")
        value = found.exponents[name]
        simulation_points(left, [value / ALLOWED[name]], [value], [found.errors[name]], index, f"measured {value:.2f}")
    left.axvline(1, color="0.4", linestyle=":", linewidth=1.5)
    finish(left, "$s$ of a step $N^{-s}$", "exponent in $N$", "spiked matrix: localizable from the rightmost point on")
    power = np.array([2.0, 4.0, 6.0, 8.0])
    for index, m in enumerate((0.0, 0.9)):
        rng, values = np.random.default_rng(0), []
        for size in sizes:
            noise = np.sqrt(8) * rng.standard_normal((1000, size))  # 2 sqrt(2) g of eq. (3)
            noise[:, 0] += np.sqrt(8) * m * rng.standard_normal(1000)
            values.append([np.mean(np.sum(noise**2, axis=1) ** (p / 2)) for p in power])
        simulation_points(right, power, np.polyfit(np.log(sizes), np.log(values), 1)[0], None, index, f"overlap {m:g}")
    theory_line(right, power, power / 2, 6, "$p/2$", linestyle="--")
    finish(right, "moment $p$", r"exponent of $\mathbb{E}|H|^p$", f"sizes {sizes[0]} to {sizes[-1]}")
    return figure


NOISE: dict[Literal["gaussian", "sign"], str] = {"gaussian": "Gaussian noise", "sign": "signs"}

FIGURES: dict[str, Callable[[bool], Figure]] = {
    "growth-exponents": growth_of_moments,
    "subcritical-steps": subcritical_steps,
    "sgd-large-deviation": sgd_large_deviation,
}
