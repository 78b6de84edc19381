"""The perceptron: reference values, the bound in every order, data that break it."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws import MaxMargin, Perceptron, random_label_margin
from limitlab.laws.classification.perceptron import perceptron_mistakes
from limitlab.numerics.margin import hard_margin
from references import label, reference

entries = partial(reference, "static_statements")


@pytest.mark.parametrize("entry", entries("random_label_margin"), ids=label)
def test_reference_limits(entry):
    ratio, want = entry["inputs"]["ratio_p_over_n"], entry["outputs"]
    found = Perceptron(ratio=ratio).theory()
    got = [float(found[name]) for name in ("margin", "support_fraction", "mistake_bound")]
    wanted = [want["margin"], want["support_fraction"], want["perceptron_bound_per_dimension"]]
    np.testing.assert_allclose(got, wanted, rtol=entry["tolerance"])
    general = MaxMargin(ratio=ratio, link="flip", link_strength=0.5).theory()  # labels by tossing coins
    np.testing.assert_allclose(got[:2], [float(general.margin), float(general.support_fraction)], rtol=1e-7)
    assert got[1] < ratio  # fewer support vectors than features


def test_reference_data_set():
    (entry,) = entries("perceptron")
    vectors, want = np.array(entry["inputs"]["signed_points"], dtype=float), entry["outputs"]
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    law = Perceptron.from_data(signs[:, None] * vectors, signs)
    got = [law.margin, law.radius**2, law.mistake_bound, law.mistakes, law.support.size]
    wanted = [want[name] for name in ("margin", "radius_squared", "bound", "mistakes_cyclic", "support")]
    np.testing.assert_allclose(got, wanted, rtol=entry["tolerance"])
    same = law.simulate(2, 0)
    assert float(same.mistakes) == want["mistakes_cyclic"]
    assert float(same.margin) == pytest.approx(want["margin"])


def plain_perceptron(vectors):
    """The algorithm, word for word."""
    w, mistakes, clean = np.zeros(vectors.shape[1]), 0, False
    while not clean:
        clean = True
        for v in vectors:
            if w @ v <= 0:
                w, mistakes, clean = w + v, mistakes + 1, False
    return mistakes


@given(st.integers(0, 10_000), st.integers(2, 12), st.integers(2, 12))
@settings(max_examples=60, deadline=None)
def test_the_bound_holds_in_any_order(seed, n, p):
    rng = np.random.default_rng(seed)
    vectors = rng.integers(-5, 6, (n, p)).astype(float)  # whole numbers: no rounding anywhere
    found = hard_margin(vectors)
    if not found.separable:
        return
    bound = (vectors**2).sum(axis=1).max() / found.margin**2
    for _ in range(3):
        shuffled = vectors[rng.permutation(n)]
        mistakes = perceptron_mistakes(shuffled)
        assert mistakes == plain_perceptron(shuffled)
        assert mistakes <= bound * (1 + 1e-9)


def test_a_wrong_margin_would_be_violated():
    """Control: with the mean distance in place of the margin the bound fails."""
    vectors = np.random.default_rng(0).standard_normal((60, 50))
    found = hard_margin(vectors)
    loose = np.mean(vectors @ found.direction)
    assert perceptron_mistakes(vectors) > (vectors**2).sum(axis=1).max() / (3 * loose) ** 2


def test_limits_of_the_margin():
    assert random_label_margin(0.5 + 1e-9) == pytest.approx(0, abs=1e-8)
    assert random_label_margin(1e6) / 1e3 == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Perceptron(ratio=0.5), "ratio = 0.5 is not allowed"),
        (lambda: Perceptron.from_data([[1.0], [1.0]], [1, -1]), "no direction separates"),
        (lambda: Perceptron.from_data([[1.0], [1.0]], [1, 2]), "labels must be -1 or"),
        (lambda: Perceptron().support, r"from_data\(X, y\)"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
