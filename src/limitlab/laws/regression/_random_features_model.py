"""Base class of the laws of random-features regression, with their parameters, checks and experiment.

Setting.  x uniform on the sphere of radius sqrt(d); y = F0 + <beta, x> + f_NL(x) + noise of standard deviation tau, where
          |beta| = F1 and f_NL, of norm F*, has no constant or linear part. N neurons s(<w_j, x>) with w_j uniform on the unit
          sphere; their coefficients minimise (1/n) |y - Za|^2 + (lambda N/d) |a|^2.
Limit.    n, N, d -> infinity with N/d -> psi1 (`width_ratio`) and n/d -> psi2 (`sample_ratio`).
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Law, parameter
from limitlab.laws.regression._cusp import Labels
from limitlab.models.activations import Activation, Moments, moments
from limitlab.models.random_features import FeatureRidge, Forms, Part, draw_inputs, draw_weights

Array = NDArray[np.float64]

NO_MEAN = 1e-12
"""Relative size below which the mean of an activation counts as 0, so that its features cannot represent a constant."""


class Inputs(NamedTuple):
    """Weights and inputs of one experiment."""

    weights: Array  # (N, d)
    X: Array  # (n, d)
    X_new: Array  # fresh rows to test on


class RandomFeaturesModel(Law):
    """Ridge regression on random neurons, for a target with a linear part, further parts, and noise."""

    assumptions = (
        "inputs uniform on the sphere of radius sqrt(d), first-layer weights uniform on the unit sphere and not trained",
        "the target's nonlinear part is a random function of degree 2 or more (a fixed one converges more slowly)",
        "independent label noise of constant variance",
    )
    simulation = Experiment("input dimension d", sizes=(40, 80, 160))

    width_ratio: float = parameter(2.0, above=0, scale="log", infinite=True, count="size * value")
    sample_ratio: float = parameter(3.0, above=0, scale="log", infinite=True, count="size * value")
    ridge: float = parameter(1e-3, least=0, scale="log")
    activation: Activation = parameter("relu")
    signal: float = parameter(1.0, symbol="F_1", least=0)
    nonlinear_signal: float = parameter(0.0, "norm of the nonlinear part of the target", symbol="F_*", least=0)
    constant: float = parameter(0.0, "constant part of the target", symbol="F_0")
    noise: float = parameter(0.5, least=0)
    labels: Labels = parameter("averaged", kind="experiment")

    @model_validator(mode="after")
    def _has_a_limit(self) -> Self:
        mu = self.moments()
        if mu.linear == 0 and mu.nonlinear == 0:
            raise Refused(f"activation = {self.activation.name!r} is not allowed: it is constant, so there are no features")
        if math.isinf(self.width_ratio) and math.isinf(self.sample_ratio) and self.ridge == 0:
            raise Refused(
                "ridge = 0 is not allowed where width_ratio and sample_ratio are both infinite: must be above 0, or make one finite"
            )
        signal, _, constant = self.target_parts()
        if constant != 0 and not self.learns_constant():
            warnings.warn(
                f"constant = {constant:g} cannot be learned: the mean of activation {self.activation.name!r} is 0, so the "
                "constant counts as part of nonlinear_signal; centre the labels, or use an activation with a mean",
                stacklevel=3,
            )
        if mu.linear == 0 and signal != 0:
            warnings.warn(
                f"signal = {signal:g} cannot be learned: activation {self.activation.name!r} has no linear part (mu1 = 0), "
                "so the bias is at least 1; use an activation with a linear part",
                stacklevel=3,
            )
        return self

    def moments(self) -> Moments:
        """Return the moments mu0, mu1 and mu* of the activation."""
        return moments(self.activation)

    def target_parts(self) -> tuple[float, float, float]:
        """Return the norms of the linear and the nonlinear part of the target, and its constant."""
        return self.signal, self.nonlinear_signal, self.constant

    def learns_constant(self) -> bool:
        """Return whether the features can represent a constant, that is, whether the mean of the activation is not 0.

        >>> from limitlab.laws import RandomFeaturesRidge
        >>> RandomFeaturesRidge(activation="relu").learns_constant(), RandomFeaturesRidge(activation="tanh").learns_constant()
        (True, False)
        """
        mu = self.moments()
        return abs(mu.mean) > NO_MEAN * math.sqrt(mu.square)

    def inputs(self, draw: Draw) -> Inputs:
        """Draw the weights, the training inputs and the fresh inputs of one experiment."""
        d, samples = draw.size, draw.count("sample_ratio")
        weights = draw_weights(draw.rng, draw.count("width_ratio"), d)
        return Inputs(weights, draw_inputs(draw.rng, samples, d), draw_inputs(draw.rng, max(2 * samples, 4 * d), d))

    def regression(
        self,
        model: FeatureRidge,
        rng: np.random.Generator,
        ridge: Array,
        signal: Array,
        nonlinear_signal: Array,
        constant: Array,
        noise: Array,
    ) -> dict[str, Array]:
        """Return the observables of a regression on drawn features, for every penalty and every size of the parts of the target."""
        lam, *sizes = np.broadcast_arrays(ridge, signal, nonlinear_signal, constant, noise)
        parts = label_parts(*sizes)
        per_dimension = model.width / model.X.shape[1]
        r = lam * model.samples * per_dimension
        forms = model.drawn(rng, r, tuple(parts)) if self.labels == "drawn" else model.averaged(r, tuple(parts))
        return measured_errors(forms, parts, lam * per_dimension)


def label_parts(signal: Array, nonlinear_signal: Array, constant: Array, noise: Array) -> dict[Part, Array]:
    """Return the parts of the label with their sizes. Linear part and noise come first. Other parts follow if they are present.

    >>> list(label_parts(np.array(1.0), np.array(0.0), np.array(2.0), np.array(0.5)))
    ['linear', 'noise', 'constant']
    """
    parts: dict[Part, Array] = {"linear": signal, "noise": noise}
    if (nonlinear_signal != 0).any():
        parts["quadratic"] = nonlinear_signal
    if (constant != 0).any():
        parts["constant"] = constant
    return parts


def measured_errors(forms: Forms, parts: Mapping[Any, Array], penalty: Array) -> dict[str, Array]:
    """Return the observables of one draw from its quadratic forms in the parts of the label. `penalty` is the factor of |a|^2."""
    weight = np.stack(np.broadcast_arrays(*parts.values()), axis=-1)
    test, train, norm = (np.einsum("...i,...ij,...j->...", weight, form, weight) for form in forms)
    return dict(
        bias=forms.test[..., 0, 0],
        variance=forms.test[..., 1, 1],
        excess_risk=test,
        test_error=test + parts["noise"] ** 2,
        train_error=train,
        coefficient_norm=norm,
        objective=train + penalty * norm,
    )
