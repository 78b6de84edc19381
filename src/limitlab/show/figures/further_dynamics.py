"""Figures of training dynamics: a penalty that changes in time, universality."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from limitlab.lab.compare import compare
from limitlab.lab.extrapolated import extrapolated
from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.dmft.middle import MiddleRegime
from limitlab.laws.dmft.multi_index import MultiIndexFlow
from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.plotting.style import COLOURS, finish, mean_and_error, new_figure, simulation_points, theory_line


def annealed_penalty(quick: bool = True) -> Figure:
    """Excess risk over time without a penalty, with a constant and with a decaying one."""
    figure, (left, right) = new_figure(columns=2)
    times, few = np.geomspace(0.05, 30, 50), (0.3, 1.0, 3.0, 10.0)
    cases = {"no penalty": None, "constant 1.5": 1.5, r"decaying $1.5e^{-t/2}$": lambda t: 1.5 * np.exp(-t / 2)}
    for index, (words, penalty) in enumerate(cases.items()):
        law = EarlyStopping(ratio=1 / 1.5, noise=0.5, penalty=penalty, times=tuple(times))
        runs = law.replace(times=few).simulate_batch(100, range(10 if quick else 60)).excess_risk
        theory_line(left, times, law.theory().excess_risk, index, words)
        simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / np.sqrt(runs.sizes["seed"]), index)
    finish(left, "time $t$", "excess risk $R$", r"$n/p = 1.5$, $\tau = 0.5$; points: $p = 100$", xscale="log")
    law = EarlyStopping(ratio=1 / 1.5, noise=0.5, penalty=cases[r"decaying $1.5e^{-t/2}$"], times=(0.5, 2.0, 8.0))
    sizes = (15, 25, 50, 100) if quick else (15, 25, 50, 100, 200)
    limits = [
        law.replace(ratio=p / law.draw(p, 0).count("ratio")).theory().excess_risk for p in sizes
    ]  # n is a whole number
    runs = [law.simulate_batch(p, range(60 if quick else 400)).excess_risk for p in sizes]
    for index, t in enumerate((0.5, 2.0, 8.0)):
        gaps, errors = np.array(
            [mean_and_error(run.isel(time=index) - limit[index]) for run, limit in zip(runs, limits, strict=True)]
        ).T
        place = (1 / np.array(sizes)) * 1.03 ** (index - 1)
        theory_line(right, [0, place[0]], [0, np.mean(gaps * np.array(sizes)) * place[0]], index, linewidth=1, linestyle=":")
        simulation_points(right, place, gaps, errors, index, f"$t = {t:g}$")
    right.axhline(0.0, color="0.3", linewidth=1.5)
    title = "decaying penalty: the gap vanishes like $1/p$ (dotted)"
    finish(right, "$1/p$ for $p$ features", "gap to the limit of $R$", title)
    return figure


def universality(quick: bool = True) -> Figure:
    """Norm along gradient descent for Gaussian inputs and signs, with a spread and with a sparse target."""
    figure, (left, right) = new_figure(columns=2)
    law = FirstOrderDynamics(loss="tanh", sample_ratio=2.0, noise=0.3, signal_energy=2.0, step=0.5, steps=20, paths=4000)
    limit, draws, at = law.theory(), 10 if quick else 60, np.arange(0, 21, 4)
    cases: dict[str, dict[str, Any]] = {
        "Gaussian, spread": {},
        "signs, spread": dict(entries="sign"),
        "Gaussian, one coordinate": dict(target_spread=False),
        "signs, one coordinate": dict(entries="sign", target_spread=False),
    }
    batches = [law.replace(**changes).simulate_batch(300, range(draws)).isel(time=at) for changes in cases.values()]
    for axes, name, symbol in (
        (left, "norm", r"norm $|\theta|^2$"),
        (right, "overlap", r"overlap $\langle\theta,\theta_*\rangle$"),
    ):
        theory_line(axes, limit.time, limit[name], 6, r"limit, $d\to\infty$", marker=".")
        for index, (words, batch) in enumerate(zip(cases, batches, strict=True)):
            runs = batch[name]
            simulation_points(
                axes, at + 0.25 * (index - 1.5), runs.mean("seed"), runs.std("seed", ddof=1) / np.sqrt(draws), index, words
            )
        finish(axes, "step $k$", symbol, r"tanh regression, $n/d = 2$, points: $d = 300$")
    return figure


def multi_index(quick: bool = True) -> Figure:
    """Overlaps with two directions over time, and the gap of networks to their particles against the width."""
    figure, (left, right) = new_figure(columns=2)
    times, few = np.linspace(0, 4, 60), (0.5, 1.0, 2.0, 3.0, 4.0)
    law = MultiIndexFlow(second_layer=1.0, overlaps=((0.3, 0.0),), times=tuple(times))
    runs = law.replace(times=few).simulate_batch(60, range(5 if quick else 20)).overlap.isel(particle=0)
    for index in range(2):
        theory_line(left, times, law.theory().overlap.isel(particle=0, index=index), index, f"direction {index + 1}")
        part = runs.isel(index=index)
        simulation_points(left, few, part.mean("seed"), part.std("seed", ddof=1) / np.sqrt(part.sizes["seed"]), index)
    finish(left, r"population time $\hat t$", "overlap $v$", r"$\varphi = u_1 + u_1u_2$; points: $m = d = 60$")
    sizes = np.array([12, 24, 48, 96] if quick else [12, 24, 48, 96, 192])
    law = MultiIndexFlow(times=(4.0,))
    limit = law.theory()
    found = [law.simulate_batch(int(m), range(8 if quick else 20)) for m in sizes]
    for index, (name, words) in enumerate(
        (("second_layer", "second layer"), ("overlap", "overlap"), ("test_error", "test error"))
    ):
        gaps = [np.abs(run[name].mean("seed") - limit[name]).mean().item() for run in found]
        errors = [(run[name].std("seed", ddof=1).mean() / np.sqrt(run.sizes["seed"])).item() for run in found]
        simulation_points(right, sizes, gaps, errors, index, words)
    theory_line(right, sizes, 1.6 / sizes, 6, r"$\propto 1/m$", linestyle="--")
    finish(
        right, "neurons $m = d$", "mean gap to the particles", r"$\hat t = 4$, three particles", xscale="log", yscale="log"
    )
    return figure


def middle_regime(quick: bool = True) -> Figure:
    """Second layer over times of order sqrt(m) at several widths, and the energy of the spin model on its way to the threshold."""
    figure, (left, right) = new_figure(columns=2)
    x = np.linspace(0.05, 3, 40)
    law = MiddleRegime(kernel=(0.0, 0.5, 0.0, 0.5), x=tuple(x))
    for index, width in enumerate((20, 80, 320) if quick else (20, 80, 320, 1280)):
        theory_line(
            left, x, law.finite_width(width).theory().second_layer, index, f"$m = {width}$", linestyle="--", linewidth=1.5
        )
    theory_line(left, x, law.theory().second_layer, 6, r"limit $m\to\infty$")
    few, sizes = (0.5, 1.0, 1.5, 2.0), (15, 30, 60)
    found = compare(law.replace(x=few), sizes, 20 if quick else 60, observables=["second_layer"])
    words = "Gaussian tensors,\nextrapolated ($d = 15, 30, 60$)"
    simulation_points(left, few, *extrapolated(found, "second_layer"), 3, words)
    finish(left, r"$x = \tau\sqrt{\alpha/m}\,t$", "second layer $a$", r"$h = (q+q^3)/2$, $\alpha = 0.5$")
    s = np.geomspace(0.1, 20, 40)
    for index, (kernel, words) in enumerate(
        (((0.0, 0.0, 0.0, 0.5), r"$\tilde h = q^3/2$"), ((0.0, 0.0, 0.3, 0.2), r"$\tilde h = 0.3q^2+0.2q^3$"))
    ):
        one = MiddleRegime(kernel=kernel, solver_steps=16)
        theory_line(right, s, one.spin_flow(s).energy, index, words)
        right.axhline(one.threshold_energy(), color=COLOURS[index], linestyle=":", linewidth=1.5)
    finish(right, "clock $s$", "energy $e$", "the spin model behind it; dotted: threshold energies", xscale="log")
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "annealed-penalty": annealed_penalty,
    "universality": universality,
    "multi-index": multi_index,
    "middle-regime": middle_regime,
}
