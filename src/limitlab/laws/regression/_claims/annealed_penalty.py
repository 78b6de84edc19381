"""Claim about annealed penalties (D12)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check
from limitlab.lab.claims import claim
from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.regression.early_stopping import EarlyStopping
from limitlab.numerics.spectra.marchenko_pastur import quadrature

AREA = "Two-layer dynamics (DMFT)"

Array = NDArray[np.float64]


@claim("D12", AREA, EarlyStopping, FirstOrderDynamics, figure="annealed-penalty", items=("D-8",))
def changing_penalty(check: Check) -> None:
    """The limit covers a penalty that changes in time. With a decaying penalty the final risk is lower than without a penalty or with a
    constant penalty.

    The check integrates the mode equation of least squares with Lambda = 1.5 exp(-t/2) and compares it with flows on samples, whose
    gap falls like 1/d, and with steps of descent.
    """
    times = (0.5, 1.0, 2.0, 4.0, 8.0)
    law = EarlyStopping(ratio=1 / 1.5, noise=0.5, times=times, penalty=decaying)
    limit = law.theory().excess_risk
    draws = {50: 40, 400: 10} if check.quick else {50: 200, 400: 60}
    gaps = {
        d: float(np.abs(law.simulate_batch(d, range(count)).excess_risk.mean("seed") - limit).max())
        for d, count in draws.items()
    }
    check.below("gap of the excess risk at d = 50", gaps[50], 4e-3)
    check.below("gap of the excess risk at d = 400", gaps[400], 6e-4)
    others = {
        name: float(law.replace(penalty=penalty).theory().excess_risk[-1])
        for name, penalty in (("none", None), ("constant", 1.5))
    }
    check.below("excess risk at t = 8 minus that without a penalty", float(limit[-1]) - others["none"], -0.03)
    check.below("excess risk at t = 8 minus that with the constant penalty 1.5", float(limit[-1]) - others["constant"], -0.2)
    check.below("gap of the discrete-time equations (square loss) to the recursion of the modes", recursion_gap(), 1e-7)
    check.show("excess risk at t = 8", float(limit[-1]))
    check.show("without a penalty", others["none"])
    check.show("with a constant one", others["constant"])
    check.note(
        "The check covers the square loss. For other losses the penalty replaces the ridge in the discrete-time equations; only the "
        "comparison of the law tests this."
    )


def decaying(t: Array) -> Array:
    """Return a penalty that decays with time."""
    return 1.5 * np.exp(-t / 2)


def recursion_gap() -> float:
    """Return the largest gap of norm and overlap between the equations of descent and a recursion of modes.

    The recursion is G <- G + step (1 - (Lambda_k + x) G) for every eigenvalue x of the spectrum.
    """
    law = FirstOrderDynamics(
        loss="square", sample_ratio=1.5, noise=0.5, step=0.2, steps=15, signal_energy=1.3, ridge=0.1, penalty=decaying
    )
    x, mass = quadrature(1 / law.sample_ratio)
    gain, norms, overlaps = np.zeros_like(x), [], []
    for k in range(law.steps + 1):
        overlaps.append(law.signal_energy * float(mass @ (x * gain)))
        norms.append(
            law.signal_energy * float(mass @ (x * gain) ** 2) + law.noise**2 / law.sample_ratio * float(mass @ (x * gain**2))
        )
        gain = gain + law.step * (1 - (law.ridge + decaying(np.array(law.step * k)) + x) * gain)
    limit = law.theory()
    return max(float(np.abs(limit.norm - norms).max()), float(np.abs(limit.overlap - overlaps).max()))
