"""Claims about what features and networks can represent: the staircase (M6, M7) and quadratic targets (T1, T2, T3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Criterion, Number, above, agrees, below, near
from limitlab.lab.measures import SIGMAS, effort, largest, log_slope, sigmas, standard_error
from limitlab.laws.approximation.exact import Features, spanned, unexplained_exact
from limitlab.laws.approximation.quadratic import QuadraticTarget
from limitlab.laws.approximation.quadratic_flow import population_risk
from limitlab.laws.approximation.quadratic_network import one_pass
from limitlab.laws.approximation.relu import relu_tangent_risk
from limitlab.laws.approximation.relu_network import trained_relu_risk
from limitlab.laws.approximation.staircase import Staircase
from limitlab.laws.approximation.step import degree_two_step, step_strength
from limitlab.models.data import sphere
from limitlab.numerics.sphere import coordinate_rule, orthonormal_values

Array = NDArray[np.float64]

AREA = "Approximation"


def shifted_tanh(u: Array) -> Array:
    """An activation with a part of every degree."""
    return np.asarray(np.tanh(u + 0.5))


# -- M6: the staircase --------------------------------------------------------------------------------------------------

HALF_SLOPE = 0.35
"""Distance that the measured exponent of the width at half the error may keep from its whole number; one step is 1."""


@claim(
    "M6",
    AREA,
    "Random features with N between d^l and d^(l+1) fit the polynomials of degree l and nothing beyond; tangent features one degree more.",
    laws=("Staircase",),
    figure="staircase",
)
def staircase(quick: bool) -> Outcome:
    """Exact errors of drawn neurons: how the width at half the error grows with d; the law against them; steps at large d."""
    random = (8, 12, 18) if quick else (10, 16, 24, 32)
    tangent = (6, 9, 13) if quick else (6, 9, 13, 17)
    seeds = 3 if quick else 6
    slopes = {
        "random features, degree 1": (half_slope("rf", 1, random, seeds), 1),
        "random features, degree 2": (half_slope("rf", 2, random, seeds), 2),
        "tangent features, degree 2": (half_slope("nt", 2, tangent, seeds), 1),
        "tangent features, degree 3": (half_slope("nt", 3, tangent, seeds), 2),
    }
    criteria: list[Criterion] = [
        near(f"{name}: exponent of the width at half the error", found, wanted, HALF_SLOPE)
        for name, (found, wanted) in slopes.items()
    ]
    between = [
        Staircase(
            model=model, dimension=10**5, width=round(10 ** (5 * (level + 0.5))), activation=shifted_tanh, degrees=range(5)
        )
        for model in ("rf", "nt")
        for level in (1, 2)
    ]
    worst = largest(np.abs(law.theory().unexplained.values - law.lower_bound()).max() for law in between)
    criteria += [
        below("law half way between steps at d = 10^5: largest distance from learned (0) or not (1)", worst, 0.1),
        *(
            agrees(f"law of {law.model} at d = 8, 12, 16", compare(law, **effort(quick)))
            for law in Staircase.check_points()[:2]
        ),
    ]
    step = [
        unexplained_exact(sphere(np.random.default_rng(seed), 24, 24), 2, "relu", "nt", highest_degree=None)[0]
        for seed in range(6)
    ]
    limit = degree_two_step(1.0, step_strength("relu"))
    criteria.append(near("r_2 of N = d ReLU tangent neurons at d = 24", float(np.mean(step)), limit, 0.02))
    return Outcome(
        tuple(criteria),
        {"random features in dimensions": str(random), "tangent features in dimensions": str(tangent)},
        note="Needs an activation with a part of every degree: ReLU without a bias never learns odd degrees from 3 on, at any width.",
    )


def half_slope(model: Features, degree: int, dimensions: Sequence[int], seeds: int, direction: bool = False) -> float:
    """Exponent of the width at which half of a target of this degree is explained, as the dimension grows."""
    widths = [np.mean([np.log(half_width(model, degree, d, seed, direction)) for seed in range(seeds)]) for d in dimensions]
    return log_slope(dimensions, np.exp(widths)).value


def half_width(model: Features, degree: int, dimension: int, seed: int, direction: bool = False) -> float:
    """The number of drawn neurons, interpolated, at which the exact unexplained share falls below one half.

    The target is a random one, or a polynomial of one direction, averaged over all the axes.
    """
    w, k = sphere(np.random.default_rng(seed), 4 * dimension**2, dimension), np.array([degree])

    def share(count: int) -> float:
        span = spanned(w[:count], shifted_tanh, model, None, degree)
        along = np.eye(dimension) if direction else (None,)
        return float(np.mean([span.unexplained(k, b) for b in along]))

    low, high = 0, 1
    below_half, above_half = 1.0, share(1)
    while above_half > 0.5:
        low, high, below_half = high, 2 * high, above_half
        above_half = share(high)
    while high - low > max(1, low // 16):
        middle = (low + high) // 2
        value = share(middle)
        if value > 0.5:
            low, below_half = middle, value
        else:
            high, above_half = middle, value
    return low + (high - low) * (below_half - 0.5) / (below_half - above_half)


# -- M7: one direction ----------------------------------------------------------------------------------------------------

NETWORK_NEURONS = 8


@claim(
    "M7",
    AREA,
    "A degree-k polynomial of one direction costs tangent features d^(k-1) neurons and a network a number that does not grow.",
    laws=("Staircase",),
    figure="one-direction",
)
def one_direction(quick: bool) -> Outcome:
    """Widths at half the error for Q_k(<b, x>), exact given the neurons, and the fit of a few neurons along b."""
    dimensions, seeds = ((6, 9, 13), 4) if quick else ((6, 9, 13, 17), 10)
    second, third = (half_slope("nt", k, dimensions, seeds, direction=True) for k in (2, 3))
    many = (10, 100, 1000) if quick else (10, 30, 100, 300, 1000, 3000)
    risks = {k: [aligned_risk(d, k) for d in many] for k in (2, 3)}
    return Outcome(
        (
            near("degree 2: exponent of the tangent width at half the error", second, 1, HALF_SLOPE),
            near("degree 3: exponent of the tangent width at half the error", third, 2, HALF_SLOPE),
            below(
                f"degree 2: largest error of {NETWORK_NEURONS} neurons along b, d up to {many[-1]}", largest(risks[2]), 0.01
            ),
            below(
                f"degree 3: largest error of {NETWORK_NEURONS} neurons along b, d up to {many[-1]}", largest(risks[3]), 0.01
            ),
            above("degree 3: error of 8 tangent neurons at d = 24", _few_tangent_neurons(24), 0.5),
        ),
        {f"error of {NETWORK_NEURONS} neurons, degree 3, d = {d}": risk for d, risk in zip(many, risks[3], strict=True)},
        note="The network's neurons lie along the direction with different lengths; the outer weights are those of least squares.",
    )


def aligned_risk(dimension: int, degree: int, neurons: int = NETWORK_NEURONS) -> float:
    """Error of the best combination of s(c_j <b, x>), with lengths c_j of both signs, on the target of unit norm along b."""
    u, weights = coordinate_rule(dimension)
    target = orthonormal_values(u / np.sqrt(dimension), dimension, degree)[degree]
    lengths = np.geomspace(0.15, 1.2, neurons // 2)
    features = shifted_tanh(np.outer(u, np.concatenate([lengths, -lengths])))
    root = np.sqrt(weights)
    best = np.linalg.lstsq(features * root[:, None], target * root, rcond=None)[0]
    return float(weights @ (target - features @ best) ** 2)


def _few_tangent_neurons(dimension: int) -> float:
    w = sphere(np.random.default_rng(0), NETWORK_NEURONS, dimension)
    return float(unexplained_exact(w, 3, shifted_tanh, "nt", np.eye(dimension)[0])[0])


# -- T1: quadratic targets ------------------------------------------------------------------------------------------------


@claim(
    "T1",
    AREA,
    "Quadratic targets: exact risks of random features, tangent features and networks at N/d = psi.",
    laws=("QuadraticTarget",),
    figure="quadratic-targets",
)
def quadratic_targets(quick: bool) -> Outcome:
    """The four laws against experiments of growing size, then one large dimension with an exponential spectrum."""
    points = QuadraticTarget.check_points()
    names = ("random features, unequal variances", "tangent features", "trained network", "random ReLU features")
    criteria: list[Criterion] = [
        agrees(f"{name}, d = 16, 24, 32", compare(law, **effort(quick)))
        for name, law in zip(names, points, strict=True)
        if name != names[2]
    ]
    dimension, widths = (150, (30, 75, 150, 300)) if quick else (450, (45, 90, 225, 450, 900, 2000, 4500))
    B = exponential_spectrum(dimension)
    common = dict(width=1, eigenvalues=B, replicas=1)
    random, tangent = (QuadraticTarget(model=model, **common) for model in ("rf", "nt"))
    aligned = random.replace(feature_covariance=B / B.sum())
    gaps: list[float] = []
    aligned_gaps: list[float] = []
    z: list[float] = []
    for width in widths:
        for law, found in ((random, gaps), (aligned, aligned_gaps)):
            chosen = law.replace(width=width)
            drawn = [chosen.random_projection(np.random.default_rng(seed)) for seed in range(2)]
            found.append(float(np.mean(drawn)) - float(chosen.theory().relative_risk))
        chosen = tangent.replace(width=width)
        if width < dimension:
            drawn = [chosen.tangent_projection(np.random.default_rng(seed)) for seed in range(10)]
            z.append(sigmas(drawn, float(chosen.theory().relative_risk_exact)))
    # theory is high by about (1 - T) 2 N/d^2, as long as that is small
    small = [i for i, width in enumerate(widths) if width <= 2 * dimension]
    allowed = [0.01 + 2 * (1 - random.trace_fraction()) * widths[i] / dimension**2 for i in small]
    excess = largest(abs(gaps[i]) - a for i, a in zip(small, allowed, strict=True))
    criteria += [
        below(f"random features, d = {dimension}: largest gap beyond 0.01 + 2 (1 - T) N/d^2", excess, 0.0),
        below("the same with Gamma = B/Tr B: largest gap", largest(abs(aligned_gaps[i]) for i in small), 0.03),
        below("tangent features: largest z of the exact mean", largest(z), SIGMAS),
        above("floor of random features over their risk at N = 2 d", _floor_ratio(random, 2 * dimension), 0.5),
    ]
    return Outcome(
        tuple(criteria),
        {
            "trace fraction T": random.trace_fraction(),
            **{f"random features, gap at N = {w}": g for w, g in zip(widths, gaps, strict=True)},
        },
        note="Risks are relative to the variance of the target, with a free intercept; the limit needs N << d^2.",
    )


def exponential_spectrum(dimension: int) -> Array:
    """Quantiles of the exponential law, from the largest: a spectrum without luck."""
    return np.asarray(-np.log((np.arange(dimension) + 0.5) / dimension))


def _floor_ratio(law: QuadraticTarget, width: int) -> float:
    return (1 - law.trace_fraction()) / float(law.replace(width=width).theory().relative_risk)


# -- T2: SGD on the quadratic network ---------------------------------------------------------------------------------------

FOLLOWS = 0.03
"""Largest distance of SGD from the flow, relative to the risk at the start, at the step 0.02/d^2."""
TIME_PER_DIMENSION = 0.3
"""The intercept moves at speed 2 s, of order 1, and has a distance of order d to go: the time to the optimum grows like d."""


@claim(
    "T2",
    AREA,
    "One-pass SGD on the quadratic network reaches the optimum.",
    laws=("QuadraticTarget",),
    figure="quadratic-sgd",
)
def quadratic_sgd(quick: bool) -> Outcome:
    """SGD against the population flow along the way, and against the stated optimum in the end, for both signs of eigenvalues."""
    cases = ((20, 5),) if quick else ((20, 5), (40, 10), (60, 15))
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {}
    for dimension, width in cases:
        for name, B in spectra_of(dimension, width).items():
            runs = [sgd_path(B, width, seed, end=TIME_PER_DIMENSION * dimension) for seed in range(2)]
            gap = largest(np.abs(sgd - flow).max() / flow[0] for sgd, flow in runs)
            law = QuadraticTarget(model="nn", width=width, eigenvalues=B)
            best, variance = float(law.theory().relative_risk), law.target_variance()
            end = float(np.mean([sgd[-1] for sgd, _ in runs])) / variance
            case = f"d = {dimension}, N = {width}, {name}"
            criteria += [
                below(f"{case}: largest distance from the flow over the risk at the start", gap, FOLLOWS),
                near(f"{case}: relative risk in the end", end, best, 0.015),
            ]
            measured[f"{case}: relative risk at the start"] = float(np.mean([flow[0] for _, flow in runs])) / variance
    criteria.append(
        agrees("network trained by SGD, d = 16, 24, 32", compare(QuadraticTarget.check_points()[2], **effort(quick)))
    )
    return Outcome(tuple(criteria), measured, note="Negative eigenvalues stay unexplained: the outer weights are positive.")


def spectra_of(dimension: int, width: int) -> dict[str, Array]:
    """A positive spectrum with a gap behind the N largest eigenvalues, and the same with every third small one negative."""
    B = np.concatenate([np.linspace(1.0, 0.7, width), np.linspace(0.3, 0.05, dimension - width)])
    signed = np.where((np.arange(dimension) >= width) & (np.arange(dimension) % 3 == 0), -B, B)
    return {"positive spectrum": B, "negative eigenvalues": signed}


def sgd_path(B: Array, width: int, seed: int, end: float, points: int = 24) -> tuple[Array, Array]:
    """Population risks of SGD at the step 0.02/d^2 and of the flow from the same start, at evenly spaced times from 0."""
    dimension, rng = B.size, np.random.default_rng(seed)
    step, constant = 0.02 / dimension**2, -float(B.sum())
    w, c = rng.standard_normal((width, dimension)) * np.sqrt(0.5 / dimension), 0.0
    law = QuadraticTarget(model="nn", width=width, eigenvalues=B)
    flow = law.flow(w.T, c, np.linspace(0, end, points + 1), constant)
    risks = [population_risk(B, w.T, c, constant)]
    for _ in range(points):
        w, c = one_pass(rng, B, w, c, constant, step=step, steps=round(end / points / step))
        risks.append(population_risk(B, w.T, c, constant))
    return np.array(risks), flow


# -- T3: ReLU -------------------------------------------------------------------------------------------------------------

DRAWS = 8
"""Sets of neurons that the features' risks are averaged over, for every trained network."""


@claim(
    "T3",
    AREA,
    "ReLU networks show the same ordering of random features, tangent features and networks.",
    laws=("QuadraticTarget",),
    figure="quadratic-relu",
)
def relu_ordering(quick: bool) -> Outcome:
    """Relative risks of the three with the same number of ReLU neurons, at several N/d."""
    dimension, seeds, steps, batch = (16, 3, 2500, 250) if quick else (24, 6, 6000, 500)
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {}
    for width in (dimension // 4, dimension // 2, dimension):
        runs = [relu_risks(dimension, width, seed, steps, batch) for seed in range(seeds)]
        means = {name: float(np.mean([run[name] for run in runs])) for name in runs[0]}
        for better, worse in (("tangent features", "random features"), ("network", "tangent features")):
            apart = [run[worse] - run[better] for run in runs]
            margin = float(np.mean(apart)) - 3 * standard_error(apart)
            criteria.append(
                above(f"N/d = {width / dimension:g}: {worse} minus {better}, less 3 standard errors", margin, 0.03)
            )
        measured |= {f"N/d = {width / dimension:g}: {name}": value for name, value in means.items()}
    return Outcome(
        tuple(criteria),
        measured,
        note="The network is trained by one pass of Adam; its risk is an upper estimate of the best one.",
    )


def relu_risks(dimension: int, width: int, seed: int, steps: int, batch: int = 500) -> dict[str, float]:
    """Relative risks of ReLU neurons: of a trained network, and of random and tangent features averaged over several draws."""
    B, rng = exponential_spectrum(dimension), np.random.default_rng(seed)
    law = QuadraticTarget(width=width, eigenvalues=B, activation="relu")
    trained = trained_relu_risk(rng, lambda x: x**2 @ B - B.sum(), dimension, width, steps=steps, batch=batch)
    tangent = [relu_tangent_risk(sphere(rng, width, dimension), B) for _ in range(DRAWS)]
    return {
        "random features": float(np.mean([law.random_projection(rng) for _ in range(DRAWS)])),
        "tangent features": float(np.mean(tangent)),
        "network": trained / law.target_variance(),
    }
