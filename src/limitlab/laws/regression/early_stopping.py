"""Least squares by gradient descent that is stopped early.

Setting.  The linear model of `Ridge`. The estimator follows db/dt = -(1/n) X'(Xb - y) from b = 0 and stops at time t. With the loss
          |y - Xb|^2 / n, without the factor 1/2, the flow is twice as fast. With `step` > 0 the estimator takes t / step steps of
          gradient descent. With a `penalty` Lambda_t the estimator follows db/dt = -Lambda_t b - (1/n) X'(Xb - y), for
          isotropic inputs.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`); t fixed.
Result.   In an eigendirection of S = X'X/n with eigenvalue x, a share g(x) = e^{-tx} is not yet fitted at time t. For gradient
          descent this share is (1 - step x)^(t / step). Let R(z) = (S - z)^-1, let kappa(z) be the effective ridge, the root of
          z = -kappa (1 - df1), and let u_k(z) = kappa / (s_k + kappa), a_k = 1 - u_k (docs/theory/early_stopping.md). Then

              beta' R(z) Sigma R(z') beta -> sum b_k s_k u_k u'_k / (z z' D),  D(z, z') = 1 - sum m_k a_k a'_k,      (3)
              tr Sigma R(z) / n           -> sum m_k a_k a0_k / D(z, 0) - kappa(0) / z,                              (4)
              z beta' R(z) beta           -> -sum b_k u_k,          tr (XX'/n - z)^-1 / n -> 1 / kappa(z).           (5)

          The bias, the variance and the train error are contour integrals of (3), (4) and (5) against g(z) g(z'), (1 - g)^2 / z
          and g^2. The pole kappa(0) / z of (4) does not contribute. 32 nodes suffice for every spectrum and every time.

          With a penalty, b = G(S) X'y/n. The gain G of a direction with eigenvalue x solves (9). The observables are integrals over
          the Marchenko-Pastur law mu of S, including its atom at zero:

              G' = 1 - (Lambda_t + x) G,   G(0) = 0,                                                                         (9)
              |b - beta|^2 = r^2 int (x G - 1)^2 dmu + tau^2 gamma int x G^2 dmu,     <b, beta> = r^2 int x G dmu,          (10)
              train error  = r^2 int x (1 - x G)^2 dmu + tau^2 [ gamma int_{x>0} (1 - x G)^2 dmu + (1 - gamma)_+ ].         (11)

Status.   A theorem for Sigma = 1 (Ali, Kolter and Tibshirani 2019). Derived for groups of eigenvalues, where (3)-(5) are deterministic
          equivalents of one and two resolvents, integrated against a fixed analytic filter. Simulations check the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.results import CLOSED_FORM
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Draw, Headline, Mark, Values, parameter
from limitlab.laws.regression import ridge
from limitlab.laws.regression.linear_model import LinearModel, spectrum
from limitlab.models.designs import descent_filter, flow_filter, penalised_filter
from limitlab.models.functions import Schedule
from limitlab.numerics.contours import (
    CIRCLE_NODES,
    PARABOLA_NODES,
    Contour,
    circle,
    descent_parabola,
    log_one_plus,
    parabola,
)
from limitlab.numerics.equivalents import effective_ridge, learned, rank_gap, resolvent_ridge, right_edge, unlearned
from limitlab.numerics.ode import integrate
from limitlab.numerics.spectra.marchenko_pastur import atom, quadrature

__all__ = ["EarlyStopping"]

Array = NDArray[np.float64]
Complex = NDArray[np.complex128]

SHORT_TIME = 8.0  # largest product of time and right edge for the circle; longer times use the parabola
FEW_STEPS = 12  # largest number of steps of descent for the circle
COARSER = 7 / 8  # share of the nodes for the estimate of the quadrature error
WORST_ACCURACY = 1e-6
SCAN_POINTS, SCANS = 60, 12  # times per scan and number of scans in the search for the best time
CLOSE = 1e-8  # relative precision of the best time; values near a minimum do not determine its position more precisely
CHUNK = 2_000_000  # complex numbers per array
SPECTRUM_NODES = 60  # least number of nodes on the spectrum with a penalty; longer times need more nodes
FLOW_TOLERANCE = 1e-11  # relative tolerance of the integration of (9)


class Parts(NamedTuple):
    """Limits from which every observable is computed. `variance` and `train_noise` are for noise of variance 1."""

    bias: Array
    variance: Array
    train_signal: Array
    train_noise: Array


def risk(
    time: ArrayLike,
    ratio: ArrayLike,
    noise: ArrayLike,
    eigenvalues: ArrayLike = (1.0,),
    weights: ArrayLike = (1.0,),
    signal_energy: ArrayLike = (1.0,),
    step: float = 0.0,
    refinement: int = 1,
) -> dict[str, Any]:
    """Return the limit of every observable. `time`, `ratio` and `noise` broadcast, and the spectrum is one-dimensional.

    Parameters
    ----------
    time
        Stopping time, from 0 (nothing is learned) to infinity (the least-norm solution).
    ratio, noise
        Features per sample, and standard deviation of the label noise.
    eigenvalues, weights, signal_energy
        Eigenvalue, share of the dimensions and squared norm of the coefficients of every group of the population spectrum.
    step
        Step of gradient descent, at most 1 / `right_edge`. The value 0 means gradient flow. Times are rounded to whole steps.
    refinement
        Factor of the number of nodes of the contours.

    Returns
    -------
    dict
        The observables, and under "accuracy" an estimate of the numerical error of each.

    Examples
    --------
    >>> risk([0.1, 1.0, 10.0], 0.5, 0.5)["test_error"].round(9).tolist()
    [1.077758767, 0.557931996, 0.46083774]
    """
    s, load, b2, wide = spectrum(ratio, eigenvalues, weights, signal_energy)
    t, tau2 = whole_steps(time, step), np.asarray(noise, dtype=float) ** 2
    if not (t >= 0).all():
        raise Refused(f"time = {t[~(t >= 0)].flat[0]:g} is not allowed: must be at least 0")
    shape = np.broadcast_shapes(t.shape, load.shape[:-1])
    flat, loads = np.broadcast_to(t, shape).ravel(), np.broadcast_to(load, (*shape, s.size)).reshape(-1, s.size)
    parts, accuracy = _parts(flat, loads, np.broadcast_to(wide, shape).ravel(), s, b2, step, refinement)
    bias, variance, train_signal, train_noise = (part.reshape(shape) for part in parts)
    with np.errstate(invalid="ignore"):
        variance = np.where(tau2 == 0, 0.0, tau2 * variance)
    train = train_signal + tau2 * train_noise
    arrays = np.broadcast_arrays(bias, variance, bias + variance, bias + variance + tau2, train)
    names = ("bias", "variance", "excess_risk", "test_error", "train_error")
    signal = accuracy * float(np.dot(s, b2))
    noisy = accuracy * float(np.max(np.maximum(np.where(np.isfinite(variance), variance, 0.0), tau2), initial=0.0))
    errors = dict(zip(names, (signal, noisy, signal + noisy, signal + noisy, signal + noisy), strict=True))
    return {**dict(zip(names, arrays, strict=True)), "accuracy": errors}


def whole_steps(time: ArrayLike, step: float) -> Array:
    """Return the times rounded to a whole number of steps, or unchanged for step 0, which is gradient flow.

    >>> whole_steps([0.0, 0.26, np.inf], 0.1).round(12).tolist()
    [0.0, 0.3, inf]
    """
    t = np.asarray(time, dtype=float)
    return np.asarray(np.round(t / step) * step if step else t)


# -- the four parts ---------------------------------------------------------------------------------------------------


def _parts(
    t: Array, loads: Array, wide: NDArray[np.bool_], s: Array, b2: Array, step: float, refinement: int
) -> tuple[Parts, float]:
    """Return all four parts for flat arrays of times and loads, including the exact values at t = 0 and t = infinity.

    The error is relative to the value at time 0 or, for a large variance, to the variance.
    """
    energy = float(np.dot(s, b2))
    values = np.zeros((4, t.size))
    start, end = t == 0, np.isinf(t) & ~wide
    values[0, start | wide] = energy
    values[2, start], values[3, start] = energy, 1.0
    if end.any():
        values[:, end] = _ridgeless(loads[end], s, b2)
    inside = np.flatnonzero(~(start | wide | end))
    accuracy = CLOSED_FORM
    if inside.size:
        edge = np.asarray(right_edge(s, loads[inside]))
        if step and (step * edge > 1 + 1e-12).any():
            bound = f"at most {1 / edge.max():.6g}, one over the largest eigenvalue of the data"
            raise Refused(f"step = {step:g} is not allowed: must be {bound}")
        for chunk, parts, error in _integrals(t[inside], loads[inside], edge, s, b2, step, refinement):
            values[:, inside[chunk]] = parts
            accuracy = max(accuracy, error)
    return Parts(*values), accuracy


def _ridgeless(loads: Array, s: Array, b2: Array) -> Array:
    """Return the parts at infinite time, where the estimator is the least-norm solution."""
    total = loads.sum(axis=-1)
    share = loads[0] / total[0]
    quiet, loud = (ridge.risk(total, 0.0, tau, s, share, b2) for tau in (0.0, 1.0))
    return np.stack([quiet["bias"], loud["variance"], quiet["train_error"], loud["train_error"] - quiet["train_error"]])


def _integrals(
    t: Array, loads: Array, edge: Array, s: Array, b2: Array, step: float, refinement: int
) -> Iterator[tuple[NDArray[np.int64], Array, float]]:
    """Yield the parts at finite times in chunks.

    Every chunk consists of indices, the parts at these indices, and their relative error. The error is estimated by the difference from
    an integral with fewer nodes.
    """
    energy = float(np.dot(s, b2)) or 1.0
    short = t * edge <= SHORT_TIME
    if step:
        short |= t <= (FEW_STEPS + 0.5) * step
    for family, few, which in ((_on_circle, CIRCLE_NODES, short), (_on_parabola, PARABOLA_NODES, ~short)):
        nodes = refinement * few
        members = np.flatnonzero(which)
        pieces = max(1, math.ceil(members.size * nodes * s.size / CHUNK))
        for chunk in np.array_split(members, pieces):
            if chunk.size:
                fine, coarse = (
                    family(t[chunk], loads[chunk], edge[chunk], s, b2, step, count)
                    for count in (nodes, 4 * round(COARSER * nodes / 4))
                )
                scale = np.stack(np.broadcast_arrays(energy, np.maximum(fine[1], 1.0), energy, 1.0))
                error = float(np.max(np.abs(fine - coarse) / scale))
                if error > WORST_ACCURACY:
                    raise ConvergenceError("the contour integrals of early stopping did not converge", fine, error)
                yield chunk, np.maximum(fine, 0.0), error


def _on_circle(t: Array, loads: Array, edge: Array, s: Array, b2: Array, step: float, nodes: int) -> Array:
    """Return the parts at short times. All filters are integrated on the same circle around the spectrum."""
    contour = circle(edge, nodes)
    if step:  # the nodes are off the real axis, so the logarithm has no branch cut there
        logarithm = np.round(t / step)[:, None] * log_one_plus(-step * contour.z)
    else:
        logarithm = -t[:, None] * contour.z
    residual, fitted = np.exp(logarithm), -np.expm1(logarithm)
    points = _Points(contour, s, loads, b2)
    return np.stack(
        [
            points.bias(residual),
            points.variance(fitted**2 / contour.z),
            points.train_signal(residual**2),
            points.train_noise(residual**2),
        ]
    )


def _on_parabola(t: Array, loads: Array, edge: Array, s: Array, b2: Array, step: float, nodes: int) -> Array:
    """Return the parts at longer times.

    The filter g is integrated on the contour of time t, and g^2 on the contour of time 2t. In (1 - g)^2 / z, the term -2 g / z is
    integrated on the first contour and the term g^2 / z on the second. The term 1 / z integrates to zero.
    """
    single, once = _decaying(t, step, nodes)
    double, twice = _decaying(2 * t, step, nodes)
    near, far = _Points(single, s, loads, b2), _Points(double, s, loads, b2)
    variance = near.variance(-2 * once / single.z) + far.variance(twice / double.z)
    return np.stack([near.bias(once), variance, far.train_signal(twice), far.train_noise(twice)])


def _decaying(t: Array, step: float, nodes: int) -> tuple[Contour, Complex]:
    """Return the contour of the residual filter at time t, and the values of the filter on this contour."""
    if step:
        return descent_parabola(np.round(t / step), step, nodes)
    contour = parabola(t, nodes)
    return contour, np.exp(-t[:, None] * contour.z)


class _Points:
    """Equations (3)-(5) on the nodes of a contour, with methods that integrate them against values of a function at the nodes."""

    def __init__(self, contour: Contour, s: Array, loads: Array, b2: Array):
        self.z, self.weight = contour
        self.s, self.b2 = s, np.where(s > 0, b2, 0.0)
        self.loads, self.free = loads, rank_gap(s, loads)
        self.kappa = np.asarray(resolvent_ridge(self.z, s, loads[:, None, :]))
        self.u = unlearned(self.kappa, s)  # (elements, nodes, groups)

    def bias(self, values: Complex) -> Array:
        """Return the double integral of (3), over nodes j in the upper half plane and nodes k in the upper and lower half plane."""
        charge = self.weight * values / self.z
        value = np.zeros(len(self.z))
        for other, charges in ((self.u, charge), (self.u.conj(), charge.conj())):
            top = (self.u * (self.s * self.b2)) @ np.swapaxes(other, 1, 2)
            product = charge[:, :, None] * charges[:, None, :] * top / self._difference(other)
            value += 2 * product.sum(axis=(1, 2)).real
        return value

    def _difference(self, other: Complex) -> Complex:
        """Return D of (3), from unlearned shares if p <= n (so that no digit is lost at p = n) and from learned shares if p > n."""
        many, load = (self.free < 0)[:, None, None], (self.loads * (self.s > 0))[:, None, :]
        mine, yours = (np.where(many, 1 - share, share) for share in (self.u, other))
        sums = (load * mine).sum(axis=-1)[:, :, None] + (load * yours).sum(axis=-1)[:, None, :]
        start = np.where(many, 1.0, self.free[:, None, None] + sums)
        return np.asarray(start - (mine * load) @ np.swapaxes(yours, 1, 2), dtype=np.complex128)

    def variance(self, values: Complex) -> Array:
        """Return the integral of (4) without the pole. The contributions of the pole would grow with the time and cancel."""
        fitted = self.loads * learned(effective_ridge(0.0, self.s, self.loads), self.s)  # m a0, at z = 0
        learned_share = learned(self.kappa, self.s) @ fitted[:, :, None]
        difference = np.maximum(self.free, 0.0)[:, None] + (self.u @ fitted[:, :, None])[..., 0]  # D(z, 0)
        return np.asarray(2 * (self.weight * values * learned_share[..., 0] / difference).sum(axis=-1).real)

    def train_signal(self, values: Complex) -> Array:
        """Return the integral of the left part of (5)."""
        return np.asarray(-2 * (self.weight * values * (self.u @ self.b2)).sum(axis=-1).real)

    def train_noise(self, values: Complex) -> Array:
        """Return the integral of the right part of (5)."""
        return np.asarray(2 * (self.weight * values / self.kappa).sum(axis=-1).real)


# -- gradient flow with a penalty that changes in time ----------------------------------------------------------------


def penalised_risk(
    times: Array, ratio: Array, noise: Array, eigenvalue: float, energy: float, penalty: Schedule, refinement: int = 1
) -> dict[str, Any]:
    """Return the observables at finite times with a penalty. `ratio` and `noise` broadcast against the times.

    >>> limit = penalised_risk(np.array([1.0]), np.array([[1 / 1.5]]), np.array([[0.5]]), 1.0, 1.0, Schedule([(0.0, 0.0), (1.0, 2.0)]))
    >>> limit["overlap"].round(4).tolist()
    [[0.3168]]
    """
    cells, errors = {}, 0.0
    for gamma in np.unique(ratio):
        fine = _penalised_integrals(
            times, float(gamma), eigenvalue, penalty, refinement * _spectrum_nodes(times, float(gamma), eigenvalue)
        )
        coarse = _penalised_integrals(
            times, float(gamma), eigenvalue, penalty, refinement * _spectrum_nodes(times, float(gamma), eigenvalue) * 3 // 4
        )
        cells[float(gamma)] = fine
        errors = max(errors, float(np.max(np.abs(fine - coarse))) + 100 * FLOW_TOLERANCE)
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


def _spectrum_nodes(times: Array, ratio: float, eigenvalue: float) -> int:
    """Return a number of nodes on the spectrum that is sufficient for e^{-t x} at the largest of the times."""
    return SPECTRUM_NODES + 8 * math.ceil(
        math.sqrt(float(times.max(initial=0.0)) * eigenvalue * (1 + math.sqrt(ratio)) ** 2)
    )


def _penalised_integrals(times: Array, ratio: float, eigenvalue: float, penalty: Schedule, nodes: int) -> Array:
    """Return the integrals of (10) and (11) at the times, for signal energy 1 and noise variance 1.

    The rows are bias, variance, the signal's and the noise's part of the train error, and overlap.
    """
    x, mass = quadrature(ratio, eigenvalue, nodes)
    unseen = float(atom(ratio))
    stops = np.union1d(
        np.ravel(times), [t for t in penalty.kinks if t < np.max(times)]
    )  # a penalty from a table is smooth only between the times of the table
    gains = [np.zeros_like(x)]
    for start, stop in zip([0.0, *stops[:-1]], stops, strict=True):
        path = integrate(
            lambda t, g, start=start: 1 - (float(penalty(start + t)) + x) * g,  # type: ignore[misc]
            gains[-1],
            [stop - start],
            FLOW_TOLERANCE,
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


# -- the law ----------------------------------------------------------------------------------------------------------


class EarlyStopping(LinearModel):
    """How do the errors of least squares evolve along gradient descent, and which stopping time is best?

    Examples
    --------
    >>> law = EarlyStopping(ratio=0.5, noise=0.5, times=(0.0, 1.0, float("inf")))
    >>> law.theory().test_error.values.round(6).tolist()
    [1.25, 0.557932, 0.5]
    >>> round(law.best_time(), 4)
    4.0044
    """

    status = "derived"  # a theorem for Sigma = 1
    regime = "n, p -> infinity with p/n fixed; time of the order of one over the eigenvalues of Sigma"
    references = (
        "ali2019continuous",
        "weideman2007parabolic",
        "hastie2022surprises",
        "rubio2011spectral",
        "dobriban2018high",
    )
    page = "early_stopping"
    observables = ("bias", "variance", "excess_risk", "test_error", "train_error", "overlap")
    # Two groups with unequal shares and energies below ratio 1, steps of descent above ratio 1, and a penalty.
    points = (
        dict(
            ratio=0.6,
            noise=0.7,
            eigenvalues=(0.5, 2.0),
            weights=(0.4, 0.6),
            signal_energy=(0.5, 0.8),
            times=(0.5, 2.0, 8.0),
        ),
        dict(ratio=1.7, noise=0.4, step=0.1, times=(0.5, 2.0), eigenvalues=(1.5,), signal_energy=(1.3,)),
        dict(
            ratio=1.4,
            noise=0.6,
            times=(0.5, 1.5, 4.0),
            eigenvalues=(1.2,),
            signal_energy=(0.8,),
            penalty=((0.0, 1.2), (1.0, 0.4), (3.0, 0.1)),
        ),
    )
    headline = Headline(
        "Stop early: test error turns up again",
        x="times",
        over=(0.05, 100.0, 81),
        scale="log",
        show=("train_error", "test_error"),
        at=dict(ratio=0.9, noise=1.0),
        size=100,
        draws=4,
        places=(0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0),
        sliders=("ratio", "noise"),
        marks=(Mark("x", lambda law: float(law.best_time()), "best time"),),
    )

    times: float | tuple[float, ...] = parameter(
        1.0, note="training time", kind="coordinate", least=0, scale="log", infinite=True
    )
    step: float = parameter(0.0, note="0 is gradient flow", symbol=r"\eta", least=0)
    penalty: Schedule | None = parameter(
        None,
        note="divided by 2; a number, pairs (time, value) or a function of time; requires one group of eigenvalues and step 0",
    )
    refinement: int = parameter(1, kind="solver", least=1, most=4, finer=2)

    def observed(self) -> tuple[str, ...]:
        """Return the names of the observables. The overlap is predicted with a penalty only."""
        names = tuple(type(self).observables)
        return names if self.penalty is not None else names[:-1]

    @model_validator(mode="after")
    def _simple_enough_for_a_penalty(self) -> Self:
        if self.penalty is not None:
            for name, wrong in (
                ("step", self.step > 0),
                ("eigenvalues", len(self.eigenvalues) > 1),
                ("spectrum", self.spectrum is not None),
                ("ratio", math.isinf(self.ratio)),
                ("times", bool(np.isinf(self.times).any())),
            ):
                if wrong:
                    raise Refused(
                        f"{name} = {getattr(self, name)} is not allowed with a penalty: a penalty requires step 0 "
                        "(gradient flow), one group of eigenvalues, and finite ratio and times"
                    )
        return self

    @model_validator(mode="after")
    def _short_enough_step(self) -> Self:
        longest = self.longest_step() if self.step else math.inf
        if self.step > longest * (1 + 1e-12):
            bound = f"at most {longest:.6g}, one over the largest eigenvalue of the data"
            raise Refused(f"step = {self.step:g} is not allowed: must be {bound}")
        return self

    def realised(self, size: int) -> Self:
        """Return the law with the ratio and weights of `size` features.

        The step is reduced to the largest allowed step if it exceeds this step for the new ratio and weights.
        """
        whole = super(EarlyStopping, self.replace(step=0.0)).realised(size)
        return whole.replace(step=min(self.step, whole.longest_step())) if self.step else whole

    def predicted(self, times: Array, ratio: Array, noise: Array) -> Values:
        """Return the limit at every time, over a grid of ratios and noise levels."""
        if self.penalty is not None:
            scales = (self.eigenvalues[0], self.signal_energy[0])
            return penalised_risk(times, ratio, noise, *scales, self.penalty, self.refinement)
        population = self.population[:3]
        return risk(times, ratio, noise, *population, self.step, self.refinement)

    def measured(self, draw: Draw, times: Array, noise: Array) -> Values:
        """Measure the observables on one draw of the inputs, used for every time and noise level.

        Signal and noise are averaged in closed form.
        """
        design, tau2 = self.design(draw), noise**2
        energy = self.population_at(draw.size)[0].energy
        if self.step:
            with np.errstate(invalid="ignore"):
                shrinkage = descent_filter(design.values, np.round(times / self.step), self.step)
        elif self.penalty is not None:
            shrinkage = penalised_filter(design.values, times, self.penalty)
        else:
            shrinkage = flow_filter(design.values, times)
        bias, variance = design.bias(shrinkage, energy), tau2 * design.variance(shrinkage, 1.0)
        quiet, loud = (design.train_error(shrinkage, energy, level) for level in (0.0, 1.0))
        values = dict(
            bias=bias,
            variance=variance,
            excess_risk=bias + variance,
            test_error=bias + variance + tau2,
            train_error=quiet + tau2 * (loud - quiet),
        )
        return values if self.penalty is None else {**values, "overlap": design.overlap(shrinkage, energy)}

    def longest_step(self) -> float:
        """Return the largest allowed step, one over the largest eigenvalue of the data.

        >>> round(EarlyStopping(ratio=4.0).longest_step(), 12) == round(1 / 9, 12)
        True
        """
        if math.isinf(self.ratio):
            return 0.0
        s, shares, *_ = self.population
        return 1 / float(right_edge(s, self.ratio * shares))

    def best_time(self) -> float:
        """Return the time with the least excess risk, which is infinite if training without end is best.

        >>> EarlyStopping(ratio=0.5, noise=0.0).best_time()
        inf
        """
        if math.isinf(self.ratio):
            raise Refused("ratio = inf is not allowed here: no stopping time changes the test error")
        if self.penalty is not None:
            raise Refused("penalty is not allowed here: must be None, because the search also evaluates infinite time")
        values, shares, *_ = self.population
        low, high = 1e-3 / float(right_edge(values, self.ratio * shares)), 1e7 / float(values[values > 0].min())
        ends = {end: float(self.replace(times=end).evaluate()["excess_risk"]) for end in (0.0, math.inf)}
        best, excess = min(ends.items(), key=lambda pair: pair[1])
        for _ in range(SCANS):
            times = np.unique(whole_steps(np.geomspace(low, high, SCAN_POINTS), self.step))
            excess_risks = self.replace(times=tuple(times)).evaluate()["excess_risk"]
            i = int(np.argmin(excess_risks))
            if excess_risks[i] < excess:
                best, excess = float(times[i]), float(excess_risks[i])
            low, high = max(float(times[max(i - 1, 0)]), low), float(times[min(i + 1, times.size - 1)])
            if not high > low * (1 + CLOSE):
                break
        return best
