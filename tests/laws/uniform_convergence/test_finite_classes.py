"""Classes of classifiers: the worst of finitely many models, thresholds on the line, counts of dichotomies."""

import itertools
from functools import partial

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from limitlab import compare
from limitlab.laws import FiniteClass, ThresholdClass, dichotomies
from limitlab.laws.uniform_convergence._claims import separable_labellings, sine_labellings
from limitlab.laws.uniform_convergence._halfplanes import largest_imbalance
from limitlab.laws.uniform_convergence._intervals import best_unions, empirical_minimum
from limitlab.numerics.margin import hard_margin
from references import label, reference

entries = partial(reference, "static_statements")


@pytest.mark.parametrize("entry", entries("finite_class_deviation"), ids=label)
def test_reference_of_finitely_many_models(entry):
    asked, want = entry["inputs"], entry["outputs"]
    law = FiniteClass(models=asked["models"], error_rate=asked.get("error_rate", 0.3))
    if "n" in asked:  # a simulated value: ours has as many classes of models
        runs = law.simulate_batch(asked["n"], range(asked["draws"] // 400))
        assert float(runs.largest_deviation.mean()) == pytest.approx(want["mean_of_max"], abs=entry["tolerance"])
        assert float(law.theory().largest_deviation) == pytest.approx(want["limit"], rel=1e-8)
        return
    found = law.theory()
    got = [float(found.largest_deviation), float(found.largest_deviation_std), law.leading_term()]
    np.testing.assert_allclose(got, [want["mean_of_max"], want["std_of_max"], want["leading"]], rtol=entry["tolerance"])


@pytest.mark.parametrize("models", [1, 7, 10**5, 10**7])
def test_quadrature_against_an_adaptive_one(models):
    found = float(FiniteClass(models=models).theory().largest_deviation)
    top = 0.0 if models == 1 else 4.0
    want = quad(lambda x: 1 - erf(x / np.sqrt(2)) ** models, 0, 14, points=[top, 7.5], epsabs=1e-12, limit=400)[0]
    assert found == pytest.approx(want, abs=2e-9)  # 1 - erf^M without expm1 loses digits for more
    assert found < FiniteClass(models=models).leading_term()


def test_one_model_is_the_central_limit_theorem():
    assert float(FiniteClass(models=1).theory().largest_deviation) == pytest.approx(np.sqrt(2 / np.pi), rel=1e-12)


def test_dependent_models_have_a_smaller_maximum():
    """Control: neighbouring thresholds are dependent, so that many of them deviate less than as many independent models."""
    many = float(FiniteClass(models=1000).theory().largest_deviation)
    thresholds = float(ThresholdClass(label_noise="coin").theory().largest_deviation) / 0.5  # in units of sqrt(v/n)
    assert thresholds < 0.6 * many


@pytest.mark.parametrize("law", ["threshold_deviation", "threshold_noise_deviation"])
def test_reference_of_thresholds(law):
    (entry,) = entries(law)
    made = ThresholdClass(label_noise="none" if law == "threshold_deviation" else "coin")
    want = entry["outputs"]
    np.testing.assert_allclose(made.quantile(entry["inputs"]["p"]), want["quantile"], rtol=entry["tolerance"])
    np.testing.assert_allclose(float(made.theory().largest_deviation), want["mean"], rtol=entry["tolerance"])
    if "cdf" in want:
        np.testing.assert_allclose(made.cdf(entry["inputs"]["b"]), want["cdf"], rtol=entry["tolerance"])


@pytest.mark.parametrize("noise", ["none", "coin"])
def test_moments_follow_from_the_distribution(noise):
    law = ThresholdClass(label_noise=noise)
    mean, square = (quad(lambda b, k=k: k * b ** (k - 1) * (1 - law.cdf(b)), 0, 12, epsabs=1e-12)[0] for k in (1, 2))
    found = law.theory()
    np.testing.assert_allclose(
        [float(found.largest_deviation), float(found.largest_deviation_std)], [mean, np.sqrt(square - mean**2)], rtol=1e-8
    )
    p = np.linspace(0.01, 0.99, 9)
    np.testing.assert_allclose(law.cdf(law.quantile(p)), p, rtol=1e-10)
    assert law.cdf([-1.0, 0.0]).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("noise", ["none", "coin"])
def test_suprema_against_a_grid_of_thresholds(noise):
    law = ThresholdClass(label_noise=noise, threshold=0.37)
    (found,) = law.suprema(np.random.default_rng(3), 40, 1)
    rng = np.random.default_rng(3)
    x = np.sort(rng.random(40))
    y = x > 0.37 if noise == "none" else rng.random((1, 40))[0] < 0.5
    a = np.linspace(0, 1, 200_001)[:, None]
    empirical = ((x > a) != y).mean(axis=1)
    risk = np.abs(a[:, 0] - 0.37) if noise == "none" else 0.5
    grid = np.abs(empirical - risk).max()
    assert grid <= found + 1e-12
    assert grid == pytest.approx(found, abs=2e-4)


def test_the_two_laws_are_told_apart():
    """Control: coin labels simulated against the law without noise, and the other way round."""

    class Swapped(ThresholdClass):
        """The other law's moments."""

        def predicted(self):
            return ThresholdClass(label_noise="coin" if self.label_noise == "none" else "none").predicted()

    for noise in ("none", "coin"):
        assert compare(Swapped(label_noise=noise), seeds=40, budget=0.0, progress=False).verdict == "disagree"


@pytest.mark.parametrize("entry", entries("halfspace_dichotomies"), ids=label)
def test_reference_counts(entry):
    d, n = entry["inputs"]["dimension"], entry["inputs"]["points"]
    assert dichotomies(n, d) == entry["outputs"]["count"]
    assert separable_labellings(np.random.default_rng(n).standard_normal((n, d))) == entry["outputs"]["count"]
    assert max(k for k in range(1, 12) if dichotomies(k, d) == 2**k) == entry["outputs"]["vc_dimension"]


def test_points_in_special_position_have_fewer_dichotomies():
    """Control: the count holds in general position only."""
    line = np.column_stack([np.arange(4.0), np.arange(4.0)])
    assert separable_labellings(line) == dichotomies(4, 1) < dichotomies(4, 2)


def test_halfplanes_against_all_labellings():
    rng = np.random.default_rng(0)
    x, s = rng.standard_normal((7, 2)), rng.standard_normal(7)
    lifted = np.column_stack([x, np.ones(7)])
    sides = [np.array(one) for one in itertools.product((-1.0, 1.0), repeat=7)]
    best = max(abs(side @ s) for side in sides if hard_margin(side[:, None] * lifted).separable)
    assert largest_imbalance(x, s) == pytest.approx(best, rel=1e-12)


def test_one_parameter_can_shatter():
    assert sine_labellings(6) == 64


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: FiniteClass(models=0), "models = 0 is not allowed"),
        (lambda: FiniteClass(error_rate=1.0), "error_rate = 1.0 is not allowed"),
        (lambda: ThresholdClass(threshold=1.5), "threshold = 1.5 is not allowed"),
        (lambda: ThresholdClass().quantile(1.5), "p = 1.5 is not allowed"),
        (lambda: dichotomies(0, 2), "points = 0 is not allowed"),
        (lambda: dichotomies(3, 1.5), "dimension = 1.5 is not allowed"),
        (lambda: largest_imbalance([[1.0]], [1.0]), "points of shape"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_best_unions_of_intervals_by_enumeration():
    values, other = np.random.default_rng(0).standard_normal((2, 4, 8))
    runs = best_unions(values, 3, other)
    for row, (v, w) in enumerate(zip(values, other, strict=True)):
        members = [np.array(part) for part in itertools.product((0, 1), repeat=8)]
        for k in range(4):
            allowed = [part for part in members if np.sum(np.diff(part, prepend=0) == 1) <= k]
            best = max(allowed, key=lambda part: float(part @ v))
            assert np.isclose(runs.scores[row, k], best @ v)
            assert np.isclose(runs.others[row, k], best @ w)


def test_risks_of_the_empirical_minimiser():
    result = empirical_minimum(np.random.default_rng(1), 200, 2, 30, 0.0)
    assert (result.excess >= 0).all()
    assert result.excess.max() < 0.1  # without noise all labels are fitted
    assert (result.excess <= 2 * result.deviation).all()
