"""Claims about learning from models, for chains of models (C1), teachers and students (C2), and both on images (C3)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.check import SIGMAS, Check, largest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.regression._label_chains import shipped_images
from limitlab.laws.regression.distillation import Distillation
from limitlab.laws.regression.model_collapse import ModelCollapse, exact_accumulated
from limitlab.laws.regression.ridge import Ridge

_AREA = "Learning from models"

_GROUPS: dict[str, tuple[float, ...]] = dict(
    eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2)
)


@claim("C1", _AREA, ModelCollapse, figure="model-collapse")
def collapse(check: Check) -> None:
    """If every model is trained on predictions of the previous model, the excess risk grows by tau^2 gamma/(1 - gamma) per generation.
    For gamma > 2/3 a share of real labels stops this growth only above (3 gamma - 2)/(2 gamma - 1). A small ridge penalty, or training
    on the data of all generations, also stops it.

    The check compares theory and simulation, measures the growth on both sides of the critical share, and compares kept data with their
    exact sum.
    """
    check.agree("the law", ModelCollapse)
    law = ModelCollapse(ratio=0.8, ridge=0.0, noise=0.5, generations=(1, 2, 3, 4, 5, 6))
    critical = law.critical_share()
    size, seeds = (100, 8) if check.quick else (200, 40)
    runs = {
        share: law.replace(real_share=share).simulate_batch(size, range(seeds)).excess_risk.mean("seed")
        for share in (0.3, 0.95)
    }
    grown = {share: float(run[-1] / run[-2]) for share, run in runs.items()}
    alone = law.replace(ratio=0.5).theory().excess_risk.values
    check.below(
        "largest gap of a generation's loss to tau^2 gamma/(1 - gamma)", largest(np.abs(np.diff(alone) - 0.25)), 1e-12
    )
    check.near("critical share of real labels at gamma = 0.8", critical, 0.4 / 0.6, 1e-9)
    check.above("simulated growth per generation below the critical share", grown[0.3], 1.15)
    check.below("simulated growth per generation above it", grown[0.95], 1.1)
    check.below(
        "growth factor with a ridge of 0.05 below the critical share",
        law.replace(ridge=0.05, real_share=0.3).growth_factor(),
        1,
    )
    accumulated = ModelCollapse(ratio=0.5, ridge=0.0, noise=0.5, data="accumulate", generations=(1, 2, 4))
    draws = accumulated.simulate_batch(40, range(40 if check.quick else 400)).excess_risk.values
    gaps = np.abs(draws.mean(axis=0) - exact_accumulated(80, 40, 0.5, [1, 2, 4])) / standard_error(draws)
    check.below("largest gap of kept data to the exact sum, in standard errors", largest(gaps), SIGMAS)
    for share, value in grown.items():
        check.show(f"simulated growth per generation at share {share:g}", value)
    check.show("excess risk in the limit, ridge 0.05, share 0.3", law.replace(ridge=0.05, real_share=0.3).limit())


@claim("C2", _AREA, Distillation, figure="distillation")
def students(check: Check) -> None:
    """A student that learns from a teacher's predictions can have a smaller error than the teacher if the teacher's penalty is
    too small or the signal is anisotropic, and never if the signal is isotropic and the teacher has its best penalty.

    The check covers comparisons, simulated gains over a teacher with a small penalty, the isotropic case, and mixing weights outside
    [0, 1].
    """
    names = ["teacher_excess_risk", "bias", "variance", "excess_risk"]
    check.agree("the law", Distillation, seeds=60, observables=names)
    best = Ridge(ratio=0.8, noise=1.0, **_GROUPS).optimal_ridge()
    lax = Distillation(ratio=0.3, teacher_ratio=0.8, teacher_ridge=best / 4, noise=1.0, **_GROUPS)
    lax = lax.replace(ridge=lax.optimal_ridge())
    gains = lax.simulate_batch(80 if check.quick else 160, range(10 if check.quick else 60)).gain.values
    check.above(
        "simulated gain over a teacher with a quarter of its best penalty, minus 5 standard errors",
        float(gains.mean()) - SIGMAS * standard_error(gains),
        0.0,
    )
    check.near_relative("that gain", float(gains.mean()), float(lax.theory().gain), 0.15)
    even = Distillation(ratio=0.5, teacher_ratio=0.8, teacher_ridge=0.2, noise=0.5)
    others = [
        float(even.replace(ridge=ridge, ratio=ratio).theory().gain)
        for ridge in (0.0, 0.02, 0.2)
        for ratio in (0.1, 0.5, 3.0)
    ]
    check.below("largest gain over the best isotropic teacher", largest(others), 1e-12)
    least = float(Ridge(ratio=0.8, ridge=best, noise=1.0, **_GROUPS).theory().excess_risk)
    outside = Distillation(ratio=0.8, ridge=2.026, teacher_ridge=2.026, noise=1.0, inputs="same", mix=-1.31, **_GROUPS)
    check.below(
        "excess risk with mix -1.31 and the same inputs, over the best ridge's",
        float(outside.theory().excess_risk) / least,
        0.97,
    )
    surrogate = Distillation(ratio=2.0, ridge=0.0, noise=0.3, **_GROUPS).best_surrogate()
    check.true(
        "the best surrogate amplifies leading directions and shrinks the last",
        bool(surrogate.gain[0] > 1 > surrogate.gain[-1]),
    )
    check.below(
        "excess risk with the best surrogate's labels over that with true labels",
        surrogate.excess_risk / surrogate.excess_risk_true_labels,
        0.92,
    )
    check.show("excess risk of the best ridge", least)
    check.show("with mix -1.31", float(outside.theory().excess_risk))
    check.show("best penalty", best)


@claim("C3", _AREA, ModelCollapse, Distillation, figure="chains-on-images")
def on_images(check: Check) -> None:
    """On real images, with a penalty near the best one, chains of models and students agree with the laws at the images'
    spectrum to within a few per cent. Without a penalty they do not agree.

    The check measures chains and students on 8,000 images of digits. It also checks that the law fails there without a penalty.
    """
    X, y = shipped_images()
    seeds = 24 if check.quick else 400
    chains = [
        ModelCollapse.from_data(X, y, samples=400, generations=(1, 2, 4), ridge=ridge, real_share=share)
        for ridge, share in ((0.003, 0.0), (0.003, 0.3))
    ]
    students = [
        Distillation.from_data(X, y, samples=800, teacher_samples=200, teacher_ridge=0.002, ridge=0.01),
        Distillation.from_data(X, y, samples=300, teacher_ridge=0.01, ridge=0.01, inputs="same", mix=-0.5),
    ]
    laws: list[ModelCollapse | Distillation] = [*chains, *students]
    runs = [law.on_table(X, y, range(seeds)).excess_risk.values / law.theory().excess_risk.values for law in laws]
    gaps = np.concatenate([np.atleast_1d(run.mean(axis=0) - 1) for run in runs])
    errors = np.concatenate([np.atleast_1d(run.std(axis=0, ddof=1)) for run in runs]) / np.sqrt(seeds)
    check.below(
        "largest relative gap of a chain or student, less 5 standard errors", largest(np.abs(gaps) - SIGMAS * errors), 0.04
    )
    check.below("largest standard error of these gaps", largest(errors), 0.06)
    loose = ModelCollapse.from_data(X, y, samples=600, ridge=0.0, data="accumulate", generations=2)
    unpenalised = float(loose.on_table(X, y, range(6)).excess_risk.mean()) / float(loose.theory().excess_risk)
    check.above("excess risk without a penalty, in units of the law's", unpenalised, 2.0)
    check.show("mean relative gap", float(gaps.mean()))
    check.show("largest relative gap", largest(np.abs(gaps)))
    check.show("its standard errors", largest(errors))
    check.note(
        "Images are not Gaussian, and leverages of their rows vary by twice their mean. Without a penalty a few rows determine the fit."
    )
