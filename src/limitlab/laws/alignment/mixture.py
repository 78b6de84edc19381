"""Outliers of the test Hessian during SGD on a Gaussian mixture, and alignment with the weights (docs/theory/alignment.md).

Setting.  k orthonormal means, equal classes, noise N(0, I / lambda); softmax regression by online SGD with step c / d and penalty beta;
          blocks H_cc and G_cc of Hessian and gradients' second moment on M fresh test samples.
Limit.    d -> infinity with M / d fixed (`test_ratio`); time (c / d) * steps.
Result.   Equation (3) is the flow of margin and spreads. Equations (6), (7) and (8) give the edge, the outliers and the
          alignment with the weights of every block at every time.
Status.   Derived, checked against SGD runs of the d-dimensional weights.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.alignment.blocks import (
    BlockLaw,
    Matrix,
    block_law,
    checked_matrix,
    class_weights,
    noiseless_law,
    outlier_count,
    parts,
)
from limitlab.laws.alignment.blocks import span_alignment as alignment_with_means
from limitlab.laws.alignment.mixture_flow import rest, symmetric_flow, symmetric_rates

__all__ = ["MixtureAlignment"]

Array = NDArray[np.float64]

MATRICES: tuple[Matrix, Matrix] = ("hessian", "gradient")
FOR_A_THRESHOLD = (
    4096  # quasi-random points for a threshold; an outlier next to the edge depends on the largest weights, which are rare
)
SCRAMBLES = (0, 1, 2)  # independent sets of quasi-random points; the spread of their results is the stated error of the mean
NUMBERS = ("overlap_own", "overlap_other", "spread", "common_spread", "span_alignment")


class RestPoint(NamedTuple):
    """Fixed point of the flow.

    It holds the margin D, the overlaps, the spread, the alignment with the span of the means, and the mean probability of the right class.
    At snr = inf it also holds the outliers of the blocks, as pairs of the value along the block's own mean and along every other mean.
    """

    margin: float
    overlap_own: float
    overlap_other: float
    spread: float
    span_alignment: float
    mean_probability: float
    hessian_outliers: tuple[float, float] | None
    gradient_outliers: tuple[float, float] | None


class MixtureAlignment(Law):
    """How many outliers does the test Hessian have during SGD on a mixture of Gaussians, and how aligned with them are the weights?

    Examples
    --------
    >>> law = MixtureAlignment(classes=10, snr=10.0, regularizer=0.01, times=(20.0,), test_ratio=10.0)
    >>> theory = law.theory()
    >>> round(float(theory.hessian_alignment[0]), 2), int(theory.hessian_outliers[0]), int(theory.gradient_outliers[0])
    (0.79, 10, 1)
    >>> round(law.fixed_point().margin, 6)
    2.892519
    """

    status = "derived"
    regime = "d -> infinity with step c / d and test samples in proportion to d, at fixed times"
    assumptions = (
        "orthonormal means, equal classes, isotropic Gaussian noise",
        "one fresh sample per step; test samples independent of the training",
        "start N(0, I / d), or orthonormal and orthogonal to the means",
    )
    references = ("benarous2024high", "benarous2022high")
    page = "alignment"
    observables = {
        "overlap_own": observable("overlap of a weight vector with the mean of its class", r"\langle x^c,\mu_c\rangle"),
        "overlap_other": observable(
            "overlap of a weight vector with the mean of another class", r"\langle x^c,\mu_b\rangle"
        ),
        "spread": observable(
            "squared length of the weights orthogonal to the means, differences between classes", "q", least=0
        ),
        "common_spread": observable(
            "squared length of the weights orthogonal to the means, common to all classes", "r", least=0
        ),
        "span_alignment": observable(),
        "hessian_alignment": observable(),
        "gradient_alignment": observable(),
        "top_hessian_eigenvalue": observable(),
        "top_gradient_eigenvalue": observable(),
        "hessian_edge": observable("right edge of the bulk of a Hessian block", r"z_*(H)", rate=2 / 3, least=0),
        "gradient_edge": observable("right edge of the bulk of a gradient block", r"z_*(G)", rate=2 / 3, least=0),
        "hessian_outliers": observable("outliers of a Hessian block", least=0),
        "gradient_outliers": observable("outliers of a gradient block", least=0),
    }
    simulation = Experiment("dimension d", sizes=(60, 120, 240), draws=80)
    # The step is not 1. Times are early and late. With few test samples some outliers lie in the bulk, with many test samples none
    points = (
        dict(classes=3, snr=25.0, regularizer=0.08, step=1.4, test_ratio=10.0, times=(2.0, 5.0)),
        dict(classes=6, snr=30.0, regularizer=0.05, step=0.7, test_ratio=5.0, times=(3.0, 6.0)),
    )
    headline = Headline(
        "Weights rotate into the Hessian outliers",
        x="times",
        over=(0.05, 40.0, 41),
        scale="log",
        show=("hessian_alignment", "span_alignment"),
        size=60,
        draws=2,
        places=(0.5, 2.0, 5.0, 10.0, 20.0, 40.0),
        sliders=("snr", "classes"),
    )

    classes: int = parameter(10, "number of classes", symbol="k", least=2, most=64)
    snr: float = parameter(10.0, note="inverse variance of the noise", above=0, scale="log", infinite=True)
    regularizer: float = parameter(0.01, symbol=r"\beta", least=0)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    test_ratio: float = parameter(10.0, above=0, scale="log", infinite=True, count="size * value")
    times: float | tuple[float, ...] = parameter(
        (10.0, 20.0), note="step times samples over the dimension", kind="coordinate", above=0
    )
    quasi_points: int = parameter(512, kind="solver", least=16, finer=2, scale="log")
    tolerance: float = parameter(1e-10, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    whitened: bool = parameter(
        True,
        "whether the start is orthonormalised",
        note="the start is then orthogonal to the means with Gram matrix 1, which is the limit of N(0, I / d) without its fluctuations",
        kind="experiment",
    )

    # -- the limit ------------------------------------------------------------------------------------------------------

    def predicted(self, times: Array) -> Values:
        """Return the flow and the spectrum of both blocks at each of its states."""
        path = symmetric_flow(self.classes, self.snr, self.regularizer, self.step, times, self.tolerance)
        k, (margin, spread, common) = self.classes, path.states.T
        observables: dict[str, Array] = dict(
            overlap_own=margin * (k - 1) / k,
            overlap_other=-margin / k,
            spread=spread,
            common_spread=common,
            span_alignment=np.array([alignment_with_means(k, *state) for state in path.states]),
        )
        flow_error = path.relative_error
        accuracy = {name: flow_error * max(float(np.abs(observables[name]).max()), 1e-300) for name in NUMBERS}
        for matrix in MATRICES:
            laws = [self.blocks(state, matrix) for state in path.states]  # (times, scrambles)
            for name, values in {
                f"{matrix}_alignment": [[law.alignment for law in row] for row in laws],
                f"top_{matrix}_eigenvalue": [[law.top for law in row] for row in laws],
                f"{matrix}_edge": [[law.edge for law in row] for row in laws],
            }.items():
                table = np.array(values)
                observables[name] = table.mean(axis=1)
                spread_of_sets = float(np.ptp(table, axis=1).max())
                accuracy[name] = spread_of_sets + (10 * flow_error + 1e-12) * float(table.max())
            counts = np.array([[len(law.outliers) for law in row] for row in laws])
            observables[f"{matrix}_outliers"] = np.median(counts, axis=1)
            accuracy[f"{matrix}_outliers"] = float(np.ptp(counts, axis=1).max())
        return {**observables, "accuracy": accuracy}

    def blocks(self, state: Array, matrix: Matrix) -> list[BlockLaw]:
        """Return the limit of a block for the three numbers of `state`, for every set of quasi-random points."""
        if math.isinf(self.snr):
            return [noiseless_law(self.classes, state, matrix)]
        margin, spread, _ = map(float, state)
        shared = (self.classes, self.snr, margin, max(spread, 0.0), self.quasi_points)
        return [
            block_law(self.classes, self.snr, self.test_ratio, state, matrix, parts(*shared, scramble))
            for scramble in SCRAMBLES
        ]

    def outliers(self, time: float, matrix: str = "hessian") -> tuple[float, ...]:
        """Return the positions of the outliers of a block at a time, largest first.

        >>> law = MixtureAlignment(classes=10, snr=10.0, regularizer=0.01)
        >>> len(law.outliers(5.0)), len(law.outliers(5.0, "gradient"))
        (10, 1)
        """
        return self.blocks(self.state(time), checked_matrix(matrix))[0].outliers

    def state(self, time: float) -> Array:
        """Return the numbers D, q and r of docs/theory/alignment.md, eq. (3), at a time.

        D is the margin, and q and r are the eigenvalues of the Gram matrix of the parts of the weights that are orthogonal to the means."""
        return np.array(_state(self.classes, self.snr, self.regularizer, self.step, float(time), self.tolerance))

    def required_test_ratio(self, time: float, matrix: str = "hessian") -> float:
        """Return the least number of test samples per dimension at which a block has all k outliers at a time.

        The result is accurate to about one per cent. It is inf if 10^7 test samples per dimension do not suffice.

        >>> law = MixtureAlignment(classes=3, snr=20.0, regularizer=0.05)
        >>> law.required_test_ratio(5.0, "hessian") < law.required_test_ratio(5.0, "gradient")
        True
        """
        from scipy.optimize import bisect

        which, state = checked_matrix(matrix), self.state(time)
        if math.isinf(self.snr):
            return 0.0
        points = max(self.quasi_points, FOR_A_THRESHOLD)
        both = parts(self.classes, self.snr, float(state[0]), float(state[1]), points, 0)

        def missing(log_ratio: float) -> float:
            count = outlier_count(self.classes, self.snr, math.exp(log_ratio), which, both)
            return -0.5 if count >= self.classes else 0.5

        low, high = math.log(1e-3), math.log(1e7)
        if missing(high) > 0:
            return math.inf
        return math.exp(float(bisect(missing, low, high, xtol=1e-6))) if missing(low) > 0 else math.exp(low)

    def fixed_point(self) -> RestPoint:
        """Return the fixed point of the flow.

        >>> point = MixtureAlignment(classes=10, snr=float("inf"), regularizer=0.01).fixed_point()
        >>> [round(value, 7) for value in point.hessian_outliers]
        [0.0202434, 0.0030342]
        """
        self._needs_penalty()
        k = self.classes
        margin, spread = rest(k, self.snr, self.regularizer, self.step)
        rates = symmetric_rates(k, self.snr, margin, spread)
        outliers: list[tuple[float, float] | None] = [None, None]
        if math.isinf(self.snr):
            pairs = [class_weights(k, margin, matrix) for matrix in MATRICES]
            outliers = [(inside / k, outside / k) for inside, outside in pairs]
        alignment = alignment_with_means(k, margin, spread, 0.0)
        return RestPoint(margin, margin * (k - 1) / k, -margin / k, spread, alignment, rates.probability, *outliers)

    def misalignment_constant(self) -> float:
        """Return the limit of snr (1 - span_alignment) at the fixed point as snr grows, step * regularizer * classes / 4, eq. (12)."""
        self._needs_penalty()
        return self.step * self.regularizer * self.classes / 4

    def _needs_penalty(self) -> None:
        if self.regularizer == 0:
            raise Refused(
                "regularizer = 0 is not allowed here: without a penalty the margin grows like log t; choose regularizer above 0"
            )

    def caveat(self) -> str:
        """Return a warning if there are fewer test samples than dimensions, because most outliers then lie in the bulk."""
        return (
            "test_ratio below 1: the bulk contains most outliers; required_test_ratio gives the number of samples that separates them"
            if self.test_ratio < 1
            else ""
        )

    # -- the experiment -------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run SGD on the d-dimensional weights and measure the blocks of class 0 on fresh test samples."""
        from limitlab.laws.alignment._softmax_sgd import block_measurement, draw_mixture, weights_of

        k, d = self.classes, draw.size
        if math.isinf(self.snr) or math.isinf(self.test_ratio):
            raise Refused("snr and test_ratio = inf are not allowed in a simulation: choose finite values")
        if d < 3 * k:
            raise Refused(f"size = {d} is not allowed: must be at least 3 classes = {3 * k}")
        means, shares, spread = np.eye(k, d), np.full(k, 1 / k), self.snr**-0.5
        runs = self.train(draw, times)
        samples, labels = draw_mixture(draw.rng, means, shares, spread, draw.count("test_ratio"))
        fresh = spread * draw.rng.standard_normal((len(labels), 2 * k))
        measurements: dict[str, list[float]] = {name: [] for name in type(self).outputs()}
        for x in runs:
            for name, value in statistics(x, k).items():
                measurements[name].append(value)
            for matrix in MATRICES:
                weights = weights_of(matrix, samples, labels, x, 0)
                block = block_measurement(samples, weights, np.vstack([means, x]), fresh, x[0], k)
                measurements[f"{matrix}_alignment"].append(block.alignment)
                measurements[f"top_{matrix}_eigenvalue"].append(block.values[0])
                measurements[f"{matrix}_edge"].append(block.edge)
                measurements[f"{matrix}_outliers"].append(block.outliers)
        return {name: np.array(values) for name, values in measurements.items()}

    def train(self, draw: Draw, times: Array) -> Array:
        """Return the weights (times, k, d) of one run; the means are the first k axes."""
        from limitlab.laws.alignment._softmax_sgd import sgd_path

        k, d, delta = self.classes, draw.size, self.step / draw.size
        start = draw.rng.standard_normal((k, d)) / math.sqrt(d)
        if self.whitened:
            start[:, :k] = 0.0
            start = np.linalg.qr(start.T)[0].T.copy()
        counts = np.floor(times.ravel() / delta + draw.rng.random()).astype(
            np.int64
        )  # random rounding, which has the correct mean
        mixture = (np.eye(k, d), np.full(k, 1 / k), self.snr**-0.5)
        return np.asarray(sgd_path(draw.rng, start, *mixture, self.regularizer, delta, counts))


@lru_cache(maxsize=64)
def _state(classes: int, snr: float, regularizer: float, step: float, time: float, tolerance: float) -> tuple[float, ...]:
    """Return the state of the flow at one time, cached because both matrices and all test ratios use it."""
    return tuple(symmetric_flow(classes, snr, regularizer, step, [time], tolerance).states[0].tolist())


def statistics(x: Array, classes: int) -> dict[str, float]:
    """Return overlaps, spreads and span alignment of weights x (k, d) when the means are the first k axes.

    >>> values = statistics(np.eye(2, 5), 2)
    >>> values["overlap_own"], values["overlap_other"], values["span_alignment"]
    (1.0, 0.0, 1.0)
    """
    k = classes
    inside, outside = x[:, :k], x[:, k:]
    gram = outside @ outside.T
    common = float(gram.sum()) / k
    own = float(np.trace(inside)) / k
    aligned = np.linalg.norm(inside, axis=1) / np.linalg.norm(x, axis=1)
    return dict(
        overlap_own=own,
        overlap_other=(float(inside.sum()) / k - own) / (k - 1),
        spread=(float(np.trace(gram)) - common) / (k - 1),
        common_spread=common,
        span_alignment=float(aligned.mean()),
    )
