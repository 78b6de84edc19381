"""Least squares by gradient flow with a penalty that changes in time (docs/theory/early_stopping.md, eqs. 9-11).

Setting.  db/dt = -Lambda_t b - (1/n) X'(Xb - y) from b = 0, with isotropic inputs. A direction in which S = X'X/n has the eigenvalue x
          has the gain

              G' = 1 - (Lambda_t + x) G,   G(0) = 0.                                                                         (9)

Result.   With the Marchenko-Pastur law mu of S, including its atom at zero,

              |b - beta|^2 = r^2 int (x G - 1)^2 dmu + tau^2 gamma int x G^2 dmu,     <b, beta> = r^2 int x G dmu,              (10)
              train error  = r^2 int x (1 - x G)^2 dmu + tau^2 [ gamma int_{x>0} (1 - x G)^2 dmu + (1 - gamma)_+ ].             (11)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.models.functions import Schedule
from limitlab.numerics.ode import integrate
from limitlab.numerics.spectra.marchenko_pastur import atom, quadrature

Array = NDArray[np.float64]

NODES = 60
"""Least number of nodes on the spectrum. Longer times need more nodes."""
TOLERANCE = 1e-11


def penalised_risk(
    times: Array, ratio: Array, noise: Array, eigenvalue: float, energy: float, penalty: Schedule, refinement: int = 1
) -> dict[str, Any]:
    """Return the observables at finite times; `ratio` and `noise` broadcast against the times.

    >>> limit = penalised_risk(np.array([1.0]), np.array([[1 / 1.5]]), np.array([[0.5]]), 1.0, 1.0, Schedule([(0.0, 0.0), (1.0, 2.0)]))
    >>> limit["overlap"].round(4).tolist()
    [[0.3168]]
    """
    cells, errors = {}, 0.0
    for gamma in np.unique(ratio):
        fine = _integrals(times, float(gamma), eigenvalue, penalty, refinement * _count(times, float(gamma), eigenvalue))
        coarse = _integrals(
            times, float(gamma), eigenvalue, penalty, refinement * _count(times, float(gamma), eigenvalue) * 3 // 4
        )
        cells[float(gamma)] = fine
        errors = max(errors, float(np.max(np.abs(fine - coarse))) + 100 * TOLERANCE)
    shape = np.broadcast_shapes(ratio.shape, times.shape)
    flat = np.broadcast_to(ratio, shape)
    column = np.broadcast_to(np.arange(times.size).reshape(times.shape), shape)
    parts = np.array([cells[float(g)][:, j] for g, j in zip(flat.ravel(), column.ravel(), strict=True)]).T.reshape(5, *shape)
    tau2 = noise**2
    bias, variance = eigenvalue * energy * parts[0], tau2 * eigenvalue * parts[1]
    values = dict(
        bias=bias,
        variance=variance,
        excess_risk=bias + variance,
        test_error=bias + variance + tau2,
        train_error=energy * parts[2] + tau2 * parts[3],
        overlap=energy * parts[4],
    )
    scale = (eigenvalue + 1) * energy + (eigenvalue + 1) * float(np.max(tau2))
    return {**values, "accuracy": dict.fromkeys(values, errors * scale)}


def _count(times: Array, ratio: float, eigenvalue: float) -> int:
    """Return the number of nodes that resolves e^{-t x} on the spectrum."""
    return NODES + 8 * math.ceil(math.sqrt(float(times.max(initial=0.0)) * eigenvalue * (1 + math.sqrt(ratio)) ** 2))


def _integrals(times: Array, ratio: float, eigenvalue: float, penalty: Schedule, nodes: int) -> Array:
    """Return the integrals of (10) and (11) at the times, per unit energy.

    The rows are bias, variance / tau^2, train signal, train noise and overlap.
    """
    x, mass = quadrature(ratio, eigenvalue, nodes)
    unseen = float(atom(ratio))
    stops = np.union1d(
        np.ravel(times), [t for t in penalty.kinks if t < np.max(times)]
    )  # a table is smooth between its times
    gains = [np.zeros_like(x)]
    for start, stop in zip([0.0, *stops[:-1]], stops, strict=True):
        path = integrate(
            lambda t, g, start=start: 1 - (float(penalty(start + t)) + x) * g,  # type: ignore[misc]
            gains[-1],
            [stop - start],
            TOLERANCE,
            floor=1.0,
        )
        gains.append(path.states[-1])
    gain = np.array(gains[1:])[np.searchsorted(stops, np.ravel(times))]
    fit, left = x * gain, 1 - x * gain
    return np.stack(
        [
            left**2 @ mass + unseen,
            ratio * (x * gain**2) @ mass,
            (x * left**2) @ mass,
            ratio * left**2 @ mass + max(1 - ratio, 0.0),
            fit @ mass,
        ]
    )
