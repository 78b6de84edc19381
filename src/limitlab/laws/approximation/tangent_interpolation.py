"""Interpolation of noise by tangent features, which is possible from N d = n on.

Setting.  Features s'(<w_i, x>) x of N random neurons, N d in all, fitted by least squares to n labels that are pure noise of standard
          deviation tau; x standard Gaussian in R^d.
Limit.    d -> infinity (the size) with n/(N d) -> `samples_over_parameters` and N (`width`) fixed or infinite.
Result.   docs/theory/finite_width.md, equations (3)-(4). If no neuron is active on an input, all of its features are 0. The
          share of such inputs is delta = P(s'(g) = 0)^N, 2^-N for relu, and

              train error -> tau^2 (delta + (1 - delta - N d/n)_+),   delta = 0 as N -> infinity.                              (3)

Status.   Derived. It assumes features of full rank N d. The rank is smaller for s = x^2 if N is of the order of d (`tangent_rank`).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator
from scipy.special import ndtri

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Mark, Values, parameter
from limitlab.models.activations import Activation
from limitlab.models.data import sphere

__all__ = ["TangentInterpolation", "tangent_rank"]

Array = NDArray[Any]

EXPERIMENT_WIDTH = 16  # width of a simulation of infinite width; a share 2^-16 of the inputs has no active neuron
LABELS = 20  # number of label vectors in one draw
RANK = 1e-9  # singular values below this share of the largest count as zero


def tangent_features(X: Array, W: Array, activation: Activation) -> Array:
    """Return s'(<w_i, x>) x for all neurons, with shape (n, N d).

    >>> tangent_features(np.array([[1.0, 2.0]]), np.array([[1.0, 0.0], [-1.0, 0.0]]), Activation("relu")).tolist()
    [[1.0, 2.0, 0.0, 0.0]]
    """
    gates = np.asarray(activation.derivative(X @ W.T), dtype=float)
    return (gates[:, :, None] * X[:, None, :]).reshape(len(X), -1)


def tangent_rank(dimension: int, width: int, activation: Any = "relu", seed: int = 0) -> int:
    """Return the rank of the tangent features of `width` random neurons, from twice as many Gaussian inputs as features.

    The rank is N d in general. For s = x^2 it is N d - N (N - 1)/2 up to N = d, and d (d + 1)/2 for larger N.

    >>> [tangent_rank(6, 3, activation) for activation in ("relu", "tanh", "square")]
    [18, 18, 15]
    """
    for name, value in (("dimension", dimension), ("width", width)):
        if isinstance(value, bool) or value != int(value) or value < 1:
            raise Refused(f"{name} = {value!r} is not allowed: must be a whole number of at least 1")
    rng = np.random.default_rng(seed)
    W = sphere(rng, int(width), int(dimension))
    Z = tangent_features(rng.standard_normal((2 * int(width * dimension), int(dimension))), W, Activation(activation))
    return int(np.linalg.matrix_rank(Z, tol=RANK * np.linalg.norm(Z, 2)))


class TangentInterpolation(Law):
    """From how many neurons on does a linearised network interpolate n labels that are pure noise?

    Examples
    --------
    >>> float(TangentInterpolation(samples_over_parameters=2.0, noise=0.5).theory().train_error)
    0.125
    >>> float(TangentInterpolation(samples_over_parameters=0.5, noise=1.0, width=4).theory().train_error)
    0.0625
    """

    status = "derived"
    regime = "d -> infinity with n/(N d) and N fixed, or N infinite"
    assumptions = ("standard Gaussian inputs, pure noise as labels", "independent features: N small against d for s = x^2")
    references = ("montanari2022interpolation",)
    page = "finite_width"
    observables = ("train_error",)
    simulation = Experiment("dimension d", sizes=(10, 20, 40), draws=200)
    # Both sides of the transition. The second and the third point have inputs without an active neuron
    points = (
        dict(samples_over_parameters=1.6, noise=0.7, width=4.0, activation="tanh"),
        dict(samples_over_parameters=1.5, noise=1.3, width=3.0),
        dict(samples_over_parameters=0.8, noise=1.3, width=2.0, networks=10),
    )
    headline = Headline(
        "Noise is fitted until samples outnumber weights",
        x="samples_over_parameters",
        over=(0.05, 4.0, 81),
        show=("train_error",),
        curves=("width", (2, 5, math.inf)),
        at=dict(networks=20),
        size=20,
        draws=4,
        places=(0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0),
        sliders=("noise", "activation"),
        marks=(Mark("x", 1.0, "as many weights as samples"),),
    )

    samples_over_parameters: float = parameter(1.5, "samples per first-layer weight", symbol="n/(Nd)", above=0, scale="log")
    noise: float = parameter(1.0, least=0)
    width: float = parameter(math.inf, least=1, infinite=True, scale="log")
    activation: Activation = parameter("relu")

    networks: int = parameter(1, note="here fitted, each to data of its own", kind="experiment", least=1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a factorisation of the features, which are neurons times dimensions."""
        return Cost(80.0 * self.networks * size**2, 50.0 * self.networks * size**3)

    @model_validator(mode="after")
    def _whole_width(self) -> Self:
        self.activation.check_derivatives()
        if math.isfinite(self.width) and self.width != int(self.width):
            raise Refused(f"width = {self.width!r} is not allowed: must be a whole number, or inf")
        if math.isinf(self.width) and self.activation.name == "square":
            raise Refused(
                "width = inf is not allowed with activation = 'square': its features are dependent and have rank N d - N (N - 1)/2; "
                "choose a finite width"
            )
        return self

    def dead_share(self) -> float:
        """Return the share of inputs on which the derivative of the activation is 0 for every neuron."""
        slopes = self.activation.derivative(ndtri((np.arange(4000) + 0.5) / 4000))
        idle = float(np.mean(np.asarray(slopes) == 0))
        return 0.0 if idle == 0 or math.isinf(self.width) else idle**self.width

    def predicted(self, samples_over_parameters: Array, noise: Array) -> Values:
        """Return the train error (3); the labels of inputs without an active neuron cannot be fitted."""
        dead = self.dead_share()
        train = noise**2 * (dead + np.maximum(1 - dead - 1 / samples_over_parameters, 0.0))  # (3)
        return dict(train_error=train, accuracy=CLOSED_FORM)

    def measured(self, draw: Draw) -> Values:
        """Fit several vectors of noise by least squares on the tangent features of random neurons."""
        return dict(train_error=np.mean([self._fitted(draw.rng, draw.size) for _ in range(self.networks)]))

    def _fitted(self, rng: np.random.Generator, d: int) -> float:
        """Return the mean squared residual for one set of inputs and neurons."""
        width = EXPERIMENT_WIDTH if math.isinf(self.width) else int(self.width)
        X = rng.standard_normal((max(1, round(self.samples_over_parameters * width * d)), d))
        Z = tangent_features(X, sphere(rng, width, d), self.activation)
        labels = self.noise * rng.standard_normal((len(X), LABELS))
        left, singular, _ = np.linalg.svd(Z, full_matrices=False)
        basis = left[:, singular > RANK * singular[0]]
        return float(np.mean((labels - basis @ (basis.T @ labels)) ** 2))

    def realised(self, size: int) -> Self:
        """Return the law with the ratio of the whole number of samples at this size."""
        width = EXPERIMENT_WIDTH if math.isinf(self.width) else int(self.width)
        count = max(1, round(self.samples_over_parameters * width * size))
        return self.replace(samples_over_parameters=count / (width * size))
