"""Random features and ridge regression on them: how they are drawn, and the errors of one draw for every penalty.

A neuron with random weights w turns an input x into the feature s(<w, x>). Its *Gaussian equivalent* keeps the linear part and
replaces the rest by fresh noise: mu0 + mu1 <w, x> + mu* z. Ridge regression on either,

    a = argmin |y - Z a|^2 + r |a|^2,     r = lambda n N / d,

is linear in the labels, so that its errors are quadratic forms in the parts of the label: a linear signal <beta, x>, unit
noise, a quadratic function of x, a constant. They can be averaged over beta, the noise and the quadratic form exactly, given
the draw of weights and inputs; what remains random then varies much less (docs/theory/random_features.md, section 5).
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
"""What a label is made of, each of unit size."""

EPSILON = float(np.finfo(np.float64).eps)

QUADRATIC_SHARE = 0.2
"""A rule of thumb: with N or n above this multiple of d^2 the quadratic part of the activation starts to be learned."""


# -- features ---------------------------------------------------------------------------------------------------------


def draw_weights(rng: np.random.Generator, width: int, dimension: int) -> Array:
    """Weights of random neurons: uniform on the unit sphere, shape (width, dimension).

    >>> np.linalg.norm(draw_weights(np.random.default_rng(0), 3, 5), axis=1).round(12).tolist()
    [1.0, 1.0, 1.0]
    """
    return sphere(rng, width, dimension)


def draw_inputs(rng: np.random.Generator, rows: int, dimension: int, inputs: Inputs = "sphere") -> Array:
    """Inputs of norm sqrt(d): uniform on the sphere, or standard Gaussian (about that norm), shape (rows, dimension).

    >>> np.linalg.norm(draw_inputs(np.random.default_rng(0), 2, 9), axis=1).round(12).tolist()
    [3.0, 3.0]
    """
    if inputs == "gaussian":
        return gaussian(rng, rows, dimension)
    one_of("inputs", inputs, ("sphere", "gaussian"))
    return sphere(rng, rows, dimension, radius=float(np.sqrt(dimension)))


def nonlinear_features(X: Array, weights: Array, activation: Activation) -> Array:
    """The features s(<w_j, x_i>), shape (rows, width).

    >>> nonlinear_features(np.eye(2), np.array([[1.0, 0.0], [-1.0, 0.0]]), Activation("relu")).tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    return np.asarray(activation(X @ weights.T), dtype=float)


def linear_features(rng: np.random.Generator, X: Array, weights: Array, moments: Moments) -> Array:
    """The Gaussian equivalent of the features: mu0 + mu1 <w_j, x_i> + mu* z_ij, with independent normal z for every row.

    >>> Z = linear_features(np.random.default_rng(0), np.eye(2), np.eye(2), Moments(mean=1, linear=2, nonlinear=0))
    >>> Z.tolist()
    [[3.0, 1.0], [1.0, 3.0]]
    """
    noise = rng.standard_normal((len(X), len(weights)))
    return moments.mean + moments.linear * (X @ weights.T) + moments.nonlinear * noise


# -- targets ----------------------------------------------------------------------------------------------------------


def covariance(part: Part, X: Array, Y: Array) -> Array:
    """Covariance, over its random coefficients, of a part of the target between inputs of norm sqrt(d); shape (rows, rows).

    The linear part is <beta, x> with |beta| = 1, the quadratic one (x' G x - tr G)/d with independent normal G.

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
    """One draw of a part of the label at the rows of every table (noise: the first table only, 0 on the others).

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

    test: Array  # mean square of the prediction's error on new inputs (no label noise there)
    train: Array  # mean square of the residuals
    norm: Array  # squared norm of the coefficients


class FeatureRidge:
    """Ridge regression on a drawn table of features, for every penalty from one factorisation.

    Parameters
    ----------
    Z, X
        Features and inputs of the training rows, shapes (n, N) and (n, d).
    Z_new, X_new
        The same of fresh rows, on which predictions are tested.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> W, X, X_new = draw_weights(rng, 30, 20), draw_inputs(rng, 60, 20), draw_inputs(rng, 100, 20)
    >>> model = FeatureRidge(X @ W.T, X, X_new @ W.T, X_new)      # linear neurons, more of them than inputs
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
        kept = values > EPSILON * max(Z.shape) * values.max()
        self.singular = np.sqrt(np.where(kept, values, 0.0))
        with np.errstate(divide="ignore"):
            inverse = np.where(kept, 1 / self.singular, 0.0)
        self.left = vectors if wide else (Z @ vectors) * inverse  # left singular vectors, shape (n, r)
        self.new = Z_new @ (Z.T @ vectors * inverse if wide else vectors)  # new rows along the right ones, shape (n_new, r)

    def averaged(self, ridge: ArrayLike, parts: Sequence[Part] = PARTS) -> Forms:
        """Errors averaged over signal and noise: diagonal forms, because different parts are uncorrelated.

        `ridge` is r of |y - Za|^2 + r |a|^2.
        """
        gain, left_over = self._gains(ridge)
        outer = self.new.T @ self.new / len(self.new)
        forms = Forms(*(np.zeros((*gain.shape[:-1], len(parts), len(parts))) for _ in range(3)))
        for i, part in enumerate(parts):
            inner, cross, outside, total = self._moments(part)
            diagonal = np.diag(inner)
            quadratic = ((gain @ (outer * inner)) * gain).sum(axis=-1)
            forms.test[..., i, i] = np.maximum(outside - 2 * gain @ cross + quadratic, 0.0)
            unseen = max(total - diagonal.sum(), 0.0)  # what no feature reaches
            forms.train[..., i, i] = (unseen + left_over**2 @ diagonal) / self.samples
            forms.norm[..., i, i] = gain**2 @ diagonal
        return forms

    def drawn(self, rng: np.random.Generator, ridge: ArrayLike, parts: Sequence[Part] = PARTS) -> Forms:
        """Errors for one draw of signal and noise: the plain experiment, with its cross terms and its spread."""
        labels = [draw_part(rng, part, (self.X, self.X_new)) for part in parts]
        seen, truth = (np.stack([label[k] for label in labels], axis=1) for k in (0, 1))  # (rows, parts)
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
        """Per singular direction, shape (*ridge.shape, r): coefficient per label, and the share of the label left over."""
        r, s = np.asarray(ridge, dtype=float)[..., None], self.singular
        scale = s**2 + r
        safe = np.where(scale > 0, scale, 1.0)
        return s / safe, np.where(scale > 0, r / safe, 1.0)

    def _moments(self, part: Part) -> tuple[Array, Array, float, float]:
        """A part's covariance in singular directions: U'KU, its overlap with the predictions, and its mean and total variance."""
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
    """Warn when N or n is no longer small against d^2 (a rule of thumb).

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
    """The observables of both kinds of features, and nonlinear minus linear (0 where both are infinite).

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
