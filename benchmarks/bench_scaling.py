"""SGD at scale and scaling laws: closed forms against the loops and sums that they replace.

Run `python benchmarks/bench_scaling.py`.

One-pass SGD in dimension 400 after up to 10^6 steps against the recursion step by step; ridge with
a power-law spectrum of 10^6 modes in groups against all modes.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from limitlab.applied import scaling_fit
from limitlab.laws import PowerLawScaling, StreamingLeastSquares
from limitlab.laws.scaling._spectrum import Spectrum, power_law
from limitlab.laws.scaling.ridge_scaling import risk
from timing import best, print_ratios

STEPS = 1_000_000


def streaming() -> StreamingLeastSquares:
    s = np.arange(1, 401.0) ** -1.2
    marks = np.unique(np.round(np.geomspace(1, STEPS, 200))) / 400
    return StreamingLeastSquares(
        eigenvalues=s, weights=np.ones(400), signal_energy=np.ones(400), dimension=400, step=40.0, noise=0.5, times=marks
    )


def loop(law: StreamingLeastSquares, steps: int) -> float:
    """The recursion in NumPy, one step after the other: the risk at the end."""
    s, a, eta = np.asarray(law.eigenvalues), np.asarray(law.signal_energy), law.step / 400
    rho, fresh, tau2 = (1 - eta * s) ** 2 + (eta * s) ** 2, eta**2 * s, law.noise**2
    risk_now = float(s @ a)
    for _ in range(steps):
        a = rho * a + fresh * (risk_now + tau2)
        risk_now = float(s @ a)
    return risk_now


def ratios() -> dict[str, float]:
    """How many times faster the closed forms are; fails if they differ from what they replace."""
    law = streaming()
    (closed, stepwise), found = best(1, lambda: law.evaluate()["excess_risk"], lambda: loop(law, STEPS))
    closed = min(closed, best(5, lambda: law.evaluate()["excess_risk"])[0][0])
    print(f"one-pass SGD: closed form {closed:.3g} s, loop {stepwise:.3g} s, relative gap {found[0][-1] / found[1] - 1:.1e}")
    j = np.arange(1.0, 1e6 + 1)
    full, groups = Spectrum(j**-2, np.ones_like(j), j**-1.4), power_law(1.0, 0.7, 1e6)

    def point(spectrum: Spectrum) -> Any:
        return risk(spectrum, 1e4, np.inf, 1e-3, 0.5)["test_error"]

    (grouped, explicit), values = best(5, lambda: point(groups), lambda: point(full))
    print(
        f"ridge, 1e6 modes: {1e3 * grouped:.3g} ms in groups, {1e3 * explicit:.3g} ms, relative gap {values[0] / values[1] - 1:.1e}"
    )
    gap = max(abs(found[0][-1] / found[1] - 1), abs(values[0] / values[1] - 1))
    if not gap < 1e-9:
        raise AssertionError(f"closed forms and loops differ by {gap:.2g}, more than 1e-9")
    scale = PowerLawScaling(latent_dimension=1e7, width=300.0, step=0.3, steps=1e12)
    print(f"power-law scaling, one point at 1e12 steps: {1e3 * best(5, scale.evaluate)[0][0]:.3g} ms")
    began = time.process_time()
    scale.frontier(np.geomspace(1e5, 1e10, 6))
    print(f"frontier of six budgets: {time.process_time() - began:.3g} s")
    N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(5e7, 1e10, 10), np.geomspace(1e9, 3e11, 5)))
    loss = (1.82 + 482 * N**-0.348 + 2085 * D**-0.366) * np.exp(0.01 * np.random.default_rng(0).standard_normal(50))
    began = time.process_time()
    fit = scaling_fit(N, D, loss)
    for name in ("E", "A", "B", "a", "b"):
        fit.interval(name)
    print(f"scaling_fit of 50 runs with all profiles: {time.process_time() - began:.3g} s")
    return {
        "the recursion of one-pass SGD in NumPy (d = 400, 10^6 steps)": stepwise / closed,
        "ridge with 10^6 explicit modes": explicit / grouped,
    }


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), 100.0)


if __name__ == "__main__":
    main()
