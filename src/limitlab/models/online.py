"""Online SGD on the sphere with one fresh sample per step, as an exact Markov chain of the overlap and with full vectors.

A step is x <- (x + C (a - w x)) / |...| with w = <a, x> and C = (delta / N) q, where the gain q depends on the sample only through
w and z = <a, v0>. The component of `a` outside the plane of x and v0 enters only through its squared length, which is a chi-square with
N - 2 degrees of freedom. The overlap m = <x, v0> is therefore a Markov chain (docs/theory/online_sgd.md, eq. 8):

    m' = (m + C (z - w m)) / sqrt(1 + C^2 (z^2 + t^2 + chi^2_{N-2} - w^2)),     w = m z + sqrt(1 - m^2) t.

A step of the chain costs the same in every dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, NamedTuple, Protocol

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from limitlab._core.checks import whole
from limitlab._core.files import checkpoint_of, generator_state, restore_generator
from limitlab.models.activations import Activation
from limitlab.models.tabulated import Table, tabulate
from limitlab.numerics.normal_rows import fill_row, key_of

__all__ = ["BinaryMixture", "SpikedCovariance", "TeacherStudent", "full_overlap_paths"]

Array = NDArray[np.float64]
PIECE = 1_000_000  # steps of the chain between two points at which its state may be saved


class SphereModel(Protocol):
    """Interface of a model whose gradient is a gain times the sample."""

    def compiled(self) -> Any:
        """Return a named tuple with a static function `sample(rng, model, m)` for the compiled chain (see `fresh_sample`)."""

    def first(self, z: Any, extra: Any) -> Any:
        """Return the component of the sample along v0, computed from two standard Gaussians."""

    def gain(self, z: Any, w: Any, extra: Any) -> Any:
        """Return the gain q in C = (delta / N) q."""


class TeacherStudentChain(NamedTuple):
    """A teacher and a student for the compiled chain."""

    noise: float
    teacher: Table
    student: Table
    slope: Table

    @staticmethod
    def sample(rng: Any, model: Any, m: float) -> tuple[float, float, float, float]:
        """Return a sample with gain 2 (y - g(w)) g'(w)."""
        z, t = rng.standard_normal(), rng.standard_normal()
        w = m * z + math.sqrt(max(0.0, 1 - m * m)) * t
        label = look_up(model.teacher, z)
        if model.noise > 0:
            label += model.noise * rng.standard_normal()
        return z, t, w, 2 * (label - look_up(model.student, w)) * look_up(model.slope, w)


class SpikedCovarianceChain(NamedTuple):
    """Samples that are stretched along v0, for the compiled chain."""

    spread: float

    @staticmethod
    def sample(rng: Any, model: Any, m: float) -> tuple[float, float, float, float]:
        """Return a sample with gain 2 w."""
        z, t = model.spread * rng.standard_normal(), rng.standard_normal()
        w = m * z + math.sqrt(max(0.0, 1 - m * m)) * t
        return z, t, w, 2 * w


class BinaryMixtureChain(NamedTuple):
    """Two clusters for the compiled chain, where a Gaussian below `threshold` selects the first cluster."""

    field: float
    threshold: float

    @staticmethod
    def sample(rng: Any, model: Any, m: float) -> tuple[float, float, float, float]:
        """Return a sample with gain tanh(w + field)."""
        z, t = rng.standard_normal(), rng.standard_normal()
        z += 1.0 if rng.standard_normal() < model.threshold else -1.0
        w = m * z + math.sqrt(max(0.0, 1 - m * m)) * t
        return z, t, w, math.tanh(w + model.field)


@dataclass(frozen=True)
class TeacherStudent:
    """Squared loss of a student g(<a, x>) on labels f(<a, v0>) + noise."""

    teacher: Activation
    student: Activation
    noise: float = 0.0

    def compiled(self) -> TeacherStudentChain:
        """Return the noise, and tables of f, g and g'."""
        return TeacherStudentChain(float(self.noise), *_tables(self.teacher, self.student))

    def first(self, z: Any, extra: Any) -> Any:
        """Return the component of a sample along the hidden direction, which is the standard Gaussian z."""
        return z

    def gain(self, z: Any, w: Any, extra: Any) -> Any:
        """Return 2 (y - g(w)) g'(w), minus the derivative of the loss with respect to the score w = <a, x>."""
        return 2 * (self.teacher(z) + self.noise * extra - self.student(w)) * self.student.derivative(w)


@dataclass(frozen=True)
class SpikedCovariance:
    """Online PCA with the loss -<a, x>^2 for samples a ~ N(0, I + snr v0 v0^T)."""

    snr: float

    def compiled(self) -> SpikedCovarianceChain:
        """Return the standard deviation along v0."""
        return SpikedCovarianceChain(math.sqrt(1 + self.snr))

    def first(self, z: Any, extra: Any) -> Any:
        """Return z, stretched to the standard deviation along v0."""
        return math.sqrt(1 + self.snr) * z

    def gain(self, z: Any, w: Any, extra: Any) -> Any:
        """Return 2 w, minus the derivative of the loss with respect to the score w = <a, x>."""
        return 2 * w


@dataclass(frozen=True)
class BinaryMixture:
    """Two clusters a = +-v0 + N(0, I) with odds e^{2 field}, and the loss -log cosh(<a, x> + field)."""

    field: float

    def compiled(self) -> BinaryMixtureChain:
        """Return the field, and the quantile below which a Gaussian selects the first cluster."""
        return BinaryMixtureChain(float(self.field), self._threshold())

    def _threshold(self) -> float:
        from scipy.special import expit, ndtri

        return float(ndtri(expit(2 * self.field)))

    def first(self, z: Any, extra: Any) -> Any:
        """Return z, shifted to the centre of the cluster."""
        return z + np.where(extra < self._threshold(), 1.0, -1.0)

    def gain(self, z: Any, w: Any, extra: Any) -> Any:
        """Return tanh(w + field), minus the derivative of the loss with respect to the score w = <a, x>."""
        return np.tanh(w + self.field)


@lru_cache(maxsize=32)
def _tables(teacher: Activation, student: Activation) -> tuple[Table, Table, Table]:
    return (
        tabulate(teacher, teacher.kinks),
        tabulate(student, student.kinks),
        tabulate(student.derivative, student.kinks),
    )


# -- the exact chain ---------------------------------------------------------------------------------------------------


@numba.njit(cache=True, nogil=True)
def look_up(table: Any, x: float) -> float:
    """Return the function of a table (`limitlab.models.tabulated`) at x.

    >>> bool(abs(look_up(tabulate(np.tanh), 0.3) - np.tanh(0.3)) < 1e-11)
    True
    >>> round(look_up(tabulate(lambda x: np.maximum(x - 0.3, 0), kinks=(0.3,)), 0.31), 9)
    0.01
    """
    edges, per_unit, first, cubics = table
    segment = 0
    while segment < per_unit.size - 1 and x > edges[segment + 1]:
        segment += 1
    place = (x - edges[segment]) * per_unit[segment]
    last = (first[segment + 1] if segment + 1 < first.size else cubics.shape[0]) - first[segment] - 1
    cell = min(max(int(place), 0), last)
    u = 2 * (place - cell) - 1
    c = cubics[first[segment] + cell]
    return c[0] + u * (c[1] + u * (c[2] + u * c[3]))


def fresh_sample(rng: Any, model: Any, m: float) -> tuple[float, float, float, float]:
    """Return a fresh sample at overlap m, as z = <a, v0>, the orthogonal component t in the plane, w = <a, x>, and the gain q.

    Compiled code calls the static function `sample` of the class of the model. A new model therefore needs a new class.
    """
    return model.sample(rng, model, m)


# not strict, so that a sample function needs no annotations; inlined, because a call would count references at every step
@overload(fresh_sample, strict=False, inline="always")
def _compiled_sample(rng: Any, model: Any, m: float) -> Any:
    return model.instance_class.sample


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a compiled loop of the chain, which is cached on disk for the models of this file.

    For models of other files the loop is compiled in every process. A cached loop would not be updated after a change of their
    `sample`, and could not be read in a process without these files.
    """
    cached, fresh = numba.njit(cache=True, nogil=True)(function), numba.njit(nogil=True)(function)

    @wraps(function)
    def call(rng: np.random.Generator, model: Any, *arguments: Any) -> Any:
        return (cached if type(model).__module__ == __name__ else fresh)(rng, model, *arguments)

    return call


@numba.njit(nogil=True, inline="always")  # cached on disk as a part of the loops
def _next(rng: Any, model: Any, m: float, dimension: int, step: float) -> float:
    """Return the overlap after one step of the chain."""
    z, t, w, gain = fresh_sample(rng, model, m)
    c = step / dimension * gain
    rest = rng.chisquare(dimension - 2)
    return float((m + c * (z - w * m)) / math.sqrt(1 + c * c * (z * z + t * t + rest - w * w)))


@_compiled
def overlap_path(rng: Any, model: Any, m: float, dimension: int, step: float, counts: NDArray[np.int64]) -> Array:
    """Return the overlap after each number of steps in `counts`, which must increase, for a start at the overlap m.

    >>> model = SpikedCovariance(2.0).compiled()
    >>> path = overlap_path(np.random.default_rng(0), model, 0.1, 10_000, 0.5, np.array([0, 40_000]))
    >>> bool(path[0] == 0.1 and abs(path[1] - 0.707) < 0.05)
    True
    """
    path, done = np.empty(counts.size), 0
    for i in range(counts.size):
        while done < counts[i]:
            m = _next(rng, model, m, dimension, step)
            done += 1
        path[i] = m
    return path


def long_overlap_path(rng: Any, model: Any, m: float, dimension: int, step: float, counts: NDArray[np.int64]) -> Array:
    """Return `overlap_path`, computed in pieces between which `limitlab._core.files` may save the state."""
    checkpoint = checkpoint_of("overlap chain", generator_state(rng).tobytes(), model, m, dimension, step, counts.tobytes())
    if not checkpoint.active:
        return np.asarray(overlap_path(rng, model, m, dimension, step, counts))
    path, done, column = np.full(counts.size, np.nan), 0, 0
    if (state := checkpoint.load()) is not None:
        m, path, done, column = float(state["m"]), state["path"], int(state["done"]), int(state["column"])
        restore_generator(rng, state["generator"])
    while column < counts.size:
        ahead = min(int(counts[column]) - done, PIECE)
        m = float(overlap_path(rng, model, m, dimension, step, np.array([ahead]))[0])
        done += ahead
        if done == counts[column]:
            path[column] = m
            column += 1
        now = {"m": m, "path": path, "done": done, "column": column, "generator": generator_state(rng)}
        checkpoint.offer(lambda: {name: np.asarray(value) for name, value in now.items()})  # noqa: B023 (called immediately or never)
    checkpoint.finish()
    return path


@_compiled
def hitting_times(
    rng: Any, model: Any, m: float, dimension: int, step: float, levels: Array, two_sided: bool, most: int
) -> NDArray[np.int64]:
    """Return the number of steps until the overlap first exceeds each of the increasing levels.

    With `two_sided` the absolute value of the overlap is compared. The result is -1 for a level that is not exceeded in `most` steps.
    """
    times, reached = np.full(levels.size, -1), 0
    for done in range(most + 1):
        while reached < levels.size and (m > levels[reached] or (two_sided and -m > levels[reached])):
            times[reached] = done
            reached += 1
        if reached == levels.size:
            break
        m = _next(rng, model, m, dimension, step)
    return times


@_compiled
def overlap_extremes(
    rng: Any, model: Any, m: float, dimension: int, step: float, steps: int, level: float, two_sided: bool
) -> Array:
    """Return the overlap after `steps` steps, its largest absolute value, the first step above `level`, and the least overlap from then on.

    The last two numbers are infinite if the overlap never exceeds the level. With `two_sided` the absolute value of the overlap is used
    throughout. The start counts as step 0.

    >>> model = SpikedCovariance(2.0).compiled()
    >>> rng = np.random.default_rng(0)
    >>> end, highest, first, least = overlap_extremes(rng, model, 0.5, 1000, 0.1, 100_000, 0.9, False)
    >>> bool(highest >= end >= least > 0.8), bool(first > 0)
    (True, True)
    """
    highest, first, least = abs(m), math.inf, math.inf
    for done in range(steps + 1):
        seen = abs(m) if two_sided else m
        highest = max(highest, abs(m))
        if first == math.inf and seen > level:
            first = float(done)
        if first < math.inf:
            least = min(least, seen)
        if done < steps:
            m = _next(rng, model, m, dimension, step)
    return np.array([abs(m) if two_sided else m, highest, first, least])


def uniform_overlap(rng: np.random.Generator, dimension: int) -> float:
    """Return the overlap of a uniform random unit vector with a fixed unit vector.

    >>> bool(abs(uniform_overlap(np.random.default_rng(0), 100)) < 1)
    True
    """
    first = rng.standard_normal()
    return float(first / math.sqrt(first**2 + rng.chisquare(dimension - 1)))


def checked_dimension(size: int) -> int:
    """Return a dimension of at least 3, in which there is a direction outside the plane of x and v0."""
    return whole("size", size, least=3, remedy="there must be a direction outside the plane of x and v0")


# -- full vectors ------------------------------------------------------------------------------------------------------


def full_overlap_paths(
    rngs: Sequence[np.random.Generator],
    model: SphereModel,
    m: float,
    dimension: int,
    step: float,
    counts: Sequence[int],
    threads: int = 1,
) -> Array:
    """Return the overlaps of full-vector SGD after the numbers `counts` of steps, one row per generator.

    Samples and weights are vectors of `dimension` single-precision numbers, v0 is the first axis, and the start has overlap m. A
    generator determines the start and the key of the samples of its row (`limitlab.numerics.normal_rows`). A row therefore depends only
    on its generator, and not on the number of threads.

    Examples
    --------
    >>> rngs = [np.random.default_rng(seed) for seed in range(4)]
    >>> full_overlap_paths(rngs, SpikedCovariance(2.0), 0.5, 400, 0.5, [0, 800]).shape
    (4, 2)
    """
    starts = np.stack([_start_vector(rng, m, dimension) for rng in rngs])
    keys = np.stack([key_of(rng) for rng in rngs])
    groups = np.array_split(np.arange(len(rngs)), min(max(threads, 1), len(rngs)))

    def run(group: NDArray[np.int64]) -> Array:
        return _full_paths(starts[group], keys[group], model, dimension, step, list(counts))

    with ThreadPoolExecutor(len(groups)) as pool:  # threads use the caller's context, such as the folder of saved states
        started = [pool.submit(copy_context().run, run, group) for group in groups]
        return np.concatenate([future.result() for future in started])


def _full_paths(
    x: NDArray[np.float32], keys: NDArray[np.uint32], model: SphereModel, dimension: int, step: float, marks: Sequence[int]
) -> Array:
    """Return the overlaps of the runs of one thread, and update x (one row per run) in place."""
    checkpoint = checkpoint_of("full-vector SGD", x.tobytes(), keys.tobytes(), model, dimension, step, tuple(marks))
    paths = np.full((len(x), len(marks)), np.nan)
    samples = np.empty((len(x), dimension + 2 - dimension % 2), dtype=np.float32)  # with an additional number for the labels
    done = 0
    if (state := checkpoint.load()) is not None:
        x, paths, done = state["x"], state["paths"], int(state["done"])
    while True:
        for column in (i for i, mark in enumerate(marks) if mark == done):
            paths[:, column] = x[:, 0]
        if done >= marks[-1]:
            checkpoint.finish()
            return paths
        checkpoint.offer(lambda: {"x": x, "paths": paths, "done": np.array(done)})  # noqa: B023 (called immediately or never)
        beside = _draw(x, keys, np.uint32(done), samples)
        extra = samples[:, dimension].astype(float)
        z = np.asarray(model.first(samples[:, 0].astype(float), extra))
        w = beside + x[:, 0] * z
        samples[:, 0] = z
        _move(x, samples, w, step / dimension * np.asarray(model.gain(z, w, extra)))
        done += 1


def _start_vector(rng: np.random.Generator, m: float, dimension: int) -> NDArray[np.float32]:
    direction = rng.standard_normal(dimension)
    direction[0] = 0.0
    direction *= math.sqrt(1 - m * m) / np.linalg.norm(direction)
    direction[0] = m
    return direction.astype(np.float32)


@numba.njit(cache=True, nogil=True, fastmath=True)
def _draw(x: Any, keys: Any, index: Any, samples: Any) -> Any:
    """Draw a fresh sample for every run, and return its product with x without the first axis."""
    products = np.empty(x.shape[0])
    for i in range(x.shape[0]):
        fill_row(keys[i], index, samples[i])
        total = np.float32(0.0)
        for j in range(1, x.shape[1]):
            total += x[i, j] * samples[i, j]
        products[i] = total
    return products


@numba.njit(cache=True, nogil=True, fastmath=True)
def _move(x: Any, samples: Any, w: Any, c: Any) -> None:
    """Apply the step of every run to x in place."""
    for i in range(x.shape[0]):
        keep, take = np.float32(1 - c[i] * w[i]), np.float32(c[i])
        square = np.float32(0.0)
        for j in range(x.shape[1]):
            value = keep * x[i, j] + take * samples[i, j]
            x[i, j] = value
            square += value * value
        scale = np.float32(1 / math.sqrt(square))
        for j in range(x.shape[1]):
            x[i, j] *= scale
