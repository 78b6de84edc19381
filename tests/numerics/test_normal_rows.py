"""Tests of Gaussian rows from a key and a counter against published words, and of the statistics of the numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from limitlab.models.activations import Activation
from limitlab.models.online import SpikedCovariance, TeacherStudent, full_overlap_paths
from limitlab.numerics.normal_rows import fill_row, key_of, threefry

KEY = key_of(np.random.default_rng(2026))
MANY = 4_000_000


def normal_row(key: np.ndarray, index: int, length: int) -> np.ndarray:
    """Row number `index` of a key."""
    row = np.empty(length + length % 2, dtype=np.float32)
    fill_row(key, np.uint32(index), row)
    return row[:length]


@pytest.fixture(scope="module")
def numbers() -> np.ndarray:
    return normal_row(KEY, 3, MANY)


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [  # Random123, kat_vectors: threefry2x32 with 20 rounds
        ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
        ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
        ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
    ],
)
def test_words_are_those_of_the_published_cipher(key, counter, words):
    assert threefry(*map(np.uint32, (*key, *counter))) == words


def test_numbers_are_box_and_mullers_of_the_words():
    half = 20_000
    row = normal_row(KEY, 11, 2 * half).astype(float)
    pairs = [threefry(KEY[0], KEY[1], np.uint32(j), np.uint32(11)) for j in range(half)]
    x, y = (np.array(words, dtype=np.uint32) for words in zip(*pairs, strict=True))
    radius = np.sqrt(-2 * np.log((x >> 1) * 2.0**-31 + 2.0**-32))
    angle = 2 * math.pi * 2.0**-32 * y.view(np.int32).astype(float)
    np.testing.assert_allclose(row[:half], radius * np.cos(angle), atol=3e-6)
    np.testing.assert_allclose(row[half:], radius * np.sin(angle), atol=3e-6)


def test_extreme_words_give_finite_numbers_within_the_stated_bound():
    assert math.sqrt(-2 * math.log(2.0**-32)) == pytest.approx(6.66, abs=0.01)
    assert np.isfinite(normal_row(KEY, 2**32 - 1, 1000)).all()


def test_moments_and_distribution(numbers):
    z, n = numbers.astype(float), numbers.size
    for power, mean, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96), (6, 15, 10170)):
        assert abs(np.mean(z**power) - mean) < 5 * math.sqrt(variance / n)
    assert stats.kstest(z[:500_000], "norm").pvalue > 1e-4
    counts = np.histogram(stats.norm.cdf(z), bins=256, range=(0, 1))[0]
    assert stats.chisquare(counts).pvalue > 1e-4


def test_tails(numbers):
    for level in (3.0, 4.0, 4.5, 5.0):
        expected = numbers.size * 2 * stats.norm.sf(level)
        assert 1e-5 < stats.poisson.cdf(np.sum(np.abs(numbers) > level), expected) < 1 - 1e-6


def test_numbers_rows_and_keys_are_uncorrelated(numbers):
    n, half = 200_000, 100_000
    first = normal_row(KEY, 5, n).astype(float)
    others = [
        normal_row(KEY, 6, n),
        normal_row(KEY + np.uint32([1, 0]), 5, n),
        normal_row(KEY ^ np.uint32([0, 2**31]), 5, n),
    ]
    for f in (lambda z: z, np.square, np.abs):
        a = (f(first) - f(first).mean()) / f(first).std()
        for other in others:
            b = f(other.astype(float))
            assert abs(np.mean(a * (b - b.mean()) / b.std())) < 5 / math.sqrt(n)
        assert abs(np.mean(a[:half] * a[half:])) < 5 / math.sqrt(half)  # the two numbers of one pair
        for lag in (1, 2, 7, 16, 64):
            assert abs(np.mean(a[:-lag] * a[lag:])) < 5 / math.sqrt(n)
    means = np.array([normal_row(KEY, i, 400).astype(float).mean() for i in range(2000)])
    assert stats.kstest(means * 20, "norm").pvalue > 1e-4


def test_a_row_is_a_function_of_key_index_and_length_alone():
    row = np.full(64, np.nan, dtype=np.float32)
    fill_row(KEY, np.uint32(9), row)
    assert np.array_equal(row, normal_row(KEY, 9, 64))
    assert normal_row(KEY, 9, 63).size == 63


@pytest.mark.parametrize(
    "model", [SpikedCovariance(2.0), TeacherStudent(Activation("square"), Activation("square"), noise=0.3)]
)
def test_paths_depend_neither_on_threads_nor_on_their_batch(model):
    def paths(seeds, threads=1):
        rngs = [np.random.default_rng(seed) for seed in seeds]
        return full_overlap_paths(rngs, model, 0.4, 51, 0.3, [0, 5, 40], threads)

    whole = paths(range(7))
    assert np.array_equal(whole, paths(range(7), threads=2))
    assert np.array_equal(whole, paths(range(7), threads=20))
    assert np.array_equal(whole[3:5], paths([3, 4]))
    assert len(np.unique(whole[:, -1])) == 7
