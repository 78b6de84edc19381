"""Top eigenpairs of one 1000 x 1000 block of a test Hessian: products with vectors against forming the block and a full eigh.

Run `python benchmarks/bench_alignment.py`. Ten classes, d = 1000, 10^4 test samples, 13 eigenpairs, the weights of a
trained softmax regression.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from limitlab.laws import MixtureAlignment
from limitlab.laws.alignment._softmax_sgd import block_eigenpairs, draw_mixture, weights_of
from timing import best, print_ratios

COUNT = 13


def problem() -> tuple[Any, Any]:
    """Test samples in single precision, and the weights of a Hessian block at t = 10."""
    law = MixtureAlignment(times=(10.0,))
    draw = law.draw(1000, 0)
    x = law.train(draw, np.array([10.0]))[0]
    samples, labels = draw_mixture(draw.rng, np.eye(10, 1000), np.full(10, 0.1), law.snr**-0.5, 10_000, single=True)
    return samples, weights_of("hessian", samples, labels, x, 0)


def ratios() -> dict[str, float]:
    """How many times faster products with vectors are."""
    samples, weights = problem()
    double = samples.astype(np.float64)

    def dense(rows: Any) -> Any:
        return np.linalg.eigh((rows * (weights / len(weights)).astype(rows.dtype)[:, None]).T @ rows)

    calls = (lambda: block_eigenpairs(samples, weights, COUNT), lambda: dense(double), lambda: dense(samples))
    (free, formed, single), results = best(5, *calls)
    gap = float(np.max(np.abs(results[0].values / results[1][0][::-1][:COUNT] - 1)))
    if not gap < 1e-5:  # single precision
        raise AssertionError(f"the eigenvalues differ by {gap:.2g}, more than 1e-5")
    print(
        f"13 eigenpairs of a 1000 x 1000 block: {free:.3g} s from products; formed and solved {formed:.3g} s, in single precision "
        f"{single:.3g} s; largest relative gap {gap:.1e}"
    )
    return {
        "forming the block and a full eigh (d = 1000, 13 eigenpairs)": formed / free,
        "the same in single precision": single / free,
    }


def main() -> None:
    """Print the table."""
    print_ratios(ratios(), 2.0)


if __name__ == "__main__":
    main()
