"""Tests of the hard margin and its certificates against an independent solver."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.errors import ConvergenceError
from limitlab.numerics import margin as module
from limitlab.numerics.margin import hard_margin


def labelled(n, p, seed, noise=0.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    return np.sign(X[:, :1] + noise * rng.standard_normal((n, 1))) * X


@pytest.mark.parametrize(("n", "p"), [(60, 20), (60, 60), (60, 150), (1, 3), (5, 1)])
def test_certificates_meet(n, p):
    V = labelled(n, p, 1)
    found = hard_margin(V)
    assert found.separable
    assert np.linalg.norm(found.direction) == pytest.approx(1, abs=1e-12)
    assert (V @ found.direction).min() == pytest.approx(found.margin, rel=1e-10)
    assert np.linalg.norm(found.weights @ V) == pytest.approx(found.margin, rel=1e-10)
    assert found.weights.sum() == pytest.approx(1)
    assert found.weights.min() >= 0
    assert found.support.size <= min(n, p + 1)
    np.testing.assert_allclose(V[found.support] @ found.direction, found.margin, rtol=1e-9)  # complementary slackness


def test_against_an_independent_solver():
    from sklearn.svm import LinearSVC

    V = labelled(80, 30, 2)
    y = np.where(np.arange(80) % 2, 1, -1)
    machine = LinearSVC(loss="hinge", C=1e6, fit_intercept=False, tol=1e-10, max_iter=10**7, random_state=0).fit(
        V * y[:, None], y
    )
    assert hard_margin(V).margin == pytest.approx(1 / np.linalg.norm(machine.coef_), rel=1e-5)


def test_inseparable_data_come_with_a_proof():
    V = labelled(100, 20, 3, noise=1.0)
    found = hard_margin(V)
    assert not found.separable
    assert found.margin == 0
    assert not found.direction.any()
    assert found.weights.min() >= 0
    assert np.linalg.norm(found.weights @ V) < 1e-11 * np.linalg.norm(V, axis=1).max()


def test_nearly_inseparable_data_are_decided_on_both_sides():
    angle = 1e-5
    wedge = np.array([[np.sin(angle), np.cos(angle)], [np.sin(angle), -np.cos(angle)]])
    assert hard_margin(wedge).margin == pytest.approx(np.sin(angle), rel=1e-8)
    assert not hard_margin(np.vstack([wedge, [[-1.0, 0.0]]])).separable


def test_unfinished_solver_is_an_error_and_not_an_answer(monkeypatch):
    import scipy.optimize

    def gives_up(*args, **kwargs):
        raise RuntimeError("Maximum number of iterations reached.")

    monkeypatch.setattr(scipy.optimize, "nnls", gives_up)
    with pytest.raises(ConvergenceError, match="undecided"):
        hard_margin(labelled(20, 10, 0))


def test_wrong_solution_is_not_certified(monkeypatch):
    monkeypatch.setattr(module, "_closest_combination", lambda V: np.full(len(V), 1 / len(V)))
    with pytest.raises(ConvergenceError, match="could not be certified"):
        hard_margin(labelled(40, 20, 0))


@pytest.mark.parametrize("bad", [np.ones(3), np.ones((0, 2)), [[1.0, np.nan]]])
def test_refusals(bad):
    with pytest.raises(ValueError, match="vectors"):
        hard_margin(bad)


@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(2, 25), st.integers(2, 25), st.floats(1e-3, 1e3))
def test_margin_is_homogeneous_and_falls_with_more_samples(seed, n, p, scale):
    V = labelled(n, p, seed)
    whole, part = hard_margin(V), hard_margin(V[: max(1, n // 2)])
    assert hard_margin(scale * V).margin == pytest.approx(scale * whole.margin, rel=1e-7, abs=1e-12 * scale)
    assert whole.margin <= part.margin * (1 + 1e-9)
    rotation = np.linalg.qr(np.random.default_rng(seed).standard_normal((p, p)))[0]
    assert hard_margin(V @ rotation).margin == pytest.approx(whole.margin, rel=1e-7)


def test_ties_that_stop_the_active_set_method():
    """For sign vectors with many samples on the margin the solver stops early in one order of the rows and not in the reverse order."""
    rng = np.random.default_rng(239)
    cube = 1.0 - 2.0 * ((np.arange(16)[:, None] >> np.arange(4)) & 1)
    normal = rng.integers(1, 4, 4).astype(float)
    normal[0] += 1 - normal.sum() % 2
    x = cube[rng.permutation(16)[:12]]
    found = hard_margin(np.sign(x @ normal)[:, None] * x)
    assert found.separable
    assert found.upper - found.lower <= 1e-8 * found.upper


@pytest.mark.parametrize(("n", "p", "seed"), [(40, 21, 394), (60, 31, 327), (20, 11, 39), (100, 52, 733)])
def test_margins_of_a_hundred_thousandth_keep_their_digits(n, p, seed):
    """The vectors of the nearest combination cancel to a few parts in 10^5 or 10^6 of their length. Its direction loses as many
    digits.
    """
    vectors = np.random.default_rng(seed).standard_normal((n, p))
    found = hard_margin(vectors)
    assert found.separable
    assert found.margin < 2e-4
    assert (vectors @ found.direction).min() == pytest.approx(found.margin, rel=1e-9)
    assert found.upper - found.lower < 1e-9 * found.margin
