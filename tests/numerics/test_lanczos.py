"""Tests of eigenvalues from products with vectors against dense solvers, and of the moments of the spectral measure."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.numerics.lanczos import spectral_measure, top_eigenpairs


def symmetric(size, seed=0):
    a = np.random.default_rng(seed).standard_normal((size, size))
    return (a + a.T) / np.sqrt(2 * size)


@given(st.integers(2, 150), st.integers(1, 6))
@settings(max_examples=20, deadline=None)
def test_top_of_a_matrix(size, count):
    matrix = symmetric(size, size)
    count = min(count, size)
    values, vectors = top_eigenpairs(lambda v: matrix @ v, size, count)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:count], atol=1e-8)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-6)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(count), atol=1e-8)


def test_repeats_exactly():
    matrix = symmetric(120)
    one, two = (top_eigenpairs(lambda v: matrix @ v, 120, 3) for _ in range(2))
    assert np.array_equal(one.values, two.values)


@pytest.mark.parametrize("count", [0, 11])
def test_refuses_counts(count):
    with pytest.raises(ValueError, match="count"):
        top_eigenpairs(lambda v: v, 10, count)


def test_measure_of_a_semicircle():
    matrix = symmetric(600)
    measure = spectral_measure(lambda v: matrix @ v, 600, steps=30, probes=10)
    assert measure.shares.sum() == pytest.approx(1, abs=1e-12)
    assert measure.moment(2) == pytest.approx(1, abs=0.02)
    assert measure.moment(4) == pytest.approx(2, abs=0.08)
    assert measure.density(0.0, 0.2) == pytest.approx(1 / np.pi, rel=0.1)


def test_measure_is_exact_for_few_eigenvalues():
    """Lanczos stops when the Krylov space is exhausted, so that two eigenvalues give two nodes."""
    diagonal = np.repeat([1.0, 3.0], [30, 10])
    measure = spectral_measure(lambda v: diagonal * v, 40, steps=20, probes=2)
    assert measure.nodes.size == 4
    np.testing.assert_allclose(np.sort(measure.nodes), [1, 1, 3, 3], atol=1e-12)
    assert measure.moment(1) == pytest.approx(1.5)
