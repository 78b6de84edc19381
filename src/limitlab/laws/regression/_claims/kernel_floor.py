"""Claim about the least excess risk of kernels, and about networks with a smaller excess risk (L10)."""

from __future__ import annotations

import numpy as np

from limitlab.lab import optimal
from limitlab.lab.check import Check, largest, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.laws.regression.kernel_floor import kernel_floor
from limitlab.laws.regression.random_features import RandomFeaturesRidge
from limitlab.models.activations import Moments

LINEAR, REST, NOISE = 0.5, 0.3, 0.5
"""F1^2, F*^2 and tau of the target."""


def feature_learning(width: int) -> TwoLayerDynamics:
    """Return the law of the two-layer network on the same target, with n = width d/2 samples."""
    return TwoLayerDynamics(
        width=width,
        sample_ratio=width / 2,
        noise=NOISE,
        kernel=(0.0, 0.5, 0.3, 0.2),
        target=(0.0, 0.5, 0.3),
        target_norm=0.8,
        start_second_layer=1.0,
        start_overlap=0.1,
        times=tuple(np.linspace(0.0, 16.0, 81)),
        solver_steps=300,
    )


@claim(
    "L10",
    "Uniform convergence and real networks",
    RandomFeaturesRidge,
    TwoLayerDynamics,
    figure="kernel-floor",
    items=("L-13", "L-14", "L-15"),
)
def feature_learning_wins(check: Check) -> None:
    """The solution with the tangent kernel is not statistically optimal. With feature learning the excess risk is below that of every
    kernel method.

    The excess risk of the best kernel, in closed form, is never below F*^2. The two-layer law is below F*^2 during gradient flow, and
    its excess risk falls with n/d.
    """
    ratios = (5.0, 10.0, 20.0)
    floor = [float(kernel_floor(ratio, LINEAR, REST, NOISE)) for ratio in ratios]
    tuned = []
    for activation in (Moments(0.0, 0.6, 0.5), Moments(0.0, 0.5, 0.7)):
        law = RandomFeaturesRidge(
            width_ratio=np.inf, activation=activation, signal=LINEAR**0.5, nonlinear_signal=REST**0.5, noise=NOISE
        )
        best = [optimal(law.replace(sample_ratio=ratio), over="ridge", minimise="excess_risk") for ratio in ratios]
        tuned.append([float(optimum.excess_risk) for optimum in best])
    check.below(
        "largest gap of the closed form to the tuned random-features law",
        largest(np.abs(np.subtract(tuned[0], floor))),
        1e-6,
    )
    check.above("least of that law over the floor, another activation", smallest(np.divide(tuned[1], floor)), 1 - 1e-9)
    check.above("least kernel risk minus F*^2", smallest(floor) - REST, 0.0)
    widths = (10, 20, 40)
    flow = [float(feature_learning(width).theory().test_error.min()) - NOISE**2 for width in widths]
    check.below("largest risk of the trained network along its path minus F*^2, over n/d", largest(flow) - REST, 0.0)
    check.true("the risk of the trained network falls with n/d", flow[0] > flow[1] > flow[2])
    start = [float(feature_learning(width).theory().test_error[0]) - NOISE**2 for width in widths]
    check.above("risk of the network at its start minus F*^2", smallest(start) - REST, 0.0)
    simulated = feature_learning(10).replace(times=(2.0, 5.0, 7.7))
    size, draws = (30, 6) if check.quick else (50, 12)
    runs = simulated.simulate_batch(size, range(draws)).test_error.isel(time=-1).values - NOISE**2
    check.below(
        "simulated risk at width 10, t = 7.7, plus 4 standard errors", float(runs.mean()) + 4 * standard_error(runs), REST
    )
    for ratio, value in zip(ratios, floor, strict=True):
        check.show(f"best kernel at n/d = {ratio:g}", value)
    check.show("simulated network of width 10 at t = 7.7", float(runs.mean()))
    for ratio, value in zip(ratios, flow, strict=True):
        check.show(f"trained network at n/d = {ratio:g}", value)
    check.note(
        "The excess risk of the trained network falls over n/d = 5, 10, 20. Claim D20 shows that it tends to 0 for a target in the class."
    )
