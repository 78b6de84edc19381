"""Functions with a Holder exponent below one everywhere or at a point, and points to sample them at.

|f(x) - f(y)| <= C |x - y|^b with 0 < b <= 1 is all that local averages assume of a target. A cusp attains the bound at one
point, which makes exact calculations possible; a lacunary series attains it near every point, which is what an experiment
with random queries needs: a function that is smooth at most points is learned faster than the bound says.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

OCTAVES = 18
"""Frequencies 1, 2, 4, ... of the rough wave: its smallest wavelength is 2^-17."""


def cusp(x: ArrayLike, smoothness: float = 1.0, amplitude: float = 1.0, offset: float = 0.0) -> Array:
    """offset + amplitude * |x|^smoothness for the rows of x: Holder exponent `smoothness` at the origin.

    >>> cusp([[3.0, 4.0], [0.0, 0.0]], smoothness=0.5, amplitude=2.0).round(6).tolist()
    [4.472136, 0.0]
    """
    radius = np.linalg.norm(np.asarray(x, dtype=float), axis=-1)
    return np.asarray(offset + amplitude * radius**smoothness)


def rough_wave(x: ArrayLike, smoothness: float = 0.5, octaves: int = OCTAVES) -> Array:
    r"""A function on the unit torus that is rough everywhere (Holder exponent `smoothness` below 1, but no better).

    The lacunary series, with phases that keep the coordinates c and octaves j from lining up,

    .. math:: f(x) = \sum_c \sum_{j < J} 2^{-b j} \cos(2 \pi\, 2^j x_c + c + j).

    >>> x = np.array([[0.25, 0.5]])
    >>> bool(np.allclose(rough_wave(x), rough_wave(x + 1.0)))          # periodic
    True
    """
    points = np.asarray(x, dtype=float)
    octave = np.arange(octaves)
    phase = np.arange(points.shape[-1])[:, None] + octave
    angle = 2 * np.pi * 2.0**octave * (points % 1.0)[..., None] + phase
    return np.asarray((np.cos(angle) * 2.0 ** (-smoothness * octave)).sum(axis=(-2, -1)))


def uniform_ball(rng: np.random.Generator, count: int, dimension: int) -> Array:
    """Rows that are uniform in the unit ball: a Gaussian direction, and a radius whose d-th power is uniform.

    >>> points = uniform_ball(np.random.default_rng(0), 1000, 3)
    >>> points.shape, bool((np.linalg.norm(points, axis=1) <= 1).all())
    ((1000, 3), True)
    """
    direction = rng.standard_normal((count, dimension))
    radius = rng.random((count, 1)) ** (1 / dimension)
    return np.asarray(direction * (radius / np.linalg.norm(direction, axis=1, keepdims=True)))
