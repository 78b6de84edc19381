"""The Hessian of an overparametrised network, with negative directions at a random start and p - n flat ones at interpolation.

f(x) = a . tanh(W x) / sqrt(N) with both layers trained, p = N (d + 1) parameters, pure-noise labels, loss |f - y|^2 / (2n). With J the
Jacobian and r the residuals (docs/theory/interpolating_networks.md, eq. 5)

    Hess = J'J / n + E,     E = (1/n) sum_i r_i Hess f_i.

At a random start E decides the sign of most directions outside the n of J'J. At interpolation r = 0, so n directions curve upwards and
p - n are flat. Close to interpolation the flat directions curve by E on the kernel of J, linearly in the residual.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import ConvergenceError, Refused

__all__ = ["hessian_inertia"]

Array = NDArray[np.float64]

FLAT = 1e-9
"""Eigenvalues below this count as zero. At interpolation the residual leaves about 1e-12."""
FITTED = 1e-11
"""Root mean square residual that counts as interpolation."""
TRIES = 8  # starts from which training is tried


@dataclass(frozen=True)
class Inertia:
    """Numbers of negative, zero and positive eigenvalues of the Hessian, and all of them in increasing order."""

    negative: int
    zero: int
    positive: int
    eigenvalues: Array

    @classmethod
    def of(cls, matrix: Array) -> Inertia:
        """Count the eigenvalues of a symmetric matrix.

        >>> inertia = Inertia.of(np.diag([2.0, -1.0, 0.0]))
        >>> inertia.negative, inertia.zero, inertia.positive
        (1, 1, 1)
        """
        values = np.asarray(np.linalg.eigvalsh(matrix), dtype=np.float64)
        negative, positive = int(np.sum(values < -FLAT)), int(np.sum(values > FLAT))
        return cls(negative, values.size - negative - positive, positive, values)


def hessian_inertia(
    dimension: int, width: int, samples: int, interpolate: bool = True, seed: int = 0, residual: float = 0.0
) -> Inertia:
    """Return the signs of the Hessian's eigenvalues at a random start, at interpolation, or close to interpolation.

    Parameters
    ----------
    dimension, width, samples
        Inputs d, neurons N, samples n; standard Gaussian inputs and labels.
    interpolate
        Whether the network is first trained (Levenberg-Marquardt) until it fits its labels to 1e-11. This needs n well below N (d + 1).
    seed
        Seed of data and start.
    residual
        Root mean square of Gaussian residuals that are added to the labels after training. 0 is exact interpolation.

    Examples
    --------
    >>> inertia = hessian_inertia(dimension=5, width=10, samples=20)
    >>> inertia.negative, inertia.zero, inertia.positive
    (0, 40, 20)
    """
    for name, value in (("dimension", dimension), ("width", width), ("samples", samples)):
        if value != int(value) or value < 1:
            raise Refused(f"{name} = {value} is not allowed: must be a whole number of at least 1")
    if residual < 0 or (residual and not interpolate):
        raise Refused(f"residual = {residual:g} is not allowed: must be at least 0, and 0 if the network is not trained")
    jacobian, bend = hessian_parts(dimension, width, samples, interpolate, seed, residual)
    return Inertia.of(jacobian.T @ jacobian / samples + bend)


def hessian_parts(
    dimension: int, width: int, samples: int, interpolate: bool, seed: int, residual: float = 0.0
) -> tuple[Array, Array]:
    """Return J and E at the point at which `hessian_inertia` counts signs, for the same arguments."""
    from limitlab.laws.landscapes._levenberg import PlainTanh, levenberg_marquardt

    network = PlainTanh(dimension, width)
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((samples, dimension)), rng.standard_normal(samples)
    theta = network.start(rng)
    if not interpolate:
        return network.jacobian(theta, x), network.curvature(theta, x, network.outputs(theta, x)[:, 0] - y)
    if samples >= network.parameters:
        raise Refused(
            f"samples = {samples} is not allowed with interpolate: must be below the {network.parameters} parameters of the network"
        )
    for _ in range(TRIES):
        fit = levenberg_marquardt(network, theta, x, y, goal=FITTED**2 / 100, iterations=400)  # type: ignore[arg-type]
        if fit.loss < FITTED**2:
            left = network.outputs(fit.theta, x)[:, 0] - y + residual * rng.standard_normal(samples)
            return network.jacobian(fit.theta, x), network.curvature(fit.theta, x, left)
        theta = network.start(rng)
    raise ConvergenceError(
        f"no fit of the {samples} samples was found from {TRIES} starts by a network of {network.parameters} parameters; use fewer samples",
        estimate=fit.theta,
        accuracy=float(np.sqrt(fit.loss)),
    )
