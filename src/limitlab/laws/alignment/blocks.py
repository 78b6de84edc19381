"""Bulk, outliers and alignment of the diagonal blocks of the test Hessian and of the gradients' second moment.

The derivation is in docs/theory/alignment.md.

Setting.  H_cc = (1/M) sum pi_c (1 - pi_c) Y Y^T and G_cc = (1/M) sum (y_c - pi_c)^2 Y Y^T over M fresh test samples of the mixture.
Limit.    d and M -> infinity with M / d fixed (`test_ratio`), at a state (D, q, r) of the symmetric flow.
Result.   The weight depends on the sample through <x^b, Y> only. Equation (6) gives the bulk, (7) the outliers and (8) their mass. If the
          weight is constant in each class (large lambda, or D = 0), equation (9) is an explicit solution.
Numerics. pi_c is the sigmoid of <x^c, Y> minus the log-sum-exp of the other logits. This difference has a smooth density, which is computed
          on a grid. The integral over <x^c, Y> is exact, and the integral over the other k - 1 logits uses quasi-random points.
Status.   Derived (deterministic equivalents), checked against test Hessians of SGD runs.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws.alignment.mixture_flow import gaussian_nodes

__all__ = ["block_spectrum"]

Array = NDArray[np.float64]


Matrix = Literal["hessian", "gradient"]

RAREST = 1e-6
"""Total probability of the largest weights, which are left out. They would move the edge only in runs with millions of test samples."""
FINEST = 0.05
"""Step of the grid in the logit difference. The weights vary on a scale of 1."""


class BlockSpectrum(NamedTuple):
    """Right edge of the bulk, and the outliers along the block's own mean and along every other mean.

    An outlier is None if it lies in the bulk.
    """

    edge: float
    outlier_own: float | None
    outlier_other: float | None


def weight(matrix: Matrix, difference: Array, own: bool) -> Array:
    """Return the weight of a sample of the block's own class (`own`) or of another class, as a function of logit pi_c.

    >>> float(weight("hessian", np.zeros(1), True)[0]), float(weight("gradient", np.zeros(1), False)[0])
    (0.25, 0.25)
    """
    from scipy.special import expit

    inside, outside = expit(difference), expit(-difference)
    if matrix == "hessian":
        return np.asarray(inside * outside)
    return np.asarray(outside**2 if own else inside**2)


def checked_matrix(matrix: str) -> Matrix:
    """Return the name of a matrix, or raise `Refused` if it is neither "hessian" nor "gradient"."""
    if matrix == "hessian":
        return "hessian"
    if matrix == "gradient":
        return "gradient"
    raise Refused(f"matrix = {matrix!r} is not allowed: must be 'hessian' or 'gradient'")


def class_weights(classes: int, margin: float, matrix: Matrix) -> tuple[float, float]:
    """Return the weights of samples of the block's class and of another class when the logits do not fluctuate.

    >>> [round(part, 12) for part in class_weights(10, 0.0, "gradient")]
    [0.81, 0.01]
    """
    own = np.array([margin - math.log(classes - 1)])
    other = np.array([-math.log(math.exp(margin) + classes - 2)])
    return float(weight(matrix, own, True)[0]), float(weight(matrix, other, False)[0])


def block_spectrum(classes: int, snr: float, test_ratio: float, margin: float, matrix: Matrix = "hessian") -> BlockSpectrum:
    """Return the right edge and the outliers of a diagonal block, eq. (9).

    The block is a sum of weight * Y Y^T over test samples Y, and the weight is assumed to be the same for all samples of a class.

    Parameters
    ----------
    classes
        Number k of classes with orthonormal means and equal probabilities.
    snr
        Signal-to-noise ratio lambda, one over the variance of the noise.
    test_ratio
        Test samples per dimension.
    margin
        D, the overlap of the weight vector of a class with the mean of this class minus its overlap with another mean.
    matrix
        "hessian" or "gradient" (second moment of the gradients).

    Examples
    --------
    >>> spectrum = block_spectrum(10, 10.0, 10.0, 0.0, "gradient")
    >>> round(spectrum.edge, 9), round(spectrum.outlier_own, 9), spectrum.outlier_other
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
    """Probabilities and second moments of samples of one class type, on a grid of logit pi_c.

    The samples belong to the block's own class or to the other classes. `alone` holds the second moments of the special components that are
    invariant under permutations of the other classes. There are 4 such components: own logit, other logits, and the two directions
    orthogonal to these in the same planes, on which the logits do not depend. `mixed` holds the second moments of the components that such
    a permutation mixes, 2 for each of k - 2 directions.
    """

    difference: Array
    shares: Array
    alone: Array
    mixed: Array


@lru_cache(maxsize=128)  # both matrices and all test ratios use the same result
def parts(classes: int, snr: float, margin: float, spread: float, points: int, scramble: int) -> tuple[Part, Part]:
    """Return the joint law of logit pi_c and the special components, for samples of class c and of another class, eq. (10)."""
    k, length = classes, math.hypot(margin, math.sqrt(spread))
    cosine, sine = margin / length, math.sqrt(spread) / length
    s, scale = length / math.sqrt(snr), 1 / math.sqrt(snr)
    zeta = gaussian_nodes(k - 1, points, scramble)
    laws = []
    for own in (True, False):
        logits = s * zeta
        along = scale * zeta  # components of the sample along the other logits' directions
        hidden = np.zeros(k - 1)  # components along the planes' other directions, on which the logits do not depend
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
        rest = np.zeros((len(zeta), 4))  # the sample's components without the Gaussian of its own logit
        rest[:, 0] = cosine if own else 0.0
        rest[:, 1] = along.sum(axis=1) / root
        rest[:, 2] = -sine if own else 0.0
        rest[:, 3] = hidden.sum() / root
        xi = (grid - centre[:, None]) / s  # value of the own logit's Gaussian at the grid's point
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
        laws.append(Part(grid, part * shares, part * alone, part * mixed))
    return laws[0], laws[1]


class BlockLaw(NamedTuple):
    """The limit of one block.

    It consists of the edge, the outliers (largest first, with multiplicity), the largest eigenvalue, and the alignment of x^c.
    """

    edge: float
    outliers: tuple[float, ...]
    top: float
    alignment: float


def weights_direction(classes: int, margin: float, spread: float, common: float) -> Array:
    """Return x^c as a unit vector in the four directions that are invariant under permutations of the other classes, eq. (11).

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
    """Return bulk (6), outliers (7) and alignment (8) of a block at the state (D, q, r)."""
    bulk, left_alone, mixed_up = bulk_and_special(snr, test_ratio, matrix, both)
    alone = outliers(bulk, left_alone)
    mixed = outliers(bulk, mixed_up) if classes > 2 else []
    copies: list[tuple[float, Outlier | None]] = [(outlier.value, outlier) for outlier in alone]
    copies += [(outlier.value, None) for outlier in mixed for _ in range(classes - 2)]  # orthogonal to x^c
    copies.sort(key=lambda pair: -pair[0])
    x, square = weights_direction(classes, *state), 0.0
    for _, outlier in copies[:classes]:
        if outlier is not None:
            square += outlier.mass * float(outlier.direction @ x) ** 2
    edge, values = bulk.edge(), tuple(value for value, _ in copies)
    return BlockLaw(edge, values, max((edge, *values)), math.sqrt(square))


def outlier_count(classes: int, snr: float, test_ratio: float, matrix: Matrix, both: tuple[Part, Part]) -> int:
    """Return the number of outliers (7) of a block without computing their positions."""
    bulk, alone, mixed = bulk_and_special(snr, test_ratio, matrix, both)
    return number_of_outliers(bulk, alone) + ((classes - 2) * number_of_outliers(bulk, mixed) if classes > 2 else 0)


def bulk_and_special(
    snr: float, test_ratio: float, matrix: Matrix, both: tuple[Part, Part]
) -> tuple[WeightedBulk, Array, Array]:
    """Return the weights of a block's samples and the second moments `alone` and `mixed` of `Part` at every weight."""
    own, other = both
    weights = np.concatenate([weight(matrix, own.difference, True), weight(matrix, other.difference, False)])
    shares = np.concatenate([own.shares, other.shares])
    met = often_enough(weights, shares)
    bulk = WeightedBulk(weights[met], shares[met] / shares.sum(), 1 / test_ratio, 1 / snr)
    alone = np.concatenate([own.alone, other.alone], axis=2)[..., met]
    return bulk, alone, np.concatenate([own.mixed, other.mixed], axis=2)[..., met]


def often_enough(weights: Array, shares: Array) -> NDArray[np.bool_]:
    """Return a mask of the weights that remain without the largest ones of total probability `RAREST`.

    >>> often_enough(np.array([0.1, 0.9, 0.5]), np.array([0.5, 1e-9, 0.5])).tolist()
    [True, False, True]
    """
    order = np.argsort(-weights, kind="stable")
    mask = np.empty(weights.shape, dtype=bool)
    mask[order] = np.cumsum(shares[order]) > RAREST
    return mask


def noiseless_law(classes: int, state: Array, matrix: Matrix) -> BlockLaw:
    """Return the limit of a block at lambda = infinity, which has the eigenvalue w_a / k on every mean and 0 elsewhere."""
    margin, spread, common = state
    own, other = class_weights(classes, float(margin), matrix)
    values = tuple(sorted([own / classes, *[other / classes] * (classes - 1)], reverse=True))
    return BlockLaw(0.0, values, values[0], span_alignment(classes, margin, spread, common))


def span_alignment(classes: int, margin: float, spread: float, common: float) -> float:
    """Return the length of x^c's projection to the span of the means divided by the length of x^c, eq. (5).

    >>> span_alignment(10, 1.0, 0.0, 0.0)
    1.0
    """
    means = margin**2 * (classes - 1)
    return math.sqrt(means / (means + spread * (classes - 1) + common))


# -- The bulk of (1/M) sum_l w_l z_l z_l^T with Gaussian z_l of variance 1/lambda in d dimensions -----------------------

OUTSIDE = 1 + 1e-9  # eigenvalues above this multiple of the edge are outliers


class WeightedBulk(NamedTuple):
    """Weights w with their probabilities, the ratio gam = d / M and the noise variance 1 / lambda.

    gam = 0 stands for infinitely many samples.
    """

    weights: Array
    shares: Array
    ratio: float
    variance: float

    def filtered(self, m: float) -> Array:
        """Return w / (1 + w gam m / lambda)."""
        return np.asarray(self.weights / (1 + self.weights * self.ratio * self.variance * m))

    def location(self, m: float) -> float:
        """Return z(m) of eq. (6).

        >>> WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0).location(-2 / 3)  # Marchenko and Pastur's: z = -1/m + 1/(1 + m/4)
        2.7
        """
        return -1 / m + self.variance * float(self.shares @ self.filtered(m))

    def slope(self, m: float) -> float:
        """Return the derivative dz/dm."""
        return 1 / m**2 - self.ratio * self.variance**2 * float(self.shares @ self.filtered(m) ** 2)

    def edge_transform(self) -> float:
        """Return m at the right edge, or -inf if gam = 0.

        At the edge gam = E[(w u)^2 / (1 - w u)^2] with u = -gam m / lambda.
        """
        from scipy.optimize import brentq

        top = float(self.weights[self.shares > 0].max())
        if self.ratio == 0:
            return -math.inf

        def balance(x: float) -> float:  # gam minus the average, which falls with x = u w_max in (0, 1)
            part = self.weights * (x / top)
            return self.ratio - float(self.shares @ (part / np.maximum(1 - part, 1e-300)) ** 2)

        last = 1 - 1e-12
        x = last if balance(last) > 0 else float(brentq(balance, 0.0, last, xtol=1e-15, rtol=1e-14))
        return -x / (top * self.ratio * self.variance)

    def edge(self) -> float:
        """Return the right end of the bulk.

        >>> WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0).edge()  # (1 + sqrt(1/4))^2
        2.25
        """
        m = self.edge_transform()
        return self.variance * float(self.shares @ self.weights) if math.isinf(m) else self.location(m)


class Outlier(NamedTuple):
    """An eigenvalue outside the bulk.

    The eigenvector is projected to the span of means and weights. `mass` is the squared length of this projection, and `direction` is the
    unit vector along it.
    """

    value: float
    direction: Array
    mass: float


def outliers(bulk: WeightedBulk, block: Array) -> list[Outlier]:
    """Return the eigenvalues to the right of the bulk, largest first.

    They are caused by the components of the samples along the special directions, which are those of the means and the weights.

    Parameters
    ----------
    bulk
        Weights (J of them), their shares, ratio and variance.
    block
        E[s s^T; w = w_j], the unfiltered parts of A(m), of shape (p, p, J), including the shares.

    Examples
    --------
    >>> bulk = WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0)
    >>> (spike,) = outliers(bulk, np.array([[[3.0]]]))          # a covariance with one eigenvalue 3
    >>> round(spike.value, 9), round(spike.mass, 9)             # 3 (1 + gam/2), (1 - gam/4) / (1 + gam/2)
    (3.375, 0.833333333)
    """
    from scipy.optimize import brentq

    def matrix(m: float) -> Array:
        return np.asarray(block @ bulk.filtered(m))

    m_edge, edge = bulk.edge_transform(), bulk.edge()
    if math.isinf(m_edge):
        values, vectors = np.linalg.eigh(matrix(0.0))
        return [Outlier(float(v), u, 1.0) for v, u in zip(values[::-1], vectors.T[::-1], strict=True) if v > edge * OUTSIDE]
    ends = np.linalg.eigvalsh(matrix(m_edge))
    spikes = []
    for i in np.flatnonzero(ends > edge * OUTSIDE)[::-1]:

        def excess(m: float, i: int = int(i)) -> float:
            return float(np.linalg.eigvalsh(matrix(m))[i]) - bulk.location(m)

        m = float(brentq(excess, m_edge, -1 / float(ends[-1]), xtol=1e-14 * abs(m_edge), rtol=1e-13))
        direction = np.linalg.eigh(matrix(m))[1][:, i]
        derivative = -bulk.ratio * bulk.variance * (block @ bulk.filtered(m) ** 2) / bulk.slope(m)  # dA/dz
        spikes.append(Outlier(bulk.location(m), direction, 1 / (1 - float(direction @ derivative @ direction))))
    return spikes


def number_of_outliers(bulk: WeightedBulk, block: Array) -> int:
    """Return the number of `outliers`, computed from the matrix at the edge only.

    >>> number_of_outliers(WeightedBulk(np.ones(1), np.ones(1), 0.25, 1.0), np.array([[[3.0]]]))
    1
    """
    m_edge = bulk.edge_transform()
    at_edge = np.linalg.eigvalsh(block @ bulk.filtered(0.0 if math.isinf(m_edge) else m_edge))
    return int(np.sum(at_edge > bulk.edge() * OUTSIDE))
