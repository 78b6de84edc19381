"""Unions of at most k intervals of the line, a class with d_VC = 2 k, and exact suprema over it by dynamic programming.

A score that is a sum over the elements of a line (points or gaps between points) of a value inside the union is maximised over all unions
of at most k intervals in one pass. The best score is updated for every number of intervals that have begun, inside and outside the union.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class BestUnions(NamedTuple):
    """Largest scores with at most 0, ..., k intervals and the second sum at the maximisers, shape (draws, k + 1)."""

    scores: Array
    others: Array


def best_unions(values: Array, k: int, other: Array | None = None) -> BestUnions:
    """Return the largest sums of `values` over unions of at most k runs of columns, one row per draw.

    `other` contains values whose sum over the same columns is returned too.

    >>> best_unions(np.array([[1.0, -3.0, 2.0, 2.0, -1.0, 5.0]]), 3).scores.tolist()
    [[0.0, 8.0, 9.0, 10.0]]
    """
    draws, count = values.shape
    second = np.zeros_like(values) if other is None else other
    outside = np.zeros((draws, k + 1))
    inside = np.full((draws, k + 1), -np.inf)
    outside_other, inside_other = np.zeros((draws, k + 1)), np.zeros((draws, k + 1))
    for i in range(count):
        begins = outside[:, :-1] > inside[:, 1:]
        inside[:, 1:] = np.where(begins, outside[:, :-1], inside[:, 1:]) + values[:, i, None]
        inside_other[:, 1:] = np.where(begins, outside_other[:, :-1], inside_other[:, 1:]) + second[:, i, None]
        ends = inside > outside
        outside = np.where(ends, inside, outside)
        outside_other = np.where(ends, inside_other, outside_other)
    # fewer intervals may be better
    best = np.maximum.accumulate(outside, axis=1)
    first = np.maximum.accumulate(np.where(outside == best, np.arange(k + 1), 0), axis=1)
    return BestUnions(best, np.take_along_axis(outside_other, first, axis=1))


def coin_deviations(rng: np.random.Generator, n: int, k: int, draws: int) -> Array:
    """Return the largest |error - 1/2| of unions of at most 1, ..., k intervals for random labels, shape (draws, k)."""
    signs: Array = 1.0 - 2.0 * rng.integers(0, 2, (draws, n)).astype(float)
    total = signs.sum(axis=1)[:, None]
    high, low = 2 * best_unions(signs, k).scores - total, 2 * best_unions(-signs, k).scores + total
    return np.asarray(np.maximum(high, low)[:, 1:] / (2 * n))


class EmpiricalMinimum(NamedTuple):
    """Results for the member of the class with the least empirical risk, one entry per draw."""

    excess: Array  # its population risk minus the least population risk of the class
    deviation: Array  # sup |Rhat - R| over the class


def empirical_minimum(rng: np.random.Generator, n: int, k: int, draws: int, flip: float) -> EmpiricalMinimum:
    """Return excess risk and largest deviation for labels 1{x in U}, flipped with probability `flip`, and x uniform on [0, 1].

    U is the union of k intervals of length 1/(2k) at equal distances, so that the least population risk of the class is `flip`. Elements of
    the line are the gaps between the sorted points, cut at the ends of U, and the points.
    """
    ends = np.arange(1, 2 * k) / (2 * k)
    points = rng.random((draws, n))
    places = np.concatenate([points, np.broadcast_to(ends, (draws, 2 * k - 1))], axis=1)
    order = np.argsort(places, axis=1)
    places = np.take_along_axis(places, order, axis=1)
    real = order < n
    truth = np.floor(places * 2 * k).astype(int) % 2 == 0
    wrong = rng.random(places.shape) < flip
    # Rhat - R = sum over elements: a point inside the union adds -1/n if its label is 1 and 1/n otherwise
    at_points = np.where(real, np.where(truth ^ wrong, -1.0, 1.0), 0.0) / n
    edges = np.concatenate([np.zeros((draws, 1)), places, np.ones((draws, 1))], axis=1)
    gaps, middle = np.diff(edges, axis=1), (edges[:, 1:] + edges[:, :-1]) / 2
    at_gaps = np.where(np.floor(middle * 2 * k).astype(int) % 2 == 0, -1.0, 1.0) * gaps * (1 - 2 * flip)
    elements = at_gaps.shape[1] + at_points.shape[1]
    empirical, population = np.zeros((draws, elements)), np.zeros((draws, elements))
    empirical[:, 1::2], population[:, 0::2] = at_points, at_gaps
    # risks of the empty union
    base_empirical = np.where(real & (truth ^ wrong), 1.0, 0.0).sum(axis=1) / n
    base_population = flip + (1 - 2 * flip) / 2
    base = (base_empirical - base_population)[:, None]
    difference = empirical - population
    high, low = best_unions(difference, k).scores + base, best_unions(-difference, k).scores - base
    # the largest excess among the minimisers: ends are anywhere in a gap, so that half of the gaps is on the wrong side on average
    fit = best_unions(-empirical, k, population)
    return EmpiricalMinimum(fit.others[:, -1] + base_population - flip, np.maximum(high, low)[:, -1])
