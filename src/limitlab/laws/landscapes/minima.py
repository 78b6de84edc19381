"""Global minima of one training loss on real images with very different test errors, selected by the start.

The network is a tanh(W x/sqrt(d) + b)/sqrt(N) + c on ten whitened principal components of the digits, with labels +-1 for even and odd. It
is trained on the same images from four starts, each time to a loss of 10^-12. The result is an observation
(docs/theory/interpolating_networks.md, section 4).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.landscapes._levenberg import TanhNetwork, levenberg_marquardt
from limitlab.models.datasets import image_task

__all__ = ["Minima", "digits_minima"]

Array = NDArray[Any]

COMPONENTS, TESTS = 10, 597
BAD_GOAL = 1e-8  # train loss at which the bad start counts as fitted to its labels
ITERATIONS, DAMPING = 400, 1.0  # of Levenberg-Marquardt; both influence the minimum at which training ends


@dataclass(frozen=True)
class Minima:
    """Shares of wrong answers on test images at the ends of training from four starts.

    Attributes
    ----------
    random_start
        From a standard Gaussian start.
    random_labels_start
        From parameters that had been fitted to random labels of the same images.
    large_start
        From a Gaussian start that is four times larger.
    wrong_start
        From parameters that had been fitted to the right labels of these images and the wrong labels of others.
    train_losses
        Mean squared residuals at the four ends.
    distances
        Distances of the four ends from the standard Gaussian start.
    """

    random_start: float
    random_labels_start: float
    large_start: float
    wrong_start: float
    train_losses: tuple[float, ...]
    distances: tuple[float, ...]


def digits_minima(width: int = 100, wrong: int = 600, seed: int = 0, samples: int = 300) -> Minima:
    """Train one network on the same images of digits from four starts, to zero loss each time, and measure its test errors.

    Parameters
    ----------
    width
        Neurons N. The network has 12 N + 1 parameters, which must be more than `samples` + `wrong`.
    wrong
        Number of images with wrong labels to which the parameters of the fourth start are fitted. These images are neither training nor
        test images.
    seed
        Seed of the split and of the starts.
    samples
        Training images.

    Examples
    --------
    >>> minima = digits_minima(width=30, wrong=80, samples=50)
    >>> max(minima.train_losses) < 1e-11, minima.random_start < minima.wrong_start
    (True, True)
    """
    network = TanhNetwork((COMPONENTS, int(width), 1))
    if wrong < 0 or samples < 2 or samples + wrong + TESTS > 1797:
        raise Refused(
            f"samples = {samples!r} and wrong = {wrong!r} are not allowed: must be at least 2 and 0, and leave {TESTS} test images"
        )
    if network.parameters <= samples + wrong:
        raise Refused(
            f"width = {width!r} is not allowed: {network.parameters} parameters cannot fit {samples + wrong} labels; use a larger one"
        )
    task, rng = image_task("digits", samples, 0.0, COMPONENTS, seed), np.random.default_rng([seed, width])
    others, tests = slice(0, wrong), slice(-TESTS, None)
    plain = network.start(rng)
    noise = 1.0 - 2.0 * rng.integers(0, 2, task.y.shape)
    misled_X, misled_y = np.vstack([task.X, task.X_test[others]]), np.vstack([task.y, -task.y_test[others]])
    starts = (
        plain,
        levenberg_marquardt(network, plain, task.X, noise, iterations=ITERATIONS, damping=DAMPING).theta,
        4 * network.start(rng),
        levenberg_marquardt(network, plain, misled_X, misled_y, goal=BAD_GOAL, iterations=ITERATIONS, damping=DAMPING).theta,
    )
    fits = [levenberg_marquardt(network, start, task.X, task.y, iterations=ITERATIONS, damping=DAMPING) for start in starts]
    outputs = [network.outputs(fit.theta, task.X_test[tests]) for fit in fits]
    errors = [float(np.mean(f * task.y_test[tests] <= 0)) for f in outputs]
    moved = tuple(float(np.linalg.norm(fit.theta - plain)) for fit in fits)
    return Minima(errors[0], errors[1], errors[2], errors[3], tuple(fit.loss for fit in fits), moved)
