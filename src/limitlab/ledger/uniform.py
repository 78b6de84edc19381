"""Claims about uniform convergence: linear predictors (L1) and two-layer networks (L2)."""

from __future__ import annotations

import math

import numpy as np

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Number, above, agrees, below, near
from limitlab.lab.measures import effort, largest, log_slope, smallest
from limitlab.laws.uniform_convergence.rademacher import (
    ascended,
    rademacher_linear,
    rademacher_two_layer,
    switching_supremum,
)
from limitlab.laws.uniform_convergence.uniform_convergence import UniformConvergence
from limitlab.models.activations import Activation

_AREA = "Uniform convergence and real networks"


@claim(
    "L1",
    _AREA,
    "Over linear predictors of norm at most rho, empirical and population risk differ by order rho sqrt(d/n).",
    laws=("UniformConvergence",),
    figure="uniform-deviation",
)
def linear_class(quick: bool) -> Outcome:
    """Rademacher complexity: exponents in n, d and rho, and its constant; the exact law of the deviation for squared loss."""
    rng, draws = np.random.default_rng(0), 1000 if quick else 4000
    base, sizes = (200, 40), (50, 200, 800) if quick else (50, 200, 800, 3200)

    def value(n: int, d: int, radius: float = 1.0) -> float:
        return rademacher_linear(rng.standard_normal((n, d)), radius, draws).value

    in_n = log_slope(sizes, [value(n, base[1]) for n in sizes]).value
    in_d = log_slope((10, 40, 160), [value(base[0], d) for d in (10, 40, 160)]).value
    cases = [
        (n, d, rademacher_linear(rng.standard_normal((n, d)), 2.0, draws)) for n, d in ((100, 20), (200, 80), (400, 160))
    ]
    constants = [found.value / (2.0 * math.sqrt(d / n)) for n, d, found in cases]
    over = [found.value / found.bound for _, _, found in cases]
    points = UniformConvergence.check_points()
    comparisons = [compare(point, seeds=200 if quick else 400, **effort(quick)) for point in points]
    ratios = np.geomspace(1e-4, 1e-2, 5)
    small = [float(UniformConvergence(ratio=ratio, signal=0.5).theory().sup_empirical_minus_population) for ratio in ratios]
    return Outcome(
        (
            near("exponent in n of the Rademacher complexity", in_n, -0.5, 0.03),
            near("exponent in d of the Rademacher complexity", in_d, 0.5, 0.05),
            near("Rademacher complexity over rho sqrt(d/n), mean of three cases", float(np.mean(constants)), 1.0, 0.05),
            below("largest ratio of the Rademacher complexity to its bound", largest(over), 1.0),
            *(agrees(f"the exact deviation at check point {i + 1}", one) for i, one in enumerate(comparisons)),
            near("exponent in d/n of the exact deviation for small d/n", log_slope(ratios, small).value, 0.5, 0.03),
        ),
        note="For squared loss the deviation grows with the square of rho: the loss has no bounded slope.",
    )


@claim(
    "L2",
    _AREA,
    "For two-layer networks of bounded l1 norm gamma the deviation is of order gamma sqrt(d/n), whatever the width.",
    laws=("UniformConvergence",),
    figure="uniform-deviation",
)
def two_layer_class(quick: bool) -> Outcome:
    """Rademacher complexity by ascent: exponents in n and d, no growth with the width, the bound, and exact suprema in the plane."""
    rng, draws = np.random.default_rng(1), 16 if quick else 60
    sizes = (100, 400, 1600)

    def value(n: int, d: int, width: int = 1) -> float:
        X = np.random.default_rng([n, d]).standard_normal((n, d))
        return rademacher_two_layer(X, 1.0, width=width, draws=draws, starts=10 if quick else 30).value

    in_n = log_slope(sizes, [value(n, 10) for n in sizes]).value
    dims = {d: value(400, d) for d in (5, 20, 80)}
    in_d = log_slope(list(dims), list(dims.values())).value
    widths = (1, 4, 16)
    by_width = [value(200, 10, width) for width in widths]
    bounds = [rademacher_two_layer(rng.standard_normal((200, d)), 1.0, draws=4, starts=8) for d in (5, 20)]
    reached = []
    for k in range(6 if quick else 30):
        X, signs = rng.standard_normal((60, 2)), 1 - 2.0 * rng.integers(0, 2, 60)
        reached.append(ascended(X, signs, Activation("relu"), 20, np.random.default_rng(k)) / switching_supremum(X, signs))
    constant = dims[20] / math.sqrt(20 / 400)
    measured: dict[str, Number] = {
        f"complexity at width {width}": found for width, found in zip(widths, by_width, strict=True)
    }
    return Outcome(
        (
            near("exponent in n of the complexity", in_n, -0.5, 0.1),
            near("exponent in d of the complexity", in_d, 0.5, 0.15),
            near("complexity over gamma sqrt(d/n) at n = 400, d = 20", constant, 0.77, 0.12),
            below("growth of the complexity from width 1 to width 16", by_width[-1] / by_width[0] - 1, 0.02),
            below(
                "largest ratio of the complexity to its bound", largest(found.value / found.bound for found in bounds), 1.0
            ),
            above("smallest share of the exact supremum that ascent reaches in the plane", smallest(reached), 0.98),
            below("largest share of the exact supremum that ascent reaches in the plane", largest(reached), 1.0 + 1e-9),
        ),
        measured,
        note="Suprema in more than two dimensions are found by ascent and are lower estimates.",
    )
