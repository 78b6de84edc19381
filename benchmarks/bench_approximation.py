"""The exact error of given tangent features, against least squares on sampled inputs; random features at d = 450 to N = 4500.

Run `python benchmarks/bench_approximation.py`. What one would do without closed forms: draw inputs and random targets of degree 2, regress
them on the features and average. With 40 inputs per feature the two must agree to 2%.
"""

from __future__ import annotations

import numpy as np

from limitlab.laws import QuadraticTarget, unexplained_exact
from limitlab.models.data import sphere
from timing import best, clock, print_ratios

DIMENSION, NEURONS, INPUTS_PER_FEATURE, TARGETS = 20, 20, 40, 40
FLOOR = 5.0
LIMIT_SECONDS = 120.0


def sampled(w: np.ndarray) -> float:
    """Mean residual of random quadratic forms without trace, regressed on the tangent features of ReLU neurons."""
    rng = np.random.default_rng(1)
    d = w.shape[1]
    x = sphere(rng, INPUTS_PER_FEATURE * w.size, d, radius=np.sqrt(d))
    forms = rng.standard_normal((TARGETS, d, d))
    forms = (forms + np.swapaxes(forms, 1, 2)) / 2
    forms -= np.trace(forms, axis1=1, axis2=2)[:, None, None] / d * np.eye(d)
    y = np.stack([((x @ form) * x).sum(axis=1) for form in forms], axis=1)
    features = ((x @ w.T > 0)[:, :, None] * x[:, None, :]).reshape(len(x), -1)
    left = y - features @ np.linalg.lstsq(features, y, rcond=None)[0]
    freedom = 1 - features.shape[1] / len(x)
    return float(np.mean((left**2).mean(axis=0) / (y**2).mean(axis=0)) / freedom)


def ratios() -> dict[str, float]:
    """How many times faster the closed form is; fails if the two differ, or if the large experiment takes too long."""
    w = sphere(np.random.default_rng(0), NEURONS, DIMENSION)
    exactly = lambda: float(unexplained_exact(w, 2, "relu", "nt", highest_degree=None)[0])  # noqa: E731
    exactly()
    (seconds, others), (exact, estimate) = best(2, exactly, lambda: sampled(w))
    if not abs(estimate / exact - 1) < 0.02:
        raise AssertionError(f"the errors differ: {exact:.4f} exactly, {estimate:.4f} from samples")
    print(
        f"r_2 of {NEURONS} ReLU neurons, d = {DIMENSION}: exact {exact:.4f} in {seconds:.3f} s, sampled {estimate:.4f} in {others:.3f} s"
    )
    B = np.random.default_rng(0).exponential(size=450)
    law = QuadraticTarget(eigenvalues=B, width=4500)
    large, risk = clock(law.random_projection, np.random.default_rng(0))
    if large > LIMIT_SECONDS:
        raise AssertionError(f"4500 random features in 450 dimensions took {large:.0f} s, more than {LIMIT_SECONDS:g} s")
    print(f"4500 random features, d = 450: {large:.1f} s, relative risk {risk:.3f}")
    return {f"least squares on {INPUTS_PER_FEATURE} inputs per tangent feature (N = d = {DIMENSION})": others / seconds}


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), FLOOR)


if __name__ == "__main__":
    main()
