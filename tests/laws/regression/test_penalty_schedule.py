"""A penalty that changes in time: reference values, ends that are known, samples, tables and functions, refusals."""

import pickle

import numpy as np
import pytest

from limitlab.laws import EarlyStopping, FirstOrderDynamics, Ridge
from limitlab.laws.regression._claims.annealed_penalty import recursion_gap
from limitlab.models.functions import Schedule
from references import label, reference

FUNCTIONS = {"1.5 exp(-t/2)": lambda t: 1.5 * np.exp(-t / 2), "1/(1+t)": lambda t: 1 / (1 + t)}


@pytest.mark.parametrize("entry", reference("further_dynamics", "penalty_schedule"), ids=label)
def test_reference(entry):
    given_ = entry["inputs"]
    found = EarlyStopping(
        ratio=1 / given_["sample_ratio"],
        noise=given_["noise"],
        signal_energy=(given_["signal_squared"],),
        penalty=FUNCTIONS[given_["penalty"]],
        times=tuple(given_["times"]),
    ).theory()
    np.testing.assert_allclose(found.excess_risk, entry["outputs"]["estimation_error"], atol=entry["tolerance"])
    np.testing.assert_allclose(found.overlap, entry["outputs"]["overlap"], atol=entry["tolerance"])


@pytest.mark.parametrize("ratio", [0.4, 1.0, 2.5])
def test_ends_that_are_known(ratio):
    base = EarlyStopping(ratio=ratio, noise=0.4, eigenvalues=(1.3,), signal_energy=(0.7,), times=3.0)
    none, free = base.replace(penalty=0).theory(), base.theory()
    for name in free.data_vars:
        assert float(none[name]) == pytest.approx(float(free[name]), abs=1e-9)
    late = base.replace(penalty=0.3, times=60.0).theory()
    ridge = Ridge(ratio=ratio, noise=0.4, eigenvalues=(1.3,), signal_energy=(0.7,), ridge=0.3).theory()
    for name in ("bias", "variance", "test_error", "train_error"):
        assert float(late[name]) == pytest.approx(float(ridge[name]), abs=1e-7)


def test_samples_come_closer_like_one_over_the_dimension():
    law = EarlyStopping(ratio=1 / 1.5, noise=0.5, times=(0.5, 2.0, 8.0), penalty=FUNCTIONS["1.5 exp(-t/2)"])
    limit = law.theory().excess_risk
    gaps = [
        float(np.abs(law.simulate_batch(d, range(n)).excess_risk.mean("seed") - limit).max())
        for d, n in ((50, 40), (400, 8))
    ]
    assert gaps[0] < 4e-3
    assert gaps[1] < 6e-4


def test_steps_of_descent_follow_the_modes_and_tend_to_the_flow():
    assert recursion_gap() < 1e-7
    flow = EarlyStopping(ratio=0.5, noise=0.5, times=1.0, penalty=FUNCTIONS["1/(1+t)"]).theory()
    gaps = []
    for steps in (10, 20):
        law = FirstOrderDynamics(
            loss="square",
            sample_ratio=2.0,
            noise=0.5,
            signal_energy=1.0,
            step=1 / steps,
            steps=steps,
            penalty=FUNCTIONS["1/(1+t)"],
        )
        gaps.append(float(law.theory().overlap[-1]) - float(flow.overlap))
    assert gaps[0] / gaps[1] == pytest.approx(2, rel=0.15)


def test_a_table_is_linear_between_its_times_and_survives_json():
    law = EarlyStopping(ratio=0.5, penalty=((0.0, 1.0), (2.0, 0.0)), times=3.0)
    again = EarlyStopping.model_validate_json(law.model_dump_json())
    assert again == law
    same = law.replace(penalty=lambda t: np.maximum(1 - t / 2, 0)).theory()
    assert float(same.test_error) == pytest.approx(float(law.theory().test_error), abs=1e-8)
    assert pickle.loads(pickle.dumps(law.penalty)) == law.penalty
    assert Schedule("0.5").plain == 0.5


@pytest.mark.parametrize(
    "bad", [-1.0, [(1.0, 2.0)], [(0.0, 1.0), (0.0, 2.0)], "fast", lambda t: -t, [(0.0, float("nan"))], "a:b#1"]
)
def test_schedules_that_are_refused(bad):
    with pytest.raises(ValueError, match="penalty"):
        EarlyStopping(penalty=bad)


@pytest.mark.parametrize(
    "more",
    [
        dict(step=0.1),
        dict(times=(1.0, float("inf"))),
        dict(ratio=float("inf")),
        dict(eigenvalues=(1.0, 2.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0)),
    ],
)
def test_where_a_penalty_is_refused(more):
    with pytest.raises(ValueError, match="not allowed with a penalty"):
        EarlyStopping(penalty=0.5, **more)
    with pytest.raises(ValueError, match="penalty"):
        EarlyStopping(penalty=0.5).best_time()
