"""Finitely many neurons: constants at fixed dimension, sampled measures, Frank and Wolfe, interpolation of noise."""

from functools import partial

import numpy as np
import pytest

from limitlab._core.draws import mean_and_error
from limitlab.laws import (
    SampledMeasure,
    TangentInterpolation,
    explicit_weights_error,
    fixed_dimension_constant,
    gegenbauer_coefficients,
    tangent_rank,
    unexplained_exact,
)
from limitlab.laws.approximation._claims import GREEDY_SCALE, closing, greedy_problem
from limitlab.laws.approximation._frank_wolfe import correlated_neuron, frank_wolfe, largest_norm
from limitlab.laws.approximation.sampled_measure import ring_neurons
from limitlab.models.data import sphere
from references import label, reference

entries = partial(reference, "static_statements")


# -- fixed dimension ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("fixed_dimension_rate"), ids=label)
def test_reference_constants(entry):
    d, k, activation = (entry["inputs"][name] for name in ("dimension", "degree", "activation"))
    want = entry["outputs"]
    np.testing.assert_allclose(fixed_dimension_constant(d, k, activation), want["constant"], rtol=entry["tolerance"])
    found = gegenbauer_coefficients(activation, d, [k]).coefficients[0]
    np.testing.assert_allclose(found, want["lambda_k"], rtol=entry["tolerance"])


def test_explicit_weights_by_sampling_inputs():
    """The closed average over targets, against one target of degree 2 on random inputs, averaged over many."""
    rng, d, n = np.random.default_rng(0), 4, 12
    W, x = sphere(rng, n, d), sphere(rng, 40_000, d, radius=2.0)
    relu, level = np.maximum(x @ W.T, 0), gegenbauer_coefficients("relu", d, [2]).coefficients[0]
    errors = []
    for _ in range(300):
        A = rng.standard_normal((d, d))
        A = (A + A.T) / 2
        A -= np.trace(A) / d * np.eye(d)
        f = np.einsum("ia,ab,ib->i", x, A, x)
        fit = relu @ (4 * np.einsum("ia,ab,ib->i", W, A, W)) / (level * n)
        errors.append([np.mean((f - fit) ** 2), np.mean(f**2)])
    ratio = np.mean(errors, axis=0)
    scatter = np.std([a - ratio[0] / ratio[1] * b for a, b in errors]) / np.sqrt(300) / ratio[1]
    assert abs(ratio[0] / ratio[1] - explicit_weights_error(W, 2)) < 5 * scatter + 0.02 * ratio[0] / ratio[1]


def test_least_squares_is_better_and_outside_targets_cost_infinity():
    W = sphere(np.random.default_rng(1), 60, 5)
    assert unexplained_exact(W, [2])[0] < explicit_weights_error(W, 2)
    assert fixed_dimension_constant(6, 5, "relu") == np.inf
    assert fixed_dimension_constant(6, 5, "tanh") < np.inf
    assert fixed_dimension_constant(6, 2, "tanh") == np.inf  # odd


def test_the_constant_without_its_last_term_is_told_apart():
    """Control: E s^2/lambda^2 in place of E s^2/lambda^2 - 1."""
    rng = np.random.default_rng(2)
    runs = np.array([40 * explicit_weights_error(sphere(rng, 40, 3), 2) for _ in range(4000)])
    error = mean_and_error(runs)[1]
    assert abs(runs.mean() - fixed_dimension_constant(3, 2)) < 4 * error
    assert abs(runs.mean() - fixed_dimension_constant(3, 2) - 1) > 4 * error


# -- measures ----------------------------------------------------------------------------------------------------------------


def test_reference_sampling():
    (entry,) = entries("finite_sampling_of_rho")
    asked = entry["inputs"]
    law = SampledMeasure(neurons=ring_neurons(tuple(asked["second_layer"]), 360), weights=asked["weights"])
    want = entry["outputs"]["N_times_mean_squared_error"]
    np.testing.assert_allclose(float(law.theory().squared_error), want, rtol=entry["tolerance"])


def test_one_neuron_costs_nothing_and_the_error_is_exact_for_two():
    assert float(SampledMeasure(neurons=((1.0, 2.0),), weights=(1.0,)).theory().squared_error) == pytest.approx(0, abs=1e-12)
    law = SampledMeasure(neurons=((1.0, 0.0), (0.0, 2.0)), weights=(0.25, 0.75))
    every = [(i, j, a * b) for i, a in enumerate(law.weights) for j, b in enumerate(law.weights)]  # N = 2, all draws
    values, f = np.array(law.neurons), np.array(law.weights) @ np.array(law.neurons)
    mean = sum(p * np.mean(((values[i] + values[j]) / 2 - f) ** 2) for i, j, p in every)
    assert float(law.theory().squared_error) == pytest.approx(2 * mean, rel=1e-12)


def test_frank_wolfe_stays_below_its_bound_and_a_target_outside_the_hull_does_not_converge():
    X, neurons, weights = greedy_problem(np.random.default_rng(0), 200)
    y = weights @ neurons
    found = frank_wolfe(X, y, GREEDY_SCALE, 60)
    k = np.arange(61)
    bound = 16 * largest_norm(X, GREEDY_SCALE) ** 2
    assert (found.errors * (k + 2) <= bound).all()
    assert 60 * found.errors[60] < 5 * found.errors[5]
    rebuilt = np.maximum(X @ found.neurons.T, 0) @ found.second_layer
    assert np.mean((y - rebuilt) ** 2) == pytest.approx(found.errors[-1], rel=1e-9)
    assert np.abs(found.second_layer).sum() <= GREEDY_SCALE * (1 + 1e-12)
    outside = frank_wolfe(X, 50 * y, GREEDY_SCALE, 60)  # control: the theorem needs a target in the hull
    assert 60 * outside.errors[60] > bound


def test_the_largest_norm_is_a_bound():
    X = np.random.default_rng(0).standard_normal((100, 4))
    w = sphere(np.random.default_rng(1), 5000, 4)
    norms = np.sqrt(np.mean(np.maximum(w @ X.T, 0) ** 2, axis=1))
    assert norms.max() <= largest_norm(X, 1.0)


def test_the_search_finds_a_planted_neuron():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    w = sphere(rng, 1, 5)[0]
    found, value = correlated_neuron(rng, X, -np.maximum(X @ w, 0.0))
    assert value < 0
    assert abs(value) >= np.mean(np.maximum(X @ w, 0.0) ** 2) * (1 - 1e-9)
    assert np.linalg.norm(found) == pytest.approx(1)


# -- interpolation of noise --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", entries("nt_interpolation"), ids=label)
def test_reference_train_errors(entry):
    found = float(TangentInterpolation(**entry["inputs"]).theory().train_error)
    np.testing.assert_allclose(found, entry["outputs"]["train_error"], atol=entry["tolerance"])


@pytest.mark.parametrize("entry", entries("nt_rank"), ids=label)
def test_reference_ranks(entry):
    for name in ("relu", "tanh", "square"):
        rank = tangent_rank(entry["inputs"]["dimension"], entry["inputs"]["width"], name)
        assert rank == entry["outputs"][f"rank_{name}"]


def test_reference_dead_inputs():
    (entry,) = entries("nt_dead_inputs")
    law = TangentInterpolation(width=entry["inputs"]["width"], samples_over_parameters=0.75)
    want, tolerance = entry["outputs"]["train_error_floor"], entry["tolerance"]["abs"]
    assert float(law.theory().train_error) == pytest.approx(want, abs=tolerance)
    assert float(law.simulate_batch(20, range(120)).train_error.mean()) == pytest.approx(want, abs=tolerance)


def test_more_quadratic_neurons_than_dimensions():
    assert tangent_rank(5, 7, "square") == 15
    assert tangent_rank(6, 4, "identity") == 6


def test_the_quadratic_network_breaks_the_law():
    """Control: at N of the order of d its transition is not at N d = n."""
    law = TangentInterpolation(width=8.0, activation="square", samples_over_parameters=0.95)
    assert float(law.theory().train_error) == 0
    assert float(law.simulate(10, 0).train_error) > 0.1  # rank 52 of 80 features, 76 samples


def test_the_smallest_eigenvalue_closes_at_the_transition():
    assert closing(1.0, 10, 20) < 0.02 * min(closing(0.8, 10, 20), closing(1.25, 10, 20))


def test_infinite_width_is_the_limit():
    many = TangentInterpolation(width=60.0, samples_over_parameters=1.5)
    assert float(many.theory().train_error) == pytest.approx(1 / 3, rel=1e-12)
    smooth = TangentInterpolation(width=1.0, activation="tanh", samples_over_parameters=0.5)
    assert float(smooth.theory().train_error) == 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: TangentInterpolation(width=2.5), "width = 2.5 is not allowed"),
        (lambda: TangentInterpolation(activation="square"), "width = inf is not allowed"),
        (lambda: tangent_rank(0, 3), "dimension = 0 is not allowed"),
        (lambda: SampledMeasure(weights=(0.5, 0.5)), "weights of length 2 are not allowed"),
        (lambda: SampledMeasure(weights=(0.5, 0.3, 0.1)), "must add up to 1"),
        (lambda: SampledMeasure(neurons=((1.0,), (1.0, 2.0), (1.0,))), "neurons are not allowed"),
    ],
)
def test_bad_input(call, words):
    with pytest.raises(ValueError, match=words):
        call()
