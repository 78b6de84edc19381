"""A hundred thousand limits of random-features regression in one call, against solving the published equations one by one.

The published theorem asks for the fixed point (nu1, nu2) of two complex equations at xi = i sqrt(psi1 psi2 lambda/mu*^2), then
for ratios of polynomials of degree five. Here it is solved with SciPy's `root` for a sample of the parameter sets, and the time is
scaled up to all of them: once directly, which lands on a wrong branch for some of the sets, and once continued down the
imaginary axis in twelve steps, which is right for all of them. The continued solution must agree with the one call.

Run `python benchmarks/bench_random_features.py`.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import root

from limitlab.laws.regression.random_features import risk
from timing import best, print_ratios

SETS, SAMPLE, REPEATS = 100_000, 300, 3
LEVELS = 12
FLOOR = 100.0
AGREEMENT = 1e-9


def parameters(count: int = SETS) -> tuple[np.ndarray, ...]:
    """Random ratios, ridges and activations, in the range where the published form can be evaluated in double precision."""
    rng = np.random.default_rng(0)
    psi1, psi2 = 10 ** rng.uniform(-1, 1, (2, count))
    return psi1, psi2, 10 ** rng.uniform(-3, 1, count), rng.uniform(0.3, 1, count), rng.uniform(0.2, 1, count)


def together(psi1, psi2, lam, mu1, mus) -> tuple[np.ndarray, np.ndarray]:
    """B and V of all sets in one vectorised call."""
    found = risk(psi1, psi2, lam, mu1, mus)
    return found["bias"], found["variance"]


def one_by_one(levels: int, psi1, psi2, lam, mu1, mus) -> np.ndarray:
    """B and V, set by set, from the complex fixed point and the polynomials, shape (2, sets)."""
    return np.array([published(levels, *given) for given in zip(psi1, psi2, lam, mu1, mus, strict=True)]).T


def published(levels: int, psi1: float, psi2: float, lam: float, mu1: float, mus: float) -> tuple[float, float]:
    """B and V as the theorem states them; `levels` solves from high up the imaginary axis down to the point needed."""
    zeta2, target = (mu1 / mus) ** 2, np.sqrt(psi1 * psi2 * lam / mus**2)
    height = max((1 + psi1 + psi2) * np.sqrt(1 + zeta2), target)
    nu = np.array([psi1 * 1j / height, psi2 * 1j / height])  # nu ~ -psi/xi far up the axis
    for level in np.geomspace(height, target, levels) if levels > 1 else (target,):
        nu = fixed_point(nu, 1j * level, psi1, psi2, zeta2)
    return polynomials((nu[0] * nu[1]).real, zeta2, psi1, psi2)


def fixed_point(nu: np.ndarray, xi: complex, psi1: float, psi2: float, zeta2: float) -> np.ndarray:
    """The pair (nu1, nu2) at xi, from a nearby one."""

    def gap(parts: np.ndarray) -> np.ndarray:
        a, b = parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]
        shared = 1 - zeta2 * a * b
        first = a * (-xi - b - zeta2 * b / shared) - psi1
        second = b * (-xi - a - zeta2 * a / shared) - psi2
        return np.array([first.real, first.imag, second.real, second.imag])

    found = root(gap, [nu[0].real, nu[0].imag, nu[1].real, nu[1].imag], tol=1e-12)
    return np.array([found.x[0] + 1j * found.x[1], found.x[2] + 1j * found.x[3]])


def polynomials(x: float, z: float, p1: float, p2: float) -> tuple[float, float]:
    """B = E1/E0 and V = E2/E0 at chi = x, zeta^2 = z."""
    e0 = (
        -(x**5) * z**3
        + 3 * x**4 * z**2
        + (p1 * p2 - p2 - p1 + 1) * x**3 * z**3
        - 2 * x**3 * z**2
        - 3 * x**3 * z
        + (p1 + p2 - 3 * p1 * p2 + 1) * x**2 * z**2
        + 2 * x**2 * z
        + x**2
        + 3 * p1 * p2 * x * z
        - p1 * p2
    )
    e1 = p2 * x**3 * z**2 - p2 * x**2 * z + p1 * p2 * x * z - p1 * p2
    e2 = (
        x**5 * z**3
        - 3 * x**4 * z**2
        + (p1 - 1) * x**3 * z**3
        + 2 * x**3 * z**2
        + 3 * x**3 * z
        - (p1 + 1) * x**2 * z**2
        - 2 * x**2 * z
        - x**2
    )
    return e1 / e0, e2 / e0


def ratios() -> dict[str, float]:
    """How many times faster one call is; fails if the continued solution disagrees with it anywhere in the sample."""
    sets = parameters()
    few = tuple(values[:SAMPLE] for values in sets)
    together(*few)
    one_by_one(1, *(values[:3] for values in few))  # first calls are not part of the comparison
    (ours, direct, continued), found = best(
        REPEATS, lambda: together(*sets), lambda: one_by_one(1, *few), lambda: one_by_one(LEVELS, *few)
    )
    expected = np.array(found[0])[:, :SAMPLE]
    wrong = (np.abs(found[1] / expected - 1) > AGREEMENT).any(axis=0).mean()
    gap = np.abs(found[2] / expected - 1).max()
    if not gap < AGREEMENT:
        raise AssertionError(f"the two sides differ by {gap:.2g}, more than {AGREEMENT:g}")
    print(
        f"{SETS} parameter sets: one call {ours:.3f} s; point by point {direct * SETS / SAMPLE:.0f} s ({wrong:.0%} of them wrong), "
        f"continued {continued * SETS / SAMPLE:.0f} s (largest difference {gap:.1e})"
    )
    scale = SETS / SAMPLE / ours
    return {
        f"the published fixed point, one SciPy solve per point ({wrong:.0%} wrong; {SAMPLE} of {SETS:,} timed, scaled)": direct
        * scale,
        f"the same, continued in {LEVELS} steps, so that all points are correct": continued * scale,
    }


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), FLOOR, FLOOR)


if __name__ == "__main__":
    main()
