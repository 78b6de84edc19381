"""Figures of online SGD."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any, Literal

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab import compare
from limitlab.lab.judging import extrapolated
from limitlab.laws.online_sgd._recovery import DiffusiveRecovery
from limitlab.laws.online_sgd.growth import ALLOWED
from limitlab.laws.online_sgd.large_deviation import SgdLargeDeviation
from limitlab.laws.online_sgd.multi_pass import MultiPassLeastSquares
from limitlab.laws.online_sgd.single_index import OnlineSingleIndex
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor, SpikedTensorDiffusion, velocity
from limitlab.laws.online_sgd.streaming import StreamingLeastSquares
from limitlab.laws.online_sgd.xor import XorMixture, success_probability
from limitlab.laws.online_sgd.xor_flow import XorDynamics
from limitlab.models.online import hitting_times, uniform_overlap
from limitlab.plotting.along import along, draws_along
from limitlab.plotting.style import COLOURS, finish, legend_of_styles, new_figure, simulation_points, theory_line, value_map

# -- online sgd ---------------------------------------------------------------------------------------------------

PAIRS = (("relu", "relu", 0.3), ("square", "square", 0.02), ("h3", "h3", 0.002))


def losses_and_flows(quick: bool = True) -> Figure:
    """Draw the population loss against the overlap for information exponents 1, 2 and 3, and the flow with runs of SGD."""
    figure, (left, right) = new_figure(columns=2)
    m, size, runs = np.linspace(-1, 1, 201), 1000, 10 if quick else 40
    readable = {"relu": "ReLU", "square": "square", "h3": "cubic $h_3$"}
    for index, (teacher, student, step) in enumerate(PAIRS):
        law, end = OnlineSingleIndex(teacher=teacher, student=student, step=step, start_overlap=0.3), 3 if index == 0 else 1
        label = f"{readable[teacher]}: $k = {law.information_exponent().order}$"
        theory_line(left, m, law.population_loss(m) / law.population_loss(0.0), index, label)
        fine, few, label = np.linspace(0, end, 101), np.linspace(0, end, 13), rf"{readable[teacher]}, $\delta = {step}$"
        along(right, law, "times", "overlap", fine, few, size=size, seeds=runs, index=index, label=label)
    finish(left, "overlap $m$", r"population loss $\varphi(m)/\varphi(0)$", "flat to order $k$ at $m = 0$")
    finish(right, r"time $s = \delta\,t/N$", title=f"limit flow (lines) and SGD at $N = {size}$ (points)")
    return figure


def recovery_times(quick: bool = True) -> Figure:
    """Draw the samples until weak recovery against the dimension for information exponents 1, 2 and 3."""
    figure, (left, right) = new_figure(columns=2)
    runs = 40 if quick else 300
    sizes = {1: (50, 200, 800, 3200), 2: (50, 200, 800, 3200), 3: (12, 25, 50) if quick else (12, 25, 50, 100)}
    steps = {1: 0.5, 2: 0.02, 3: 0.05}
    for index, (k, name) in enumerate(((1, "identity"), (2, "square"), (3, "h3"))):
        law = OnlineSingleIndex(teacher=name, student=name, step=steps[k])
        recovery, counts = law.recovery(0.5), []
        for size in sizes[k]:
            step, rng = steps[k] * size ** (-max(k - 2, 0) / 2), np.random.default_rng(size)
            counts.append(_samples_to_recovery(law, rng, size, step, runs, k == 2))
        grid = np.unique(np.round(np.geomspace(sizes[k][0], sizes[k][-1], 40)))
        if isinstance(recovery, DiffusiveRecovery):
            curve = [recovery.mean(int(n), steps[k]) * n**2 for n in grid]
        else:
            curve = [recovery.mean(int(n)) * n / steps[k] for n in grid]
        theory_line(left, grid, curve, index, f"$k = {k}$")
        simulation_points(left, sizes[k], *mean_and_error(counts, axis=1), index)
    legend_of_styles(left, "limit", f"SGD, {runs} runs")
    label = r"mean samples to $|m| > 1/2$"
    finish(left, "dimension $N$", label, "search time", xscale="log", yscale="log", ylim=(20, 1e7), legend=False)
    left.legend(ncols=2, loc="upper left", fontsize=11, frameon=False)
    cubic = OnlineSingleIndex(teacher="h3", student="h3").recovery(0.5)
    assert isinstance(cubic, DiffusiveRecovery)
    scaled = np.geomspace(0.008, 0.16, 40)
    theory_line(right, scaled, [cubic.blow_up_time(float(step)) / step for step in scaled], 2, r"limit $N\to\infty$")
    some = (0.015, 0.03, 0.07, 0.13)
    for index, size in enumerate(
        (25, 50 if quick else 200)
    ):  # two sizes, because convergence to the limit is slow beyond the best step
        counts = [
            _samples_to_recovery(
                law, np.random.default_rng([size, round(1000 * step)]), size, step * size**-0.5, runs, False
            )
            for step in some
        ]
        mean, error = mean_and_error(counts, axis=1)
        simulation_points(right, some, mean / size**2, error / size**2, index, f"SGD, $N = {size}$")
    right.axvline(cubic.best_step(), color="grey", linestyle=":", label="best step")
    title = "$k = 3$: there is a best step"
    finish(right, r"scaled step $\delta_0$", r"mean samples $/N^2$", title, xscale="log", yscale="log")
    return figure


def _samples_to_recovery(
    law: OnlineSingleIndex, rng: np.random.Generator, size: int, step: float, runs: int, either_sign: bool
) -> list[int]:
    """Return the numbers of samples until runs of SGD from random starts have the overlap 1/2."""
    model, level = law.model().compiled(), np.array([0.5])
    return [
        hitting_times(rng, model, uniform_overlap(rng, size), size, step, level, either_sign, 10**9)[0] for _ in range(runs)
    ]


def spiked_matrix_phases(quick: bool = True) -> Figure:
    """Draw phase portraits of the spiked matrix below, at and above the critical strength, with runs at N = 2000."""
    figure, axes = new_figure(columns=3, width=4.3)
    m, q = np.meshgrid(np.linspace(-1.5, 1.5, 25), np.linspace(0.05, 2.2, 25))
    for panel, snr in zip(axes, (0.5, 1.0, 2.0), strict=True):
        panel.streamplot(m, q, *velocity(2, snr, 1.0, m, q), color="lightgrey", density=0.8, linewidth=0.8, arrowsize=0.8)
        times = tuple(np.linspace(0, 1.5, 60))
        for index, (start, residual) in enumerate(((0.3, 2.0), (-0.5, 0.3), (1.3, 1.6))):
            law = SpikedTensor(snr=snr, start_overlap=start, start_residual=residual, times=times)
            limit = law.theory()
            theory_line(panel, limit.overlap, limit.residual, index, f"limit from start {index + 1}")
            track = law.run(law.draw(2000, index), np.array(times))
            panel.plot(
                track[:, 0], track[:, 1], ".", color=COLOURS[index], markersize=4, alpha=0.6,
                label="one run of SGD, $N = 2000$" if index == 0 else None,
            )  # fmt: skip
            panel.plot(start, residual, "D", color=COLOURS[index], markersize=6)
        for point in SpikedTensor(snr=snr).fixed_points():
            fill = "black" if point.kind == "stable" else "white"
            panel.plot(point.overlap, point.residual, "o", color="black", markerfacecolor=fill, markersize=8, zorder=5)
        side = "below" if snr < 1 else "at" if snr == 1 else "above"
        title = rf"$\lambda = {snr:g}$, {side} the threshold"
        finish(panel, "overlap $m$", r"residual $q$", title, xlim=(-1.6, 1.6), ylim=(0, 2.3), legend=False)
    for fill, label in (("black", "stable fixed point"), ("white", "unstable fixed point")):
        panel.plot([], [], "o", color="black", markerfacecolor=fill, markersize=8, label=label)
    panel.plot([], [], color="lightgrey", label="flow of the limit")
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=11, frameon=False)
    return figure


def spiked_matrix_transition(quick: bool = True) -> Figure:
    """Draw histograms of the rescaled overlap below and above the transition, and its variance against time."""
    figure, (left, right) = new_figure(columns=2)
    size, runs = 1000, 4000 if quick else 20_000
    for index, snr in enumerate((0.5, 1.3)):
        law = SpikedTensorDiffusion(snr=snr, times=(0.4,), replicas=runs)
        u = math.sqrt(size) * law.runs(law.draw(size, 0), np.array([0.4]))[:, 0, 0]
        spread = math.sqrt(float(law.theory().overlap_variance[0]))
        x = np.linspace(-9, 9, 300)
        left.hist(u, bins=50, range=(-9, 9), density=True, color=COLOURS[index], alpha=0.35)
        density = np.exp(-((x / spread) ** 2) / 2) / (spread * math.sqrt(2 * math.pi))
        theory_line(left, x, density, index, rf"$\lambda = {snr}$")
    finish(left, r"$\sqrt{N}\,m$ at $t = 0.4$", "density", f"Ornstein-Uhlenbeck law and chain, $N = {size}$")
    times = np.linspace(0, 0.5, 11)
    for index, snr in enumerate((0.5, 1.0, 1.3)):
        law = SpikedTensorDiffusion(snr=snr, times=tuple(times), replicas=runs // 2)
        along(right, law, "times", "overlap_variance", times, index=index, label=rf"$\lambda = {snr}$")
        square = size * law.runs(law.draw(size, 1), times)[..., 0] ** 2
        simulation_points(right, times, *mean_and_error(square), index)
    finish(right, y_label=r"variance of $\sqrt{N}\,m$", title=r"unstable above $\lambda = 1$", yscale="log")
    return figure


def xor_success(quick: bool = True) -> Figure:
    """Draw the probability that K neurons capture all four clusters, and trajectories of a neuron at finite noise."""
    figure, (left, right) = new_figure(columns=2)
    widths = np.arange(1, 17)
    theory_line(left, widths, success_probability(widths), 0, r"limit $p_K$", marker=".")
    size, networks = (300, 200) if quick else (1000, 600)
    few = (2, 4, 6, 8, 10, 14)
    shares = np.array([float(XorMixture(width=k, networks=networks).simulate(size, k).success_probability) for k in few])
    errors = np.sqrt(np.maximum(shares * (1 - shares), 0.25 / networks) / networks)
    simulation_points(left, few, shares, errors, 0, f"SGD, $N = {size}$")
    finish(left, "neurons $K$", "probability of success", "SGD captures all four clusters", ylim=(-0.03, 1.03))
    times, sizes = np.linspace(0.0, 40.0, 21), (125, 250, 500)
    start = dict(start_second_layer=(1.0,), start_mu=(0.2,), start_nu=(0.1,), start_residual=(0.9,))
    law = XorDynamics(snr=5.0, times=tuple(times), **start)
    comparison = compare(law, sizes, 8 if quick else 40)
    names = {
        "second_layer": "$v$",
        "overlap_mu": r"$\langle W,\mu\rangle$",
        "overlap_nu": r"$\langle W,\nu\rangle$",
        "residual": "$Q$",
    }
    along(right, law, "times", names, np.linspace(0.0, 40.0, 121), transform=np.squeeze)
    for index, name in enumerate(names):
        value, error = extrapolated(comparison, name)
        simulation_points(right, times[::2], value[0, ::2], error[0, ::2], index, markersize=4)
    legend_of_styles(right, "limit", "SGD, extrapolated ($N = 125, 250, 500$)")
    finish(right, y_label="statistics of one neuron", title=r"$\lambda = 5$, $\alpha = 0.03$", ylim=(-0.1, 1.5))
    return figure


def xor_success_map(quick: bool = True) -> Figure:
    """Draw maps of the share of runs that capture all four clusters, over signal-to-noise ratio and three parameters."""
    size, networks, columns = (30, 50, 6) if quick else (200, 400, 13)
    figure, panels = new_figure(columns=3, width=4.3)
    ratios = np.geomspace(0.01, 100.0, columns)
    rows: dict[str, list[float]] = {
        "width": [2, 4, 6, 8, 12, 16],
        "size": [12, 24, 48] if quick else [15, 30, 60, 120, 240],
        "regularizer": [0.02, 0.05, 0.08, 0.11, 0.14, 0.17],
    }
    labels = ("neurons $K$", "dimension $N$", r"penalty $\alpha$")
    for axes, (name, values), label in zip(panels, rows.items(), labels, strict=True):
        shares = np.empty((len(values), columns))
        for (i, value), (j, ratio) in product(enumerate(values), enumerate(ratios)):
            n = int(value) if name == "size" else size
            changed: dict[str, Any] = {} if name == "size" else {name: int(value) if name == "width" else value}
            law = XorMixture(**{"width": 8, "snr": float(ratio * n), "networks": networks, **changed})
            shares[i, j] = float(law.simulate(n, 1000 * i + j).success_probability)
        heights = np.arange(len(values))
        image = value_map(axes, ratios, heights, shares, cmap="viridis", vmin=0, vmax=1)
        axes.set_yticks(np.arange(len(values)), [f"{value:g}" for value in values])
        held = ", ".join(
            part
            for key, part in (("width", "$K = 8$"), ("size", f"$N = {size}$"), ("regularizer", r"$\alpha = 0.05$"))
            if key != name
        )
        finish(axes, r"signal to noise $\lambda / N$", label, held, legend=False, xscale="log")
    figure.suptitle(
        f"share of {networks} runs of SGD that capture all four clusters, interpolated between grid points", fontsize=14
    )
    critical = np.interp(0.125, rows["regularizer"], np.arange(6))  # alpha = 1/8, above which no cluster is captured
    panels[2].axhline(float(critical), color="white", linestyle="--", linewidth=2, label=r"$\alpha = 1/8$")
    panels[2].legend(loc="upper left", labelcolor="white", frameon=False)
    bar = figure.colorbar(image, ax=list(panels), pad=0.01)
    bar.set_label("probability of success", fontsize=13)
    return figure


# -- sgd steps ----------------------------------------------------------------------------------------------------


def subcritical_steps(quick: bool = True) -> Figure:
    """Draw the overlap over time at several steps, and the gap of the residual to the population flow."""
    figure, (left, right) = new_figure(columns=2)
    base, size = SpikedTensor(order=2, snr=2.0, start_overlap=0.3, start_residual=0.7), 400
    laws = {rf"$c = {step:g}$": base.replace(step=step) for step in (0.1, 0.5, 1.0)}
    laws = {"$c = 0$ (population flow)": base.replace(step=0.0), **laws}
    few = (0.2, 0.5, 0.8, 1.1)
    along(left, laws, "times", "overlap", np.linspace(0, 1.2, 80), few, size=size, seeds=5 if quick else 20)
    finish(left, title=rf"$k = 2$, $\lambda = 2$; points: the chain at $N = {size}$")
    sizes, still = (50, 100, 200, 400, 800, 1600), base.replace(step=0.0, times=0.6)
    gap = partial(np.add, -float(still.theory().residual))
    for index, power in enumerate((1.0, 1.25, 1.5)):
        step = _power_of_dimension(1 - power)
        along(
            right, still, step, "residual", sizes, sizes,
            size=int, seeds=10 if quick else 60, index=index, label=rf"step $N^{{-{power:g}}}$", transform=gap,
        )  # fmt: skip
    title = "gap to the population flow at $t = 0.6$"
    finish(right, "dimension $N$", "gap of the residual $q$", title, yscale="log")
    return figure


def _power_of_dimension(power: float) -> Callable[[NDArray[np.float64]], dict[str, list[float]]]:
    """Return a function from dimensions to parameters whose step is a power of the dimension."""
    return lambda sizes: {"step": [size**power for size in sizes.tolist()]}


def sgd_large_deviation(quick: bool = True) -> Figure:
    """Draw the rate of a deviation against the step and against the distance, for Gaussian noise and signs."""
    figure, (left, right) = new_figure(columns=2)
    sizes = np.array([20, 40, 80, 160] if quick else [20, 40, 80, 160, 320])
    for index, (noise_law, label) in enumerate(NOISE.items()):
        law = SgdLargeDeviation(deviation=0.5, times=1.0, noise_law=noise_law, paths=20_000)
        limit = float(law.theory().rate)
        rates = draws_along(law, "size", sizes, seeds=4)["rate"]
        simulation_points(left, 1 / sizes, *mean_and_error(rates), index, label)
        comparison = compare(law, sizes.tolist(), 4, observables=["rate"], progress=False)
        simulation_points(left, [0.0], *extrapolated(comparison, "rate"), index)
        theory_line(left, [0, 0.05], [limit, limit], index)
    legend_of_styles(left, r"limit $I(\varepsilon)$", r"first points: extrapolated to $\delta = 0$")
    title = r"$\varepsilon = 0.5$, $T = 1$; at $\delta = 1/160$ $P$ is $3\cdot10^{-21}$"
    finish(left, r"step $\delta$", r"$-\delta\log P$", title)
    laws = {label: SgdLargeDeviation(times=1.0, noise_law=noise_law) for noise_law, label in NOISE.items()}
    along(right, laws, "deviation", "rate", np.linspace(0.02, 0.62, 60))
    right.axvline(1 - np.exp(-1), color="0.4", linestyle=":", linewidth=1.5, label="largest distance with signs")
    finish(right, r"distance $\varepsilon$", r"rate $I(\varepsilon)$", "$T = 1$, noise of variance 1")
    return figure


def growth_of_moments(quick: bool = True) -> Figure:
    """Draw growth exponents of the moments of the spiked matrix's noise, and their bounds at steps N^-s."""
    figure, (left, right) = new_figure(columns=2)
    sizes = (50, 100, 200, 400) if quick else (50, 100, 200, 400, 800)
    growth = SpikedTensor(order=2).growth_exponents(sizes, 1000 if quick else 4000)
    names = {
        "norm_eighth": r"$\mathbb{E}|H|^8$",
        "directional_fourth": r"$\mathbb{E}\langle H,\nabla u\rangle^4$",
        "curvature_variance": r"$\mathrm{Var}\langle\nabla^2u, HH^\top\rangle$",
    }
    s = np.linspace(0, 1.6, 50)
    for index, (name, symbol) in enumerate(names.items()):
        theory_line(left, s, ALLOWED[name] * s, index, f"{symbol}: allowed")
        value = growth.exponents[name]
        simulation_points(left, [value / ALLOWED[name]], [value], [growth.errors[name]], index, f"measured {value:.2f}")
    left.axvline(1, color="0.4", linestyle=":", linewidth=1.5)
    finish(left, "$s$ of a step $N^{-s}$", "exponent in $N$", "spiked matrix: localizable for $s$ right of all points")
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


# -- scaling ------------------------------------------------------------------------------------------------------


def streaming(quick: bool = True) -> Figure:
    """Draw predicted and simulated loss curves of one-pass SGD, and the largest stable step against the batch size."""
    figure, (left, right) = new_figure(columns=2)
    d = 60
    s = 1 / np.arange(1, d + 1.0)
    base = StreamingLeastSquares(
        eigenvalues=s, weights=np.ones(d), signal_energy=s**0.6, dimension=d, noise=0.3, step=0.2 * d, replicas=40
    )
    laws = {"$B = 1$": base, "$B = 8$": base.replace(batch=8), r"$B = 8$, $\mu = 0.7$": base.replace(batch=8, momentum=0.7)}
    few, fine = (1, 3, 10, 30, 100, 300), np.unique(np.round(np.geomspace(1, 1000, 120)))
    along(left, laws, lambda k: {"times": k / d}, "excess_risk", fine, few, size=d, seeds=4 if quick else 40)
    averaged, label = base.replace(average_from=10 / d), "$B = 1$, mean of iterates"
    along(
        left, averaged, lambda k: {"times": k / d}, "average_excess_risk", fine[fine > 12],
        index=3, label=label, linestyle="--",
    )  # fmt: skip
    title = rf"$s_j = 1/j$, $d = {d}$, $\eta = 0.2$"
    finish(left, "steps $k$", "excess risk $R_k$", title, xscale="log", yscale="log")
    batches = np.unique(np.round(np.geomspace(1, 512, 40))).astype(int)
    for index, exponent in enumerate((0.5, 1.0, 2.0)):
        s = np.arange(1, d + 1.0) ** -exponent
        law = base.replace(eigenvalues=s, step=1e-3)
        largest = [law.replace(batch=int(b)).largest_step() / d for b in batches]
        theory_line(right, batches, largest, index, f"$s_j = j^{{-{exponent:g}}}$")
        theory_line(right, batches, np.minimum(2 * batches / s.sum(), 2 / s[0]), index, linestyle=":", linewidth=1.2)
        label_of_batch = "critical batch" if index == 0 else None
        right.axvline(law.critical_batch(), color=COLOURS[index], linewidth=0.9, linestyle="-.", label=label_of_batch)
    title = r"dotted: $\min(2B/\mathrm{tr}\,\Sigma,\ 2/s_1)$"
    finish(right, "batch $B$", r"largest step $\eta_{\max}$", title, xscale="log", yscale="log")
    return figure


def multi_pass(quick: bool = True) -> Figure:
    """Draw train error and excess risk of SGD on a fixed data set for two batches, and of gradient descent."""
    figure, panels = new_figure(columns=2)
    few, size = (0.2, 0.8, 3.0, 8.0), 60
    fine = 0.016 * np.unique(np.round(np.geomspace(0.05, 12, 80) / 0.016))  # whole steps
    base = MultiPassLeastSquares(ratio=0.5, samples=2.0 * size, step=0.016, noise=0.6)
    laws = {f"SGD, $B = {batch}$": base.replace(batch=batch) for batch in (1, 4)}
    along(panels, laws, "times", ("train_error", "excess_risk"), fine, few, size=size, seeds=40 if quick else 200)
    descent = ("descent_train_error", "descent_excess_risk")
    along(panels, base, "times", descent, fine, index=2, label="gradient descent", linestyle="--")
    for axes, label in zip(panels, ("train error", "excess risk $R$"), strict=True):
        finish(axes, r"time $t = \eta k$", label, f"$n = {2 * size}$, $p = {size}$", xscale="log", yscale="log")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "online-sgd-losses": losses_and_flows,
    "online-sgd-recovery": recovery_times,
    "spiked-matrix-phases": spiked_matrix_phases,
    "spiked-matrix-transition": spiked_matrix_transition,
    "xor-success": xor_success,
    "xor-success-map": xor_success_map,
    "growth-exponents": growth_of_moments,
    "subcritical-steps": subcritical_steps,
    "sgd-large-deviation": sgd_large_deviation,
    "streaming-least-squares": streaming,
    "multi-pass-least-squares": multi_pass,
}

ITEMS = {
    "online-sgd-losses": ("J-26",),
    "online-sgd-recovery": ("J-31",),
    "spiked-matrix-phases": ("J-41",),
    "spiked-matrix-transition": ("J-41", "J-42"),
    "xor-success": ("J-44",),
    "xor-success-map": ("J-44",),
    "growth-exponents": ("J-29", "J-37"),
    "subcritical-steps": ("J-25", "J-39"),
    "sgd-large-deviation": ("J-36",),
}
"""Items of the lecture notes that the figures cover."""
