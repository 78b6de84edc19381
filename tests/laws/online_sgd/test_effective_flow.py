"""The path of a user's statistics: closed form, error bars, closure, contract and refusals."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limitlab.errors import Refused
from limitlab.laws import EffectiveFlow, OnlineProblem
from limitlab.testing import check_law


def loss(x: Any, a: Any) -> Any:
    return (a[0] - a @ x) ** 2


def gaussians(key: Any, count: int, dimension: int) -> Any:
    return jax.random.normal(key, (count, dimension))


def both(x: Any) -> Any:
    return jnp.array([x[0], jnp.sum(x[1:] ** 2)])


def place(u: Any, dimension: int) -> Any:
    return np.concatenate([u[:1], np.full(dimension - 1, np.sqrt(max(u[1], 0.0) / (dimension - 1)))])


OWN = OnlineProblem(loss=loss, statistics=both, sampler=gaussians, place=place)


def exact(c: float, m0: float, q0: float, t: float) -> tuple[float, float]:
    """m' = 2 (1 - m) and q' = -4 q + 4 c ((1 - m)^2 + q), solved by hand."""
    rate = 4 - 4 * c
    gap = (1 - m0) ** 2
    source = 4 * c * gap * (np.exp(-4 * t) - np.exp(-rate * t)) / (rate - 4)
    return 1 - (1 - m0) * np.exp(-2 * t), q0 * np.exp(-rate * t) + source


@pytest.mark.parametrize("samples", [500, 2000])
def test_error_bars_hold_the_closed_form(samples: int) -> None:
    law = EffectiveFlow(problem=OWN, step=0.15, start_statistics=(0.2, 0.6), times=(0.3, 0.8), samples=samples)
    theory = law.theory().statistics
    want = [exact(0.15, 0.2, 0.6, t) for t in (0.3, 0.8)]
    assert np.abs(theory.values - want).max() < theory.attrs["numerical_error"] < 0.1


def test_more_samples_give_shorter_error_bars() -> None:
    few, many = (
        EffectiveFlow(problem=OWN, step=0.15, times=0.5, samples=samples).theory().statistics.attrs["numerical_error"]
        for samples in (200, 3200)
    )
    assert many < few / 2


def test_named_and_own_problem_agree_with_sgd() -> None:
    law = EffectiveFlow(problem=OWN, step=0.15, start_statistics=(0.2, 0.6), times=(0.3, 0.8), samples=1000)
    runs = law.simulate_batch(200, range(20)).statistics
    want = np.array([exact(0.15, 0.2, 0.6, t) for t in (0.3, 0.8)])
    error = runs.std("seed", ddof=1).values / np.sqrt(20)
    assert np.all(np.abs(runs.mean("seed").values - want) < 4 * error + 2 / 200)


@pytest.mark.slow
def test_contract() -> None:
    check_law(EffectiveFlow, sizes=[50, 100, 200], seeds=20)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (dict(place=lambda u, d: np.zeros(d)), "differs from u"),
        (dict(place=lambda u, d: np.zeros(3)), "shape"),
        (dict(statistics=lambda x: {}["x"]), "KeyError"),
        (dict(loss=lambda x, a: np.abs(x[0])), "raised"),
        (dict(loss=lambda x, a: jnp.sqrt(x[0] - 5)), "not finite"),
    ],
)
def test_problems_that_cannot_work_are_refused_at_construction(parts: Any, message: str) -> None:
    given: dict[str, Any] = dict(loss=loss, statistics=both, sampler=gaussians, place=place)
    with pytest.raises((ValueError, Refused), match=message):
        EffectiveFlow(problem=OnlineProblem(**{**given, **parts}))
