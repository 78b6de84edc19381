"""Online maximum likelihood for two Gaussian clusters (docs/theory/online_sgd.md, section 2).

Setting.  Samples eps v0 + N(0, I), eps = +-1 with odds e^{2h}; loss -log cosh(<a, x> + h), spherical SGD.
Limit.    N -> infinity at a fixed step delta; s = delta * samples / N.
Result.   With z Gaussian, phi(m) = -E log cosh(z + eps m + h), phi'(m) = -E eps tanh(z + eps m + h), G(m) = E tanh^2(z + eps m + h),
          V(0) = 2 E tanh^2(z + h) - phi'(0)^2. The information exponent is 1 for h != 0 and 2 for equal clusters.
Status.   Derived. Simulations of the exact chain agree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limitlab._core.declaration import parameter
from limitlab.laws import Headline, Mark
from limitlab.laws.online_sgd._spherical import Array, InformationExponent, SphericalSGD
from limitlab.numerics.gaussian import panel_rule

__all__ = ["OnlineMixture"]


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    """Return nodes and weights for Gaussian averages of functions of tanh, accurate to rounding error.

    The poles of tanh are at distance pi / 2 from the real axis.
    """
    return panel_rule(width=2.0, reach=10.0)


class OnlineMixture(SphericalSGD):
    """How fast does online maximum likelihood find the axis of two Gaussian clusters?

    Examples
    --------
    >>> law = OnlineMixture(field=0.5, step=0.8, start_overlap=0.0, times=(1.0, 2.0))
    >>> law.theory().overlap.values.round(6).tolist()
    [0.164121, 0.374231]
    >>> OnlineMixture(field=0.0).information_exponent().order
    2
    """

    page = "online_sgd"
    # Clusters of unequal weight, and a step at which the second term of the drift matters
    points = (dict(field=0.5, step=0.6, start_overlap=0.3),)
    headline = Headline(
        "Larger steps settle further from the axis",
        x="times",
        over=(0.0, 15.0, 101),
        show=("overlap",),
        curves=("step", (0.1, 0.5, 2.0)),
        size=400,
        draws=4,
        places=(1.0, 3.0, 6.0, 10.0, 15.0),
        sliders=("field", "start_overlap"),
        marks=(Mark("y", lambda law: law.stable_overlap(), "stable overlap", each=True),),
    )

    field: float = parameter(0.5, "half the logarithm of the odds of the first cluster", symbol="h")
    times: float | tuple[float, ...] = parameter(
        (1.0, 3.0, 6.0), note="step times samples over the dimension", symbol="s", kind="coordinate", least=0
    )

    def _average(self, function: Callable[[Array], Array], m: ArrayLike, signed: bool = False) -> Array:
        """Return E function(z + eps m + h), with a factor eps in the average if `signed`."""
        from scipy.special import expit

        z, weight = _rule()
        overlap = np.asarray(m, dtype=float)[..., None]
        above, below = (function(z + side * overlap + self.field) @ weight for side in (1.0, -1.0))
        share = float(expit(2 * self.field))
        return np.asarray(share * above + (1 - share) * below * (-1.0 if signed else 1.0))

    def population_loss(self, m: ArrayLike) -> Array:
        """Return the mean loss at overlap m, the mean of -log cosh(<a, x> + field) over samples a."""
        return -self._average(lambda x: np.logaddexp(x, -x) - math.log(2), m)

    def population_slope(self, m: ArrayLike) -> Array:
        """Return the derivative of the mean loss with respect to the overlap m."""
        return -self._average(np.tanh, m, signed=True)

    def gradient_noise(self, m: ArrayLike) -> Array:
        """Return the mean squared length of a gradient at overlap m, divided by the dimension."""
        return self._average(lambda x: np.tanh(x) ** 2, m)

    def search_noise(self) -> float:
        """Return the variance of the component of a gradient along the hidden direction v0, at overlap 0.

        At overlap 0 the product <a, v0> of sample and direction has second moment 2 and is independent of <a, x>."""
        return 2 * float(self.gradient_noise(0.0)) - float(self.population_slope(0.0)) ** 2

    def information_exponent(self) -> InformationExponent:
        """Return exponent 1 for clusters of different weights and 2 for equal weights."""
        if self.field:
            return InformationExponent.of(1, float(self.population_slope(0.0)))
        return InformationExponent.of(2, -float(self._average(lambda x: 1 - np.tanh(x) ** 2, 0.0)))

    def model(self) -> Any:
        """Return the model of the simulations."""
        from limitlab.models.online import BinaryMixture

        return BinaryMixture(self.field)
