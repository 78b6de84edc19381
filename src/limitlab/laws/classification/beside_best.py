"""A law's error beside the least error that any method can reach with the same data.

Setting.  Laws whose data are those of a channel of `BayesOptimal`: standard Gaussian inputs (after whitening), labels that depend on one
          direction, whose coefficients are spread evenly over all directions. The best method knows how the labels were made.
Result.   gap = error of the law - r^2 times the Bayes error at the same n/p, where r is the standard deviation of the score (1 for
          classes, whose links carry it in their strength; docs/theory/bayes_optimal.md, equation 4). It is never negative: methods that
          treat all directions alike err as much for one direction of the coefficients as in the mean over Gaussian ones, and in that
          mean no method is better than Bayes'.
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

EVEN = 1e-12  # relative spread of the signal's variance over directions that still counts as even


class Best(NamedTuple):
    """The best method on the same data.

    Attributes
    ----------
    law
        Its law.
    observable
        The error that both have.
    scale
        Factor of the best method's squared errors, r^2; 1 for classes.
    """

    law: BayesOptimal
    observable: str
    scale: float = 1.0

    def error(self) -> tuple[float, float]:
        """The least error that any method can have, and how well it is known."""
        found = self.law.theory()[self.observable]
        return self.scale * float(found), self.scale * float(found.attrs["numerical_error"])


class BesideBest(Law):
    """A law that can say how far it is from the best possible."""

    def best_possible(self) -> Best:
        """The best method on the same data; refuses where none is known."""
        raise Refused(f"{type(self).__name__} has no best possible error: its data are not those of a known channel")

    def gap_to_best(self, **grid: ArrayLike) -> xr.Dataset:
        """The law's error, the least error that any method can reach with the same data, and their difference.

        Parameters
        ----------
        grid
            Values of parameters, by name: the result has a dimension for each, beside the law's own coordinates.

        Returns
        -------
        xarray.Dataset
            The law's error under its own name, `best_error` and `gap_to_best`, with attributes `law`, `parameters`, `best_law`,
            `best_parameters` (of the last point) and `accuracy` (absolute, of the gap).

        Raises
        ------
        ValueError
            Where the data are not those of a channel whose best possible error is known.

        Examples
        --------
        >>> from limitlab.laws import MaxMargin, Ridge
        >>> Ridge(ratio=2.0, noise=0.5).gap_to_best(ridge=[0.1, 0.5]).gap_to_best.values.round(9).tolist()
        [0.046140461, 0.0]
        >>> found = MaxMargin(ratio=0.125).gap_to_best()
        >>> round(float(found.classification_error), 6), round(float(found.best_error), 6)
        (0.060904, 0.054065)
        """
        import xarray as xr

        from limitlab._core.results import describe_coordinates, package_version

        values = {name: np.atleast_1d(np.asarray(given)) for name, given in grid.items()}
        laws = [
            self.replace(**dict(zip(values, point, strict=True)))
            for point in itertools.product(*map(np.ndarray.tolist, values.values()))
        ]
        bests = [law.best_possible() for law in laws]
        name = bests[0].observable
        limits = [law.theory()[name] for law in laws]
        least, known = np.array([best.error() for best in bests]).T
        shape = tuple(map(len, values.values()))
        dims = (*values, *limits[0].dims)
        errors = np.stack([limit.values for limit in limits]).reshape(shape + limits[0].shape)
        bounds = least.reshape(shape + (1,) * limits[0].ndim) + np.zeros_like(errors)
        exact = max(limit.attrs.get("numerical_error", 0.0) for limit in limits) + float(known.max())
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
    """The best method for labels <beta, x> + noise; `variances` of the score by group, `weights` the groups' shares of the directions."""
    from limitlab.laws.classification.bayes_optimal import BayesOptimal

    parts, shares = np.asarray(variances, dtype=float), np.asarray(weights, dtype=float)
    require_even(who, parts, shares)
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
    """The best method for labels of two classes."""
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


def require_even(who: Law, variances: Sequence[float] | Any, weights: Any) -> None:
    """Refuse a score whose variance is not spread evenly over the directions: its best method is another one."""
    density = variances / weights
    if np.ptp(density) > EVEN * density.max(initial=0.0):
        raise Refused(
            f"{type(who).__name__} with these groups has no known best possible error: the score's variance per direction is "
            f"{', '.join(f'{value:.4g}' for value in density)} in its groups and must be the same in all (eigenvalue times signal_energy "
            "over weight); a method that knows the groups can use them"
        )
