"""Transformer blocks with own matrices: known cases, the rate in the number of layers, contract and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from limitlab.laws import EquiangularTokens, TokenFlow
from limitlab.testing import check_law

TURN = np.array([[0.0, -1.0], [1.0, 0.0]])


def test_identity_matrices_at_an_equiangular_start_are_the_equiangular_law() -> None:
    start = np.eye(6)
    law = TokenFlow(tokens=6, dimension=6, start_tokens=start, beta=2.0, times=(0.5, 2.0))
    limit = EquiangularTokens(tokens=6, beta=2.0, start_overlap=0.0, times=(0.5, 2.0)).theory()
    name = next(name for name in limit.data_vars if "overlap" in name)
    np.testing.assert_allclose(law.theory().mean_overlap, limit[name], atol=1e-8)


def test_a_rotation_as_value_matrix_turns_equal_tokens() -> None:
    """Two equal tokens x with V = rotation by 90 degrees move with speed |V x| = 1 along the circle."""
    start = np.array([[1.0, 0.0], [1.0, 0.0]])
    law = TokenFlow(heads=[(None, None, TURN)], tokens=2, dimension=2, start_tokens=start, times=(0.3, 1.1))
    x = law.positions()[:, 0]
    np.testing.assert_allclose(x, [[np.cos(t), np.sin(t)] for t in (0.3, 1.1)], atol=1e-8)


def test_two_heads_add_up() -> None:
    """Two identity heads move the tokens at twice the speed of one head."""
    one = TokenFlow(tokens=5, dimension=3, times=(2.0,)).theory()
    two = TokenFlow(heads=[(None, None, None)] * 2, tokens=5, dimension=3, times=(1.0,)).theory()
    np.testing.assert_allclose(two.mean_overlap, one.mean_overlap, atol=1e-8)


def test_a_feed_forward_layer_alone_is_its_own_flow() -> None:
    """V = 0 and w sigma(a x + b) with constant output: the token turns towards that direction, tan(angle / 2) falls like e^-t."""
    layer = ([[0.0], [1.0]], [[0.0, 0.0]], [1.0])
    law = TokenFlow(
        heads=[(None, None, np.zeros((2, 2)))],
        feed_forward=layer,
        activation="identity",
        tokens=2,
        dimension=2,
        start_tokens=[[1.0, 0.0], [0.0, 1.0]],
        times=(0.7,),
    )
    x = law.positions()[0, 0]
    angle = np.arccos(x[1])
    assert abs(np.tan(angle / 2) - np.tan(np.pi / 4) * np.exp(-0.7)) < 1e-8


def test_layers_approach_the_flow_at_first_order() -> None:
    law = TokenFlow.check_points()[0].replace(survival=1.0)
    limit = law.theory().mean_overlap.values
    gaps = [np.abs(law.simulate(size, 0).mean_overlap.values - limit).max() for size in (40, 80, 160)]
    orders = np.log2(np.array(gaps[:-1]) / np.array(gaps[1:]))
    assert np.all(np.abs(orders - 1) < 0.1), orders


def test_contract() -> None:
    check_law(TokenFlow, sizes=[20, 40, 80], seeds=40)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (dict(heads=[(np.eye(3), None, None)], dimension=2), "Q of head 0 of shape"),
        (dict(heads=[]), "at least one head"),
        (dict(feed_forward=(np.eye(2), np.eye(3), np.zeros(3)), dimension=3), "w of feed_forward"),
        (dict(start_tokens=np.eye(3), tokens=4, dimension=3), "start_tokens of shape"),
        (dict(beta=-1.0), "beta"),
    ],
)
def test_matrices_of_wrong_shape_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TokenFlow(**given)
