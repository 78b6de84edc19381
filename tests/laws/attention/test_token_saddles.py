"""Critical points of tokens at beta = 0: reference rates, the Jacobian of the flow, refusals."""

from collections import Counter

import numpy as np
import pytest

from limitlab.laws import SingleCluster
from limitlab.laws.attention._claims import balanced_tokens, rate_gap, two_poles
from references import label, reference


@pytest.mark.parametrize("entry", reference("further_dynamics", "token_saddle"), ids=label)
def test_rates_at_two_poles(entry):
    n, k, d = entry["inputs"].values()
    rates = SingleCluster.saddle_rates(n, k, d)
    assert len(rates) == n * (d - 1)
    assert Counter(rates.round(9).tolist()) == {
        float(rate): count for rate, count in entry["outputs"]["rates_with_multiplicity"].items()
    }


@pytest.mark.parametrize("entry", reference("further_dynamics", "token_saddle_balanced"), ids=label)
def test_rates_of_balanced_tokens(entry):
    rates = SingleCluster.saddle_rates(positions=entry["inputs"]["positions"])
    np.testing.assert_allclose(rates[np.abs(rates) > 1e-12], entry["outputs"]["nonzero_rates"], atol=entry["tolerance"])


@pytest.mark.parametrize(
    ("tokens", "at_pole", "dimension"), [(2, 1, 2), (5, 2, 3), (6, 3, 4), (4, 4, 3), (5, 0, 2), (9, 7, 2)]
)
def test_rates_are_those_of_the_flow(tokens, at_pole, dimension):
    x = two_poles(tokens, at_pole, dimension)
    rates = SingleCluster.saddle_rates(tokens, at_pole, dimension)
    assert rate_gap(x, rates) < 1e-8
    np.testing.assert_allclose(SingleCluster.saddle_rates(positions=x), rates, atol=1e-12)
    assert rate_gap(x, rates + 0.01) > 1e-3  # the check can fail


@pytest.mark.parametrize(("tokens", "dimension"), [(3, 2), (7, 3)])
def test_balanced_tokens_lose_what_their_second_moment_holds(tokens, dimension):
    x = balanced_tokens(np.random.default_rng(1), tokens, dimension)
    rates = SingleCluster.saddle_rates(positions=x)
    assert rate_gap(x, rates) < 1e-8
    assert rates.sum() == pytest.approx(dimension - 1)
    assert rates[0] >= 1 - 1 / dimension - 1e-12


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (dict(tokens=1, at_pole=1, dimension=2), "tokens = 1"),
        (dict(tokens=4, at_pole=5, dimension=2), "at_pole = 5"),
        (dict(tokens=4, at_pole=2, dimension=1), "dimension = 1"),
        (dict(tokens=4, positions=[[1, 0], [0, 1]]), "together"),
        (dict(positions=[[1, 0], [0, 1]]), "must be a critical point"),
        (dict(positions=[[1, 0], [0, 2]]), "unit vectors"),
    ],
)
def test_refusals(arguments, match):
    with pytest.raises(ValueError, match=match):
        SingleCluster.saddle_rates(**arguments)
