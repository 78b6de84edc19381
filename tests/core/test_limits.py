"""Nothing runs away: costs are estimated before work starts, endless integrations stop with a sentence, extreme points say so."""

import math
import time
import tracemalloc

import numpy as np
import pytest

import limitlab as ll
from limitlab._core.cost import Cost, Pace, check_cost, limits, memory_limit, read_memory
from limitlab._core.law import Law
from limitlab._core.registry import all_laws
from limitlab.errors import ConvergenceError, NotComputable, TooCostly
from limitlab.lab._compare import check_comparison_cost
from limitlab.lab._sweep import sweep_cost
from limitlab.laws import (
    AdiabaticGrowth,
    FirstOrderDynamics,
    LogisticCalibration,
    MaxMargin,
    NearestNeighbours,
    NoisyMeanField,
    OnlineSingleIndex,
    PopulationFlow,
    Ridge,
    SampleCovariance,
    SpikedTensor,
    TokenClustering,
    XorDynamics,
    XorMixture,
)  # fmt: skip
from limitlab.numerics.ode import integrate, solved

# -- before work starts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda: ll.sweep(Ridge(), {"ratio": np.linspace(0.1, 1, 100_000), "ridge": np.linspace(0.1, 1, 10_000)}),
        lambda: ll.sweep(Ridge(), {"ratio": np.broadcast_to(1.0, 10**12)}),
        lambda: ll.sweep(Ridge(), {"ratio": [0.5]}, sizes=[20], seeds=10**10),
        lambda: ll.compare(Ridge(), sizes=[100, 10**6]),
        lambda: ll.compare(Ridge(), sizes=[10], seeds=10**12),
        lambda: Ridge().simulate(100_000, 0),
        lambda: Ridge().simulate_batch(10**9, [0, 1]),
        lambda: TokenClustering(tokens=20_000).simulate(64, 0),
        lambda: OnlineSingleIndex(times=(0.0, 1e12)).simulate(1000, 0),
    ],
)
def test_what_would_not_fit_is_refused_at_once(call):
    tracemalloc.start()
    began = time.process_time()
    with pytest.raises(TooCostly, match=r"more than the .* allowed: .*, or allow more \(LIMITLAB_") as caught:
        call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
    assert peak < 1e8
    assert time.process_time() - began < 5


def test_limits_can_be_changed(monkeypatch):
    law = Ridge()
    with limits(memory="1MB"), pytest.raises(TooCostly, match="more than the 1 MB allowed"):
        law.simulate(300, 0)
    with limits(memory="none", time="none"):
        check_cost(Cost(1e30, 1e30), "anything", "nothing")
    monkeypatch.setenv("LIMITLAB_MEMORY", "2GB")
    assert memory_limit() == 2e9
    monkeypatch.setenv("LIMITLAB_MEMORY", "much")
    with pytest.raises(ValueError, match="LIMITLAB_MEMORY = 'much' is not allowed"):
        memory_limit()
    with pytest.raises(ValueError, match="not allowed"):
        read_memory("4 apples")


@pytest.mark.parametrize("name", sorted(all_laws()))
def test_every_law_has_a_cost_that_grows(name):
    for law in all_laws()[name].check_points():
        small, large = law.cost(law.simulation.sizes[-1]), law.cost(100 * law.simulation.sizes[-1])
        assert 0 < small.memory < 4e9
        assert small.seconds < 3600
        assert large.operations >= small.operations
        assert large.numbers >= small.numbers
        assert law.cost().memory < 4e9
    check_comparison_cost(law, law.simulation.sizes, law.simulation.draws)  # what a law does by default is always allowed


MEASURED = {
    "Ridge": 300, "MarchenkoPastur": 500, "EarlyStopping": 300, "SquareMatrixEdge": 80, "ThresholdClass": 1600, "MaxMargin": 300,
    "LogisticCalibration": 160, "RandomFeaturesRidge": 200, "UniformConvergence": 400, "SampleCovariance": 400, "TwoLayerDynamics": 80,
    "RidgeScaling": 320,
}  # fmt: skip


@pytest.mark.parametrize(("name", "size"), MEASURED.items())
def test_estimated_memory_is_that_which_is_measured(name, size):
    law = all_laws()[name].check_points()[0]
    law.simulate(8, 0)
    tracemalloc.start()
    law.simulate(size, 1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 3 < law.cost(size).memory < 3.5 * peak


def test_the_memory_of_a_sweep():
    over = {"ratio": np.geomspace(0.1, 10, 100), "ridge": np.geomspace(0.1, 10, 100)}
    _, cost = sweep_cost(Ridge(noise=0.5), over)
    ll.sweep(Ridge(noise=0.5), {"ratio": [1.0, 2.0]})  # what is imported and compiled on first use is no part of it
    tracemalloc.start()
    ll.sweep(Ridge(noise=0.5), over)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak / 3 < cost.memory < 3 * peak


def test_memory_that_is_not_there_is_one_sentence(monkeypatch):
    def greedy(self, draw, **_):
        raise MemoryError("Unable to allocate 74.5 GiB")

    monkeypatch.setattr(Ridge, "measured", greedy)
    with pytest.raises(TooCostly, match="Ridge at size 20 needs more memory than is available: choose a smaller size"):
        Ridge().simulate(20, 0)


# -- while it runs --------------------------------------------------------------------------------------------------------


class Clock:
    """A clock that is moved by hand."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_an_integration_that_would_never_arrive_stops_early(caplog):
    clock = Clock()
    pace = Pace(end=1e6, clock=clock)
    clock.now = 4.9
    pace.at(1.0)
    clock.now = 5.1
    with pytest.raises(
        ConvergenceError, match=r"reached time 1 of 1e\+06 in 5 s and would need about .* more: give a shorter time"
    ):
        pace.at(1.0)
    fine = Pace(end=10.0, clock=clock)
    clock.now += 6
    fine.at(5.0)  # six more seconds: it may go on, and says where it is
    assert "reached time 5 of 10" in caplog.text
    with limits(patience="none"):
        endless = Pace(end=1e6, clock=clock)
        clock.now += 100
        endless.at(1e-9)


@pytest.mark.parametrize(
    ("law", "rest"),
    [
        (SpikedTensor(times=(0.0, 1e6)), "overlap"),
        pytest.param(PopulationFlow(times=(0.0, 1e6)), "overlap", marks=pytest.mark.slow),
        pytest.param(OnlineSingleIndex(times=(0.0, 1e6)), "overlap", marks=pytest.mark.slow),
    ],
)
def test_long_times_end_at_the_point_of_rest(law, rest):
    far = law.theory()
    near = law.replace(times=(0.0, 2e4)).theory()
    assert float(far[rest][-1]) == pytest.approx(float(near[rest][-1]), abs=1e-6)


def test_a_point_of_rest_is_reached_with_few_steps():
    calls = []

    def velocity(_, x):
        calls.append(1)
        return np.array([-1000 * (x[0] - x[1]), 1 - x[1]])

    path = integrate(velocity, [0.0, 0.5], [1.0, 1e8], 1e-10)
    assert path.states[-1] == pytest.approx([1.0, 1.0], abs=1e-8)
    assert len(calls) < 50_000  # an explicit method would need 3e10
    assert (np.abs(path.states[-1] - 1) <= np.maximum(path.errors, 1e-9)).all()


def test_times_that_hold_still_and_then_leave():
    """A saddle is left at the right time: small steps there are not taken for rest for good."""
    states = solved(lambda t, x: x * (1 - x), np.array([1e-6]), np.array([10.0, 20.0, 40.0]), 1e-11, 1e-15)
    exact = 1 / (1 + (1e6 - 1) * np.exp(-np.array([10.0, 20.0, 40.0])))
    assert states.ravel() == pytest.approx(exact, rel=1e-7)


@pytest.mark.slow
@pytest.mark.parametrize("law", [XorDynamics(snr=1e-3), ll.laws.ResidualFlow(dimension=1000), XorDynamics(times=(0.0, 1e6))])
def test_what_cannot_finish_stops_with_a_sentence(law):
    began = time.process_time()
    with pytest.raises(ConvergenceError, match="would need about"):
        law.theory()
    assert time.process_time() - began < 20


# -- legal points beyond numbers ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "named"),
    [
        (MaxMargin(ratio=1e160), "ratio = 1e+160"),
        (PopulationFlow(noise=1e308), "noise = 1e+308"),
        (SampleCovariance(ratio=1e-320), "ratio = 1e-320"),
        (XorDynamics(regularizer=1e3), "regularizer = 1000.0"),
    ],
)
def test_points_beyond_floating_point_numbers_say_so(law, named):
    with np.errstate(all="ignore"), pytest.raises(NotComputable) as caught:
        law.theory()
    assert named in str(caught.value)
    assert "move" in str(caught.value)
    assert caught.value.__cause__ is not None


def test_times_of_zero():
    law = XorDynamics(times=0.0)
    assert law.theory().second_layer.values == pytest.approx(law.start_second_layer)


@pytest.mark.parametrize("name", sorted(all_laws()))
def test_whole_numbers_beyond_all_bounds_are_refused(name):
    law = all_laws()[name]
    for key, field in law.model_fields.items():
        if int in (field.annotation, *getattr(field.annotation, "__args__", ())):
            with pytest.raises(ValueError, match=f"{key} = 1000.* is not allowed"):
                law(**{key: 10**400})


@pytest.mark.parametrize("value", [np.True_, "2", True, b"2", (1.0,)])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(ValueError, match=r"ratio = .* is not allowed: must be a number"):
        Ridge(ratio=value)


def test_numbers_in_a_sequence_are_numbers():
    with pytest.raises(ValueError, match="not a text"):
        Ridge(eigenvalues=("1", 2.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0))
    with pytest.raises(ValueError, match="not True or False"):
        Ridge(eigenvalues=(True, 2.0), weights=(0.5, 0.5), signal_energy=(1.0, 1.0))


def test_infinity_still_goes_through_json():
    law = XorMixture(snr=math.inf)
    assert type(law).model_validate_json(law.model_dump_json()) == law


@pytest.mark.parametrize("seed", ["a", None, 2j, [1], np.True_, math.nan, 10**400, -1])
def test_seeds_of_the_wrong_kind(seed):
    with pytest.raises(ValueError, match=r"seed = .* is not allowed: must be a whole number of at least 0"):
        Ridge().simulate(10, seed)
    with pytest.raises(ValueError, match=r"seeds = .* is not allowed|seed = .* is not allowed"):
        ll.sweep(Ridge(), {"ratio": [0.5]}, sizes=[10], seeds=[seed])


def test_an_empty_kernel_is_one_sentence():
    with pytest.raises(ValueError, match=r"kernel = \(\) is not allowed: give at least"):
        AdiabaticGrowth(kernel=())


def test_the_prediction_of_an_infinite_limit_says_so():
    assert "snr -> infinity" in XorMixture(snr=3.0).theory().attrs["caveat"]
    assert "caveat" not in XorMixture().theory().attrs


def test_a_mistake_in_a_law_stays_what_it_is(monkeypatch):
    def mistaken(self, **_):
        return {}["nothing"]

    def said(self, **_):
        raise ValueError("ratio and ridge do not go together")

    monkeypatch.setattr(Ridge, "predicted", mistaken)
    with pytest.raises(KeyError):
        Ridge().theory()
    monkeypatch.setattr(Ridge, "predicted", said)
    with pytest.raises(ValueError, match="do not go together"):
        Ridge().theory()


def test_the_rule_reads_the_declaration():
    class Plain(Law):
        """Nothing but a size."""

    assert Plain().cost(1000).numbers < Plain().cost(10**6).numbers


def test_an_experiment_that_diverges_says_so():
    with (
        np.errstate(all="ignore"),
        pytest.raises(NotComputable, match=r"XorDynamics at size 50 and regularizer = 1000\.0 diverges"),
    ):
        XorDynamics(regularizer=1e3).simulate(50, 0)


def test_a_swept_parameter_may_be_the_one_that_costs():
    from limitlab.laws import TangentInterpolation

    with pytest.raises(TooCostly, match="TangentInterpolation at size 4 would"):
        ll.sweep(TangentInterpolation(networks=1), {"networks": [10**18]}, sizes=[4], seeds=1)


# -- found by fuzz --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ll.sweep(Ridge(), {"noise": [1.0, 10**400]}), "noise = 1000"),
        (lambda: NearestNeighbours().evaluate(dimension=[2, 10**400]), "dimension = .* is not allowed"),
        (lambda: FirstOrderDynamics(start_overlap=1e160), "start_overlap = 1e[+]160 is not allowed"),
        (lambda: ll.laws.ntk(np.eye(2), weight_std=1e160), "weight_std = 1e[+]160 is not allowed"),
        (
            lambda: ll.compare(LogisticCalibration(signal=9.8, ratio=0.1), sizes=[4], seeds=6),
            "draws of LogisticCalibration at size 4 have no fitted_intercept",
        ),
    ],
)
def test_extreme_values_are_one_sentence(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_whole_numbers_beyond_64_bits_label_a_sweep():
    result = ll.sweep(NearestNeighbours(dimension=2), {"samples": [20, 10**19]})
    assert result.samples.values.tolist() == [20.0, 1e19]


@pytest.mark.parametrize(
    ("law", "parameter"),
    [
        ("PowerLawScaling", "batch"), ("PowerLawScaling", "replicas"), ("MultiPassLeastSquares", "replicas"),
        ("QuadraticTarget", "replicas"), ("SpikedTensorDiffusion", "replicas"), ("SingleCluster", "dimension"),
    ],
)  # fmt: skip
def test_repetitions_and_batches_count(law, parameter):
    few = all_laws()[law]()
    many = few.replace(**{parameter: 10**9})
    assert many.cost(8).seconds > 20 > few.cost(8).seconds


def test_a_density_that_has_come_to_rest_is_not_followed_for_ever():
    late = NoisyMeanField(neuron="erf", times=(1e300, math.inf), solver_steps=50).theory()
    assert late.risk.values[0] == pytest.approx(late.risk.values[1], abs=1e-6)
