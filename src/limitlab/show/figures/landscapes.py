"""Figures of landscapes: how flows leave saddles, and where they end."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from limitlab.laws.attention.single_cluster import SingleCluster
from limitlab.laws.landscapes.hessian import hessian_inertia, hessian_parts
from limitlab.laws.landscapes.linear_network import LinearNetwork, crossing
from limitlab.laws.landscapes.linear_network_training import linear_flow
from limitlab.laws.mean_field.cone import ConeFlow, cone_risk
from limitlab.laws.mean_field.noisy import NoisyMeanField
from limitlab.laws.mean_field.noisy_sgd import regularised_risk
from limitlab.models.attention.engines import token_paths
from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line


def token_saddles(quick: bool = True) -> Figure:
    """Tokens that leave a saddle at beta = 0 at its largest rate, and the rates at every pair of poles."""
    figure, (left, right) = new_figure(columns=2)
    tokens, dimension, kick, rng = 6, 3, 1e-6, np.random.default_rng(0)
    times = np.linspace(0, 20, 41)
    for index, at_pole in enumerate((3, 4, 5)):
        saddle = np.zeros((tokens, dimension))
        saddle[:, 0] = np.where(np.arange(tokens) < at_pole, 1.0, -1.0)
        start = saddle + kick * rng.standard_normal((10 if quick else 40, *saddle.shape))
        paths = token_paths(start / np.linalg.norm(start, axis=-1, keepdims=True), 0.0, times, tolerance=1e-12)
        distance = np.sqrt(np.mean((paths - saddle) ** 2, axis=(1, 2, 3)))
        simulation_points(left, times[1::2], distance[1::2], None, index, f"{at_pole} and {tokens - at_pole} at the poles")
    early = times[:30]
    theory_line(left, early, 0.4 * kick * np.exp(early), 6, "$e^{t}$", linestyle="--")
    finish(
        left,
        "time $t$",
        "distance from the saddle (rms)",
        f"$n = {tokens}$, $d = {dimension}$, kick $10^{{-6}}$",
        yscale="log",
        ylim=(1e-7, 30),
    )
    counts = np.arange(10, 21)
    for index, part in enumerate(("largest", "second", "smallest")):
        rates = [np.unique(SingleCluster.saddle_rates(20, int(k), 2).round(12))[::-1] for k in counts]
        values = [r[0] if part == "largest" else r[-1] if part == "smallest" else r[1] for r in rates]
        theory_line(right, counts / 20, values, index, f"{part} rate", marker="o", markersize=4)
    right.axhline(0, color="0.4", linewidth=1)
    finish(
        right, "share of tokens at the larger pole $k/n$", "rate", "$n = 20$: only one cluster ($k=n$) has no positive rate"
    )
    return figure


def linear_network(quick: bool = True) -> Figure:
    """A linear network learns its modes one after the other; half times of random starts against their scale."""
    figure, (left, right) = new_figure(columns=2)
    law = LinearNetwork(singular_values=(3.0, 2.0, 1.0, 0.5), start=0.001, times=tuple(np.linspace(0, 5, 120)))
    few = (0.4, 0.8, 1.2, 1.6, 2.4, 3.2, 4.0)
    curves, runs = law.theory().modes, law.replace(times=few).simulate_batch(200, range(10 if quick else 40)).modes
    for k, s in enumerate(law.singular_values):
        theory_line(left, curves.time, curves.isel(mode=k), k, f"$s = {s:g}$")
        part = runs.isel(mode=k)
        simulation_points(left, few, part.mean("seed"), part.std("seed", ddof=1) / np.sqrt(part.sizes["seed"]), k)
    finish(left, "time $t$", "strength of a mode $a_k$", "aligned start $a_0 = 0.001$; points: 200 samples")
    scales, size = np.array([1e-4, 1e-3, 1e-2]), len(law.singular_values)
    grid, halves = np.linspace(0, 13, 1300), []
    for seed in range(4 if quick else 20):
        first = np.random.default_rng(seed).standard_normal((2, size, size))
        paths = [linear_flow((e * first[0], e * first[1]), np.diag(law.singular_values), np.eye(size), grid) for e in scales]
        halves.append([[crossing(grid, path[:, k, k], s / 2) for k, s in enumerate(law.singular_values)] for path in paths])
    mean, error = np.mean(halves, axis=0), np.std(halves, axis=0, ddof=1) / np.sqrt(len(halves))
    for k, s in enumerate(law.singular_values):
        simulation_points(right, scales, mean[:, k], error[:, k], k)
        theory_line(right, scales, mean[-1, k] + np.log(scales[-1] / scales) / (2 * s), k, f"$s = {s:g}$")
    finish(
        right,
        r"scale $\varepsilon$ of a random start",
        "half time $t_{1/2}$",
        r"lines: slope $\log(100)/(4s)$ per decade",
        xscale="log",
    )
    return figure


def cone_flow(quick: bool = True) -> Figure:
    """Risk over time from positive second layers and from both signs, and the value at which the former end."""
    figure, (left, right) = new_figure(columns=2)
    times = np.geomspace(0.5, 200, 16)
    for index, signs in enumerate(("positive", "both")):
        law = ConeFlow(angle=2.0, signs=signs)
        for seed in range(2):
            risks = [law.risk_at(law.draw(20, seed), t) for t in times]
            words = "positive second layer" if signs == "positive" else "both signs"
            label = f"descent, {words}, two starts" if seed == 0 else None
            simulation_points(left, times, risks, None, index, label, linestyle="-", linewidth=0.8)
    value, zero = cone_risk(2.0, 200, 2000), float(ConeFlow(angle=2.0).theory().zero_risk)
    theory_line(left, [0.5, 200], [value, value], 0, "non-negative least squares")
    theory_line(left, [0.5, 200], [zero, zero], 6, "risk of the network 0", linestyle="--", linewidth=1.2)
    title = r"$N = 20$ neurons, angle $\theta = 2$"
    finish(left, "time $t$", "risk $R$", title, xscale="log", yscale="log", ylim=(1e-6, 1), legend=False)
    left.legend(loc="lower left", fontsize=11, frameon=False)
    angles = np.linspace(0.1, np.pi, 32)
    limits = [ConeFlow(angle=float(angle), inputs=100, directions=1000).theory() for angle in angles]
    for index, (name, words) in enumerate(
        (
            ("risk", "end of positive starts"),
            ("lower_bound", r"$\mathbb{E}\,\min(y,0)^2$"),
            ("zero_risk", r"$\mathbb{E}\,y^2$"),
        )
    ):
        theory_line(right, angles, [float(one[name]) for one in limits], index, words)
    some = (0.6, 1.2, 2.0, 2.6)
    simulation_points(
        right, some, [float(ConeFlow(angle=a, inputs=100).simulate(20, 0).risk) for a in some], None, 0, "descent, $N = 20$"
    )
    finish(right, r"angle $\theta$ between the teacher's neurons", "risk $R$", "where positive starts end")
    return figure


def noisy_sgd(quick: bool = True) -> Figure:
    """Excess regularised risk of noisy SGD against its step and against the inverse temperature."""
    figure, (left, right) = new_figure(columns=2)
    base = NoisyMeanField(neuron="linear", dimension=3, inverse_temperature=20.0, penalty=0.2, teacher=(1.0, -0.5, 0.5))
    least, runs = 0.2 * 1.5 / 1.2, 12 if quick else 60

    def measured(law: NoisyMeanField, neurons: int, step: float) -> tuple[float, float]:
        draws = [
            regularised_risk(np.random.default_rng(i), law.teacher, neurons, 0.2, law.inverse_temperature, step, 120.0)
            - least
            for i in range(runs)
        ]
        return float(np.mean(draws)), float(np.std(draws, ddof=1) / np.sqrt(runs))

    steps, few = np.geomspace(1e-3, 0.1, 120), (0.005, 0.02, 0.05)
    for index, neurons in enumerate((1, 5, 50)):
        theory_line(left, steps, [base.sgd_excess(float(e), neurons) for e in steps], index, f"$N = {neurons}$")
        found = [measured(base, neurons, e) for e in few]
        simulation_points(left, few, [m for m, _ in found], [e for _, e in found], index)
    left.axhline(0.075, color=COLOURS[6], linestyle="--", linewidth=1.5, label=r"$D/2\beta$")
    finish(
        left,
        r"step $\varepsilon$",
        "excess regularised risk $J - J_*$",
        r"$\beta = 20$, $D = 3$, $\lambda = 0.2$",
        xscale="log",
    )
    betas = np.geomspace(2, 300, 120)
    theory_line(right, betas, 1.5 / betas, 6, r"$D/2\beta$", linestyle="--")
    for index, step in enumerate((0.02, 0.005)):
        laws = [base.replace(inverse_temperature=float(beta)) for beta in betas]
        theory_line(right, betas, [law.sgd_excess(step, 20) for law in laws], index, rf"$\varepsilon = {step:g}$")
        some = (5.0, 20.0, 80.0)
        found = [measured(base.replace(inverse_temperature=beta), 20, step) for beta in some]
        simulation_points(right, some, [m for m, _ in found], [e for _, e in found], index)
    finish(
        right, r"inverse temperature $\beta$", "excess regularised risk $J - J_*$", "$N = 20$", xscale="log", yscale="log"
    )
    return figure


def hessian_signs(quick: bool = True) -> Figure:
    """Eigenvalues of a network's Hessian at a random start and at interpolation, and how many are negative near it."""
    figure, (left, right) = new_figure(columns=2)
    d, width, n = 10, 20, 80
    for index, (found, words) in enumerate(
        ((hessian_inertia(d, width, n, interpolate=False), "random start"), (hessian_inertia(d, width, n), "interpolation"))
    ):
        left.plot(np.arange(1, found.eigenvalues.size + 1), found.eigenvalues, color=COLOURS[index], label=words)
    left.axvline(width * (d + 1) - n, color="0.4", linestyle=":", linewidth=1.5, label="$p-n$")
    finish(left, "rank of the eigenvalue", "eigenvalue", f"$d={d}$, $N={width}$, $n={n}$, $p={width * (d + 1)}$")
    left.set_yscale("symlog", linthresh=1e-2)
    factors, seeds = np.geomspace(1e-4, 1, 9), range(5 if quick else 10)
    counts = np.array(
        [[hessian_inertia(d, width, n, seed=seed, residual=float(r)).negative for r in factors] for seed in seeds]
    )
    inside = []
    for seed in seeds:
        jacobian, bend = hessian_parts(d, width, n, True, seed, residual=1.0)
        kernel = np.linalg.svd(jacobian)[2][n:]
        inside.append(int(np.sum(np.linalg.eigvalsh(kernel @ bend @ kernel.T) < 0)))
    simulation_points(
        right, factors, counts.mean(axis=0), counts.std(axis=0, ddof=1) / np.sqrt(len(counts)), 0, "of the Hessian"
    )
    theory_line(right, factors, np.full(factors.size, np.mean(inside)), 1, "of $E$ on the kernel of $J$")
    title = f"close to interpolation, {len(counts)} networks"
    finish(right, "root mean square residual", "number of negative eigenvalues", title, xscale="log")
    right.yaxis.set_major_locator(MaxNLocator(integer=True))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "token-saddles": token_saddles,
    "linear-network": linear_network,
    "cone-flow": cone_flow,
    "noisy-sgd": noisy_sgd,
    "hessian-inertia": hessian_signs,
}
