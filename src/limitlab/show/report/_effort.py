"""The comparisons of the report, with a fixed number of draws for each law.

The verdict of a quick report depends on the law, its check point and its seeds only. It does not depend on the speed or the load of the
machine, because no time limits the number of draws.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from limitlab._core.draws import is_builtin

if TYPE_CHECKING:
    from limitlab._core.law import Law
    from limitlab.lab import Comparison

QUICK_RESOLUTION, FULL_RESOLUTION = 0.1, 0.05
"""The smallest gap to detect in a quick and in a full report, relative to the scale of an observable."""
FULL_SECONDS = 300.0
"""Seconds per law for further draws in a full report."""
QUICK_DRAWS = {
    "Distillation": 80,
    "FirstOrderDynamics": 120,
    "InterpolationTransition": 300,
    "LogisticCalibration": 240,
    "LogisticDescent": 200,
    "MarginEquivalence": 120,
    "MultiPassLeastSquares": 240,
    "RandomFeaturesMargin": 160,
    "ResidualFlow": 240,
    "RidgeScaling": 240,
    "SpikedTensorDiffusion": 320,
    "TwoLayerDynamics": 400,
}
"""Largest number of draws per size in a quick report, for laws whose own number is too small for a verdict at one check point."""


def quick_draws(law: type[Law]) -> int:
    """Return the largest number of draws per size in a quick report.

    A comparison stops at an eighth, a quarter or half of them if these draws agree.

    >>> from limitlab.laws import Ridge
    >>> quick_draws(Ridge) >= 8
    True
    """
    return QUICK_DRAWS.get(law.__name__, law.simulation.draws) if is_builtin(law) else law.simulation.draws


def attempt(law: type[Law], quick: bool) -> Comparison | Exception:
    """Return the comparison of a law at its check points (in a quick report at the first), or the error that it raised."""
    from limitlab.lab import compare

    try:
        if quick:
            point = law.check_points()[0]
            return compare(point, seeds=quick_draws(law), budget=0, early=True, resolution=QUICK_RESOLUTION, progress=False)
        return compare(law, budget=FULL_SECONDS, resolution=FULL_RESOLUTION, progress=False)
    except Exception as error:  # the card of the law shows the error
        return error
