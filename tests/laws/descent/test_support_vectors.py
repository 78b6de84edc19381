"""Separable data: support vectors, the residual of descent and its rate."""

from functools import partial

import numpy as np
import pytest

from limitlab.laws import LogisticDescent
from limitlab.laws.descent._claims import on_margin, separable_data_sets, sign_vectors
from references import reference

entries = partial(reference, "static_statements")


def test_reference_residual():
    """The reference starts at t = 1 and sums the losses: w is ours at n (t - 1), and the offset ours plus w_hat log n."""
    (entry,) = entries("exponential_loss_residual")
    vectors, want = np.array(entry["inputs"]["signed_points"]), entry["outputs"]
    signs = np.array([1.0, -1.0, 1.0, -1.0])
    law = LogisticDescent.from_data(signs[:, None] * vectors, signs)
    assert law.support.tolist() == want["support"]
    tolerance = entry["tolerance"]
    np.testing.assert_allclose(law.direction, want["w_hat"], atol=tolerance)
    np.testing.assert_allclose(law.correction + np.log(4) * law.direction, want["offset_in_span"], atol=tolerance)
    assert law.residual_rate == pytest.approx(want["rate"], abs=tolerance)
    assert (vectors @ law.direction)[1:].min() == pytest.approx(want["next_margin"], abs=tolerance)
    theirs = np.array(entry["inputs"]["log_time"])
    ours = np.log(4) + np.log(np.expm1(theirs))
    found = law.residual(ours) + (np.log(np.expm1(theirs)) - theirs)[:, None] * law.direction
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), want["residual_norm"], atol=tolerance)
    inside = [np.linalg.norm(law.flow.in_span(one)) for one in found]
    np.testing.assert_allclose(inside, want["residual_in_span"], atol=tolerance)


@pytest.mark.parametrize("loss", ["exponential", "logistic"])
def test_the_rate_is_the_slower_of_the_two(loss):
    """Control: either half of the minimum alone is wrong for some data set."""
    halves = []
    for _, (X, y) in zip(range(6), separable_data_sets(), strict=False):
        law = LogisticDescent.from_data(X, y, loss=loss)
        flow, rate = law.flow, law.residual_rate
        times = np.array([12.0, 15.0]) / rate
        size = [np.linalg.norm(flow.in_span(one)) for one in law.residual(times)]
        if size[1] < 1e-8 or flow.exponents[1] < 1.25 * rate:
            continue
        assert np.log(size[0] / size[1]) / (times[1] - times[0]) == pytest.approx(rate, rel=0.05)
        others = flow.excess[flow.excess > 0].min()
        halves.append(abs(others / rate - 1) < 1e-9)
    assert any(halves) != all(halves)


def test_without_the_number_of_samples_the_residual_does_not_vanish():
    """Control for the constant: -log alpha in place of -log(n alpha)."""
    X, y = next(separable_data_sets())
    law = LogisticDescent.from_data(X, y)
    late = law.residual(20 / law.residual_rate)
    right, wrong = law.flow.in_span(late), law.flow.in_span(late - np.log(len(X)) * law.direction)
    assert np.linalg.norm(right) < 1e-6
    assert np.linalg.norm(wrong) > 1


def test_sign_vectors_are_degenerate_and_refused():
    counts = [on_margin(sign_vectors(np.random.default_rng(seed))) for seed in range(40)]
    assert np.mean(np.array(counts) > 4) > 0.5
    vectors = next(v for v in (sign_vectors(np.random.default_rng(seed)) for seed in range(40)) if on_margin(v) > 4)
    with pytest.raises(ValueError, match="linearly dependent"):
        LogisticDescent.from_data(vectors, np.ones(len(vectors))).residual(10.0)


def test_one_time_gives_a_vector():
    X, y = next(separable_data_sets())
    law = LogisticDescent.from_data(X, y)
    assert law.residual(50.0).shape == (6,)
    np.testing.assert_allclose(law.residual([20.0, 50.0])[1], law.residual(50.0), atol=1e-7)
