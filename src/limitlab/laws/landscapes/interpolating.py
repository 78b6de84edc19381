"""Networks on images trained until they interpolate, and the limit of the descent after the interpolation threshold.

Setting.  f = a tanh(W x/sqrt(d) + b)/sqrt(N) + c (deeper with more `layers`) on whitened principal components of images, labels +-1 for
          even and odd digits, a share of them wrong. All p parameters are trained by Levenberg-Marquardt until |y - f|^2/n < 1e-12.
Limit.    N -> infinity (the size) at fixed data. All steps lie in the row space of the Jacobian, which is constant in the limit. Training
          ends at the interpolant nearest to the start, which is kernel regression with the tangent kernel.
Result.   docs/theory/interpolating_networks.md, equations (1)-(4). With A = (-k K^-1, 1), f(x) is Gaussian over starts with mean k K^-1 y
          and variance A Sigma A'. Averaged also over random labels, E f^2 = |k K^-1|^2 + A Sigma A', and half of the predictions are wrong.
Status.   Theorem for the limit (Jacot et al. 2018; Lee et al. 2019). The peak at p = n is an observation (Belkin et al. 2019;
          Spigler et al. 2019).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab._core.cost import Cost
from limitlab.errors import ConvergenceError
from limitlab.laws import Draw, Experiment, Headline, Law, Mark, Values, observable, parameter, shared
from limitlab.laws.kernels.deep import nngp, ntk, own_variances
from limitlab.laws.kernels.duals import relative_error
from limitlab.laws.landscapes._levenberg import TanhNetwork, levenberg_marquardt
from limitlab.models.activations import Activation
from limitlab.models.datasets import Images, Task, image_task

__all__ = ["RandomLabels", "WidthDoubleDescent"]

Array = NDArray[Any]

TESTS = 400  # images on which the error is measured
LEAST_ERROR, LARGEST_ERROR = 5e-10, 1e-3  # smallest accuracy that is reported, and largest that is accepted


MEAN_SQUARE = observable("mean square of the output on test images", r"\overline{f^2}", compared=False)


class Interpolating(Law):
    """Images, networks and kernels of the two laws."""

    status = "theorem"
    regime = "width -> infinity at fixed data, far beyond the interpolation threshold p = n"
    assumptions = (
        "two or more layers of tanh with Gaussian start, all parameters trained to interpolation",
        "every step in the row space of the Jacobian (Levenberg-Marquardt, gradient descent)",
    )
    references = ("belkin2019reconciling", "spigler2019jamming", "zhang2017understanding", "jacot2018neural")
    observables = {**shared("train_error", "excess_risk", "classification_error"), "mean_square": MEAN_SQUARE}
    simulation = Experiment("number of neurons N of every hidden layer", sizes=(150, 300, 600), draws=150)

    images: Images = parameter("digits", "images of digits", note="digits or mnist")
    samples: int = parameter(60, note="training images", least=2, most=1000)
    components: int = parameter(10, "number of principal components of the images", symbol="d", least=1, most=60)
    layers: int = parameter(2, least=2, most=20)
    data_seed: int = parameter(0, "seed of the fixed data set", least=0)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the features of the samples and of the test images."""
        hidden = max(self.layers - 2, 0) * float(size) ** 2
        return Cost(
            1e6 + 30.0 * self.components * size + 3.1 * hidden, 1e7 + 300.0 * self.components * size + 100.0 * hidden
        )

    def limit_cost(self) -> Cost:
        """Return the cost of a set of images and its principal components."""
        return Cost(3e6, 5e8)

    def task(self) -> Task:
        """Return the data."""
        return image_task(self.images, self.samples, self.flipped(), self.components, self.data_seed, tests=TESTS)

    def flipped(self) -> float:
        """Return the share of wrong labels."""
        return 0.0

    @abstractmethod
    def observables_of(self, task: Task, gains: Array, variance: Array) -> dict[str, float]:
        """Return the observables from the regression."""

    def predicted(self) -> Values:
        """Return the observables from the kernels.

        The accuracy is the change of the observables when the kernels are moved by their numerical error.
        """
        task = self.task()
        points = np.vstack([task.X, task.X_test])
        train = points[: self.samples]
        theta, sigma = (kernel(points, train, self.layers, "tanh", 1.0, 1.0) for kernel in (ntk, nngp))
        first, tanh = (points**2).mean(axis=1) + 1.0, Activation("tanh")
        output_variances = own_variances(first[self.samples :], self.layers + 1, tanh, 1.0, 1.0)[-1]
        error = relative_error(tanh, np.append(first, 2.0))  # variances of the first layer; of the others at most 2
        shake = np.random.default_rng(0).standard_normal(theta.shape)
        shake[: self.samples] = (shake[: self.samples] + shake[: self.samples].T) / 2
        values, moved = (
            self.observables_of(
                task, *self.regression(kernel, sigma - 1.0, output_variances - 1.0)
            )  # the last bias starts at 0
            for kernel in (theta, theta * (1 + error * shake))
        )
        accuracy = max(
            LEAST_ERROR, *(10 * abs(moved[name] - value) / max(abs(value), 1.0) for name, value in values.items())
        )
        if accuracy > LARGEST_ERROR:
            raise ConvergenceError(
                f"the kernel of {self.samples} samples in {self.components} components is singular up to rounding, so the limit would "
                f"have a relative accuracy of only {accuracy:.1g}; use more components, or fewer samples",
                values,
                accuracy,
            )
        return {**values, "accuracy": accuracy}

    def regression(self, theta: Array, sigma: Array, output_variances: Array) -> tuple[Array, Array]:
        """Return k K^-1 from training to test images, and the variance over starts at the test images (eq. 2)."""
        n = self.samples
        gains = np.linalg.solve(theta[:n], theta[n:].T).T
        start = output_variances - 2 * (gains * sigma[n:]).sum(axis=1) + ((gains @ sigma[:n]) * gains).sum(axis=1)
        return gains, np.maximum(start, 0.0)

    def trained(self, draw: Draw, labels: Array) -> Values:
        """Train one network from a random start on these labels, and compare it with the right test labels."""
        task = self.task()
        network = TanhNetwork((self.components, *(draw.size,) * (self.layers - 1), 1))
        fit = levenberg_marquardt(network, network.start(draw.rng), task.X, labels)
        f = network.outputs(fit.theta, task.X_test)
        return dict(
            train_error=fit.loss,
            excess_risk=np.mean((f - task.y_test) ** 2),
            classification_error=np.mean(f * task.y_test < 0),
            mean_square=np.mean(f**2),
        )


class WidthDoubleDescent(Interpolating):
    """At which value does the second descent of the test error end as a network on images becomes wider?

    Examples
    --------
    >>> limit = WidthDoubleDescent(flips=0.1).theory()
    >>> round(float(limit.excess_risk), 4), round(float(limit.classification_error), 4)
    (0.5409, 0.1688)
    """

    page = "interpolating_networks"
    # Wrong labels, two and three layers, both sets of images
    points = (
        dict(samples=20, components=30, flips=0.1),
        dict(images="mnist", samples=15, components=30, flips=0.2, layers=3, data_seed=1),
    )
    headline = Headline(
        "The second descent ends at the kernel",
        x="size",
        over=(2.0, 1000.0, 40),
        scale="log",
        show=("classification_error",),
        curves=("flips", (0, 0.1, 0.2)),
        draws=10,
        places=(2.0, 4.0, 6.0, 8.0, 10.0, 20.0, 40.0, 80.0, 160.0, 400.0),
        sliders=("samples", "layers"),
    )

    flips: float = parameter(0.1, "share of training labels that are flipped", symbol=r"\phi", least=0, most=1)

    def flipped(self) -> float:
        """Return the share of wrong labels."""
        return self.flips

    def observables_of(self, task: Task, gains: Array, variance: Array) -> dict[str, float]:
        """Return averages over Gaussian starts for the labels of the task."""
        from scipy.special import ndtr

        mean, right = gains @ task.y[:, 0], task.y_test[:, 0]
        margin = right * mean / np.sqrt(np.maximum(variance, np.finfo(float).tiny))
        return dict(
            train_error=0.0,
            excess_risk=float(np.mean((mean - right) ** 2 + variance)),
            classification_error=float(np.mean(ndtr(-margin))),
        )

    def measured(self, draw: Draw) -> Values:
        """Train one network on the labels of the task."""
        return self.trained(draw, self.task().y)


class RandomLabels(Interpolating):
    """What does a very wide network predict after it was trained on random labels?

    Examples
    --------
    >>> limit = RandomLabels().theory()
    >>> float(limit.train_error), float(limit.classification_error), round(float(limit.excess_risk), 3)
    (0.0, 0.5, 1.709)
    """

    observables = {
        **shared("train_error", "excess_risk"),
        **shared("classification_error", rate=math.inf),
        "mean_square": MEAN_SQUARE,
    }
    page = "interpolating_networks"
    simulation = replace(Interpolating.simulation, draws=300)
    # Both sets of images
    points = (
        dict(samples=15, components=30),
        dict(images="mnist", samples=20, components=30, data_seed=1),
    )
    headline = Headline(
        "Fits random labels, predicts like a coin",
        x="size",
        over=(2.0, 1000.0, 40),
        scale="log",
        show=("classification_error", "train_error"),
        draws=20,
        places=(2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 20.0, 60.0, 200.0, 400.0),
        sliders=("samples", "layers"),
        marks=(Mark("y", 0.5, "a coin"),),
    )

    def observables_of(self, task: Task, gains: Array, variance: Array) -> dict[str, float]:
        """Return averages over labels and starts, in which the outputs are uncorrelated with the right labels."""
        excess = 1 + float(np.mean((gains**2).sum(axis=1) + variance))
        return dict(train_error=0.0, excess_risk=excess, classification_error=0.5)

    def measured(self, draw: Draw) -> Values:
        """Train one network on random labels, which are -1 or +1 with probability one half each.

        If the labels and the last layer change their signs, the trained output changes its sign. Both draws have the same probability.
        The excess risk is the mean over both draws.
        """
        labels = 1.0 - 2.0 * draw.rng.integers(0, 2, (self.samples, 1))
        values = self.trained(draw, labels)
        return {**values, "excess_risk": 1 + values["mean_square"]}
