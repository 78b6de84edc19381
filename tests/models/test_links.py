"""Tests of links, with their probabilities, labels, averages over label and score, and refused arguments."""

import pickle

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import ndtr
from scipy.stats import norm

from limitlab.models.functions import FunctionError
from limitlab.models.links import Labels, Link, misclassification

LINKS = {
    "sign": Labels(Link("sign")),
    "probit": Labels(Link("probit"), 2.0),
    "logit": Labels(Link("logit"), 3.0),
    "flip": Labels(Link("flip"), 0.15),
    "function": Labels(Link(lambda t: 0.1 + 0.8 * (t > 0.4)), 1.0),
}


def smoothed(labels, q, x):
    s = np.sqrt(1 - q**2)
    points = sorted((place - q * x) / s for place, _ in labels.layers)
    return quad(lambda g: norm.pdf(g) * float(labels.probability(q * x + s * g)), -9, 9, points=points, limit=200)[0]


@pytest.mark.parametrize("name", LINKS)
def test_rule_integrates_the_law_of_label_times_score(name):
    labels = LINKS[name]
    t, w = labels.rule()
    assert w.sum() == pytest.approx(1, abs=1e-13)
    draws = np.random.default_rng(0).standard_normal(400_000)
    product = labels.draw(np.random.default_rng(1), draws) * draws
    assert w @ t == pytest.approx(product.mean(), abs=5 * product.std() / 400_000**0.5)
    assert w @ t**2 == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("name", LINKS)
def test_labels_seen_through_a_channel(name):
    labels, q, x = LINKS[name], 0.7, np.array([-1.3, 0.2, 2.0])
    density, slope = labels.seen(q, x)
    wanted = [smoothed(labels, q, v) + 1 - smoothed(labels, q, -v) for v in x]
    np.testing.assert_allclose(density, wanted, rtol=1e-7)
    step = 1e-5
    up, down = labels.seen(q, x + step)[0], labels.seen(q, x - step)[0]
    np.testing.assert_allclose(q * slope, (up - down) / (2 * step), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", LINKS)
@pytest.mark.parametrize("offset", [0.0, 0.3])
def test_misclassification_against_draws(name, offset):
    labels, q, rng = LINKS[name], 0.8, np.random.default_rng(3)
    score, other = rng.standard_normal((2, 400_000))
    wrong = labels.draw(rng, score) * (offset + q * score + np.sqrt(1 - q**2) * other) <= 0
    assert misclassification(labels, q, offset) == pytest.approx(wrong.mean(), abs=5 * wrong.std() / 400_000**0.5)


def test_misclassification_of_perfect_alignment():
    assert misclassification(LINKS["sign"], 1.0) == 0
    assert misclassification(LINKS["flip"], 1.0) == pytest.approx(0.15, abs=1e-14)
    assert misclassification(LINKS["flip"], -1.0) == pytest.approx(0.85, abs=1e-14)


def test_symmetry_and_orientation():
    assert [LINKS[name].symmetric for name in LINKS] == [True, True, True, True, False]
    backwards = Labels(Link(lambda t: 1 / (1 + np.exp(2 * t))))
    assert backwards.correlation < 0
    assert backwards.oriented().correlation == pytest.approx(-backwards.correlation, rel=1e-12)


@pytest.mark.parametrize("bad", [lambda t: t, lambda t: 0.5, lambda t: 1 / 0, 3, "sgn"])
def test_refusals(bad):
    with pytest.raises(FunctionError, match="link ="):
        Link(bad)


def test_equality_and_pickling():
    assert Link("sign") == Link("sign") != Link("probit")
    assert pickle.loads(pickle.dumps(Link("logit"))) == Link("logit")
    assert pickle.loads(pickle.dumps(Link(ndtr))) == Link(ndtr)
