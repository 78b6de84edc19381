"""Random features, and the errors of ridge regression on one draw of them for every penalty.

A neuron with random weights w maps an input x to the feature s(<w, x>). The *Gaussian equivalent* of the feature has the same linear
part and independent noise in place of the rest: mu0 + mu1 <w, x> + mu* z. Ridge regression on features Z of either kind,

    a = argmin |y - Z a|^2 + r |a|^2,     r = lambda n N / d,

is linear in the labels. Its errors are therefore quadratic forms in the parts of the label, which are a linear signal <beta, x>, unit
noise, a quadratic function of x, and a constant. For a fixed draw of weights and inputs, the errors can be averaged exactly over beta,
the noise and the quadratic form. The averages vary much less between draws (docs/theory/random_features.md, section 5).
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import one_of
from limitlab.models.activations import Activation, Moments
from limitlab.models.data import gaussian, sphere

Array = NDArray[np.float64]
Inputs = Literal["sphere", "gaussian"]
Part = Literal["linear", "noise", "quadratic", "constant"]
PARTS: tuple[Part, ...] = ("linear", "noise", "quadratic", "constant")
"""The parts of a label, each of unit size."""

EPSILON = float(np.finfo(np.float64).eps)

QUADRATIC_SHARE = 0.2
"""Multiple of d^2 above which N or n is large enough to learn the quadratic part of the activation (a rule of thumb)."""


# -- features ---------------------------------------------------------------------------------------------------------


def draw_weights(rng: np.random.Generator, width: int, dimension: int) -> Array:
    """Return the weights of random neurons, uniform on the unit sphere, shape (width, dimension).

    >>> np.linalg.norm(draw_weights(np.random.default_rng(0), 3, 5), axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    return sphere(rng, width, dimension)


def draw_inputs(rng: np.random.Generator, rows: int, dimension: int, inputs: Inputs = "sphere") -> Array:
    """Return inputs of norm sqrt(d), shape (rows, dimension).

    The inputs are uniform on the sphere, or standard Gaussian with a norm of about sqrt(d).

    >>> np.linalg.norm(draw_inputs(np.random.default_rng(0), 2, 9), axis=1).round(12).tolist()
    [3.0, 3.0]
    """
    if inputs == "gaussian":
        return gaussian(rng, rows, dimension)
    one_of("inputs", inputs, ("sphere", "gaussian"))
    return sphere(rng, rows, dimension, radius=float(np.sqrt(dimension)))


def nonlinear_features(X: Array, weights: Array, activation: Activation) -> Array:
    """Return the activation of every inner product of an input and a weight vector, shape (rows, width).

    >>> nonlinear_features(np.eye(2), np.array([[1.0, 0.0], [-1.0, 0.0]]), Activation("relu")).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return np.asarray(activation(X @ weights.T), dtype=float)


def linear_features(rng: np.random.Generator, X: Array, weights: Array, moments: Moments) -> Array:
    """Return the Gaussian equivalent mu0 + mu1 <w_j, x_i> + mu* z_ij of the features, with independent normal z_ij.

    >>> Z = linear_features(np.random.default_rng(0), np.eye(2), np.eye(2), Moments(mean=1, linear=2, nonlinear=0))
    >>> Z.tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    noise = rng.standard_normal((len(X), len(weights)))
    return moments.mean + moments.linear * (X @ weights.T) + moments.nonlinear * noise


# -- targets ----------------------------------------------------------------------------------------------------------


def covariance(part: Part, X: Array, Y: Array) -> Array:
    """Return the covariance of a part of the target between inputs of norm sqrt(d), shape (rows, rows).

    The covariance is taken over the random coefficients of the part. The linear part is <beta, x> with |beta| = 1, and the
    quadratic part is (x' G x - tr G)/d with independent normal G.

    >>> x = np.full((1, 4), 1.0)
    >>> [float(covariance(part, x, x)[0, 0]) for part in ("linear", "quadratic", "constant")]
    [1.0, 0.75, 1.0]
    """
    d = X.shape[1]
    if part == "linear":
        return X @ Y.T / d
    if part == "quadratic":
        return ((X @ Y.T) ** 2 - d) / d**2
    return np.full((len(X), len(Y)), float(part == "constant"))


def draw_part(rng: np.random.Generator, part: Part, tables: Sequence[Array]) -> list[Array]:
    """Return one draw of a part of the label at the rows of every table.

    The noise is 0 on all tables except the first.

    >>> [len(values) for values in draw_part(np.random.default_rng(0), "quadratic", [np.eye(3), np.ones((5, 3))])]
    [3, 5]
    """
    d = tables[0].shape[1]
    if part == "linear":
        beta = sphere(rng, 1, d)[0]
        return [X @ beta for X in tables]
    if part == "noise":
        return [rng.standard_normal(len(tables[0])), *(np.zeros(len(X)) for X in tables[1:])]
    if part == "quadratic":
        form = rng.standard_normal((d, d))
        return [(((X @ form) * X).sum(axis=1) - np.trace(form)) / d for X in tables]
    return [np.ones(len(X)) for X in tables]


# -- regression -------------------------------------------------------------------------------------------------------


class Forms(NamedTuple):
    """Errors as quadratic forms in the sizes of the parts of the label, each of shape (*ridge.shape, parts, parts)."""

    test: Array  # mean square of the error of the prediction on new inputs without label noise
    train: Array  # mean square of the residuals
    norm: Array  # squared norm of the coefficients


class FeatureRidge:
    """Ridge regression on a drawn table of features, which computes all penalties from one factorisation.

    Parameters
    ----------
    Z, X
        Features and inputs of the training rows, shapes (n, N) and (n, d).
    Z_new, X_new
        Features and inputs of fresh rows, on which predictions are tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, X, X_new = draw_weights(rng, 30, 20), draw_inputs(rng, 60, 20), draw_inputs(rng, 100, 20)
    >>> model = FeatureRidge(X @ W.T, X, X_new @ W.T, X_new)      # more linear neurons than inputs
    >>> forms = model.averaged(0.0, ("linear", "noise"))
    >>> bool(abs(forms.test[0, 0]) < 1e-12)                       # least squares finds a linear signal
    True
    """

    def __init__(self, Z: Array, X: Array, Z_new: Array, X_new: Array):
        from scipy.linalg import eigh

        self.X, self.X_new = X, X_new
        self.samples, self.width = Z.shape
        wide = self.width > self.samples
        values, vectors = eigh(Z @ Z.T if wide else Z.T @ Z, driver="evd", overwrite_a=True, check_finite=False)
        positive = values > EPSILON * max(Z.shape) * values.max()
        self.singular = np.sqrt(np.where(positive, values, 0.0))
        with np.errstate(divide="ignore"):
            inverse = np.where(positive, 1 / self.singular, 0.0)
        self.left = vectors if wide else (Z @ vectors) * inverse  # left singular vectors, shape (n, r)
        self.new = Z_new @ (Z.T @ vectors * inverse if wide else vectors)  # new rows in the right singular basis, (n_new, r)

    def averaged(self, ridge: ArrayLike, parts: Sequence[Part] = PARTS) -> Forms:
        """Return the errors averaged over signal and noise, for the penalty r = `ridge` of |y - Za|^2 + r |a|^2.

        The forms are diagonal, because different parts are uncorrelated.
        """
        gain, left_over = self._gains(ridge)
        outer = self.new.T @ self.new / len(self.new)
        forms = Forms(*(np.zeros((*gain.shape[:-1], len(parts), len(parts))) for _ in range(3)))
        for i, part in enumerate(parts):
            inner, cross, outside, total = self._moments(part)
            diagonal = np.diag(inner)
            quadratic = ((gain @ (outer * inner)) * gain).sum(axis=-1)
            forms.test[..., i, i] = np.maximum(outside - 2 * gain @ cross + quadratic, 0.0)
            unseen = max(total - diagonal.sum(), 0.0)  # the part of the label orthogonal to all features
            forms.train[..., i, i] = (unseen + left_over**2 @ diagonal) / self.samples
            forms.norm[..., i, i] = gain**2 @ diagonal
        return forms

    def drawn(self, rng: np.random.Generator, ridge: ArrayLike, parts: Sequence[Part] = PARTS) -> Forms:
        """Return the errors for one random draw of signal and noise, including the cross terms between parts."""
        labels = [draw_part(rng, part, (self.X, self.X_new)) for part in parts]
        seen, truth = (np.stack([label[k] for label in labels], axis=1) for k in (0, 1))  # (rows, parts)
        return self.of_labels(ridge, seen, truth)

    def of_labels(self, ridge: ArrayLike, seen: Array, truth: Array) -> Forms:
        """Return the errors for given parts of the label.

        The arguments `seen` and `truth` have one column per part. They are its values at the training rows and at the fresh rows.
        """
        gain, left_over = self._gains(ridge)
        along = self.left.T @ seen  # (r, parts)
        error = truth - self.new @ (gain[..., None] * along)  # (..., new rows, parts)
        residual = (left_over[..., None] * along).swapaxes(-1, -2) @ (left_over[..., None] * along)
        beyond = seen - self.left @ along
        coefficients = gain[..., None] * along
        return Forms(
            test=error.swapaxes(-1, -2) @ error / len(self.new),
            train=(residual + beyond.T @ beyond) / self.samples,
            norm=coefficients.swapaxes(-1, -2) @ coefficients,
        )

    def _gains(self, ridge: ArrayLike) -> tuple[Array, Array]:
        """Return the coefficient per label, and the residual share of the label, in each singular direction.

        Both have the shape (*ridge.shape, r).
        """
        r, s = np.asarray(ridge, dtype=float)[..., None], self.singular
        scale = s**2 + r
        safe = np.where(scale > 0, scale, 1.0)
        return s / safe, np.where(scale > 0, r / safe, 1.0)

    def _moments(self, part: Part) -> tuple[Array, Array, float, float]:
        """Return the moments of a part of the label in singular directions.

        They are the covariance U'KU, the overlap with the predictions, and the mean and the total variance.
        """
        U, rows = self.left, len(self.new)
        if part == "noise":  # uncorrelated with anything at new inputs
            return U.T @ U, np.zeros(U.shape[1]), 0.0, float(self.samples)
        if part == "quadratic":
            d = self.X.shape[1]
            K, K_new = covariance(part, self.X, self.X), covariance(part, self.X_new, self.X)
            return U.T @ K @ U, (self.new * (K_new @ U)).sum(axis=0) / rows, (d - 1) / d, float(np.trace(K))
        d = self.X.shape[1]
        root, root_new = (  # K = root root'
            (X / np.sqrt(d) if part == "linear" else np.ones((len(X), 1))) for X in (self.X, self.X_new)
        )
        along = U.T @ root
        cross = (along * (self.new.T @ root_new)).sum(axis=1) / rows
        return along @ along.T, cross, float((root_new**2).sum() / rows), float((root**2).sum())


# -- nonlinear features beside their Gaussian equivalents ---------------------------------------------------------------


def warn_beyond_proportional(size: int, width: int, samples: int) -> None:
    """Issue a warning if N or n is more than `QUADRATIC_SHARE` d^2, for d = `size`.

    >>> import warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_beyond_proportional(100, 800, 300)
    ...     warn_beyond_proportional(30, 240, 90)
    >>> [str(warning.message).split(":")[0] for warning in caught]
    ['size = 30 with N = 240 and n = 90 is outside the proportional regime']
    """
    most = QUADRATIC_SHARE * size**2
    if max(width, samples) > most:
        warnings.warn(
            f"size = {size} with N = {width} and n = {samples} is outside the proportional regime: more than "
            f"{QUADRATIC_SHARE:g} d^2 = {most:g} features or samples start to learn quadratic parts; use a larger size",
            stacklevel=3,
        )


def side_by_side(nonlinear: Mapping[str, Any], linear: Mapping[str, Any], names: Sequence[str]) -> dict[str, Array]:
    """Return the observables of both kinds of features, and their differences, nonlinear minus linear.

    A difference is 0 if both observables are infinite.

    >>> {name: float(value) for name, value in side_by_side({"margin": 0.5}, {"margin": 0.25}, ["margin"]).items()}
    {'margin': 0.5, 'linear_margin': 0.25, 'margin_gap': 0.25}
    """
    pairs = {name: (np.asarray(nonlinear[name]), np.asarray(linear[name])) for name in names}
    gaps = {name: np.where(a == b, 0.0, a - np.where(a == b, 0.0, b)) for name, (a, b) in pairs.items()}
    return {
        **{name: a for name, (a, _) in pairs.items()},
        **{f"linear_{name}": b for name, (_, b) in pairs.items()},
        **{f"{name}_gap": gap for name, gap in gaps.items()},
    }
