"""Claims about where wide networks end: linear and quadratic networks (M9), a cone that is not left (M10), noisy SGD (M11)."""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Number, above, agrees, below, equal, near_relative
from limitlab.lab.measures import SIGMAS, effort, largest, sigmas, smallest
from limitlab.laws.landscapes.linear_network import LinearNetwork, crossing, saddle_index
from limitlab.laws.landscapes.linear_network_training import (
    critical_point,
    linear_descent,
    linear_flow,
    linear_risk,
    quadratic_descent,
    quadratic_risk,
)
from limitlab.laws.mean_field.cone import ConeFlow, cone_risk
from limitlab.laws.mean_field.noisy import NoisyMeanField
from limitlab.laws.mean_field.noisy_sgd import regularised_risk
from limitlab.models.autodiff import double_precision_jax

AREA = "Mean field"
Array = NDArray[np.float64]

SPECTRUM = (3.0, 2.0, 1.0, 0.5)

# -- M9: linear and quadratic networks ----------------------------------------------------------------------------------


@claim(
    "M9",
    AREA,
    "Linear and quadratic two-layer networks have no spurious local minima: every critical point but the best is a strict saddle of known "
    "index; a linear network learns its modes one after the other, in closed form.",
    laws=("LinearNetwork",),
    figure="linear-network",
)
def no_spurious_minima(quick: bool) -> Outcome:
    """Indices against numerical Hessians; risks of descents from random starts; modes against the flow; half times of random starts."""
    hidden = (2,) if quick else (1, 2, 3)
    wrong, curvature, points = 0, [], 0
    for width in hidden:
        for size in range(width + 1):
            for chosen in itertools.combinations(range(len(SPECTRUM)), size):
                for quadratic in (False, True):
                    law = saddle_index(SPECTRUM, width, chosen, "quadratic" if quadratic else "linear")
                    negative, lowest = numerical_index(SPECTRUM, width, chosen, quadratic)
                    wrong, points = wrong + (negative != law.negative), points + 1
                    curvature.append(abs(lowest - law.lowest))
    runs, rng = 30 if quick else 100, np.random.default_rng(0)
    ends = [linear_descent(rng, np.diag(SPECTRUM), 2, runs) - sum(s**2 for s in SPECTRUM[2:])]
    values = np.array([3.0, 2.2, 1.5, 1.0, 0.6, 0.3])
    for width in (1, 3) if quick else (1, 2, 3, 5, 6, 8):
        ends.append(quadratic_descent(rng, np.diag(values), width, runs // 2) - 2 * np.sum(values[width:] ** 2))
    growth = half_time_growth(SPECTRUM, 3 if quick else 20)
    laws = [np.log(100) / (4 * s) for s in SPECTRUM]
    return Outcome(
        (
            equal(f"critical points of {points} whose number of negative eigenvalues is not that of the formula", wrong, 0),
            below("largest gap of the lowest eigenvalue", largest(curvature), 1e-8),
            below("largest distance of a descent's risk from the global minimum", largest(np.concatenate(ends)), 1e-6),
            below("largest gap of the modes from the integrated flow, aligned start", mode_gap(), 1e-8),
            *(
                near_relative(
                    f"half time of mode {k + 1} per factor 10 in the scale of a random start", growth[k], laws[k], 0.1
                )
                for k in range(3)
            ),
            agrees(
                "modes and half times of networks on finitely many samples",
                compare(LinearNetwork.check_points()[0], **effort(quick)),
            ),
        ),
        {
            "half time of mode 4 per factor 10 (modes interact: not asserted)": growth[3],
            "its law": laws[3],
            "descents": sum(map(len, ends)),
        },
        note="The statement about landscapes is quoted by the source; the exact dynamics goes beyond it.",
    )


def numerical_index(spectrum: tuple[float, ...], hidden: int, chosen: tuple[int, ...], quadratic: bool) -> tuple[int, float]:
    """Number of negative eigenvalues of the Hessian, and the lowest one (0 if none is), by automatic derivatives."""
    hessian = _hessian(spectrum, hidden, quadratic)(critical_point(spectrum, hidden, chosen, quadratic))
    values = np.linalg.eigvalsh(np.asarray(hessian))
    return int(np.sum(values < -1e-9)), min(float(values[0]), 0.0) if values[0] < -1e-9 else 0.0


@functools.cache
def _hessian(spectrum: tuple[float, ...], hidden: int, quadratic: bool) -> Any:
    jax = double_precision_jax()
    risk, target = quadratic_risk if quadratic else linear_risk, np.diag(spectrum)
    return jax.jit(jax.hessian(lambda w: risk(w, target, hidden)))


def mode_gap() -> float:
    """Closed form against the integrated flow of one network with an aligned start."""
    law = LinearNetwork(singular_values=SPECTRUM, start=0.001, times=(0.5, 1.0, 2.0, 4.0))
    root = np.sqrt(law.start) * np.eye(len(SPECTRUM))
    grid = np.linspace(0, 4, 1601)  # spacing, and so the step, 0.0025
    path = linear_flow((root, root), np.diag(SPECTRUM), np.eye(len(SPECTRUM)), grid)
    found = np.einsum("tkk->tk", path)[np.searchsorted(grid, np.array(law.times) - 1e-9)]
    return float(np.abs(found - law.theory().modes.values).max())


def half_time_growth(spectrum: tuple[float, ...], draws: int) -> list[float]:
    """Mean growth of the half times when a random start is made ten times smaller."""
    size, growth = len(spectrum), []
    grid = np.linspace(0, 12, 1200)
    for seed in range(draws):
        first = np.random.default_rng(seed).standard_normal((2, size, size))
        halves = []
        for scale in (1e-3, 1e-4):
            path = linear_flow((scale * first[0], scale * first[1]), np.diag(spectrum), np.eye(size), grid)
            strengths = np.einsum("tkk->tk", path)
            halves.append([crossing(grid, a, s / 2) for a, s in zip(strengths.T, spectrum, strict=True)])
        growth.append(np.subtract(halves[1], halves[0]))
    return [float(value) for value in np.mean(growth, axis=0)]


# -- M10: a cone that the flow does not leave ---------------------------------------------------------------------------


@claim(
    "M10",
    AREA,
    "The risk of the mean-field flow need not reach its minimum: with positive second layers it ends at the least value over non-negative "
    "measures; full support of the start, both signs, repairs it.",
    laws=("ConeFlow",),
    figure="cone-flow",
)
def stuck_in_a_cone(quick: bool) -> Outcome:
    """Gradient descent to time 200 from positive starts against non-negative least squares, and from both signs against 0."""
    cases = ((2.0, 20), (1.2, 20)) if quick else ((2.0, 20), (2.0, 100), (2.6, 20), (1.2, 20), (1.2, 100))
    gaps, least, falling, plateau = [], [], [], []
    both = [float(ConeFlow(angle=2.0, signs="both").simulate(100, seed).risk) for seed in range(1 if quick else 3)]
    for angle, size in cases:
        for seed in range(2):
            law = ConeFlow(angle=angle)
            value = cone_risk(angle, law.inputs, law.directions)
            gaps.append(abs(float(law.simulate(size, seed).risk) - value))
            least.append(float(law.trained(law.draw(size, seed))[0].min()))
            free = law.replace(signs="both")
            draw = free.draw(size, seed)
            falling.append(free.risk_at(draw) / free.risk_at(draw, 50.0))
            plateau.append(value)
    return Outcome(
        (
            below("largest gap of a positive start's risk from non-negative least squares", largest(gaps), 1e-5),
            above("least second-layer weight at the end of a positive start", smallest(least), 0.0),
            below("largest risk with both signs at time 200, 100 neurons", largest(both), 1e-4),
            below("largest ratio of the risks with both signs at times 200 and 50: it still falls", largest(falling), 0.7),
            above("least value over non-negative measures", smallest(plateau), 0.1),
            agrees("risk of positive starts", compare(ConeFlow.check_points()[0], **effort(quick))),
        ),
        {"largest gap": largest(gaps), "time": 200.0},
        note="Positive starts need a > |w|: with a = |w| the length of the steps breaks a^2 - |w|^2 and lets signs change. Birth and death "
        "of neurons, which the source also names, is unverified.",
    )


# -- M11: noisy SGD end to end ------------------------------------------------------------------------------------------


@claim(
    "M11",
    AREA,
    "Noisy SGD comes within eta of the least regularised risk for inverse temperatures from beta_0(eta) = D / (2 eta) on, whatever the "
    "number of neurons.",
    laws=("NoisyMeanField",),
    figure="noisy-sgd",
)
def noisy_sgd(quick: bool) -> Outcome:
    """One-sample SGD of linear neurons at several steps, temperatures and widths, against the exact excess at that step and its limit."""
    cases = [(5.0, 20), (20.0, 20), (20.0, 5), (20.0, 1), (80.0, 20)]
    if not quick:
        cases += [(20.0, 80), (5.0, 5), (80.0, 80)]
    runs, steps = 20 if quick else 200, (0.02, 0.005)
    measured: dict[str, Number] = {}
    z, bias, shares = [], [], []
    for beta, neurons in cases:
        law, limit = noisy(beta), float(noisy(beta).theory().stationary_excess)
        for step in steps:
            found = excess(law, neurons, step, runs)
            z.append(abs(found.mean() - law.sgd_excess(step, neurons)) / (found.std(ddof=1) / np.sqrt(runs)))
            measured[f"excess at beta = {beta:g}, N = {neurons}, step {step:g}"] = float(found.mean())
            if step == steps[1] and beta <= 20 and neurons >= 5:
                shares.append(max(abs(found.mean() / limit - 1) - 2 * found.std(ddof=1) / np.sqrt(runs) / limit, 0.0))
        coarse, fine = (law.sgd_excess(step, neurons) - limit for step in steps)
        bias.append(fine / coarse)
    flow = noisy(5.0)
    diffusion = sigmas(flow.simulate_batch(20, range(runs)).stationary_excess, float(flow.theory().stationary_excess))
    return Outcome(
        (
            below("largest z of SGD against the exact excess at its step", largest(z), SIGMAS),
            below("largest share of the step's bias that is left at a quarter of the step", largest(bias), 0.5),
            below(
                "largest relative distance from D/(2 beta) at step 0.005, N >= 5, beta <= 20, beyond 2 standard errors",
                largest(shares),
                0.03,
            ),
            below("z of the excess at rest of the stochastic differential equation, N = 20, beta = 5", diffusion, SIGMAS),
        ),
        measured,
        note="The source leaves beta_0 open: for linear neurons it is D/(2 eta), by equipartition.",
    )


def noisy(beta: float) -> NoisyMeanField:
    """Linear neurons in three dimensions."""
    return NoisyMeanField(neuron="linear", dimension=3, inverse_temperature=beta, penalty=0.2, teacher=(1.0, -0.5, 0.5))


def excess(law: NoisyMeanField, neurons: int, step: float, runs: int) -> Array:
    """Excess of runs of noisy SGD of length 120 over the least regularised risk."""
    teacher, penalty = np.array(law.teacher), law.penalty
    least = penalty * float(teacher @ teacher) / (1 + penalty)
    draws = [
        regularised_risk(
            np.random.default_rng([i, neurons]), teacher, neurons, penalty, law.inverse_temperature, step, 120.0
        )
        for i in range(runs)
    ]
    return np.array(draws) - least
