"""Online PCA, that is spherical SGD for the direction of largest variance (docs/theory/online_sgd.md, section 2).

Setting.  Samples a ~ N(0, I + lambda v0 v0^T), loss -<a, x>^2, spherical SGD.
Limit.    N -> infinity at a fixed step delta; s = delta * samples / N.
Result.   phi(m) = -1 - lambda m^2, G = 4 (1 + lambda m^2), V(0) = 4 (1 + lambda). m converges to
          m^2 = (lambda - delta)_+ / (lambda (1 + delta)).
Status.   Derived. Simulations of the exact chain agree.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from limitlab._core.declaration import parameter
from limitlab.laws import Headline, Mark
from limitlab.laws.online_sgd._spherical import Array, InformationExponent, SphericalSGD

__all__ = ["OnlinePCA"]


class OnlinePCA(SphericalSGD):
    """How fast does online PCA find a direction of larger variance, and what is the final overlap?

    Examples
    --------
    >>> law = OnlinePCA(snr=2.0, step=0.5, start_overlap=0.1, times=(1.0, 2.0))
    >>> law.theory().overlap.values.round(6).tolist()
    [0.667718, 0.707]
    >>> law.critical_step(), round(law.stable_overlap() ** 2, 9)
    (2.0, 0.5)
    """

    page = "online_sgd"
    # A step at which the second term of the drift matters
    points = (dict(snr=2.5, step=0.4, start_overlap=0.25, times=(0.3, 0.7, 2.0)),)
    headline = Headline(
        "Stronger signal, better final alignment",
        x="times",
        over=(0.0, 8.0, 101),
        show=("overlap",),
        curves=("snr", (0.2, 1, 4)),
        size=800,
        draws=10,
        places=(0.25, 0.5, 1.0, 2.0, 4.0, 6.0, 8.0),
        sliders=("step", "start_overlap"),
        marks=(Mark("y", lambda law: law.stable_overlap(), "stable overlap", each=True),),
    )

    snr: float = parameter(2.0, note="variance in excess of 1 along the direction", above=0, scale="log")
    start_overlap: float = parameter(0.3, above=-1, below=1)

    def population_loss(self, m: ArrayLike) -> Array:
        """Return -1 - lambda m^2, the mean loss at overlap m."""
        return np.asarray(-1 - self.snr * np.asarray(m, dtype=float) ** 2)

    def population_slope(self, m: ArrayLike) -> Array:
        """Return -2 lambda m, the derivative of the mean loss with respect to the overlap m."""
        return np.asarray(-2 * self.snr * np.asarray(m, dtype=float))

    def gradient_noise(self, m: ArrayLike) -> Array:
        """Return 4 (1 + lambda m^2), the mean squared length of a gradient at overlap m, divided by the dimension."""
        return np.asarray(4 * (1 + self.snr * np.asarray(m, dtype=float) ** 2))

    def search_noise(self) -> float:
        """Return 4 (1 + lambda), the variance of the component of a gradient along the hidden direction, at overlap 0."""
        return 4 * (1 + self.snr)

    def information_exponent(self) -> InformationExponent:
        """Return the exponent 2, because both signs of the direction have the same loss."""
        return InformationExponent.of(2, -2 * self.snr)

    def model(self) -> Any:
        """Return the spiked covariance model of the simulations."""
        from limitlab.models.online import SpikedCovariance

        return SpikedCovariance(self.snr)
