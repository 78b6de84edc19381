"""Particles with several overlaps: reference values, one direction as a special case, energy, Monte Carlo of phihat, refusals."""

import numpy as np
import pytest

import limitlab as ll
from limitlab.laws import MeanFieldSingleIndex, MultiIndexFlow
from limitlab.laws.dmft._finite.multi_index import labels, signal
from limitlab.models.index_functions import sampled_terms
from references import label, reference


@pytest.mark.parametrize("entry", reference("further_dynamics", "k_index_particles"), ids=label)
def test_reference(entry):
    given_, want = entry["inputs"], entry["outputs"]
    assert given_["target"] == "u1 + u1 u2"
    found = MultiIndexFlow(
        hermite=given_["hermite"],
        target=[((1, 0), 1.0), ((1, 1), 1.0)],
        second_layer=given_["second_layer"],
        overlaps=given_["overlaps"],
        times=given_["times"],
    ).theory()
    np.testing.assert_allclose(found.second_layer, want["second_layer"], atol=entry["tolerance"])
    np.testing.assert_allclose(found.overlap, want["overlaps"], atol=entry["tolerance"])
    np.testing.assert_allclose(found.test_error / 2, want["half_risk"], atol=entry["tolerance"])


def test_one_direction_and_equal_particles_are_the_single_index_law():
    c, b = np.array([0.0, 0.7, 0.5]), np.array([0.0, 0.8, 0.4])
    many = MultiIndexFlow(
        hermite=tuple(c),
        target=(((1,), 0.8), ((2,), 0.4)),
        second_layer=0.9,
        overlaps=((0.2,),),
        noise=0.3,
        times=(0.5, 2.0),
    ).theory()
    one = MeanFieldSingleIndex(
        kernel=tuple(c**2),
        target=tuple(c * b),
        target_norm=float(b @ b),
        start_second_layer=0.9,
        start_overlap=0.2,
        noise=0.3,
        times=(0.5, 2.0),
    ).theory()
    np.testing.assert_allclose(many.test_error, one.test_error, atol=1e-8)
    np.testing.assert_allclose(many.overlap[:, 0, 0], one.overlap, atol=1e-8)


def test_phihat_is_the_average_over_inputs_and_has_its_gradient():
    law = MultiIndexFlow(target=(((1, 0), 0.9), ((1, 1), 0.8), ((2, 1), 0.5)))
    v = np.array([[0.5, 0.3]])
    rng, c = np.random.default_rng(0), np.array(law.hermite)
    x = rng.standard_normal((400_000, 3))
    w = np.array([0.5, 0.3, np.sqrt(1 - 0.34)])
    z = x @ w
    sigma = c[1] * z + c[2] * (z**2 - 1) / np.sqrt(2) + c[3] * (z**3 - 3 * z) / np.sqrt(6)
    products = sigma * labels(law.target, x)
    assert law.phihat(v)[0] == pytest.approx(products.mean(), abs=5 * products.std() / np.sqrt(len(x)))
    h = 1e-6
    for j in range(2):
        shift = h * np.eye(2)[[j]]
        slope = (law.phihat(v + shift) - law.phihat(v - shift)) / (2 * h)
        assert law.phihat_gradient(v)[0, j] == pytest.approx(slope[0], abs=1e-8)
    value, gradient = signal(c, law.target, v)
    np.testing.assert_allclose(value, law.phihat(v))
    np.testing.assert_allclose(gradient, law.phihat_gradient(v))


def test_the_test_error_never_increases_and_one_time_is_enough():
    found = MultiIndexFlow(times=tuple(np.linspace(0, 8, 30))).theory().test_error.values
    assert np.all(np.diff(found) < 1e-10)
    assert float(MultiIndexFlow(times=8.0).theory().test_error) == pytest.approx(found[-1])
    assert MultiIndexFlow(times=8.0).theory().overlap.dims == ("particle", "index")


@pytest.mark.parametrize(
    "bad",
    [
        dict(overlaps=((0.9, 0.9),), second_layer=1.0),
        dict(overlaps=((0.1, 0.1), (0.2,)), second_layer=1.0),
        dict(second_layer=(1.0,)),
        dict(target=(((1,), 1.0),)),
        dict(target=()),
    ],
)
def test_refusals(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        MultiIndexFlow(**bad)


# -- a target function of the indices ----------------------------------------------------------------------------------------


def saturating(u, v):
    return np.tanh(u) * (1 + v)


def test_a_polynomial_as_a_function_has_the_limit_of_its_coefficients():
    same, own = MultiIndexFlow().theory(), MultiIndexFlow(target_function=lambda u, v: u + u * v).theory()
    for name in same.data_vars:
        np.testing.assert_allclose(own[name], same[name], atol=1e-8)


def test_degrees_beyond_the_activation_only_add_to_the_test_error():
    beyond = MultiIndexFlow(
        hermite=(0.0, 0.7, 0.5), target_function=lambda u, v: u + u * v + 0.6 * (v**3 - 3 * v) / np.sqrt(6)
    )
    within = MultiIndexFlow(hermite=(0.0, 0.7, 0.5))
    np.testing.assert_allclose(beyond.theory().overlap, within.theory().overlap, atol=1e-8)
    np.testing.assert_allclose(beyond.theory().test_error, within.theory().test_error + 0.36, atol=1e-8)


def test_quadrature_and_random_inputs_give_the_same_coefficients():
    law = MultiIndexFlow(target_function=saturating)
    points = np.random.default_rng(4).standard_normal((2, 400_000))
    (terms, norm), (others, other) = law.target_terms(), sampled_terms(law.target_function, 3, points)
    assert [degrees for degrees, _ in terms] == [degrees for degrees, _ in others]
    np.testing.assert_allclose([value for _, value in terms], [value for _, value in others], atol=0.02)
    assert norm == pytest.approx(other, abs=0.02)


def test_the_stated_accuracy_covers_a_jump_between_two_nodes():
    law = MultiIndexFlow(target_function=lambda u, v: np.sign(u) + 1.0 * (v > 0.37))
    values = dict(law.target_terms()[0])
    bell = np.exp(-(0.37**2) / 2) / np.sqrt(2 * np.pi)
    assert values[0, 1] == pytest.approx(bell, abs=3e-3)
    assert values[1, 0] == pytest.approx(np.sqrt(2 / np.pi), abs=1e-9)  # panels have an edge at 0
    error = law.theory().test_error.attrs["numerical_error"]
    assert 1e-5 < error < 3e-3


def test_compare_agrees_for_a_target_function():
    law = MultiIndexFlow(target_function=saturating, times=(0.5, 1.5), noise=0.2)
    assert ll.compare(law, sizes=[24, 48, 96], seeds=12).verdict == "agree"


def test_three_indices():
    law = MultiIndexFlow(
        target_function=lambda a, b, c: np.tanh(a) * b + c, overlaps=((0.1, 0.2, 0.3),), second_layer=1.0, times=1.0
    )
    terms = dict(law.target_terms()[0])
    assert terms[0, 0, 1] == pytest.approx(1, abs=1e-9)
    assert terms[1, 1, 0] == pytest.approx(0.605705509602148, abs=1e-6)


@pytest.mark.parametrize(
    ("function", "changes", "message"),
    [
        (lambda u: u, {}, "has 1 arguments and is not allowed: must have one per column of overlaps, which has 2"),
        (saturating, dict(target=(((1, 0), 2.0),)), "omit one of them"),
        (lambda u, v: 1.0 * (u * u + v * v > 1.3), {}, "use a function without jumps, or fewer indices"),
        (lambda u, v: np.log(u) + v, {}, "one finite number for each point"),
        (lambda u, v: u[:3], {}, "one finite number for each point"),
        (lambda u, v: {}["a"], {}, "KeyError"),
        ("tanh", {}, "must be a function with one array per index"),
    ],
)
def test_refused_target_functions(function, changes, message):
    with pytest.raises(ValueError, match=message):
        MultiIndexFlow(target_function=function, **changes)
