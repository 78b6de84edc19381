"""Claim D1: gradient descent on any smooth loss follows the general dynamical mean-field process."""

from __future__ import annotations

from typing import Any

import numpy as np

from limitlab.lab.check import Check, Number
from limitlab.lab.claims import claim
from limitlab.lab.measures import standard_error, words
from limitlab.laws.dmft._claims.dynamics import AREA
from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.dmft.two_layer import TwoLayerDynamics

SIZES = (100, 200, 400)

CASES: dict[str, dict[str, Any]] = {
    "square": dict(loss="square", step=0.3),
    "tanh": dict(loss="tanh", step=0.3),
    "committee": dict(loss="committee", width=2, step=1.0, start_norm=1.0, start_overlap=0.2),
}


@claim("D1", AREA, FirstOrderDynamics, figure="beyond-gaussian-model")
def general_process(check: Check) -> None:
    """The general dynamical mean-field process describes gradient descent on a smooth loss as n, d grow at fixed n/d.

    Gradient descent at growing d for an exactly solvable and for nonlinear losses; networks beyond the Gaussian model.
    """
    for name in ("square", "tanh") if check.quick else CASES:
        law = FirstOrderDynamics(steps=8, signal_energy=1.0, paths=20000 if check.quick else 160000, **CASES[name])
        statement = f"the process for the {name} loss (errors, norm and overlap after extrapolation in d)"
        (result,) = check.agree(statement, law, sizes=SIZES, seeds=60 if check.quick else 240)
        check.show(f"{name}: accuracy of the process", float(law.theory().attrs["accuracy"]))
        for row in result.rows:
            check.show(f"{name}: gap of the {words(row.observable)}", row.gap)
            check.show(f"{name}: gap of the {words(row.observable)} that would be noticed", row.half_width)
    if not check.quick:
        to_exact, to_gaussian, errors = beyond_the_gaussian_model()
        check.below("distance of a tanh network of two neurons from the process, in standard errors", abs(to_exact), 4)
        check.above("distance of this network from the Gaussian model, in standard errors", abs(to_gaussian), 4)
        for name, number in errors.items():
            check.show(name, number)
    check.note("the square loss is solved exactly; the nonlinear process is sampled, which adds the stated accuracy")


def beyond_the_gaussian_model(size: int = 400, draws: int = 60, steps: int = 40) -> tuple[float, float, dict[str, Number]]:
    """Distances in standard errors of a tanh network of two neurons to both theories, and its train errors at t = 8."""
    ratio, end, shared = 2.0, 8.0, dict(width=2, noise=0.5, start_overlap=0.1, activation="tanh", target_function="tanh")
    step: dict[str, Any] = dict(sample_ratio=ratio, step=ratio * end / steps, steps=steps)
    law = FirstOrderDynamics(loss="committee", signal_energy=1.0, start_norm=1.0, sphere=True, paths=12000, **step, **shared)
    gaussian = TwoLayerDynamics(sample_ratio=ratio, frozen=True, times=end, **shared)
    runs = law.simulate_batch(size, range(draws)).train_error.isel(time=-1).values
    theory = law.theory()
    exact, approximate = float(theory.train_error[-1]), float(gaussian.theory().train_error)
    error = float(np.hypot(standard_error(runs), theory.attrs["accuracy"] / 2 * exact))
    mean = float(runs.mean())
    errors: dict[str, Number] = {
        "train error of the network at t = 8": mean,
        "train error of the process": exact,
        "train error of the Gaussian model": approximate,
    }
    return (mean - exact) / error, (mean - approximate) / error, errors
