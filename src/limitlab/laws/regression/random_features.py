"""Limit of ridge regression on random features.

Setting.  x uniform on the sphere of radius sqrt(d); y = F0 + <beta, x> + f_NL(x) + noise of standard deviation tau, where
          |beta| = F1 and f_NL, of norm F*, has no constant or linear part. Features s(<w_j, x>), j <= N, with w_j uniform on the
          unit sphere. The coefficients minimise (1/n) |y - Za|^2 + (lambda N/d) |a|^2.
Limit.    n, N, d -> infinity with N/d -> psi1 (`width_ratio`) and n/d -> psi2 (`sample_ratio`).
Result.   The activation enters through mu1 = E[G s(G)] and mu*^2 = Var s(G) - mu1^2, and all observables follow from one unknown t > 0
          (docs/theory/random_features.md). With u = mu1^2 t / (1 + mu1^2 t), v = 1 - u, g = mu*^2 t + u, q = g - u^2,
          s1 = 1 - g/psi1, s2 = 1 - g/psi2, Delta = s1 s2 + q (s1/psi2 + s2/psi1), T = tau^2 + F*^2:

              lambda t = s1 s2,   0 < g < min(psi1, psi2),                                                            (4)
              B      = v (s1 v + q/psi1) / Delta,      V = (g q/psi1 + u^2 s1) / (psi2 Delta),                        (5)
              excess = F1^2 B + T V + F*^2,            train = s2^2 (excess + tau^2),                                 (6)
              |a|^2  = t (F1^2 v (q/psi2 + u s2) + q T/psi2) / (psi1 Delta),   objective = s2 (F1^2 v + T).           (7)

          The right side of (4) falls in t and the left side grows, so the root is unique.
Status.   Theorem (Mei and Montanari 2022). Equations (4)-(7) are algebraically equivalent to those of the theorem, and no differences of
          nearly equal numbers occur in them.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Cost, Draw, Headline, Mark, Values, parameter
from limitlab.laws.classification.beside_best import Best, HasBayesError, best_linear
from limitlab.laws.regression._random_features_model import NO_MEAN, RandomFeaturesModel, measured_errors
from limitlab.laws.regression._random_features_point import (
    best_ridge,
    coefficients,
    fixed_point,
    ridgeless_width,
    snr_threshold,
    weighted,
)
from limitlab.models.activations import Activation, moments
from limitlab.models.random_features import FeatureRidge, Forms, Part, draw_part, draw_weights, nonlinear_features

__all__ = ["RandomFeaturesRidge"]

Array = NDArray[np.float64]


def risk(
    width_ratio: ArrayLike,
    sample_ratio: ArrayLike,
    ridge: ArrayLike,
    linear: ArrayLike,
    nonlinear: ArrayLike,
    signal: ArrayLike = 1.0,
    nonlinear_signal: ArrayLike = 0.0,
    noise: ArrayLike = 0.0,
) -> dict[str, Array]:
    """Return the limit of every observable. All arguments broadcast.

    Parameters
    ----------
    width_ratio, sample_ratio
        psi1 = N/d and psi2 = n/d. One of them may be infinite, and both may be infinite with a positive ridge.
    ridge
        lambda >= 0. The value 0 means the limit from above. With an infinite ridge the model predicts zero.
    linear, nonlinear
        mu1 and mu* of the activation.
    signal, nonlinear_signal, noise
        F1, F* and tau.

    Examples
    --------
    With a ReLU the excess risk has a double descent over the width, and it is infinite at N = n:

    >>> mu1, mus = 0.5, (1 / 4 - 1 / (2 * np.pi)) ** 0.5
    >>> risk([1.0, 3.0, 9.0, np.inf], 3.0, 0.0, mu1, mus, noise=0.5)["excess_risk"].round(6).tolist()
    [0.796859, inf, 0.305767, 0.10833]
    """
    f1, fs, tau = (np.asarray(argument, dtype=float) ** 2 for argument in (signal, nonlinear_signal, noise))
    point = fixed_point(width_ratio, sample_ratio, ridge, linear, nonlinear)
    t_noise = tau + fs
    bias, variance, per_signal, per_noise = coefficients(point)
    excess = weighted(f1, bias) + weighted(t_noise, variance) + fs  # (6)
    shrink = point.sample_share
    # if the fit interpolates, the train error is 0 even if the test error is infinite
    train = np.where(shrink > 0, shrink**2 * np.where(shrink > 0, excess + tau, 0.0), 0.0)
    limits = dict(
        bias=bias,
        variance=variance,
        excess_risk=excess,
        test_error=excess + tau,
        train_error=train,
        coefficient_norm=weighted(f1, per_signal) + weighted(t_noise, per_noise),
        objective=shrink * (f1 * point.v + t_noise),
    )
    return dict(zip(limits, np.broadcast_arrays(*limits.values()), strict=True))


def limit_of(
    model: RandomFeaturesModel,
    width_ratio: Array,
    sample_ratio: Array,
    ridge: Array,
    signal: Array,
    nonlinear_signal: Array,
    constant: Array,
    noise: Array,
) -> dict[str, Array]:
    """Return the quantities of `risk` for the features of a model.

    If the features cannot represent a constant, the constant of the target counts as part of the nonlinear signal.
    """
    mu = model.moments()
    unlearned = 0.0 if model.learns_constant() else constant
    not_linear = np.hypot(nonlinear_signal, unlearned)
    return risk(
        width_ratio=width_ratio,
        sample_ratio=sample_ratio,
        ridge=ridge,
        linear=mu.linear,
        nonlinear=mu.nonlinear,
        signal=signal,
        nonlinear_signal=not_linear,
        noise=noise,
    )


class RandomFeaturesRidge(RandomFeaturesModel, HasBayesError):
    """How well does ridge regression on N random neurons generalise from n samples in dimension d?

    Examples
    --------
    >>> law = RandomFeaturesRidge(width_ratio=2.0, sample_ratio=3.0, ridge=0.01, noise=0.5)
    >>> result = law.theory()
    >>> round(float(result.excess_risk), 9), round(float(result.train_error), 9)
    (0.601240995, 0.188527675)
    >>> round(law.replace(width_ratio=float("inf")).snr_threshold(), 9)  # mu1^2 / mu*^2 of the ReLU
    2.751938394
    """

    status = "theorem"
    references = ("mei2022generalization",)
    page = "random_features"
    regime = (
        "n, N, d -> infinity with N/d and n/d fixed; if n or N is of order d^2, the model learns more than the law predicts"
    )
    observables = (
        "bias",
        "variance",
        "excess_risk",
        "test_error",
        "train_error",
        "coefficient_norm",
        "objective",
    )
    # A penalty, noise and every part of the target; averaged labels, and drawn labels with fewer features than samples.
    points = (
        dict(
            width_ratio=3.0,
            sample_ratio=2.0,
            ridge=0.02,
            activation="relu",
            signal=1.2,
            nonlinear_signal=0.7,
            constant=0.3,
            noise=0.4,
        ),
        dict(
            width_ratio=0.6,
            sample_ratio=3.0,
            ridge=0.2,
            activation="tanh",
            signal=1.3,
            nonlinear_signal=0.5,
            noise=0.6,
            labels="drawn",
        ),
    )
    headline = Headline(
        "Worst exactly at one neuron per sample",
        x="width_ratio",
        over=(0.1, 100.0, 121),
        scale="log",
        show=("test_error",),
        curves=("ridge", (1e-05, 0.001, 0.1)),
        at=dict(sample_ratio=3.0),
        size=40,
        draws=4,
        places=(0.3, 1.0, 2.0, 3.0, 4.0, 6.0, 10.0, 30.0),
        sliders=("noise", "sample_ratio"),
        marks=(Mark("x", lambda law: law.sample_ratio, "one neuron per sample"),),
    )

    target_function: Activation | None = parameter(
        None,
        note="of the input along one random direction, in place of signal, nonlinear_signal and constant",
        added=True,
    )

    @model_validator(mode="after")
    def _one_target(self) -> Self:
        if self.target_function is not None and self.target_function.name == "moments":
            raise Refused(
                "target_function is not allowed as moments: the experiment needs its values; give a name or a function"
            )
        self._sizes(self.signal, self.nonlinear_signal, self.constant)
        return self

    # -- the limit ----------------------------------------------------------------------------------------------------

    def predicted(
        self,
        width_ratio: Array,
        sample_ratio: Array,
        ridge: Array,
        signal: Array,
        nonlinear_signal: Array,
        constant: Array,
        noise: Array,
    ) -> Values:
        """Return the limit over a grid of ratios, penalties and sizes of the parts of the target."""
        sizes = self._sizes(signal, nonlinear_signal, constant)
        limit = limit_of(self, width_ratio, sample_ratio, ridge, *sizes, noise)
        return {**limit, "accuracy": CLOSED_FORM}

    def target_parts(self) -> tuple[float, float, float]:
        """Return the norms of the linear and the nonlinear part of the target, and its constant.

        Those of a target function g are |E G g(G)|, the root of Var g(G) - (E G g(G))^2, and E g(G), for a standard Gaussian G.

        >>> RandomFeaturesRidge(target_function="square").target_parts()
        (0.0, 1.4142135623730951, 1.0)
        """
        if self.target_function is None:
            return super().target_parts()
        parts = moments(self.target_function)
        linear, mean = (
            0.0 if abs(part) <= NO_MEAN * math.sqrt(parts.square) else part for part in (parts.linear, parts.mean)
        )
        return abs(linear), parts.nonlinear, mean

    def _sizes(self, signal: ArrayLike, nonlinear_signal: ArrayLike, constant: ArrayLike) -> tuple[Array, Array, Array]:
        """Return the sizes of the parts of the target, which are those of the target function if there is one."""
        sizes = dict(signal=signal, nonlinear_signal=nonlinear_signal, constant=constant)
        arrays = {name: np.asarray(size, dtype=float) for name, size in sizes.items()}
        if self.target_function is not None:
            for name, part in zip(arrays, self.target_parts(), strict=True):
                default = type(self).model_fields[name].default
                if np.any(arrays[name] != default):
                    raise Refused(
                        f"{name} = {arrays[name].flat[0]:g} is not allowed together with target_function, which has {name} = {part:g}: "
                        f"omit {name}, or scale the function"
                    )
                arrays[name] = np.full(arrays[name].shape, part)
        return arrays["signal"], arrays["nonlinear_signal"], arrays["constant"]

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the features of training and fresh inputs and of the quadratic forms of the parts of the label."""
        return self.matrix_cost(size, matrices=10.0)

    def best_possible(self) -> Best:
        """Return the best method that uses the inputs instead of the features, for a linear target."""
        signal, *others = self.target_parts()
        for name, value in zip(("nonlinear_signal", "constant"), others, strict=True):
            if value != 0:
                raise Refused(
                    f"{type(self).__name__} with {name} = {value:g} has no known best possible error; it is known for linear "
                    f"targets only: {name} must be 0"
                )
        return best_linear(self, 1 / self.sample_ratio, [signal**2], [1.0], self.noise, "test_error")

    def signal_to_noise(self) -> float:
        """Return the variance of the linear signal over that of noise and nonlinear signal. It is infinite without the latter two.

        >>> RandomFeaturesRidge(signal=2.0, noise=0.5).signal_to_noise()
        16.0
        """
        signal, nonlinear, constant = self.target_parts()
        unlearned = 0.0 if self.learns_constant() else constant
        noise = self.noise**2 + nonlinear**2 + unlearned**2
        return math.inf if noise == 0 else signal**2 / noise

    def optimal_ridge(self) -> float:
        """Return the penalty of least test error, which may be 0 and is infinite without a linear signal.

        >>> round(RandomFeaturesRidge(width_ratio=5.0, sample_ratio=3.0, signal=2**0.5, noise=1.0).optimal_ridge(), 6)
        0.059877
        """
        mu = self.moments()
        return float(best_ridge(self.width_ratio, self.sample_ratio, mu.linear, mu.nonlinear, self.signal_to_noise()))

    def snr_threshold(self) -> float:
        """Return the `signal_to_noise` ratio above which the best penalty is 0, or infinity if a penalty always helps.

        >>> RandomFeaturesRidge(width_ratio=4.0, sample_ratio=3.0).snr_threshold()
        inf
        """
        mu = self.moments()
        return float(snr_threshold(self.width_ratio, self.sample_ratio, mu.linear, mu.nonlinear))

    def ridgeless_width(self) -> float:
        """Return the width divided by the dimension below which a penalty helps at every signal-to-noise ratio.

        >>> round(RandomFeaturesRidge(sample_ratio=3.0).ridgeless_width(), 4)
        11.1794
        """
        mu = self.moments()
        return float(ridgeless_width(self.sample_ratio, mu.linear, mu.nonlinear))

    # -- the experiment -----------------------------------------------------------------------------------------------

    def measured(
        self, draw: Draw, ridge: Array, signal: Array, nonlinear_signal: Array, constant: Array, noise: Array
    ) -> Values:
        """Measure the observables on one draw of weights and inputs, used for every penalty and every size of the target's parts."""
        weights, X, X_new = self.inputs(draw)
        Z, Z_new = (nonlinear_features(inputs, weights, self.activation) for inputs in (X, X_new))
        features = FeatureRidge(Z, X, Z_new, X_new)
        if self.target_function is not None:
            self._sizes(signal, nonlinear_signal, constant)
            sizes = np.broadcast_arrays(ridge, signal, nonlinear_signal, constant, noise)
            return self._target_regression(features, draw.rng, sizes[0], sizes[-1])
        return self.regression(features, draw.rng, ridge, signal, nonlinear_signal, constant, noise)

    def _target_regression(self, model: FeatureRidge, rng: np.random.Generator, ridge: Array, noise: Array) -> Values:
        """Return the observables for the target function along a random direction.

        The label noise, and the linear signal of `bias`, are averaged exactly unless `labels` is "drawn".
        """
        assert self.target_function is not None
        direction = draw_weights(rng, 1, model.X.shape[1])[0]
        tables = (model.X, model.X_new)
        target = [np.asarray(self.target_function(X @ direction), dtype=float) for X in tables]
        per_dimension = model.width / model.X.shape[1]
        r = ridge * model.samples * per_dimension
        parts: tuple[Part, ...] = ("linear", "noise")
        if self.labels == "drawn":
            labels = [*(draw_part(rng, part, tables) for part in parts), target]
            seen, truth = (np.stack([label[k] for label in labels], axis=1) for k in (0, 1))
            forms = model.of_labels(r, seen, truth)
        else:
            pairs = zip(model.averaged(r, parts), model.of_labels(r, target[0][:, None], target[1][:, None]), strict=True)
            forms = Forms(*(_joined(averaged, fixed) for averaged, fixed in pairs))
        sizes = {"linear": np.zeros_like(noise), "noise": noise, "target": np.ones_like(noise)}
        return measured_errors(forms, sizes, ridge * per_dimension)


def _joined(first: Array, second: Array) -> Array:
    """Return block-diagonal quadratic forms."""
    count = first.shape[-1]
    total = count + second.shape[-1]
    forms = np.zeros((*first.shape[:-2], total, total))
    forms[..., :count, :count], forms[..., count:, count:] = first, second
    return forms
