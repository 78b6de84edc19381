"""Gradient descent on any smooth loss, by the general dynamical mean-field theory without Gaussian approximation.

Setting.  x ~ N(0, I_d), or with other independent entries where theta_* is spread over all coordinates; n samples with loss
          L(theta' x; <theta_*, x>, e), theta in R^{d x m}, e standard Gaussian; theta_{k+1} = theta_k - step (ridge theta_k +
          (1/n) sum grad L), where the ridge may change from step to step (`penalty`). Examples are linear models, single neurons and
          networks of m neurons with a fixed second layer.
Limit.    n, d -> infinity with n/d -> delta (`sample_ratio`), at a fixed number of steps and neurons.
Result.   A process in R^m for the rows of theta and one for the predictions, coupled through m x m correlations and responses
          (docs/theory/first_order.md, eqs. 1 to 6; `limitlab.laws.dmft._descent`). It is written for discrete time, in which it is exact
          for gradient descent with the same step and has no discretisation error.
Status.   Theorem for the square loss (Celentano, Cheng, Montanari 2021). The other losses do not satisfy its assumption of a bounded second
          derivative (labels are unbounded); for them the result is derived and checked. The process of predictions is sampled. For the
          square loss the samples match all second moments, and the result is exact. Otherwise the accuracy is the statistical error of
          the sampling.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Cost, Draw, Experiment, Headline, Values, observable, parameter, shared
from limitlab.laws._population import HasSpectrum
from limitlab.laws.dmft._descent import DescentCorrelations, descent_correlations
from limitlab.laws.dmft._kicks import SHIFT
from limitlab.laws.dmft._losses import LOSSES, Loss, as_vector, committee
from limitlab.laws.dmft._paths import whitened_paths
from limitlab.laws.dmft._rows import Rows, kernels_of
from limitlab.laws.dmft.sample_loss import SampleLoss
from limitlab.models.activations import Activation
from limitlab.models.designs import Entries, white
from limitlab.models.functions import Schedule

__all__ = ["FirstOrderDynamics"]

Floats = NDArray[np.float64]


SQUARED = ("square", "tanh", "committee")
"""Losses whose reported error is the squared residual."""

REPLICATES = 6
"""Independent solutions whose spread gives the statistical error."""

WORST_ACCURACY = 0.2
"""Largest accepted spread of the sampled averages. The spread is larger for too few paths or for an unbounded loss with too long steps."""

ALGEBRA = 1e-9
"""Relative accuracy of the equations if nothing is sampled."""

FRESH = 4000
"""Number of new samples for the test error of an experiment. Only theta' x and <theta_*, x> are drawn for them."""


class FirstOrderDynamics(HasSpectrum):
    """How do errors, norm and overlap evolve when gradient descent fits a linear model, a neuron or a small network?

    Norm, overlap and correlation are averages over neurons and pairs of |theta_j|^2, <theta_j, theta_*> and <theta_i, theta_j>.

    Examples
    --------
    >>> law = FirstOrderDynamics(loss="square", sample_ratio=2, noise=0.5, step=0.1, steps=8,
    ...                          signal_energy=1.0, start_norm=0.5, start_overlap=0.2)
    >>> law.theory().overlap.values[[0, 8]].round(6)
    array([0.2     , 0.600625])
    >>> pair = FirstOrderDynamics(loss="committee", width=2, activation="identity", target_function="identity", steps=3)
    >>> bool(np.allclose(pair.theory().norm, pair.theory().correlation))  # both neurons start at zero and remain equal
    True
    """

    status = "derived"  # a theorem for the square loss
    regime = "n, d -> infinity at fixed n/d, step size, number of steps and number of neurons"
    assumptions = (
        "inputs with independent sub-Gaussian entries; unless they are Gaussian, coefficients spread over all coordinates",
        "smooth loss; a theorem if the second derivative is bounded in all arguments (the square loss)",
        "full-batch gradient descent",
        "networks: fixed and equal second-layer weights, exchangeable start",
    )
    references = ("celentano2021high",)
    page = "first_order"
    observables = {
        **shared("train_error"),
        "test_error": observable(),
        **shared("train_loss"),
        "test_loss": observable("mean loss on a new sample", r"\mathcal{L}"),
        "norm": observable("mean squared norm of the neurons", r"|\theta|^2", least=0),
        **shared("overlap", "correlation"),
    }
    simulation = Experiment(draws=30)
    revision = 2
    # Every loss from a start that is neither zero nor aligned, with a penalty; inputs of signs; two neurons; the sphere
    points = (
        dict(
            loss="square",
            ridge=0.2,
            sample_ratio=1.5,
            noise=0.6,
            step=0.3,
            steps=6,
            signal_energy=1.5,
            start_norm=0.7,
            start_overlap=0.4,
        ),
        dict(
            loss="tanh",
            entries="sign",
            ridge=0.15,
            sample_ratio=2.5,
            noise=0.4,
            step=0.6,
            steps=5,
            signal_energy=1.5,
            start_norm=0.6,
            start_overlap=0.3,
        ),
        dict(
            loss="logistic",
            ridge=0.1,
            sample_ratio=2.0,
            noise=0.5,
            step=0.8,
            steps=5,
            signal_energy=2.0,
            start_norm=0.6,
            start_overlap=0.3,
        ),
        dict(
            loss="committee",
            width=2,
            ridge=0.1,
            sample_ratio=3.0,
            noise=0.4,
            step=0.7,
            steps=4,
            signal_energy=1.5,
            start_norm=0.8,
            start_overlap=0.4,
            start_correlation=0.3,
            second_layer=1.3,
            activation="tanh",
            target_function="erf",
        ),
        dict(
            loss="committee",
            width=2,
            sphere=True,
            sample_ratio=3.0,
            noise=0.4,
            step=0.7,
            steps=4,
            signal_energy=1.0,
            start_norm=1.0,
            start_overlap=0.4,
            start_correlation=0.3,
            second_layer=0.8,
        ),
        dict(
            loss="hinge",
            ridge=0.2,
            sample_ratio=2.0,
            noise=0.4,
            step=0.4,
            steps=4,
            signal_energy=1.2,
            start_norm=0.6,
            start_overlap=0.3,
        ),
    )
    headline = Headline(
        "A neuron learns first and overfits later",
        x="steps",
        over=(0.0, 60.0, 61),
        whole=True,
        show=("train_error", "test_error"),
        at=dict(steps=60, noise=0.6, sample_ratio=2.0),
        size=400,
        draws=6,
        places=(0.0, 5.0, 10.0, 20.0, 40.0, 60.0),
        sliders=("sample_ratio", "step"),
    )

    loss: SampleLoss = parameter(
        "tanh",
        note="squared error of <theta,x>, of tanh<theta,x> or of a committee (a/m) sum_j sigma<theta_j,x>, logistic or hinge loss "
        "of signs, absolute error of <theta,x>, or a function L(r, w, e) of prediction, truth and label noise",
        symbol="L",
    )
    sample_ratio: float = parameter(2.0, symbol=r"\delta = n/d", above=0, scale="log", count="size * value")
    noise: float = parameter(0.3, least=0)
    step: float = parameter(0.5, symbol=r"\eta", above=0, scale="log")
    steps: int = parameter(10, symbol="K", least=1, most=200)
    signal_energy: float = parameter(2.0, symbol=r"\rho", above=0)
    start_norm: float = parameter(0.0, "squared norm of every neuron at the start", symbol="q_0", least=0)
    start_overlap: float = parameter(0.0, note="inner product of every neuron with the truth")
    ridge: float = parameter(0.0, least=0)
    penalty: Schedule | None = parameter(
        None,
        note="half of it multiplies the squared norm, in addition to the ridge; a number, pairs (time, value) or a function "
        "of the time step * steps",
    )
    width: int = parameter(1, note="above 1 only with loss = 'committee'", symbol="m", least=1, most=16)
    start_correlation: float | None = parameter(None, note="None: that of their parts along the truth", symbol="c_0")
    activation: Activation = parameter("tanh", note="of a committee")
    target_function: Activation | None = parameter("tanh", note="of a committee; None: pure noise")
    second_layer: float = parameter(1.0, note="of a committee")
    sphere: bool = parameter(False, "whether every neuron is rescaled to its norm at the start after each step")
    entries: Entries = parameter("gaussian", kind="experiment")
    target_spread: bool = parameter(
        True,
        "whether the coefficients behind the labels are spread over all coordinates",
        note="False: on one coordinate, where inputs that are not Gaussian have another limit",
        kind="experiment",
    )
    paths: int = parameter(
        16000, note="per replicate; losses other than the square", kind="solver", least=100, scale="log", finer=4
    )

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the inputs and of products with them. No matrix is decomposed."""
        return self.matrix_cost(size, matrices=3.0)

    def natural_scale(self, observable: str) -> float:
        """Return the neurons' norm as the scale of their inner products, because a pair that starts orthogonal has one near zero."""
        return max(self.start_norm, self.signal_energy) if observable == "correlation" else 0.0

    @model_validator(mode="after")
    def _possible(self) -> Self:
        norm, along = self.start_norm, self.start_overlap * self.start_overlap / self.signal_energy
        if along > norm * (1 + 1e-12):
            raise Refused(
                f"start_overlap = {self.start_overlap:g} is not allowed: its square must be at most start_norm * signal_energy = "
                f"{norm * self.signal_energy:g}"
            )
        if self.width > 1 and self.loss.name in LOSSES:
            raise Refused(
                f"width = {self.width} is not allowed: loss = {self.loss.name!r} has one neuron; use loss = 'committee'"
            )
        least = along - (norm - along) / max(self.width - 1, 1)
        if self.width > 1 and not least - 1e-12 <= self.correlation_at_start <= norm + 1e-12:
            raise Refused(
                f"start_correlation = {self.start_correlation} is not allowed: must be between {least:g} and {norm:g}, the common "
                f"inner products that {self.width} vectors with this norm and overlap can have"
            )
        if self.sphere and norm == 0:
            raise Refused(
                "start_norm = 0 is not allowed with sphere = True: must be above 0, the squared radius of the sphere"
            )
        if self.spectrum is not None and not self.target_spread:
            raise Refused(
                "target_spread = False is not allowed together with spectrum: the spectrum decides where the target lies"
            )
        self.smooth_loss()
        return self

    @classmethod
    def replaced_by_spectrum(cls) -> tuple[str, ...]:
        """Return no parameter, because the law has no groups of its own."""
        return ()

    @property
    def correlation_at_start(self) -> float:
        """The inner product of two neurons at the start."""
        return self.start_overlap**2 / self.signal_energy if self.start_correlation is None else self.start_correlation

    def smooth_loss(self) -> Loss:
        """Return the loss with its derivatives.

        >>> FirstOrderDynamics(loss="square").smooth_loss().linear
        True
        """
        if self.loss.name == "committee":
            return committee(self.noise, self.width, self.activation, self.target_function, self.second_layer)
        if self.loss.function is None:
            return LOSSES[self.loss.name](self.noise)
        return _with_noise(self.loss.of(self.width), self.noise)

    def start_gram(self) -> Floats:
        """Return the inner products of the neurons at the start.

        >>> FirstOrderDynamics(loss="committee", width=2, start_norm=1.0, start_correlation=0.25).start_gram()
        array([[1.  , 0.25],
               [0.25, 1.  ]])
        """
        c = self.correlation_at_start
        return c + (self.start_norm - c) * np.eye(self.width)

    def ridges(self) -> Floats:
        """Return the penalty at every step, which is the ridge plus the part that changes in time.

        >>> FirstOrderDynamics(loss="square", ridge=0.1, penalty=[(0, 1.0), (1, 0.0)], step=0.5, steps=2).ridges().tolist()
        [1.1, 0.6, 0.1]
        """
        return (
            self.ridge
            + (0.0 if self.penalty is None else self.penalty(self.step * np.arange(self.steps + 1)))
            + np.zeros(self.steps + 1)
        )

    def coordinates(self) -> dict[str, Any]:
        """Return the numbers of completed steps."""
        return {"time": np.arange(self.steps + 1)}

    def observed(self) -> tuple[str, ...]:
        """Return the names of errors for squared errors, and of losses for other losses."""
        kind = "error" if self.loss.name in SQUARED else "loss"
        return f"train_{kind}", f"test_{kind}", "norm", "overlap", "correlation"

    def headline_line(self, values: Floats) -> dict[str, Floats]:
        """Return the observables after whole numbers of steps, for the headline view."""
        limit = self.replace(steps=int(values.max())).evaluate()
        return {name: limit[name][values.astype(int)] for name in self.observed()}

    def headline_points(self, size: int, seeds: Sequence[int], places: Floats) -> dict[str, Floats]:
        """Return the observables of descents after whole numbers of steps, for the headline view."""
        law = self.replace(steps=int(places.max()))
        runs = [law.experiment(size, seed) for seed in seeds]
        return {name: np.array([run[name][places.astype(int)] for run in runs]) for name in self.observed()}

    def predicted(self) -> Values:
        """Solve the discrete-time equations. The accuracy is the spread of independent sets of paths."""
        return _solved(self)

    def measured(self, draw: Draw) -> Values:
        """Run gradient descent in `size` dimensions. The test error of the parameters is an average over new samples."""
        size, rng, n = draw.size, draw.rng, draw.count("sample_ratio")
        if size <= self.width:
            raise Refused(f"size = {size} is not allowed: must be at least width + 1 = {self.width + 1}")
        loss = as_vector(self.smooth_loss())
        axes = rng.standard_normal((size, self.width + 1))
        if not self.target_spread:
            axes[:, 0] = np.arange(size) == 0
        frame, _ = np.linalg.qr(axes)
        truth = np.sqrt(self.signal_energy) * frame[:, :1]
        along = self.start_overlap / self.signal_energy
        theta = along * truth + frame[:, 1:] @ _root(self.start_gram() - along**2 * self.signal_energy)
        x, e = white(rng, (n, size), self.entries), rng.standard_normal(n)
        deviations = np.ones((size, 1))
        if self.spectrum is not None:
            s, energy = self._directions(size)
            deviations = np.sqrt(s)[:, None]
            truth = np.sqrt(self.signal_energy * energy)[:, None] * np.sign(frame[:, :1])
            frame, _ = np.linalg.qr(np.concatenate([truth, axes[:, 1:]], axis=1))
            theta = along * truth + frame[:, 1:] @ _root(self.start_gram() - along**2 * self.signal_energy)
            x = x * deviations.T
        if self.entries == "gaussian":
            fresh = whitened_paths(rng, FRESH, self.width + 2)
        else:  # the result depends on all coordinates, and not only on two projections
            fresh = np.concatenate([rng.standard_normal((FRESH, 1)), white(rng, (FRESH, size), self.entries)], axis=1)
        target, track = (x @ truth).T, []
        for weights, r in self.descent(theta, truth, x, e):
            errors = float(loss.error(r, target, e).mean())
            track.append((errors, *self._measured(loss, weights, truth, fresh, deviations)))
        return dict(zip(self.observed(), np.array(track).T, strict=True))

    def descent(self, theta: Floats, truth: Floats, x: Floats, e: Floats) -> Iterator[tuple[Floats, Floats]]:
        """Yield parameters and predictions after 0, 1, ..., `steps` steps of gradient descent on the samples x with label noise e.

        >>> law = FirstOrderDynamics(loss="square", noise=0.0, step=1.0, steps=1)
        >>> x = np.sqrt(2.0) * np.eye(2)  # n = 2 samples with covariance 1
        >>> [theta.ravel().round(6).tolist() for theta, _ in law.descent(np.zeros((2, 1)), np.eye(2)[:, :1], x, np.zeros(2))]
        [[0.0, 0.0], [1.0, 0.0]]
        """
        loss, ridges, target, n = as_vector(self.smooth_loss()), self.ridges(), (x @ truth).T, len(x)
        for k in range(self.steps + 1):
            r = (x @ theta).T
            yield theta, r
            theta = theta - self.step * (ridges[k] * theta + x.T @ loss.first(r, target, e).T / n)
            if self.sphere:
                theta = np.sqrt(self.start_norm) * theta / np.linalg.norm(theta, axis=0)

    def row_law(self) -> tuple[Floats, Floats]:
        """Return mean and covariance of a row of the parameters in the limit, eq. (6a).

        Let b be a coordinate of the true parameters times sqrt(d). Given b, the same row of the trained parameters times sqrt(d) is a
        Gaussian process in the number of steps k, with mean b mean[k] and covariance covariance[k, s].

        >>> mean, covariance = FirstOrderDynamics(loss="square", steps=3).row_law()
        >>> mean.shape, covariance.shape
        ((4, 1), (4, 4, 1, 1))
        """
        if self.spectrum is not None:
            raise Refused(
                "row_law of FirstOrderDynamics is not defined for a spectrum, because rows of different directions have different laws; "
                "leave spectrum out"
            )
        runs = _runs(self)
        along = np.mean([run.overlap[:, :, 0] for run in runs], axis=0)
        correlation = np.mean([run.correlation for run in runs], axis=0)
        return along / self.signal_energy, correlation - np.einsum("ki,sj->ksij", along, along) / self.signal_energy

    def _measured(
        self, loss: Loss, theta: Floats, truth: Floats, fresh: Floats, deviations: Floats
    ) -> tuple[float, float, float, float]:
        """Return test error, norm, overlap and correlation of the parameters."""
        gram, overlap = theta.T @ theta, theta.T @ truth
        seen, target = deviations * theta, deviations * truth  # coefficients of the whitened inputs
        if self.entries != "gaussian":
            error = loss.error((fresh[:, 1:] @ seen).T, (fresh[:, 1:] @ target).T, fresh[:, 0])
            return float(error.mean()), *_averages(gram, overlap)
        signal = self.signal_energy if self.spectrum is None else float(np.sum(target**2))
        along = seen.T @ target / signal
        r = fresh[:, 2:] @ _root(seen.T @ seen - along @ along.T * signal) + np.sqrt(signal) * fresh[:, 1:2] * along.T
        error = loss.error(r.T, np.sqrt(signal) * fresh[:, 1:2].T, fresh[:, 0])
        return float(error.mean()), *_averages(gram, overlap)

    def rows(self) -> Rows | None:
        """Return the groups of rows of the parameters, or None for isotropic inputs."""
        if self.spectrum is None:
            return None
        s, w, energy = self.spectrum.eigenvalues, self.spectrum.weights, self.spectrum.energy
        energy = w if energy is None else energy
        return Rows(s, w, energy / energy.sum())

    def _directions(self, size: int) -> tuple[Floats, Floats]:
        """Return the eigenvalue and the share of |theta_*|^2 of every direction of an experiment."""
        assert self.spectrum is not None
        at = self.spectrum.at(size)
        counts, energy = at.counts(size), at.weights if at.energy is None else at.energy
        return np.repeat(at.eigenvalues, counts), np.repeat(energy / energy.sum() / counts, counts)


def _with_noise(loss: Loss, noise: float) -> Loss:
    """Return a loss whose label noise has this standard deviation."""

    def scaled(part: Any) -> Any:
        return None if part is None else lambda r, w, e: part(r, w, noise * e)

    first, error = scaled(loss.first), scaled(loss.error)
    return replace(loss, first=first, second=scaled(loss.second), cross=scaled(loss.cross), error=error)


def _root(gram: Floats) -> Floats:
    """Return the symmetric square root of a positive matrix."""
    values, vectors = np.linalg.eigh(gram)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _averages(gram: Floats, overlap: Floats) -> tuple[float, float, float]:
    """Return norm and overlap averaged over neurons, and the inner product averaged over pairs (0 for one neuron)."""
    m, norms = len(gram), float(np.trace(gram))
    pairs = (float(gram.sum()) - norms) / (m * (m - 1)) if m > 1 else 0.0
    return norms / m, float(overlap.mean()), pairs


def _runs(law: FirstOrderDynamics) -> list[DescentCorrelations]:
    """Return one solution if nothing is sampled, and otherwise independent solutions."""
    loss = as_vector(law.smooth_loss())
    return [_run(law, loss, replicate) for replicate in range(1 if loss.linear else REPLICATES)]


def _run(law: FirstOrderDynamics, loss: Loss, replicate: int, shift: float = SHIFT) -> DescentCorrelations:
    """Return the solution with one set of paths."""
    m = law.width
    return descent_correlations(
        loss,
        law.sample_ratio,
        law.step,
        law.steps,
        signal=law.signal_energy,
        start_norm=law.start_gram(),
        start_overlap=np.full((m, 1), law.start_overlap),
        ridge=law.ridges()[:-1],
        sphere=law.sphere,
        paths=2 * (m * (law.steps + 1) + 3) if loss.linear else law.paths,
        seed=replicate,
        shift=shift,
        kernels_like=kernels_of(law.rows()),
    )


@functools.lru_cache(maxsize=32)
def _solved(law: FirstOrderDynamics) -> dict[str, Any]:
    solutions = _runs(law)
    runs = [_curves(run) for run in solutions]
    mean = np.mean(runs, axis=0)
    scale = np.abs(mean).max(axis=1)
    scale[-1] = max(scale[-1], scale[2])  # the scale of inner products of pairs is at least their norm
    errors = ALGEBRA * scale
    if len(runs) > 1:
        # Student's 99 % quantile with five degrees of freedom is 4.03; a comparison uses the accuracy as a bound
        errors = np.maximum(errors, 4 * np.std(runs, axis=0, ddof=1).max(axis=1) / np.sqrt(len(runs)))
    if "r" in solutions[0].jumps:  # the error of the shifts is of second order, a third of the change by twice the shift
        wider = _curves(_run(law, as_vector(law.smooth_loss()), 0, 2 * SHIFT))
        errors = errors + np.abs(wider - runs[0]).max(axis=1) / 3
    values = dict(zip(law.observed(), mean, strict=True))
    accuracy = float(np.max(errors / np.where(scale == 0, 1.0, scale)))
    if not accuracy <= WORST_ACCURACY:
        raise ConvergenceError(_too_spread(law, accuracy), estimate=values, accuracy=accuracy)
    return {**values, "accuracy": dict(zip(values, errors, strict=True))}


def _curves(run: DescentCorrelations) -> Floats:
    """Return both errors, norm, overlap and correlation along the steps."""
    parts = [_averages(run.correlation[k, k], run.overlap[k]) for k in range(len(run.overlap))]
    return np.array([run.train_error, run.test_error, *zip(*parts, strict=True)])


def longest_step(sample_ratio: float) -> float:
    """Return the step beyond which descent overshoots along the steepest direction of the inputs, if the loss has curvature 1.

    >>> round(longest_step(0.01), 4)
    0.0165
    """
    return float(2 / (1 + 1 / np.sqrt(sample_ratio)) ** 2)


def _too_spread(law: FirstOrderDynamics, accuracy: float) -> str:
    """Return the reason why the sampled averages are not accepted, and the remedy."""
    spread = f"independent sets of paths differ by {accuracy:.0%}"
    longest = longest_step(law.sample_ratio)
    if law.step <= longest:
        return f"paths = {law.paths} is not enough: {spread}; use more paths, fewer steps or a step below {law.step:g}"
    return (
        f"step = {law.step:g} is too long for sample_ratio = {law.sample_ratio:g}: beyond 2 / (1 + 1/sqrt(sample_ratio))^2 = {longest:.2g} "
        f"descent overshoots, the responses to early steps explode and {spread}, a difference that more paths do not "
        f"reduce; use a step of at most {longest:.2g}, or fewer steps"
    )
