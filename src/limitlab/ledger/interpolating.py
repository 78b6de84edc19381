"""Claims about networks that interpolate images: double descent in width (L3), random labels (L4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Number, above, agrees, below, between
from limitlab.lab.measures import effort, largest
from limitlab.laws.landscapes.double_descent import width_double_descent
from limitlab.laws.landscapes.interpolating import RandomLabels, WidthDoubleDescent

_AREA = "Uniform convergence and real networks"


@claim(
    "L3",
    _AREA,
    "On images, the test error of a two-layer network peaks where it starts to interpolate and falls again with width.",
    laws=("WidthDoubleDescent",),
    figure="width-double-descent",
)
def peak(quick: bool) -> Outcome:
    """A sweep of widths on the digits with 10 % wrong labels, trained to interpolation; where the second descent ends."""
    samples, seeds, widths = (
        (120, 8, (2, 5, 8, 9, 10, 12, 16, 40, 80)) if quick else (300, 10, (3, 9, 14, 18, 22, 24, 26, 30, 35, 50, 100, 200))
    )
    found = width_double_descent(widths, samples, 0.1, seeds=seeds)
    ratio, test = found.parameters_over_samples.values, found.test_loss
    # medians over seeds: now and then a narrow network has an output with a very large slope, and a mean that it decides alone
    mean, error = test.median("seed").values, 1.25 * robust_spread(test.values) / np.sqrt(seeds)
    top = int(mean.argmax())
    beyond = found.train_loss.values[
        ratio > (1.25 if quick else 1.03)
    ]  # close to the threshold a few starts of small networks get stuck
    comparison = compare(WidthDoubleDescent.check_points()[0], seeds=120 if quick else 300, **effort(quick))
    return Outcome(
        (
            between("p/n at the peak of the test error (median over seeds)", float(ratio[top]), 0.8, 1.2),
            above("test error at the peak over that at the largest width", float(mean[top] / mean[-1]), 2.0),
            above("test error at the peak over that at the smallest width", float(mean[top] / mean[0]), 2.0),
            above(
                "fall from the peak to the largest width in standard errors",
                float((mean[top] - mean[-1]) / np.hypot(error[top], error[-1])),
                3.0,
            ),
            below("largest train error past the threshold", largest(beyond.ravel()), 1e-10),
            above("train error at half the threshold", float(found.train_loss.values[ratio < 0.6].min(axis=1).max()), 1e-3),
            agrees("the end of the second descent", comparison),
        ),
        {
            "samples": samples,
            "seeds": seeds,
            "largest p/n": float(ratio[-1]),
            "test error at the peak": float(mean[top]),
            "test error at the end": float(mean[-1]),
        },
    )


def robust_spread(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviation along the last axis from the quartiles, as for a Gaussian.

    >>> bool(abs(robust_spread(np.random.default_rng(0).standard_normal(10_000)) - 1) < 0.05)
    True
    """
    low, high = np.quantile(values, [0.25, 0.75], axis=-1)
    return np.asarray((high - low) / 1.349)


@claim(
    "L4",
    _AREA,
    "A network fits random labels; with some labels corrupted it interpolates and still does well on clean data.",
    laws=("RandomLabels", "WidthDoubleDescent"),
    figure="random-labels",
)
def fits_noise(quick: bool) -> Outcome:
    """A sweep over the share of wrong labels at a width of several times the threshold."""
    samples, seeds = (200, 4) if quick else (400, 10)
    width = 8 * samples // 12
    wrong = (0.0, 0.1, 0.2, 0.5)
    runs = [width_double_descent([width], samples, share, seeds=seeds).isel(width=0) for share in wrong]
    errors = [float(run.test_classification_error.mean()) for run in runs]
    comparison = compare(RandomLabels.check_points()[0], seeds=150 if quick else 500, **effort(quick))
    measured: dict[str, Number] = {
        f"wrong on clean images with {share:.0%} wrong labels": error for share, error in zip(wrong, errors, strict=True)
    }
    return Outcome(
        (
            below(
                "largest train error over all shares of wrong labels",
                largest(float(run.train_loss.max()) for run in runs),
                1e-10,
            ),
            between("share of errors on clean images after training on random labels", errors[-1], 0.4, 0.6),
            below("share of errors on clean images with 10 % of the labels wrong", errors[1], 0.25),
            above("what 10 % of wrong labels cost, share of errors", errors[1] - errors[0], 0.0),
            agrees("random labels in the limit of infinite width", comparison),
        ),
        measured,
    )
