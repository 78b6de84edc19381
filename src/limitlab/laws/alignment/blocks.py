"""Diagonal blocks of the test Hessian and of the gradients' second moment: bulk, outliers, alignment (docs/theory/alignment.md).

Setting.  H_cc = (1/M) sum pi_c (1 - pi_c) Y Y^T and G_cc = (1/M) sum (y_c - pi_c)^2 Y Y^T over M fresh test samples of the mixture.
Limit.    d and M -> infinity with M / d fixed (`test_ratio`), at a state (D, q, r) of the symmetric flow.
Result.   The weight depends on the sample through <x^b, Y> only: bulk (6), outliers (7), their mass (8). When the weight is constant in
          each class (large lambda, or D = 0) everything is explicit: equation (9).
Numerics. pi_c is the sigmoid of <x^c, Y> minus the log-sum-exp of the others. Its law is smooth: a grid in that difference, with the
          part that <x^c, Y> plays integrated exactly and the other k - 1 logits by quasi-random points.
Status.   Derived (deterministic equivalents), checked against test Hessians of SGD runs.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.alignment._weighted_spectrum import Outlier, WeightedBulk, number_of_outliers, outliers
from limitlab.laws.alignment.mixture_flow import gaussian_nodes

__all__ = ["block_spectrum"]

Array = NDArray[np.float64]
Matrix = Literal["hessian", "gradient"]

RAREST = 1e-6
"""Larger weights than all but this share of samples are left out: they would move the edge only in runs with millions of test samples."""
FINEST = 0.05
"""Step of the grid in the logit difference: the weights vary on a scale of 1."""


class BlockSpectrum(NamedTuple):
    """Where the bulk ends, and the outliers along the block's own mean and along every other one (None: in the bulk)."""

    edge: float
    outlier_own: float | None
    outlier_other: float | None


def weight(matrix: Matrix, difference: Array, own: bool) -> Array:
    """Weight of a sample of the block's own class (or of another), as a function of logit pi_c.

    >>> float(weight("hessian", np.zeros(1), True)[0]), float(weight("gradient", np.zeros(1), False)[0])
    (0.25, 0.25)
    """
    from scipy.special import expit

    inside, outside = expit(difference), expit(-difference)
    if matrix == "hessian":
        return np.asarray(inside * outside)
    return np.asarray(outside**2 if own else inside**2)


def checked_matrix(matrix: str) -> Matrix:
    """A name of a matrix."""
    if matrix == "hessian":
        return "hessian"
    if matrix == "gradient":
        return "gradient"
    raise Refused(f"matrix = {matrix!r} is not allowed: must be 'hessian' or 'gradient'")


def class_weights(classes: int, margin: float, matrix: Matrix) -> tuple[float, float]:
    """Weights of samples of the own class and of another one, when the logits do not fluctuate.

    >>> [round(part, 12) for part in class_weights(10, 0.0, "gradient")]
    [0.81, 0.01]
    """
    own = np.array([margin - math.log(classes - 1)])
    other = np.array([-math.log(math.exp(margin) + classes - 2)])
    return float(weight(matrix, own, True)[0]), float(weight(matrix, other, False)[0])


def block_spectrum(classes: int, snr: float, test_ratio: float, margin: float, matrix: Matrix = "hessian") -> BlockSpectrum:
    """Edge and outliers of a diagonal block when the weight is constant in each class, eq. (9).

    Parameters
    ----------
    classes
        Number k of classes with orthonormal means and equal probabilities.
    snr
        lambda.
    test_ratio
        Test samples per dimension.
    margin
        D, own minus other overlap.
    matrix
        "hessian" or "gradient" (second moment of the gradients).

    Examples
    --------
    >>> found = block_spectrum(10, 10.0, 10.0, 0.0, "gradient")
    >>> round(found.edge, 9), round(found.outlier_own, 9), found.outlier_other
    (0.03330559, 0.098911011, None)
    """
    for name, value, least in (("classes", classes, 2), ("snr", snr, 0), ("test_ratio", test_ratio, 0)):
        if math.isnan(value) or value < least or value == 0:
            raise Refused(f"{name} = {value} is not allowed: must be {'at least 2' if least else 'above 0'}")
    own, other = class_weights(classes, margin, checked_matrix(matrix))
    shares = np.array([1 / classes, 1 - 1 / classes])
    bulk = WeightedBulk(np.array([own, other]), shares, 1 / test_ratio, 1 / snr)
    m_edge, ratio = bulk.edge_transform(), 1 / (test_ratio * snr)

    def position(w: float) -> float | None:
        m = -1 / (w * (1 / classes + ratio))
        return bulk.location(m) if m > m_edge else None

    return BlockSpectrum(bulk.edge(), position(own), position(other))


# -- weights that fluctuate --------------------------------------------------------------------------------------------


class Part(NamedTuple):
    """Samples of the own class or of the others, on a grid of logit pi_c: probabilities, and second moments of the sample's special
    components. `alone` are those that every permutation of the other classes leaves alone (4: own and other logits, and the same for
    what the logits do not see), `mixed` those that it mixes (2 for each of k - 2 directions)."""

    difference: Array
    shares: Array
    alone: Array
    mixed: Array


@lru_cache(maxsize=128)  # the same for both matrices and for every test ratio
def parts(classes: int, snr: float, margin: float, spread: float, points: int, scramble: int) -> tuple[Part, Part]:
    """Joint law of logit pi_c and of the sample's special components, for samples of class c and of another class, eq. (10)."""
    k, length = classes, math.hypot(margin, math.sqrt(spread))
    cosine, sine = margin / length, math.sqrt(spread) / length
    s, scale = length / math.sqrt(snr), 1 / math.sqrt(snr)
    zeta = gaussian_nodes(k - 1, points, scramble)
    found = []
    for own in (True, False):
        logits = s * zeta
        along = scale * zeta  # components of the sample along the other logits' directions
        hidden = np.zeros(k - 1)  # and in the planes' other directions, which the logits do not see
        if not own:
            logits, along = logits.copy(), along.copy()
            logits[:, 0] += margin
            along[:, 0] += cosine
            hidden[0] -= sine
        top = logits.max(axis=1)
        centre = (margin if own else 0.0) - (top + np.log(np.exp(logits - top[:, None]).sum(axis=1)))
        step = min(s / 3, FINEST)
        reach = math.ceil((centre.max() - centre.min() + 17 * s) / step)
        grid = centre.min() - 8.5 * s + step * np.arange(reach + 1)
        root = math.sqrt(k - 1)
        rest = np.zeros((len(zeta), 4))  # the sample's components, but for the Gaussian one of its own logit
        rest[:, 0] = cosine if own else 0.0
        rest[:, 1] = along.sum(axis=1) / root
        rest[:, 2] = -sine if own else 0.0
        rest[:, 3] = hidden.sum() / root
        xi = (grid - centre[:, None]) / s  # the Gaussian of the own logit that leads to the grid's point
        density = step / (s * math.sqrt(2 * math.pi)) * np.exp(-(xi**2) / 2) / len(zeta)
        shares = density.sum(axis=0)
        first = rest.T @ (density * xi)
        alone = np.einsum("ni,nk,nj->ikj", rest, rest, density, optimize=True)
        alone[0] += scale * first
        alone[:, 0] += scale * first
        alone[0, 0] += scale**2 * (density * xi**2).sum(axis=0)
        alone[2, 2] += scale**2 * shares
        alone[3, 3] += scale**2 * shares
        mixed = np.zeros((2, 2, len(grid)))
        if k > 2:
            away, gone = along - along.mean(axis=1, keepdims=True), hidden - hidden.mean()
            mixed[0, 0] = ((away**2).sum(axis=1) / (k - 2)) @ density
            mixed[0, 1] = mixed[1, 0] = ((away @ gone) / (k - 2)) @ density
            mixed[1, 1] = (gone @ gone / (k - 2) + scale**2) * shares
        part = 1 / k if own else 1 - 1 / k
        found.append(Part(grid, part * shares, part * alone, part * mixed))
    return found[0], found[1]


class BlockLaw(NamedTuple):
    """The limit of one block: edge, outliers (largest first, with multiplicity), its largest eigenvalue, and the alignment of x^c."""

    edge: float
    outliers: tuple[float, ...]
    top: float
    alignment: float


def weights_direction(classes: int, margin: float, spread: float, common: float) -> Array:
    """x^c in the four directions that permutations of the other classes leave alone, as a unit vector, eq. (11).

    >>> float(np.linalg.norm(weights_direction(10, 1.0, 0.5, 0.7)).round(12))
    1.0
    """
    k, length = classes, math.hypot(margin, math.sqrt(spread))
    cosine, sine, root = margin / length, math.sqrt(spread) / length, math.sqrt(common) / classes
    x = np.array(
        [
            length * (1 - 1 / k) + root * sine,
            math.sqrt(k - 1) * (root * sine - length / k),
            root * cosine,
            math.sqrt(k - 1) * root * cosine,
        ]
    )
    return np.asarray(x / np.linalg.norm(x))


def block_law(
    classes: int, snr: float, test_ratio: float, state: Array, matrix: Matrix, both: tuple[Part, Part]
) -> BlockLaw:
    """Bulk (6), outliers (7) and alignment (8) of a block at the state (D, q, r)."""
    bulk, left_alone, mixed_up = bulk_and_special(snr, test_ratio, matrix, both)
    alone = outliers(bulk, left_alone)
    mixed = outliers(bulk, mixed_up) if classes > 2 else []
    copies: list[tuple[float, Outlier | None]] = [(one.value, one) for one in alone]
    copies += [(one.value, None) for one in mixed for _ in range(classes - 2)]  # orthogonal to x^c
    copies.sort(key=lambda pair: -pair[0])
    x, square = weights_direction(classes, *state), 0.0
    for _, one in copies[:classes]:
        if one is not None:
            square += one.mass * float(one.direction @ x) ** 2
    edge, values = bulk.edge(), tuple(value for value, _ in copies)
    return BlockLaw(edge, values, max((edge, *values)), math.sqrt(square))


def outlier_count(classes: int, snr: float, test_ratio: float, matrix: Matrix, both: tuple[Part, Part]) -> int:
    """How many outliers (7) a block has, without their places."""
    bulk, alone, mixed = bulk_and_special(snr, test_ratio, matrix, both)
    return number_of_outliers(bulk, alone) + ((classes - 2) * number_of_outliers(bulk, mixed) if classes > 2 else 0)


def bulk_and_special(
    snr: float, test_ratio: float, matrix: Matrix, both: tuple[Part, Part]
) -> tuple[WeightedBulk, Array, Array]:
    """The weights of a block's samples, and the second moments of the special components at every weight: alone, mixed."""
    own, other = both
    weights = np.concatenate([weight(matrix, own.difference, True), weight(matrix, other.difference, False)])
    shares = np.concatenate([own.shares, other.shares])
    met = often_enough(weights, shares)
    bulk = WeightedBulk(weights[met], shares[met] / shares.sum(), 1 / test_ratio, 1 / snr)
    alone = np.concatenate([own.alone, other.alone], axis=2)[..., met]
    return bulk, alone, np.concatenate([own.mixed, other.mixed], axis=2)[..., met]


def often_enough(weights: Array, shares: Array) -> NDArray[np.bool_]:
    """Which weights stay when the largest ones, of total probability `RAREST`, are left out.

    >>> often_enough(np.array([0.1, 0.9, 0.5]), np.array([0.5, 1e-9, 0.5])).tolist()
    [True, False, True]
    """
    order = np.argsort(-weights, kind="stable")
    kept = np.empty(weights.shape, dtype=bool)
    kept[order] = np.cumsum(shares[order]) > RAREST
    return kept


def noiseless_law(classes: int, state: Array, matrix: Matrix) -> BlockLaw:
    """The block at lambda = infinity: w_a / k on every mean, nothing else."""
    margin, spread, common = state
    own, other = class_weights(classes, float(margin), matrix)
    values = tuple(sorted([own / classes, *[other / classes] * (classes - 1)], reverse=True))
    return BlockLaw(0.0, values, values[0], span_alignment(classes, margin, spread, common))


def span_alignment(classes: int, margin: float, spread: float, common: float) -> float:
    """Length of x^c's projection to the span of the means, relative to its own, eq. (5).

    >>> span_alignment(10, 1.0, 0.0, 0.0)
    1.0
    """
    means = margin**2 * (classes - 1)
    return math.sqrt(means / (means + spread * (classes - 1) + common))
