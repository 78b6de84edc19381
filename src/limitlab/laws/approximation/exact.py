"""Exact errors of fits by the features of fixed neurons, or by a kernel on fixed training inputs, without sampling of test inputs.

Setting.  Unit vectors w_1, ..., w_N; random features s(<w_i, x>), or tangent features s'(<w_i, x>) x, which are d per neuron; x uniform on
          the sphere of radius sqrt(d). A random target of degree k is a Gaussian field with covariance Q_k(<x, x'>/d).
Result.   r_k = 1 - tr(U^+ U_k)/B_k, where U is the Gram matrix of the features and U_k its part of degree k
          (docs/theory/approximation.md, section 2, eqs. 5, 6 and 9). The sum rule sum_k B_k (1 - r_k) = rank U is exact. For kernel ridge
          regression on drawn inputs equations (18) and (19) give the mean over targets, noise and test inputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import one_of
from limitlab.errors import Refused
from limitlab.laws.approximation.harmonics import Harmonics, gegenbauer_coefficients
from limitlab.models.activations import Activation
from limitlab.numerics.sphere import gegenbauer_slopes, gegenbauer_values

__all__ = ["unexplained_exact"]

Array = NDArray[np.float64]
Features = Literal["rf", "nt"]

TANGENT_DEGREES = 40
"""Default number of degrees in the Gram matrix of tangent features. The energy of higher degrees is added to its diagonal."""
SMOOTH_DEGREES, KINKED_DEGREES = 60, 200
"""Numbers of degrees for smooth and for kinked activations if a closed form of the Gram matrix is requested but none exists."""
LARGEST = 6000
"""Largest number of features, for which the matrix takes 288 MB."""
RANK = 1e-15
"""Eigenvalues below this share of the largest eigenvalue, times the size of the matrix, count as rounding errors."""
REGULAR = 1e-9
"""Least ratio of the squared diagonal entries of a Cholesky factor for which a Gram matrix is inverted without its eigenvalues."""


def unexplained_exact(
    W: ArrayLike,
    degrees: int | Sequence[int],
    activation: Activation | str | Callable[[Any], Any] = "relu",
    model: Features = "rf",
    direction: ArrayLike | None = None,
    highest_degree: int | Literal["default"] | None = "default",
) -> Array:
    """Return the share of a target of each degree that the best combination of the neurons' features leaves unexplained.

    Parameters
    ----------
    W
        The neurons, one per row; rows are scaled to norm 1.
    degrees
        Degrees k of the targets.
    activation
        A name or a function of arrays.
    model
        "rf" (second layer) or "nt" (first layer, linearised).
    direction
        None for random targets of each degree; a vector b for the ridge target sqrt(B_k) Q_k(<b, x>/sqrt d) along it.
    highest_degree
        Largest degree that is computed entry by entry in the Gram matrix. The energy of higher degrees is added to its diagonal. None
        selects a closed form if there is one (ReLU, |x|), otherwise 60 degrees for smooth and 200 for kinked activations. The default is 40
        for "nt" and None for "rf". For 5 ReLU neurons in 6 dimensions the result with 40 degrees is wrong by 4e-6. For a smooth activation
        the result is exact to rounding.

    Returns
    -------
    ndarray
        r_k, one per degree.

    Examples
    --------
    >>> W = np.random.default_rng(0).standard_normal((12, 8))
    >>> r = unexplained_exact(W, range(4))
    >>> bool(np.all((r >= 0) & (r <= 1))), float(r[3])
    (True, 1.0)
    """
    degree_array = np.atleast_1d(np.asarray(degrees, dtype=int))
    if degree_array.size == 0 or (degree_array < 0).any():
        raise Refused(f"degrees = {degrees!r} is not allowed: must be whole numbers of at least 0")
    highest = (TANGENT_DEGREES if model == "nt" else None) if highest_degree == "default" else highest_degree
    span = spanned(W, activation, model, highest, int(degree_array.max()))
    b = None if direction is None else unit_rows(np.atleast_2d(np.asarray(direction, dtype=float)))[0]
    return span.unexplained(degree_array, b)


@dataclass(frozen=True)
class Span:
    """The span of the features of fixed neurons, with the inverse of their Gram matrix and the data for projections on it.

    Attributes
    ----------
    w, overlaps
        The neurons, as rows of norm 1, and their inner products.
    inverse
        U^+.
    harmonics
        Coefficients of the activation for each degree from 0.
    tangent
        Whether the features are tangent features, d per neuron.
    """

    w: Array
    overlaps: Array
    inverse: Array
    harmonics: Harmonics
    tangent: bool

    def unexplained(self, degrees: NDArray[np.int64], b: Array | None = None) -> Array:
        """Return r_k of random targets of these degrees, or of the ridge targets along the unit vector b."""
        return np.clip(1 - self.explained(degrees, b), 0.0, 1.0)

    def explained(self, degrees: NDArray[np.int64], b: Array | None = None) -> Array:
        """Return 1 - r_k, with full relative accuracy where it is small."""
        return (_tangent_shares if self.tangent else _random_shares)(self, degrees, b)


def spanned(
    W: ArrayLike,
    activation: Activation | str | Callable[[Any], Any],
    model: Features = "rf",
    highest_degree: int | None = None,
    degree: int = 0,
) -> Span:
    """Return the span of the features of the neurons W, for targets up to `degree`; other arguments as in `unexplained_exact`.

    >>> spanned(np.eye(4), "tanh", "nt").inverse.shape
    (16, 16)
    """
    w, function = unit_rows(W), Activation(activation)
    one_of("model", model, ("rf", "nt"))
    features = len(w) * (w.shape[1] if model == "nt" else 1)
    if features > LARGEST:
        raise Refused(
            f"{features} features are not allowed: a matrix of {8 * features**2 / 1e9:.1f} GB would be needed; use at most {LARGEST}"
        )
    top = max(degree, highest_degree or (KINKED_DEGREES if function.kinks else SMOOTH_DEGREES))
    harmonics = gegenbauer_coefficients(function, w.shape[1], range(top + 1))
    if harmonics.energy == 0:
        raise Refused(f"activation = {function.name!r} is not allowed: it is zero on the sphere")
    rho = overlaps(w)
    closed = (RANDOM_KERNELS if model == "rf" else TANGENT_KERNELS).get(function.name) if highest_degree is None else None
    series = feature_kernel if model == "rf" else tangent_kernel
    gram = series(w, rho, harmonics) if closed is None else closed(w, rho)
    return Span(w, rho, pseudo_inverse(gram), harmonics, model == "nt")


def unit_rows(rows: ArrayLike) -> Array:
    """Return the rows scaled to norm 1.

    >>> unit_rows([[3.0, 0.0, 4.0]]).tolist()
    [[0.6, 0.0, 0.8]]
    """
    table = np.asarray(rows, dtype=float)
    if table.ndim != 2 or table.shape[1] < 3:
        raise Refused(f"W of shape {table.shape} is not allowed: must be a matrix of neurons in at least 3 dimensions")
    norms = np.linalg.norm(table, axis=1, keepdims=True)
    if not (np.isfinite(norms).all() and (norms > 0).all()):
        raise Refused("W is not allowed: every row must be finite and not zero")
    return table / norms


def overlaps(w: Array) -> Array:
    """Return the inner products of unit vectors, exactly 1 on the diagonal and within [-1, 1].

    >>> overlaps(np.eye(3)[:2]).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    rho = np.clip(w @ w.T, -1.0, 1.0)
    np.fill_diagonal(rho, 1.0)
    return rho


def pseudo_inverse(gram: Array) -> Array:
    """Return the inverse of a Gram matrix on the span of the eigenvectors whose eigenvalues are not rounding errors.

    >>> pseudo_inverse(np.diag([2.0, 0.0])).tolist()
    [[0.5, 0.0], [0.0, 0.0]]
    """
    from scipy.linalg import eigh
    from scipy.linalg.lapack import dpotrf, dpotri

    factor, failed = dpotrf(gram, lower=1)
    spread = np.diag(factor) if not failed else np.zeros(1)
    if spread.min() > math.sqrt(REGULAR) * spread.max():
        lower = np.tril(dpotri(factor, lower=1)[0])
        return np.asarray(lower + np.tril(lower, -1).T)
    values, vectors = eigh(gram)
    regular = values > RANK * len(gram) * values[-1]
    return np.asarray((vectors[:, regular] / values[regular]) @ vectors[:, regular].T)


# -- random features --------------------------------------------------------------------------------------------------


def relu_kernel(rho: Array) -> Array:
    """Return E[relu(<w, x>) relu(<w', x>)] for unit vectors of overlap rho = cos t, in any dimension.

    The value is (sin t + (pi - t) cos t) / (2 pi).

    >>> float(relu_kernel(np.array(1.0)))
    0.5
    """
    angle = np.arccos(rho)
    return np.asarray((np.sqrt((1 - rho) * (1 + rho)) + (np.pi - angle) * rho) / (2 * np.pi))


def feature_kernel(w: Array, rho: Array, harmonics: Harmonics) -> Array:
    """Return U = sum_k lambda_k^2 B_k Q_k(rho), with the energy of the remaining degrees on the diagonal (eq. 5).

    >>> from limitlab.laws.approximation.harmonics import gegenbauer_coefficients
    >>> w = np.eye(8)[:2] + 0.1
    >>> rho = overlaps(w / np.linalg.norm(w, axis=1, keepdims=True))
    >>> series = feature_kernel(w, rho, gegenbauer_coefficients("relu", 8, range(200)))
    >>> bool(np.abs(series - relu_kernel(rho)).max() < 1e-6)
    True
    """
    table = gegenbauer_values(rho, harmonics.dimension, max(harmonics.degrees))
    return np.asarray(np.tensordot(harmonics.levels, table, axes=1) + harmonics.tail * np.eye(len(rho)))


def _random_shares(span: Span, degrees: NDArray[np.int64], b: Array | None) -> Array:
    d, harmonics = span.w.shape[1], span.harmonics
    if b is None:  # (6)
        table = gegenbauer_values(span.overlaps, d, int(degrees.max()))
        return np.array([harmonics.coefficients[k] ** 2 * np.vdot(span.inverse, table[k]) for k in degrees])
    along = gegenbauer_values(span.w @ b, d, int(degrees.max()))[degrees]
    v = np.sqrt(harmonics.levels[degrees])[:, None] * along
    return np.asarray(np.einsum("ki,ij,kj->k", v, span.inverse, v))


# -- tangent features -------------------------------------------------------------------------------------------------


def _tangent_shares(span: Span, degrees: NDArray[np.int64], b: Array | None) -> Array:
    w, rho, harmonics = span.w, span.overlaps, span.harmonics
    if b is not None:
        return np.array([_ridge_target(w, span.inverse, harmonics, int(k), b) for k in degrees])
    traces = _traces(w, rho, span.inverse)
    tables = [gegenbauer_slopes(rho, w.shape[1], int(degrees.max()), order) for order in range(3)]
    shares = []
    for k in degrees:
        parts = block_coefficients(harmonics, k, *(table[k] for table in tables))
        shares.append(sum(float(np.vdot(part, trace)) for part, trace in zip(parts, traces, strict=True)))
    return np.array(shares) / harmonics.multiplicities[degrees]


def block_coefficients(harmonics: Harmonics, k: int, value: Array, slope: Array, curvature: Array) -> tuple[Array, ...]:
    """Return the four functions of the overlap in the d x d blocks of degree k (eq. 9), computed from Q_k, Q_k' and Q_k''."""
    plain, radial, mixed = harmonics.levels[k], harmonics.radial_levels[k], harmonics.products[k]
    return radial * value, mixed * slope, plain * curvature, plain * slope


def tangent_kernel(w: Array, rho: Array, harmonics: Harmonics) -> Array:
    """Return the (N d) x (N d) Gram matrix of all tangent features.

    It is the sum of the blocks (9) over the degrees, with the energy of the remaining degrees on the diagonal. With a = w_i, b = w_j, P the
    projection orthogonal to a vector, the block of degree k is
    B { nu^2 Q a b' + nu lambda Q' [a (P_b a)' + (P_a b) b'] + lambda^2 [Q'' (P_a b)(P_b a)' + Q' P_a P_b] }.

    >>> from limitlab.laws.approximation.harmonics import gegenbauer_coefficients
    >>> w = np.eye(4)[:2]
    >>> tangent_kernel(w, overlaps(w), gegenbauer_coefficients("tanh", 4, range(20))).shape
    (8, 8)
    """
    count, d = w.shape
    totals = np.zeros((4, count, count))
    tables = [gegenbauer_slopes(rho, d, max(harmonics.degrees), order) for order in range(3)]
    for k in harmonics.degrees:
        if harmonics.levels[k] or harmonics.radial_levels[k]:
            totals += block_coefficients(harmonics, k, *(table[k] for table in tables))
    both, mixed, bent, turned = totals
    forward = (
        both - 2 * rho * mixed + rho**2 * bent + rho * turned
    )  # factor of w_i w_j' after expanding the projections of (9)
    gram = _blocks(w, turned, forward, bent, mixed - rho * bent - turned)
    project = np.eye(d) - w[:, :, None] * w[:, None, :]
    rest = harmonics.tangential_tail / (d - 1) * project + harmonics.radial_tail * w[:, :, None] * w[:, None, :]
    diagonal = np.arange(count)
    gram[diagonal, :, diagonal, :] += rest
    return gram.reshape(count * d, count * d)


def _blocks(w: Array, unit: Array, forward: Array, backward: Array, squares: Array) -> Array:
    """Return unit I + forward w_i w_j' + backward w_j w_i' + squares (w_i w_i' + w_j w_j') with N x N factors; shape (N, d, N, d)."""
    count, d = w.shape
    gram = np.empty((count, d, count, d))
    factor = squares[:, :, None, None]
    outer = w[:, :, None] * w[:, None, :]
    for i in range(count):
        row = factor[i] * (outer[i] + outer) + unit[i, :, None, None] * np.eye(d)  # [j, a, b]
        row += w[i][None, :, None] * (forward[i][:, None] * w)[:, None, :]
        row += (backward[i][:, None] * w)[:, :, None] * w[i]
        gram[i] = np.swapaxes(row, 0, 1)
    return gram


def relu_tangent_kernel(w: Array, rho: Array) -> Array:
    """Return the Gram matrix of the tangent features of ReLU neurons in closed form.

    The derivative of ReLU is a step function. It depends on the direction of x only, so Gaussian inputs give the same matrix,
    E[1{<a,x> > 0} 1{<b,x> > 0} x x'] = (pi - t)/(2 pi) I - cos t/(2 pi sin t) (a a' + b b') + 1/(2 pi sin t) (a b' + b a').

    >>> w = np.eye(3)[:1]
    >>> relu_tangent_kernel(w, overlaps(w)).tolist()
    [[0.5, 0.0, 0.0], [0.0, 0.5, 0.0], [0.0, 0.0, 0.5]]
    """
    count, d = w.shape
    sine = np.sqrt((1 - rho) * (1 + rho))
    apart = sine > 0
    cross = np.where(apart, 1 / (2 * np.pi * np.where(apart, sine, 1.0)), 0.0)
    unit = (np.pi - np.arccos(rho)) / (2 * np.pi)
    return _blocks(w, unit, cross, cross, -rho * cross).reshape(count * d, count * d)


def _traces(w: Array, rho: Array, inverse: Array) -> tuple[Array, ...]:
    """Return the N x N contractions of the inverse that multiply the four functions of (9) in tr(K^+ K_k)."""
    count, d = w.shape
    blocks = inverse.reshape(count, d, count, d)
    first = np.einsum("ia,iajb->ijb", w, blocks)  # w_i' G_ij
    second = np.einsum("iajb,jb->ija", blocks, w)  # G_ij w_j
    ab = np.einsum("ijb,jb->ij", first, w)  # a' G b, a = w_i, b = w_j
    aa = np.einsum("ijb,ib->ij", first, w)
    bb = np.einsum("ija,ja->ij", second, w)
    ba = np.einsum("iajb,ja,ib->ij", blocks, w, w, optimize=True)
    whole = np.einsum("iaja->ij", blocks)
    mixed = (aa - rho * ab) + (bb - rho * ab)  # a' G P_b a + (P_a b)' G b
    bent = ba - rho * aa - rho * bb + rho**2 * ab  # (P_a b)' G (P_b a)
    turned = whole - aa - bb + rho * ab  # tr(P_a P_b G')
    return ab, mixed, bent, turned


def _ridge_target(w: Array, inverse: Array, harmonics: Harmonics, k: int, b: Array) -> float:
    along = w @ b
    value, slope = (gegenbauer_slopes(along, harmonics.dimension, k, order)[k] for order in (0, 1))
    root = math.sqrt(harmonics.multiplicities[k])
    across = b - along[:, None] * w
    v = root * ((harmonics.radial[k] * value)[:, None] * w + (harmonics.coefficients[k] * slope)[:, None] * across)
    return float(v.ravel() @ inverse @ v.ravel())


RANDOM_KERNELS: dict[str, Callable[[Array, Array], Array]] = {
    "relu": lambda w, rho: relu_kernel(rho),
    "abs": lambda w, rho: 2 * (relu_kernel(rho) + relu_kernel(-rho)),  # |u| = relu(u) + relu(-u)
}
TANGENT_KERNELS: dict[str, Callable[[Array, Array], Array]] = {"relu": relu_tangent_kernel}
"""Gram matrices in closed form."""


# -- kernel ridge regression --------------------------------------------------------------------------------------------


def fit_on_sphere(
    x: Array, activation: Activation, ridge: float, noise: float, degrees: NDArray[np.int64], signal: Array
) -> dict[str, Array | float]:
    """Return the observables of kernel ridge regression on drawn inputs x (rows of norm 1), eqs. (18) and (19).

    The kernel is k(x, x') = sum_k xi_k B_k Q_k(<x, x'>/d) with k(x, x) = 1, and the fit is k(x, X)(K + lambda)^{-1} y with
    lambda = `ridge`. A random target has the energy F_k^2 in degree k, which `signal` holds for each of the `degrees`. The labels have
    noise of standard deviation tau = `noise`. The averages over targets, noise and test inputs are exact. With A = (K + lambda)^{-1} and
    M = A [sum_k xi_k^2 B_k Q_k] A, the excess risk is tau^2 tr M + sum_k F_k^2 {1 - 2 xi_k tr(A Q_k) + tr(M Q_k)}.

    >>> rows = np.eye(5)
    >>> observables = fit_on_sphere(rows, Activation("relu"), 0.1, 0.5, np.array([1, 2]), np.array([1.0, 0.5]))
    >>> bool(0 < observables["excess_risk"] < 3)
    True
    """
    rho, d = overlaps(x), x.shape[1]
    top = max(int(degrees.max()), KINKED_DEGREES if activation.kinks else SMOOTH_DEGREES)
    harmonics = gegenbauer_coefficients(activation, d, range(top + 1))
    closed = RANDOM_KERNELS.get(activation.name)
    kernel = (feature_kernel(x, rho, harmonics) if closed is None else closed(x, rho)) / harmonics.energy
    inverse = np.linalg.inv(kernel + ridge * np.eye(len(x)))
    table = gegenbauer_values(rho, d, top)
    eigenvalues = harmonics.coefficients**2 / harmonics.energy
    twice = np.tensordot(eigenvalues * harmonics.levels / harmonics.energy, table, axes=1)  # the kernel composed with itself
    middle = inverse @ twice @ inverse
    explained = np.array([eigenvalues[k] * np.vdot(inverse, table[k]) for k in degrees])
    spread = np.array([np.vdot(middle, table[k]) for k in degrees])
    variance = float(np.trace(middle))
    risk = noise**2 * variance + float(signal @ (1 - 2 * explained + spread))  # (19)
    return dict(
        unexplained=1 - explained,
        effective_ridge=1 / float(np.trace(inverse)),  # (18)
        second_degrees_of_freedom=variance / (1 + variance),
        excess_risk=risk,
    )
