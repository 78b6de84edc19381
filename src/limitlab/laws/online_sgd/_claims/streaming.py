"""Claims about streaming least squares (S1, S2, S6)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.check import Check, largest
from limitlab.lab.claims import claim
from limitlab.laws.online_sgd.multi_pass import MultiPassLeastSquares
from limitlab.laws.online_sgd.streaming import StreamingLeastSquares

AREA_SCALING = "Scaling laws"


def stepwise(law: StreamingLeastSquares, steps: int) -> list[float]:
    """Return the mean excess risk after every step, by equation (1) for each direction."""
    assert law.dimension is not None
    s, a = np.asarray(law.eigenvalues), np.asarray(law.signal_energy)
    eta, risks = law.step / law.dimension, []
    for _ in range(steps + 1):
        risks.append(float(s @ a))
        spread = eta**2 / law.batch
        a = ((1 - eta * s) ** 2 + spread * (1 + law.kurtosis) * s**2) * a + spread * s * (risks[-1] + law.noise**2)
    return risks


def one_per_direction(eigenvalues: np.ndarray, **options: object) -> StreamingLeastSquares:
    """Return a law with one group for each direction and unit energies."""
    size = len(eigenvalues)
    flat = tuple(np.ones(size))
    return StreamingLeastSquares(
        **{"eigenvalues": tuple(eigenvalues), "weights": flat, "signal_energy": flat, "dimension": size, **options}
    )


@claim("S1", AREA_SCALING, StreamingLeastSquares, figure="streaming-least-squares")
def exact_at_every_dimension(check: Check) -> None:
    """The formula for the mean risk of one-pass SGD on least squares is exact in every dimension and for every number of steps.

    The check compares the closed form with the recursion, and runs of SGD (batches, momentum, signs, averages) with the law. It tests that
    the gap to the limit is of order 1/d.
    """
    steps = 2000 if check.quick else 20_000
    law = one_per_direction(1 / np.arange(1, 61.0), step=12.0, batch=2, noise=0.5, times=tuple(np.arange(steps + 1) / 60))
    gap = largest(np.abs(law.theory().excess_risk.values / stepwise(law, steps) - 1))
    check.below(f"largest relative gap between closed form and {steps} steps of the recursion", gap, 1e-11)
    check.agree("runs of SGD", StreamingLeastSquares, seeds=10 if check.quick else None)
    flat = StreamingLeastSquares(step=0.8, noise=0.5, times=(2.0,))
    limit = float(flat.theory().excess_risk[0])
    gaps = [d * (float(flat.replace(dimension=d).theory().excess_risk[0]) / limit - 1) for d in (50, 200, 800)]
    check.near("d times the relative gap to the limit at d = 50, over that at d = 800", gaps[0] / gaps[2], 1.0, 0.05)
    for d, scaled_gap in zip((50, 200, 800), gaps, strict=True):
        check.show(f"d times the gap at d = {d}", scaled_gap)


@claim("S2", AREA_SCALING, StreamingLeastSquares, figure="streaming-least-squares")
def shorter_than_the_trace_says(check: Check) -> None:
    """The largest stable step of one-pass SGD is shorter than 2B over the trace if the top eigenvalue is large.

    For s = j^-2 the check measures the growth of the decisive quadratic form in one step, below the threshold and between the threshold and
    the textbook value 2B over the trace.
    """
    s = np.arange(1, 61.0) ** -2
    limit, textbook = one_per_direction(s, step=1.0).largest_step() / 60, 2 / float(s.sum())
    check.near("largest step for s = j^-2, d = 60, B = 1", limit, 0.612, 0.001)
    check.above("textbook value over the truth", textbook / limit, 1.9)
    rng, runs = np.random.default_rng(0), 200_000 if check.quick else 2_000_000
    growth = {
        name: one_step_growth(rng, s, eta, runs) for name, eta in (("below", 0.8 * limit), ("between", 0.9 * textbook))
    }
    check.below("growth in one step at 0.8 of the largest step, plus 5 standard errors", sum(growth["below"]), 1.0)
    check.above(
        "growth in one step at 0.9 of the textbook value, less 5 standard errors",
        growth["between"][0] - growth["between"][1],
        1.0,
    )
    check.show("2B / trace", textbook)
    for name, (value, _) in growth.items():
        check.show(f"growth {name}", value)
    check.note(
        "Above the threshold a few runs soon dominate the mean over runs. Therefore growth is measured over one step."
    )


def one_step_growth(rng: np.random.Generator, s: np.ndarray, eta: float, runs: int) -> tuple[float, float]:
    """Return the factor by which a step of SGD multiplies the fastest growing quadratic form, and five standard errors."""
    spread = np.diag((1 - eta * s) ** 2 + eta**2 * s**2) + eta**2 * np.outer(s, s)
    form = np.abs(np.linalg.eigh(spread)[1][:, -1])
    forms = []
    for _ in range(20):
        error = np.sqrt(form) * (2.0 * rng.integers(0, 2, (runs // 20, len(s))) - 1)
        x = rng.standard_normal(error.shape) * np.sqrt(s)
        moved = error - eta * np.einsum("rd,rd->r", x, error)[:, None] * x
        forms.append(moved**2 @ form)
    values = np.concatenate(forms)
    return float(values.mean()), 5 * float(values.std()) / np.sqrt(values.size)


@claim("S6", AREA_SCALING, MultiPassLeastSquares, figure="multi-pass-least-squares")
def price_of_batches(check: Check) -> None:
    """On fixed data the noise of batches multiplies the late train error by 1/(1 - eta tr S / 2B) if n > p, and vanishes if n < p.

    The check compares the late train error with that of gradient descent on both sides of p = n, and SGD with the law at the check points.
    """
    tall = MultiPassLeastSquares(ratio=0.5, samples=200.0, step=0.01, times=(200.0,)).theory()
    wide = MultiPassLeastSquares(ratio=2.0, samples=150.0, step=0.006, times=(0.0, 60.0)).theory()
    price = float(tall.train_error[0] / tall.descent_train_error[0])
    check.near("late train error over that of gradient descent at half the threshold, n = 2p", price, 2.0, 0.05)
    check.below(
        "train error at time 60 over that at the start, p = 2n", float(wide.train_error[1] / wide.train_error[0]), 1e-3
    )
    if check.quick:
        check.agree("paths of SGD at check point 2", MultiPassLeastSquares.check_points()[1], seeds=500)
    else:
        check.agree("paths of SGD", MultiPassLeastSquares)
    check.show("price at half the threshold", price)
