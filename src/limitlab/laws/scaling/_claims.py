"""Claims about scaling laws (S3 to S5)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, largest
from limitlab.lab.claims import claim
from limitlab.laws.scaling.ridge_scaling import RidgeScaling, slopes
from limitlab.laws.scaling.width_and_steps import PowerLawScaling
from limitlab.numerics.additive_powers import Runs, best_fit, centred, log_optimum, model, residuals

Array = NDArray[np.float64]

_AREA = "Scaling laws"


@claim("S3", _AREA, PowerLawScaling, figure="power-law-scaling")
def additive_fits(check: Check) -> None:
    """A fit E + A N^-a + B D^-b gives the best width in phase Ia, but in phases II and III its best width is wrong by factors.

    The check fits noise-free tables of the law (8 widths x 9 steps), and compares their best width at compute 1e10 with the frontier. It
    also tests that both widths have the least loss, of the law and of the fit.
    """
    widths, steps = np.geomspace(30, 3000, 8), np.geomspace(1e2, 1e6, 9)
    factors, misfits = {}, {}
    offsets: list[float] = []
    for phase, beta in (("Ia", 0.2), ("II", 0.7), ("III", 1.3)):
        law = PowerLawScaling(target_exponent=beta, latent_dimension=1e7, step=0.3, steps=tuple(steps))
        loss = [law.replace(width=float(width)).theory().excess_risk.values for width in widths]
        runs = centred(np.repeat(widths, steps.size), np.tile(steps, widths.size), np.ravel(loss))
        best = best_fit(runs, robust=False)
        fitted = math.exp(log_optimum(best.theta, runs, np.log(1e10)))
        true = float(law.frontier(1e10).width)
        factors[phase] = true / fitted

        def loss_of_law(width: float, law: PowerLawScaling = law) -> float:
            return float(law.replace(width=width, steps=1e10 / width).theory().excess_risk)

        def loss_of_fit(width: float, theta: Array = best.theta, runs: Runs = runs) -> float:
            point = runs._replace(n=np.log([width]) - runs.centre_n, d=np.log([1e10 / width]) - runs.centre_d)
            return float(np.exp(model(theta, point)[0][0]))

        for name, width, losses in (("frontier", true, loss_of_law), ("fit", fitted, loss_of_fit)):
            offsets.append(abs(offset(width, losses)))
            check.show(f"relative distance of the width of the {name} from the least loss, phase {phase}", offsets[-1])
        misfits[phase] = float(np.sqrt(np.mean(residuals(best.theta, runs) ** 2)))
    check.between("true over fitted best width at compute 1e10, phase Ia", factors["Ia"], 0.85, 1.15)
    check.above("true over fitted best width at compute 1e10, phase II", factors["II"], 1.6)
    check.above("true over fitted best width at compute 1e10, phase III", factors["III"], 5.0)
    check.below("largest relative distance of a best width from the least loss", largest(offsets), 0.005)
    check.above(
        "root mean square residual of log loss in phase III over that in phase Ia", misfits["III"] / misfits["Ia"], 5.0
    )
    for phase, value in factors.items():
        check.show(f"factor, phase {phase}", value)
    for phase, value in misfits.items():
        check.show(f"residual, phase {phase}", value)


def offset(width: float, loss: Callable[[float], float], step: float = 0.02) -> float:
    """Return the log of the width with the least loss minus the log of `width`, from a parabola through three losses.

    >>> round(offset(2.0, lambda x: math.log(x / 2.1) ** 2), 6), round(math.log(2.1 / 2), 6)
    (0.04879, 0.04879)
    """
    low, middle, high = (loss(width * math.exp(shift)) for shift in (-step, 0.0, step))
    return step * (low - high) / (2 * (low - 2 * middle + high))


@claim("S4", _AREA, PowerLawScaling, figure="power-law-scaling")
def phases(check: Check) -> None:
    """With power-law features the compute-optimal width and loss are powers of the compute whose exponents change with the phase.

    The check compares local slopes of the computed frontier at compute 1e10 and 1e16 with the table, and SGD on random projections with the
    law.
    """
    table: dict[str, tuple[tuple[float, float], ...]] = {"Ia": ((1.0, 0.2),), "II": ((1.0, 0.7),), "III": ((1.0, 1.3),)}
    if not check.quick:
        table = {"Ia": ((1.0, 0.2), (0.75, 0.3)), "II": ((1.0, 0.7), (1.5, 1.0)), "III": ((1.0, 1.3), (0.75, 1.2))}
    before: list[float] = []
    after: list[float] = []
    correct = []
    for phase, points in table.items():
        for alpha, beta in points:
            law = PowerLawScaling(spectrum_exponent=alpha, target_exponent=beta, latent_dimension=np.inf, step=0.2)
            limit = law.exponents()
            for compute, gaps in ((1e10, before), (1e16, after)):
                local = law.local_exponents(compute)
                gaps += [abs(local.width - limit.width), abs(local.loss - limit.loss)]
            correct.append(law.phase() == phase)
    check.equal("points with the correct phase", sum(correct), len(correct))
    check.below("largest gap of a slope of the frontier to its exponent at compute 1e16", largest(after), 0.004)
    check.below("the same over the largest gap at compute 1e10", largest(after) / largest(before), 0.5)
    check.agree(
        "SGD on random projections",
        PowerLawScaling,
        points=1 if check.quick else None,
        seeds=80 if check.quick else None,
    )
    early = PowerLawScaling(spectrum_exponent=1.5, target_exponent=1.0, latent_dimension=np.inf, step=0.2)
    check.show("slope of the width at compute 1e5, (1.5, 1.0)", early.local_exponents(1e5).width)
    check.note("The slopes converge slowly. At small compute they differ by a tenth from the exponents.")


@claim("S5", _AREA, RidgeScaling, figure="ridge-scaling")
def ridge_rates(check: Check) -> None:
    """With power-law spectra the ridgeless variance does not vanish, a ridge gives the best rate, and width and data have
    different exponents.

    The check tests the constants of variance and error, and the slopes of the best ridge, its error and the sufficient width. It compares
    regressions with the law.
    """
    plain = RidgeScaling(target_exponent=0.7, latent_dimension=np.inf, samples=1e4, ridge=0.0, noise=0.0)
    rates, error = plain.exponents(), float(plain.theory().test_error)
    check.near_relative(
        "noiseless ridgeless error times n^2.4 at (1, 0.7), n = 1e4", error * 1e4**rates.data, rates.error_constant, 0.002
    )
    noisy = float(plain.replace(noise=1.0, spectrum_exponent=0.75).theory().variance)
    smooth = plain.replace(target_exponent=2.3)  # beyond 2 beta - 1 = 2 alpha the constant has another form
    rates_smooth, error = smooth.exponents(), float(smooth.theory().test_error)
    check.near_relative(
        "noiseless ridgeless error times n^4 at (1, 2.3), n = 1e4",
        error * 1e4**rates_smooth.data,
        rates_smooth.error_constant,
        0.002,
    )
    rate = plain.replace(spectrum_exponent=0.75).exponents().variance_constant
    check.near("ridgeless variance over tau^2 at alpha = 0.75, n = 1e4", noisy, rate, 0.001)
    narrow = [float(plain.replace(samples=1e9, width=width).theory().test_error) for width in (1e3, 1e4)]
    check.near("exponent of the error in the width at (1, 0.7)", math.log10(narrow[0] / narrow[1]), rates.width, 0.03)
    law = RidgeScaling(target_exponent=0.2, latent_dimension=1e12, noise=0.5)
    in_ridge, in_excess = slopes(law, (1e5, 1e6))
    check.near("exponent of the best ridge at (1, 0.2)", in_ridge, 5 / 6, 0.003)
    check.near("exponent of the excess risk at the best ridge at (1, 0.2)", in_excess, 7 / 12, 0.003)
    widths = [law.replace(samples=n).width_needed(1.5) for n in (1e6, 1e7)]
    check.near("exponent of the width that costs a factor 1.5 at (1, 0.2)", math.log10(widths[1] / widths[0]), 5 / 12, 0.01)
    check.agree("regressions", RidgeScaling, seeds=200 if check.quick else None)
    check.show("data exponent", rates.data)
    check.show("width exponent", rates.width)
