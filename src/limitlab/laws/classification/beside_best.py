"""The gap between a law's error and the least error of any method on the same data.

Setting.  The data of the law are those of a channel of `BayesOptimal`. Inputs are standard Gaussian (after whitening), and labels depend on
          one direction, whose coefficients have the same variance in all directions. The best method uses the true distribution of labels.
Result.   gap = error of the law - r^2 times the Bayes error at the same n/p, where r is the standard deviation of the score
          (docs/theory/bayes_optimal.md, equation 4). For classes r is 1, because the strength of the link contains
          the standard deviation. The gap is never negative. A method that treats all directions alike has the same error for one direction
          of the coefficients as in the mean over Gaussian coefficients, and in that mean no method has a smaller error than the Bayes
          estimate.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from limitlab._core.law import Law
from limitlab.errors import Refused

if TYPE_CHECKING:
    import xarray as xr

    from limitlab.laws.classification.bayes_optimal import BayesOptimal
    from limitlab.models.links import Labels

EVEN = 1e-12  # the signal counts as isotropic if the relative spread of its variance over the directions is at most this


class Best(NamedTuple):
    """The best method on the same data.

    Attributes
    ----------
    law
        The law of the best method.
    observable
        Name of the error that both laws have.
    scale
        Factor by which the error of `law` is multiplied. It is the variance of the signal for squared errors, and 1 for shares of wrong
        labels.
    """

    law: BayesOptimal
    observable: str
    scale: float = 1.0

    def error(self) -> tuple[float, float]:
        """Return the least error that any method can have, and its numerical error."""
        bayes_error = self.law.theory()[self.observable]
        return self.scale * float(bayes_error), self.scale * float(bayes_error.attrs["numerical_error"])


class HasBayesError(Law):
    """Base class of laws that can compute the gap between their error and the best possible error."""

    def best_possible(self) -> Best:
        """Return the best method on the same data, or raise `Refused` if none is known."""
        raise Refused(f"{type(self).__name__} has no best possible error: its data are not those of a known channel")

    def gap_to_best(self, **grid: ArrayLike) -> xr.Dataset:
        """Return the law's error, the least error of any method on the same data, and their difference.

        Parameters
        ----------
        grid
            Values of parameters, by name. The result has a dimension for each of them in addition to the law's coordinates.

        Returns
        -------
        xarray.Dataset
            The law's error under its own name, `best_error` and `gap_to_best`, with attributes `law`, `parameters`, `best_law`,
            `best_parameters` (of the last point) and `accuracy` (absolute, of the gap).

        Raises
        ------
        ValueError
            If the data are not those of a channel whose best possible error is known.

        Examples
        --------
        >>> from limitlab.laws import MaxMargin, Ridge
        >>> Ridge(ratio=2.0, noise=0.5).gap_to_best(ridge=[0.1, 0.5]).gap_to_best.values.round(9).tolist()
        [0.046140461, 0.0]
        >>> gap = MaxMargin(ratio=0.125).gap_to_best()
        >>> round(float(gap.classification_error), 6), round(float(gap.best_error), 6)
        (0.060904, 0.054065)
        """
        import xarray as xr

        from limitlab._core.results import describe_coordinates, package_version

        values = {name: np.atleast_1d(np.asarray(points)) for name, points in grid.items()}
        laws = [
            self.replace(**dict(zip(values, point, strict=True)))
            for point in itertools.product(*map(np.ndarray.tolist, values.values()))
        ]
        bests = [law.best_possible() for law in laws]
        name = bests[0].observable
        limits = [law.theory()[name] for law in laws]
        least, numerical_errors = np.array([best.error() for best in bests]).T
        shape = tuple(map(len, values.values()))
        dims = (*values, *limits[0].dims)
        errors = np.stack([limit.values for limit in limits]).reshape(shape + limits[0].shape)
        bounds = least.reshape(shape + (1,) * limits[0].ndim) + np.zeros_like(errors)
        exact = max(limit.attrs.get("numerical_error", 0.0) for limit in limits) + float(numerical_errors.max())
        result = xr.Dataset(
            {
                name: (dims, errors, limits[0].attrs),
                "best_error": (
                    dims,
                    bounds,
                    {"long_name": "least error that any method can reach", "symbol": r"E_{\mathrm{Bayes}}"},
                ),
                "gap_to_best": (dims, errors - bounds, {"long_name": "error above the best possible", "symbol": r"\Delta"}),
            },
            {**values, **limits[0].coords},
            dict(
                law=type(self).__name__,
                parameters=self.model_dump_json(),
                best_law=type(bests[-1].law).__name__,
                best_parameters=bests[-1].law.model_dump_json(),
                accuracy=exact,
                version=package_version(),
            ),
        )
        describe_coordinates(self, result)
        return result


def best_linear(who: Law, ratio: float, variances: ArrayLike, weights: ArrayLike, noise: float, observable: str) -> Best:
    """Return the best method for labels <beta, x> + noise.

    `variances` are the variances of the score in the groups, and `weights` are the groups' shares of the directions.
    """
    from limitlab.laws.classification.bayes_optimal import BayesOptimal

    parts, shares = np.asarray(variances, dtype=float), np.asarray(weights, dtype=float)
    require_isotropic_signal(who, parts, shares)
    energy = float(parts.sum())
    for name, value, fine, remedy in (
        ("ratio", ratio, math.isfinite(ratio), "a finite ratio of features to samples"),
        ("noise", noise, noise > 0, "noise above 0"),
        ("signal", energy, energy > 0, "a signal above 0"),
    ):
        if not fine:
            raise Refused(
                f"{type(who).__name__} with {name} = {value:g} has no known best possible error: it needs {remedy}"
            )
    return Best(BayesOptimal(ratio=ratio, channel="gaussian", noise=noise / math.sqrt(energy)), observable, energy)


def best_classifier(who: Law, ratio: float, labels: Labels) -> Best:
    """Return the best method for labels of two classes."""
    from limitlab.laws.classification.bayes_optimal import BayesOptimal

    if labels.link.function is not None:
        raise Refused(
            f"{type(who).__name__} with link = {labels.link.name!r} has no known best possible error: it is known for sign, flip, probit "
            "and logit labels"
        )
    name, strength = labels.link.name, labels.strength
    if name in ("probit", "logit") and strength == 0:
        name, strength = "flip", 0.5  # labels by tossing coins
    if name == "flip" and strength == 0:
        name = "sign"
    return Best(BayesOptimal(ratio=ratio, channel=name, link_strength=strength), "classification_error")


def require_isotropic_signal(who: Law, variances: Sequence[float] | Any, weights: Any) -> None:
    """Raise `Refused` if the variance of the score depends on the direction, because the best method is then not `BayesOptimal`."""
    density = variances / weights
    if np.ptp(density) > EVEN * density.max(initial=0.0):
        raise Refused(
            f"{type(who).__name__} with these groups has no known best possible error: eigenvalue times signal_energy over weight is "
            f"{', '.join(f'{value:.4g}' for value in density)} in its groups and must be the same in all; a method that uses the groups "
            "can have a smaller error"
        )
