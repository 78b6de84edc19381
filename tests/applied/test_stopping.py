"""Early-stopping planner: the time line of learning and overfitting, tables of plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from limitlab.applied.stopping import plan_stopping, stopping_table
from limitlab.laws.dmft.two_layer import TwoLayerDynamics

SINGLE_INDEX: dict[str, Any] = dict(
    kernel=(0, 0.5, 0.3, 0.2), target=(0, 0.5, 0.3), target_norm=1.0, noise=0.5, start_second_layer=1.0, start_overlap=0.1
)


@pytest.mark.parametrize(("width", "time", "error"), [(10, 6.2, 0.3615), (20, 6.7, 0.3076)])
def test_the_minimum_of_the_test_error(width: int, time: float, error: float) -> None:
    """Against values measured with another solver (halves of ours)."""
    law = TwoLayerDynamics(width=width, sample_ratio=0.5 * width, solver_steps=480, **SINGLE_INDEX)
    plan = plan_stopping(law, end=20.0)
    assert abs(plan.time - time) < 0.1
    assert abs(plan.test_error / 2 - error) < 2e-4
    assert plan.learned < plan.time < plan.overfit
    assert plan.final_test_error > plan.test_error
    assert plan.final_train_error < plan.train_error


@pytest.mark.parametrize("slack", [0.03, 0.06])
def test_the_ends_of_the_window_are_where_the_slack_is_used_up(slack: float) -> None:
    law = TwoLayerDynamics(width=10, sample_ratio=5, solver_steps=400, **SINGLE_INDEX)
    plan = plan_stopping(law, end=40.0, slack=slack)
    ends = law.replace(times=(plan.learned, plan.overfit), solver_steps=600).theory().test_error.values
    np.testing.assert_allclose(ends / plan.test_error - 1, slack, atol=0.006)  # the spacing of the times that were read


def test_a_lazy_start_overfits() -> None:
    law = TwoLayerDynamics(width=10, sample_ratio=5, solver_steps=400, **SINGLE_INDEX)
    table = stopping_table(law, {"start_second_layer": [0.5, 1.0, 3.0]}, end=20.0)
    best = table.test_error.values
    assert best[0] < best[2]
    assert best[1] < best[2]


def test_a_table_of_two_parameters_is_a_grid_of_plans() -> None:
    law = TwoLayerDynamics(width=4, **SINGLE_INDEX)
    table = stopping_table(law, {"sample_ratio": [1.0, 2.0, 4.0], "noise": [0.2, 0.8]}, end=6.0)
    assert table.test_error.dims == ("sample_ratio", "noise")
    single = plan_stopping(law.replace(sample_ratio=2.0, noise=0.8), end=6.0)
    assert float(table.time.sel(sample_ratio=2.0, noise=0.8)) == single.time
    assert np.all(np.diff(table.test_error.values, axis=0) < 0)  # more samples help
    assert np.all(np.diff(table.test_error.values, axis=1) > 0)  # noise does not
    with pytest.raises(ValueError, match="at least one parameter"):
        stopping_table(law, {})
    with pytest.raises(ValueError, match="end = 0"):
        plan_stopping(law, end=0.0)


def test_a_trajectory_that_never_overfits_has_no_end_of_the_window() -> None:
    law = TwoLayerDynamics(width=2, sample_ratio=60, solver_steps=200, **SINGLE_INDEX)
    assert plan_stopping(law, end=2.0, slack=0.5).overfit == np.inf
    with pytest.raises(ValueError, match="slack = 0"):
        plan_stopping(law, slack=0)
