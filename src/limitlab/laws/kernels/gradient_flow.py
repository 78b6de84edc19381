"""Training in the kernel regime as closed trajectories, with the kernel at the start or that of infinite width.

Setting.  n labels y, loss |y - f|^2/(2n) (+ ridge |theta - theta_0|^2/(2n)), gradient flow or steps of size eta from f_0, fixed kernel K.
Limit.    Width m -> infinity: K is the tangent kernel Theta and f_0 a Gaussian process with covariance Sigma.
Result.   docs/theory/tangent_kernels.md, equations (11)-(14). On an eigenvector of K with eigenvalue l the residual is multiplied by
          e_t(l) = exp(-(l + ridge) t/n), or (1 - eta (l + ridge)/n)^(t/eta); with phi_t = (1 - e_t)/(l + ridge),

              f_t(x) = f_0(x) - k(x, X) phi_t(K) (f_0 - y),

          so that over starts f_t(x) is Gaussian with mean k phi_t y and covariance A Sigma A', A = (-k phi_t, 1).
Status.   Exact for a model linear in its parameters; a theorem for wide networks (Jacot et al. 2018; Lee et al. 2019).
"""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, check_prediction, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.kernels._wide_networks import DeepNetworks, waves
from limitlab.laws.kernels.deep import nngp, ntk
from limitlab.laws.kernels.duals import relative_error
from limitlab.models.activations import Activation

__all__ = ["KernelGradientFlow", "ensemble_flow", "kernel_gradient_flow"]

Array = NDArray[Any]

ZERO = 1e-12  # eigenvalues below this share of the largest count as 0 at infinite time
NOT_POSITIVE = 1e-8  # of the trace; a more negative eigenvalue is an error, not rounding


class Trajectory(NamedTuple):
    """Outputs over times at the training inputs, shape (times, n), and at the test inputs, shape (times, tests)."""

    train: Array
    test: Array | None


class Spectrum(NamedTuple):
    """Eigenvalues (at least 0) and eigenvectors (columns) of a kernel matrix."""

    values: Array
    vectors: Array


def spectrum(K: ArrayLike) -> Spectrum:
    """Return the eigendecomposition of a symmetric and positive kernel matrix.

    >>> spectrum([[2.0, 0.0], [0.0, 1.0]]).values.tolist()
    [1.0, 2.0]
    """
    matrix = np.asarray(K, dtype=float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise Refused(f"K of shape {matrix.shape} is not allowed: must be a square matrix of finite numbers")
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    if values[0] < -NOT_POSITIVE * max(np.trace(matrix), np.finfo(float).tiny):
        raise Refused(f"K is not allowed: it has the eigenvalue {values[0]:.3g}; a kernel matrix has none below 0")
    return Spectrum(np.maximum(values, 0.0), vectors)


def decay(values: Array, samples: int, times: Array, step: float, ridge: float) -> Array:
    """Return e_t(l), the factor of the residual along every eigenvector, shape (times, eigenvalues) (eq. 12)."""
    rate = (values + ridge) / samples
    with np.errstate(invalid="ignore"):
        if step == 0:
            left = np.exp(-rate * times[:, None])
        else:
            if step * rate.max() >= 2:
                raise Refused(
                    f"step = {step:g} is not allowed: must be below {2 / rate.max():.6g}, because longer steps diverge"
                )
            counts = np.where(np.isinf(times), np.inf, np.round(times / step))
            factor = 1 - step * rate
            odd = np.where((counts[:, None] % 2 == 1) & (factor < 0), -1.0, 1.0)
            left = odd * np.abs(factor) ** counts[:, None]
    at_end = np.where(rate > ZERO * max(rate.max(), np.finfo(float).tiny), 0.0, 1.0)
    return np.where(np.isinf(times)[:, None], at_end, left)


def learned(values: Array, left: Array, samples: int, times: Array, ridge: float) -> Array:
    """Return phi_t(l) = (1 - e_t)/(l + ridge), with the value t/n at l + ridge = 0 (0 at infinite time)."""
    total = np.broadcast_to(values + ridge, left.shape)
    gone = np.where(left > 0.5, -np.expm1(np.log(np.maximum(left, 0.5))), 1 - left)  # without loss of digits at small times
    at_zero = np.broadcast_to(np.where(np.isinf(times), 0.0, times)[:, None] / samples, left.shape)
    tiny = total <= ZERO * max(float(values.max(initial=0.0)), np.finfo(float).tiny)
    return np.where(tiny, at_zero, gone / np.where(tiny, 1.0, total))


def kernel_gradient_flow(
    K: ArrayLike,
    y: ArrayLike,
    f0: ArrayLike,
    times: ArrayLike,
    k_test: ArrayLike | None = None,
    f0_test: ArrayLike | None = None,
    *,
    step: float = 0.0,
    ridge: float = 0.0,
) -> Trajectory:
    """Return the outputs of kernel gradient flow on |y - f|^2/(2n), or of gradient descent on this loss.

    Parameters
    ----------
    K
        Kernel between the n training inputs.
    y, f0
        Labels, and outputs at time 0.
    times
        Times, at least 0. `inf` is the end of training (the interpolant nearest to the start, if there is one).
    k_test, f0_test
        Kernel between test inputs (rows) and training inputs, and the outputs at the test inputs at time 0 (default 0).
    step
        0 is gradient flow. A positive number is the size of round(t / step) steps.
    ridge
        Penalty ridge |theta - theta_0|^2/(2n) added to the loss. At time inf the result is kernel ridge regression of y - f0.

    Examples
    --------
    >>> K = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> flow = kernel_gradient_flow(K, [1.0, 0.0], [0.0, 0.0], [0.0, 1.0, np.inf], k_test=[[1.0, 1.0]])
    >>> flow.train.round(6).tolist()
    [[0.0, 0.0], [0.58517, 0.1917], [1.0, 0.0]]
    >>> flow.test.round(6).ravel().tolist()
    [0.0, 0.258957, 0.333333]
    """
    eigen = spectrum(K)
    grid, labels, start = checked_times(times), np.asarray(y, dtype=float), np.asarray(f0, dtype=float)
    n = len(eigen.values)
    if labels.shape != (n,) or start.shape != (n,):
        raise Refused(
            f"y and f0 of shapes {labels.shape} and {start.shape} are not allowed: must be ({n},), one number per row of K"
        )
    left = decay(eigen.values, n, grid, step, ridge)
    away = eigen.vectors.T @ (start - labels)
    _warn_if_impossible(eigen, away, grid, ridge)
    phi = learned(eigen.values, left, n, grid, ridge)
    train = start - (eigen.values * phi * away) @ eigen.vectors.T
    if k_test is None:
        return Trajectory(train, None)
    rows = np.atleast_2d(np.asarray(k_test, dtype=float))
    if rows.shape[1] != n:
        raise Refused(f"k_test of shape {rows.shape} is not allowed: must have {n} columns, one per row of K")
    base = np.zeros(len(rows)) if f0_test is None else np.asarray(f0_test, dtype=float)
    return Trajectory(train, base - (phi * away) @ (rows @ eigen.vectors).T)


def _warn_if_impossible(eigen: Spectrum, away: Array, times: Array, ridge: float) -> None:
    null = eigen.values <= ZERO * max(float(eigen.values[-1]), np.finfo(float).tiny)
    if (
        ridge == 0
        and np.isinf(times).any()
        and null.any()
        and np.abs(away[null]).max() > 1e-8 * max(np.abs(away).max(), 1e-300)
    ):
        warnings.warn(
            "the kernel matrix is singular and the labels do not fit it (for example equal inputs with different labels): "
            "the flow ends at the nearest fit, not at an interpolant",
            stacklevel=3,
        )


class Ensemble(NamedTuple):
    """Mean and covariance over starts by time, of shapes (times, points) and (times, points, points), training inputs first."""

    mean: Array
    covariance: Array


def ensemble_flow(
    K: ArrayLike,
    nngp: ArrayLike,
    y: ArrayLike,
    times: ArrayLike,
    k_test: ArrayLike | None = None,
    *,
    step: float = 0.0,
    ridge: float = 0.0,
) -> Ensemble:
    """Return mean and covariance over starts of the outputs at training and test inputs (eq. 14).

    Parameters
    ----------
    K, y, times, k_test, step, ridge
        As in `kernel_gradient_flow`.
    nngp
        Covariance of the outputs at time 0, at training and test inputs together.

    Examples
    --------
    >>> ensemble = ensemble_flow([[2.0]], [[1.0]], [3.0], [0.0, np.inf])
    >>> ensemble.mean.ravel().tolist(), ensemble.covariance.ravel().tolist()
    ([0.0, 3.0], [1.0, 0.0])
    """
    eigen, grid, labels = spectrum(K), checked_times(times), np.asarray(y, dtype=float)
    n, sigma = len(labels), np.asarray(nngp, dtype=float)
    rows = np.vstack([np.asarray(K, dtype=float), *([] if k_test is None else [np.atleast_2d(k_test)])])
    if sigma.shape != (len(rows), len(rows)):
        raise Refused(f"nngp of shape {sigma.shape} is not allowed: must be {(len(rows), len(rows))}, all inputs")
    phi = learned(eigen.values, decay(eigen.values, n, grid, step, ridge), n, grid, ridge)
    gains = np.einsum("pi,ti,qi->tpq", rows @ eigen.vectors, phi, eigen.vectors)  # k phi_t(K)
    keep = np.broadcast_to(np.eye(len(rows)), (len(grid), len(rows), len(rows))).copy()
    keep[:, :, :n] -= gains  # A acts on (f_0(X), f_0(x))
    return Ensemble(gains @ labels, keep @ sigma @ keep.swapaxes(1, 2))


def checked_times(times: ArrayLike) -> Array:
    """Return times of at least 0 as a flat array."""
    grid = np.atleast_1d(np.asarray(times, dtype=float))
    if np.isnan(grid).any() or (grid < 0).any():
        raise Refused(f"times = {times!r} are not allowed: must be at least 0 (inf is the end of training)")
    return grid


# -- the law --------------------------------------------------------------------------------------------------------------


class KernelGradientFlow(Law):
    """How do the outputs of a wide network change while it is trained by gradient descent?

    Examples
    --------
    >>> law = KernelGradientFlow(times=(0.0, 10.0), step=0.5)
    >>> law.theory().train_error.values.round(4).tolist()
    [2.5326, 0.0901]
    """

    status = "theorem"
    regime = "width -> infinity at fixed data, layers and times"
    assumptions = ("squared loss, full-batch gradient descent on all parameters", "the parametrisation of `WideNetwork`")
    references = ("jacot2018neural", "lee2019wide")
    page = "tangent_kernels"
    observables = {
        **shared("train_error"),
        "test_output": observable("mean output at the first test input", r"\mathbb{E} f_t(x)"),
        "test_square": observable("mean squared output over test inputs and starts", r"\mathbb{E} f_t(x)^2", least=0),
    }
    simulation = Experiment("width m of every hidden layer", sizes=(32, 64, 128), draws=40)
    # Two and three layers, two activations, steps that are not small, biases, labels above 1
    points = (
        dict(bias_std=0.3, weight_std=1.2, label_size=1.5, step=0.6, times=(1.2, 6.0, 18.0), networks=50),
        dict(
            layers=3,
            activation="tanh",
            bias_std=0.4,
            weight_std=1.3,
            samples=5,
            label_size=1.5,
            step=0.8,
            times=(0.8, 4.0, 12.0),
            networks=60,
        ),
    )
    headline = Headline(
        "A wide network trains like its kernel",
        x="times",
        over=(0.0, 60.0, 121),
        y_scale="log",
        show=("train_error",),
        curves=("layers", (2, 3, 5)),
        size=128,
        draws=4,
        places=(0.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0),
        sliders=("samples", "label_size"),
    )

    layers: int = parameter(2, least=2, most=20)
    activation: Activation = parameter("erf")
    weight_std: float = parameter(1.0, note="divided by the root of the number of inputs", above=0)
    bias_std: float = parameter(0.1, least=0)
    samples: int = parameter(6, note="at fixed inputs", least=1)
    dimension: int = parameter(10, note="of the inputs", least=1)
    label_size: float = parameter(2.0, above=0)
    step: float = parameter(0.5, note="0 is gradient flow", symbol=r"\eta", least=0)
    times: float | tuple[float, ...] = parameter(
        (2.0, 10.0, 50.0), note="step times the number of steps", kind="coordinate", least=0, scale="log"
    )
    networks: int = parameter(20, kind="experiment", least=1)

    @model_validator(mode="after")
    def _stable(self) -> Self:
        self.activation.check_derivatives()
        check_prediction(self)
        top = float(np.linalg.eigvalsh(self._kernels()[1][: self.samples, : self.samples])[-1]) / self.samples
        if self.step * top >= 2:
            raise Refused(f"step = {self.step:g} is not allowed: must be below {2 / top:.6g}, because longer steps diverge")
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of networks and their mirror images, with gradients."""
        weights = size * (self.dimension + 1 + max(self.layers - 2, 0) * size)
        return Cost(
            6.0 * self.networks * weights,
            4.0 * self.networks * weights * self.samples * max(latest(self) / (self.step or 1.0), 1.0),
        )

    def limit_cost(self) -> Cost:
        """Return the cost of kernels of all pairs of samples."""
        inputs = float(self.samples * self.dimension)
        return Cost(
            1e5 + 60.0 * self.samples**2 + 5.0 * inputs,
            1e7 + self.samples**3 + 1e4 * self.samples**2 + self.samples * inputs,
        )

    def data(self) -> tuple[Array, Array, Array]:
        """Return training inputs, labels and 8 test inputs, which are fixed tables of sines and cosines."""
        X = 1.3 * waves(self.samples, self.dimension, 0.0)
        return X, self.label_size * np.cos(1.1 * np.arange(self.samples)), waves(8, self.dimension, 10.0)

    def _kernels(self) -> tuple[Array, Array]:
        X, _, tests = self.data()
        options = (None, self.layers, self.activation, self.weight_std, self.bias_std)
        points = np.vstack([X, tests])
        return nngp(points, *options), ntk(points, *options)

    def predicted(self, times: Array) -> Values:
        """Return moments of the outputs over starts, at infinite width."""
        sigma, theta = self._kernels()
        n, labels = self.samples, self.data()[1]
        ensemble = ensemble_flow(theta[:n, :n], sigma, labels, times, theta[n:, :n], step=self.step)
        square = ensemble.mean**2 + np.diagonal(ensemble.covariance, axis1=1, axis2=2)
        return dict(
            train_error=(square[:, :n] - 2 * ensemble.mean[:, :n] * labels + labels**2).mean(axis=1),
            test_output=ensemble.mean[:, n],
            test_square=square[:, n:].mean(axis=1),
            accuracy=max(5e-10, 10 * self._kernel_error(theta[:n, :n], float(times.max()))),
        )

    def _kernel_error(self, theta: Array, time: float) -> float:
        """Return an estimate of the error of the outputs.

        It is the error of the kernel times 1 + the number of e-folds of the fastest mode until the time, or until the slowest mode is
        learned.
        """
        values = np.linalg.eigvalsh(theta)
        folds = min(time * values[-1] / self.samples, values[-1] / max(values[0], 1e-300))
        return relative_error(self.activation, np.diagonal(theta)) * (1 + float(folds))

    def measured(self, draw: Draw, times: Array) -> Values:
        """Train networks and their mirror images by gradient descent on all parameters, for gradient flow with very small steps."""
        X, labels, tests = self.data()
        widths = (self.dimension, *(draw.size,) * (self.layers - 1), 1)
        nets = DeepNetworks.start(draw.rng, self.networks, widths, self.activation, self.weight_std, self.bias_std)
        nets = nets.with_mirror_images()
        step = self.step or self._small_step()
        train, test, done = [], [], 0
        for time in times:
            if math.isinf(time):
                raise Refused("times = inf is not allowed in a simulation: choose a finite time")
            while done < round(float(time) / step):
                nets.descend(X, labels, step)
                done += 1
            train.append(((nets.outputs(X)[..., 0] - labels) ** 2).mean())
            test.append(nets.outputs(tests)[..., 0])
        return dict(
            train_error=np.array(train),
            test_output=np.array([outputs[:, 0].mean() for outputs in test]),
            test_square=np.array([(outputs**2).mean() for outputs in test]),
        )

    def _small_step(self) -> float:
        """Return a step with which the fastest mode falls by a factor e in a hundred steps."""
        theta = self._kernels()[1][: self.samples, : self.samples]
        return float(0.01 * self.samples / np.linalg.eigvalsh(theta)[-1])
