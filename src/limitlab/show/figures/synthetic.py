"""Figures of learning from models: chains of generations, students and teachers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure

from limitlab.laws.regression.distillation import Distillation
from limitlab.laws.regression.label_chains import shipped_images
from limitlab.laws.regression.model_collapse import ModelCollapse
from limitlab.laws.regression.ridge import Ridge
from limitlab.plotting.style import finish, new_figure, reading_key, simulation_points, theory_line

GROUPS: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2)
)


def model_collapse(quick: bool = True) -> Figure:
    """Excess risk along a chain of models, and the critical share of real labels."""
    figure, (left, right) = new_figure(columns=2)
    size, seeds = (100, 20) if quick else (200, 60)
    lines = tuple(range(1, 11))
    base = ModelCollapse(ratio=0.8, ridge=0.0, noise=0.5, generations=lines)
    cases = [
        ("only the model's labels", base),
        (r"share 0.3 real", base.replace(real_share=0.3)),
        (r"share 0.9 real", base.replace(real_share=0.9)),
        (r"share 0.3 real, $\lambda=0.05$", base.replace(real_share=0.3, ridge=0.05)),
        ("all data kept", base.replace(data="accumulate")),
    ]
    few = (1, 2, 4, 6, 8)
    for index, (label, law) in enumerate(cases):
        theory_line(left, lines, law.theory().excess_risk, index, label)
        runs = law.replace(generations=few).simulate_batch(size, range(seeds)).excess_risk
        simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / math.sqrt(seeds), index)
    reading_key(left, "limit", f"simulated, $p={size}$")
    finish(
        left,
        "generation $g$",
        "excess risk $R$",
        r"each trained on the last, $\gamma=0.8,\ \tau=0.5$",
        yscale="log",
        ylim=(0.3, 1e3),
    )
    ratios = np.linspace(0.5, 0.98, 97 if quick else 193)
    for index, ridge in enumerate((0.0, 0.01, 0.03)):
        law = ModelCollapse(ridge=ridge)
        shares = [law.replace(ratio=float(ratio)).critical_share() for ratio in ratios]
        theory_line(right, ratios, shares, index, rf"$\lambda={ridge:g}$")
    finish(
        right, r"features per sample $\gamma$", r"critical share of real labels $\pi_c$", "below the line a chain diverges"
    )
    return figure


def distillation(quick: bool = True) -> Figure:
    """Excess risk of the student against its penalty, beside the teacher's; the gain of mixing with the same inputs."""
    figure, (left, right) = new_figure(columns=2)
    size, seeds = (80, 10) if quick else (160, 60)
    best = Ridge(ratio=0.8, noise=1.0, **GROUPS).optimal_ridge()
    ridges, few = np.geomspace(0.003, 3, 40), np.geomspace(0.01, 1, 4)
    law = Distillation(teacher_ratio=0.8, teacher_ridge=best / 4, noise=1.0, **GROUPS)
    for index, ratio in enumerate((0.05, 0.3, 1.0)):
        student = law.replace(ratio=ratio)
        values = [float(student.replace(ridge=float(ridge)).theory().excess_risk) for ridge in ridges]
        theory_line(left, ridges, values, index, rf"student, $\gamma={ratio:g}$")
        if ratio > 0.1:
            runs = [student.replace(ridge=float(ridge)).simulate_batch(size, range(seeds)).excess_risk for ridge in few]
            errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
            simulation_points(left, few, [float(run.mean()) for run in runs], errors, index)
    left.axhline(float(law.theory().teacher_excess_risk), color="0.3", linestyle="--", linewidth=1.4, label="teacher")
    reading_key(left, None, f"simulated, $p={size}$")
    finish(
        left, r"student's penalty $\lambda$", "excess risk $R$", "a teacher with a quarter of its best penalty", xscale="log"
    )
    mixes, some = np.linspace(-2, 2, 41), np.array([-1.5, -0.5, 0.5, 1.5])
    for index, ridge in enumerate((0.2113, best, 2.026)):
        same = Distillation(ratio=0.8, ridge=ridge, teacher_ridge=ridge, noise=1.0, inputs="same", **GROUPS)
        values = [float(same.replace(mix=float(mix)).theory().excess_risk) for mix in mixes]
        theory_line(right, mixes, values, index, rf"$\lambda=\lambda_t={ridge:.2g}$")
        runs = [same.replace(mix=float(mix)).simulate_batch(size, range(seeds)).excess_risk for mix in some]
        errors = [float(run.std(ddof=1)) / math.sqrt(seeds) for run in runs]
        simulation_points(right, some, [float(run.mean()) for run in runs], errors, index)
    least = float(Ridge(ratio=0.8, ridge=best, noise=1.0, **GROUPS).theory().excess_risk)
    right.axhline(least, color="0.3", linestyle="--", linewidth=1.4, label="best ridge alone")
    reading_key(right, None, f"simulated, $p={size}$")
    finish(
        right,
        r"share $\xi$ of the teacher's labels",
        "excess risk $R$",
        "student and teacher see the same inputs",
        yscale="log",
        ylim=(0.38, 1.9),
    )
    return figure


def chains_on_images(quick: bool = True) -> Figure:
    """Chains of models and students on the shipped images, beside the laws at the images' spectrum."""
    figure, (left, right) = new_figure(columns=2)
    X, y = shipped_images()
    seeds, generations = range(8 if quick else 100), tuple(range(1, 9))
    cases = [
        (r"only the model's labels, $\lambda=10^{-3}$", dict(ridge=1e-3)),
        (r"share 0.3 real, $\lambda=10^{-3}$", dict(ridge=1e-3, real_share=0.3)),
        (r"no noise on the model's labels, $\lambda=10^{-2}$", dict(ridge=1e-2, synthetic_noise=0.0)),
    ]
    for index, (label, given) in enumerate(cases):
        law = ModelCollapse.from_data(X, y, samples=400, generations=generations, **given)
        theory_line(left, generations, law.theory().excess_risk, index, label)
        runs = law.on_table(X, y, seeds).excess_risk
        simulation_points(left, generations, runs.mean("seed"), runs.std("seed", ddof=1) / math.sqrt(len(seeds)), index)
    finish(left, "generation $g$", "excess risk $R$", "8,000 images, 400 per generation")
    left.set_ylim(0, 1.45 * left.get_ylim()[1])
    ridges, few = np.geomspace(3e-4, 0.1, 30), np.geomspace(1e-3, 0.05, 4)
    for index, samples in enumerate((200, 800, 3000)):
        pair = Distillation.from_data(X, y, samples=samples, teacher_samples=200, teacher_ridge=1e-4)
        values = [float(pair.replace(ridge=float(ridge)).theory().excess_risk) for ridge in ridges]
        theory_line(right, ridges, values, index, f"student, $n={samples}$")
        students = [pair.replace(ridge=float(ridge)).on_table(X, y, seeds).excess_risk for ridge in few]
        errors = [float(run.std(ddof=1)) / math.sqrt(len(seeds)) for run in students]
        simulation_points(right, few, [float(run.mean()) for run in students], errors, index)
    taught = float(pair.on_table(X, y, seeds).teacher_excess_risk.mean())
    limit = float(pair.theory().teacher_excess_risk)
    right.axhline(limit, color="0.3", linestyle="--", linewidth=1.4, label=f"teacher, $n=200$ (measured {taught:.2f})")
    finish(
        right,
        r"student's penalty $\lambda$",
        "excess risk $R$",
        r"a teacher with penalty $10^{-4}$",
        xscale="log",
        ylim=(0.08, 0.46),
    )
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "model-collapse": model_collapse,
    "distillation": distillation,
    "chains-on-images": chains_on_images,
}
