"""The spectrum of a large sample covariance matrix whose population has any discrete spectrum."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checks import array, number, refuse, whole
from limitlab.numerics.spectra import silverstein
from limitlab.numerics.spectra.marchenko_pastur import INSIDE, checked_points

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

RANK_ROUNDING = 1e-14


class SampleSpectrum:
    """Limiting spectrum of S = X^T X / n for a discrete population spectrum (docs/theory/spectra.md, eqs. 8-14).

    The transforms, the density and the distribution function are closed expressions in one number per point, the solution u of
    psi(u) = z (`limitlab.numerics.spectra.silverstein`).

    Parameters
    ----------
    eigenvalues
        Population eigenvalues, at least 0 and not all 0. Equal eigenvalues are merged. A continuous population law can be
        represented by the nodes and weights of a quadrature rule, with hundreds of eigenvalues.
    weights
        Share of dimensions of each eigenvalue, up to a common factor (default: equal shares).
    ratio
        gamma = p/n, dimension over samples.

    Examples
    --------
    >>> spectrum = SampleSpectrum([1.0, 4.0, 10.0], [0.5, 0.3, 0.2], ratio=0.15)
    >>> [(round(low, 4), round(high, 4)) for low, high in spectrum.support()]
    [(0.4646, 1.4934), (2.4562, 5.686), (7.2707, 14.1191)]
    >>> [round(mass, 12) for mass in spectrum.bulk_masses()]
    [0.5, 0.3, 0.2]
    """

    def __init__(self, eigenvalues: ArrayLike, weights: ArrayLike | None = None, *, ratio: float):
        values, shares = _checked_population(eigenvalues, weights)
        self.ratio = number("ratio", ratio, above=0)
        self.eigenvalues, self.weights = _merged(values, shares)
        positive = self.eigenvalues > 0
        self._null = float(self.weights[~positive].sum())
        deficit = (1 - self.ratio) + self.ratio * self._null  # 1 - rank/n
        deficit = 0.0 if abs(deficit) < RANK_ROUNDING else deficit  # a rank this close to n is treated as n
        self._scale = float(self.eigenvalues[-1])  # the equations are solved for a largest eigenvalue of 1
        self._population = silverstein.Population(
            self.eigenvalues[positive] / self._scale, self.ratio * self.weights[positive], deficit
        )

    @cached_property
    def _critical(self) -> Array:
        return silverstein.critical_points(self._population)

    @cached_property
    def _edges(self) -> Array:
        return self._scale * silverstein.image(self._critical, self._population)

    def support(self) -> list[tuple[float, float]]:
        """Return the bulks from left to right, as (low, high), without the mass at zero."""
        return [(float(low), float(high)) for low, high in zip(self._edges[::2], self._edges[1::2], strict=True)]

    def atom(self) -> float:
        """Return the mass at zero, from directions without variance or from n < p samples that span only n directions.

        >>> SampleSpectrum([1.0, 3.0], ratio=4.0).atom()
        0.75
        """
        return max(self._null, 1 - 1 / self.ratio, 0.0)

    def bulk_masses(self) -> list[float]:
        """Return the mass of each bulk, which is the sum of the weights of the eigenvalues that form it (eq. 12).

        If the rank of the population covariance exceeds n, the first bulk has less mass, by (rank - n) / p. The atom contains this mass.

        >>> SampleSpectrum([1.0, 3.0], ratio=4.0).bulk_masses()
        [0.25]
        """
        s, c, deficit = self._population
        low, high = self._critical[::2, None], self._critical[1::2, None]
        masses = np.sum(np.where((s > low) & (s < high), c, 0.0), axis=1)
        masses[0] += min(deficit, 0.0)  # with more dimensions than samples the first bulk loses the mass of the atom
        return [float(mass) for mass in masses / self.ratio]

    def density(self, x: ArrayLike) -> Array:
        """Return the density of the continuous part at x.

        The density is infinite at x = 0 if the rank of the population covariance equals the number of samples.

        >>> float(SampleSpectrum([1.0], ratio=0.25).density(1.0).round(12))
        0.616404444061
        """
        x = checked_points(x, "x").real
        u = self._solve(x + 0j)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = u.imag / (np.abs(u) ** 2 * np.pi * self.ratio)  # eq. 11
        hard_edge = (x == 0) & (self._population.deficit == 0)
        return np.asarray(np.where(hard_edge, np.inf, np.where(u.imag > 0, value, 0.0)) / self._scale)[()]

    def cdf(self, x: ArrayLike) -> Array:
        """Return the distribution function at x, with the mass at zero, in closed form in the solution u of psi(u) = x (eq. 12).

        >>> float(SampleSpectrum([1.0, 4.0, 10.0], [0.5, 0.3, 0.2], ratio=0.15).cdf(2.0).round(12))
        0.5
        """
        x = checked_points(x, "x").real
        s, c, deficit = self._population
        u = self._solve(x + 0j)
        angles = silverstein.total(lambda point: c * (np.angle(point - s) + (s / (point - s)).imag), u, self._population)
        tail = deficit * np.angle(u) + angles
        value = np.clip(1 - tail / (np.pi * self.ratio), self.atom(), 1.0)
        return np.asarray(np.where(x < 0, 0.0, value))[()]

    def companion(self, z: ArrayLike) -> NDArray[Any]:
        """Return the Stieltjes transform v(z) of the n x n matrix X X^T / n, where real z must be outside the support.

        >>> SampleSpectrum([1.0], ratio=1.0).companion(-1.0).round(12) == round((5**0.5 - 1) / 2, 12)
        np.True_
        """
        z, upper = self._upper(z)
        with np.errstate(divide="ignore", invalid="ignore"):
            value = np.where(upper == 0, self._companion_at_zero(), -1 / self._solve(upper) / self._scale)
        return self._returned(z, value)

    def stieltjes(self, z: ArrayLike) -> NDArray[Any]:
        """Return the Stieltjes transform of the spectrum, the integral of dmu(x) / (x - z).

        The value is infinite at z = 0 if there is a pole. A real z must be outside the support, and the value is then real. A
        complex z on the real axis inside the support stands for the limit from above.

        >>> complex(SampleSpectrum([1.0, 2.0], ratio=0.1).stieltjes(1 + 1j).round(9))
        (0.185046746+0.723634632j)
        """
        z, upper = self._upper(z)
        s, c, deficit = self._population
        u = self._solve(upper)
        resolvent = silverstein.total(lambda point: c / (s - point), u, self._population)
        with np.errstate(divide="ignore", invalid="ignore"):
            # z / u of eq. 10, computed by (8) where z and u are both small
            shrink = np.where((np.abs(u) < s[0] / 2) & (deficit >= 0), deficit - u * resolvent, upper / self._scale / u)
            value = resolvent / shrink / self.ratio / self._scale - (self._null / upper if self._null else 0.0)
        pole = (upper == 0) & (self.atom() > 0 or deficit <= 0)
        return self._returned(z, np.where(pole, np.inf, value))

    def moment(self, order: int) -> float:
        """Return the moment E x^k, from the free cumulants c_1 s_1^k + c_2 s_2^k + ... of the companion law (eq. 13).

        >>> SampleSpectrum([1.0, 3.0], ratio=0.5).moment(2)  # mean of s^2 plus ratio times squared mean
        7.0
        """
        order = whole("order", order, least=0)
        if order == 0:
            return 1.0
        s, c, _ = self._population
        series = np.zeros(order + 1)  # M(t) = 1 + sum of m_k t^k solves M = 1 + sum of cumulant_k (t M)^k
        series[0] = 1.0
        for _ in range(order):  # every pass determines one more coefficient
            new, power = np.zeros(order + 1), np.zeros(order + 1)
            new[0] = power[0] = 1.0
            for k in range(1, order + 1):
                power = np.concatenate([[0.0], np.convolve(power, series)[:order]])
                new += float(c @ s**k) * power
            series = new
        return float(series[order] / self.ratio * self._scale**order)

    def outlier(self, spike: float) -> tuple[float, float] | None:
        """Return the sample eigenvalue of an additional population eigenvalue `spike` and its overlap (eq. 14).

        Returns
        -------
        tuple or None
            Position of the sample eigenvalue, and squared overlap of its eigenvector with that of the population. None if no
            sample eigenvalue separates from the bulk.

        Examples
        --------
        >>> position, overlap = SampleSpectrum([1.0, 3.0], ratio=0.5).outlier(8.0)
        >>> round(position, 4), round(overlap, 4)
        (9.4857, 0.7632)
        """
        u = np.array(number("spike", spike, above=0) / self._scale)
        if np.isclose(u, self._population.s, rtol=1e-14, atol=0).any():
            return None
        separation = float(silverstein.slope(u, self._population))
        if separation <= 0:
            return None
        position = float(silverstein.image(u, self._population))
        return self._scale * position, separation * float(u) / position

    # -- helpers ----------------------------------------------------------------------------------------------------------

    def _solve(self, z: Complex) -> Complex:
        """Return the u (in units of the largest eigenvalue) with psi(u) = z, for an array z with Im z >= 0."""
        flat = silverstein.preimage(np.ravel(z) / self._scale, self._population, self._critical)
        return flat.reshape(np.shape(z))

    def _upper(self, z: ArrayLike) -> tuple[NDArray[Any], Complex]:
        """Return the argument as an array, and its mirror image in the closed upper half plane."""
        points = checked_points(z, "z")
        refuse(not np.iscomplexobj(points) and (np.searchsorted(self._edges, points) % 2 == 1).any(), INSIDE)
        return points, points.real + 1j * np.abs(points.imag)

    @staticmethod
    def _returned(z: NDArray[Any], value: Complex) -> NDArray[Any]:
        if not np.iscomplexobj(z):
            return np.asarray(value.real)[()]
        return np.asarray(np.where(z.imag < 0, np.conj(value), value))[()]

    def _companion_at_zero(self) -> float:
        if self._population.deficit >= 0:
            return np.inf
        return float(-1 / self._solve(np.zeros(1, complex))[0].real / self._scale)


def _checked_population(eigenvalues: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array]:
    values = array("eigenvalues", np.atleast_1d(eigenvalues), shape=("n",), least=0)
    shares = np.ones(values.shape) if weights is None else np.atleast_1d(np.asarray(weights, dtype=float))
    array("weights", shares, shape=values.shape, least=0, remedy="give one weight for each eigenvalue")
    refuse(not (values > 0).any(), f"eigenvalues = {eigenvalues!r} is not allowed: one of them must be above 0")
    refuse(
        not (shares[values > 0] > 0).any(),
        f"weights = {weights!r} is not allowed: must be above 0 for some positive eigenvalue",
    )
    return values, shares / shares.sum()


def _merged(values: Array, shares: Array) -> tuple[Array, Array]:
    """Return the distinct eigenvalues of positive weight in increasing order, with their total weights."""
    keep = shares > 0
    distinct, group = np.unique(values[keep], return_inverse=True)
    return distinct, np.bincount(group, weights=shares[keep]).astype(float)
