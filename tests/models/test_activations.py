"""Tests of the values, derivatives and moments of activations, and of the forms in which a law accepts them."""

import functools
import json
import math
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ValidationError

from limitlab._core.declaration import parameter
from limitlab._core.law import Law
from limitlab.errors import ConvergenceError
from limitlab.models._activation_table import TABLE
from limitlab.models.activations import NAMES, Activation, Moments, hermite, moments
from limitlab.numerics.gaussian import expectation, hermite_coefficients, hermite_values, norm, pair_expectation
from references import reference

REFERENCE = reference("activations")
SMOOTH = [name for name in NAMES if not TABLE[name].kinks]
POINTS = np.linspace(-6, 6, 41) + 0.013


def shifted_tanh(x):
    return np.tanh(x + 0.5)


class Net(Law):
    """A law that takes an activation."""

    activation: Activation = parameter("relu", "activation of the neurons", symbol=r"\sigma")


# -- functions and derivatives -------------------------------------------------------------------------------------------


def test_names_are_those_of_the_contract():
    plain = ["relu", "tanh", "erf", "gelu", "softplus", "sigmoid", "sin", "cos", "abs", "square", "cube", "identity"]
    assert set(NAMES) == {*plain, *(f"{kind}{k}" for kind in ("h", "he") for k in range(1, 7))}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("relu", 0.7),
        ("tanh", math.tanh(0.7)),
        ("erf", math.erf(0.7)),
        ("gelu", 0.7 * 0.5 * math.erfc(-0.7 / math.sqrt(2))),
        ("softplus", math.log1p(math.exp(0.7))),
        ("sigmoid", 1 / (1 + math.exp(-0.7))),
        ("sin", math.sin(0.7)),
        ("cos", math.cos(0.7)),
        ("abs", 0.7),
        ("square", 0.49),
        ("cube", 0.343),
        ("identity", 0.7),
        ("he3", 0.343 - 2.1),
        ("h3", (0.343 - 2.1) / math.sqrt(6)),
        ("he6", 0.7**6 - 15 * 0.7**4 + 45 * 0.7**2 - 15),
    ],
)
def test_values(name, value):
    assert Activation(name)(0.7) == pytest.approx(value, rel=1e-14)
    assert Activation(name)(np.array([[0.7]])).shape == (1, 1)


@pytest.mark.parametrize("name", NAMES)
def test_derivatives_integrate_to_differences(name):
    """Gauss-Legendre integrals of s' and s'' between two points are the differences of s and s'."""
    activation = Activation(name)
    nodes, weights = np.polynomial.legendre.leggauss(20)
    low, high = POINTS[:-1, None], POINTS[1:, None]
    keep = ~((low < 0) & (high > 0)).ravel() | (not activation.kinks)
    inside, half = low + (high - low) * (nodes + 1) / 2, (high - low).ravel() / 2
    scale = np.abs(activation(POINTS)).max() + 1
    got = (activation.derivative(inside) @ weights) * half
    np.testing.assert_allclose(got[keep], np.diff(activation(POINTS))[keep], atol=2e-14 * scale)
    if not activation.kinks:
        got = (activation.second_derivative(inside) @ weights) * half
        np.testing.assert_allclose(got, np.diff(activation.derivative(POINTS)), atol=2e-14 * scale)


def test_every_named_activation_runs_and_differentiates_in_jax():
    """One program contains all names. The gradient of the sum over the elements is the slope at every element."""
    activations = [Activation(name) for name in NAMES]

    @jax.jit
    def everything(x):
        slopes = [jax.grad(lambda x, s=s: s(x).sum())(x) for s in activations]
        return jnp.stack([s(x) for s in activations]), jnp.stack(slopes)

    with jax.enable_x64(True) if hasattr(jax, "enable_x64") else jax.experimental.enable_x64():
        values, slopes = everything(jnp.asarray(POINTS))
    for name, activation, value, slope in zip(NAMES, activations, values, slopes, strict=True):
        np.testing.assert_allclose(value, activation(POINTS), rtol=1e-12, atol=1e-12, err_msg=name)
        np.testing.assert_allclose(slope, activation.derivative(POINTS), rtol=1e-10, atol=1e-12, err_msg=name)


def test_extreme_arguments_do_not_overflow():
    far = np.array([-800.0, 800.0])
    for name in ("tanh", "erf", "gelu", "softplus", "sigmoid", "relu"):
        for function in (Activation(name), Activation(name).derivative):
            assert np.all(np.isfinite(function(far)))
    assert Activation("sigmoid")(-40.0) == pytest.approx(math.exp(-40), rel=1e-12)
    assert Activation("softplus")(-40.0) == pytest.approx(math.exp(-40), rel=1e-12)


def test_integers_and_lists_are_numbers():
    assert Activation("cube")([1, 2]).tolist() == [1.0, 8.0]
    assert Activation("square").derivative(3) == 6.0


# -- moments and Hermite coefficients ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name in NAMES if TABLE[name].moments is not None])
def test_closed_moments_equal_quadrature(name):
    entry = TABLE[name]
    unnamed = moments(Activation(entry.function, kinks=entry.kinks))
    assert unnamed == moments(Activation(entry.function, kinks=entry.kinks))
    for field in ("mean", "linear", "nonlinear"):
        assert getattr(moments(name), field) == pytest.approx(getattr(unnamed, field), abs=2e-13)


@pytest.mark.parametrize("name", NAMES)
def test_moments_split_the_second_moment(name):
    activation = Activation(name)
    assert moments(name).square == pytest.approx(norm(activation) ** 2, rel=1e-12)
    assert moments(name).linear == pytest.approx(expectation(activation.derivative, kinks=activation.kinks), abs=1e-12)


@pytest.mark.parametrize("entry", REFERENCE["moments"], ids=lambda entry: entry["activation"])
def test_moments_against_reference(entry):
    got, tolerance = moments(entry["activation"]), entry["absolute_tolerance"]
    assert got.mean == pytest.approx(entry["mean"], abs=tolerance)
    assert got.linear == pytest.approx(entry["linear"], abs=tolerance)
    assert got.nonlinear**2 == pytest.approx(entry["nonlinear_squared"], abs=tolerance)


@pytest.mark.parametrize("entry", REFERENCE["squared_hermite_coefficients"], ids=lambda entry: entry["activation"])
def test_hermite_coefficients_against_reference(entry):
    got = hermite(entry["activation"], len(entry["values"]) - 1)
    np.testing.assert_allclose(got**2, entry["values"], atol=entry["absolute_tolerance"])
    assert norm(Activation(entry["activation"])) ** 2 == pytest.approx(
        entry["norm_squared"], abs=entry["absolute_tolerance"]
    )


@pytest.mark.parametrize("entry", REFERENCE["pairs"], ids=lambda entry: entry["activation"])
def test_pair_averages_against_reference(entry):
    """E s(u) s(v) and E s'(u) s'(v) for a Gaussian pair with given variances and covariance."""
    activation = Activation(entry["activation"])
    first, second = math.sqrt(entry["first_variance"]), math.sqrt(entry["second_variance"])
    rho = entry["covariance"] / (first * second)
    for function, wanted in ((activation, "value"), (activation.derivative, "derivative_value")):
        got = pair_expectation(
            lambda x, y, function=function: function(first * x) * function(second * y), rho, kinks=activation.kinks
        )
        assert got == pytest.approx(entry[wanted], abs=entry["absolute_tolerance"])


def by_reference_name(name):
    """The table of reference numbers has one function without a name here: erf(x / sqrt 2)."""
    if name == "erf(x/sqrt(2))":
        erf = Activation("erf")
        return Activation(
            lambda x: erf(x / math.sqrt(2)), derivative=lambda x: erf.derivative(x / math.sqrt(2)) / math.sqrt(2), kinks=()
        )
    return Activation(name)


@pytest.mark.parametrize("entry", REFERENCE["teacher_student"], ids=lambda entry: f"{entry['teacher']}-{entry['student']}")
def test_teacher_student_loss_against_reference(entry):
    """E (f(X) - g(Y))^2 + noise^2 and its slope -2 E f'(X) g'(Y) in the correlation (Price's theorem)."""
    teacher, student = by_reference_name(entry["teacher"]), by_reference_name(entry["student"])
    kinks = (teacher.kinks, student.kinks)
    tolerance = entry["relative_tolerance"]
    loss = pair_expectation(lambda x, y: (teacher(x) - student(y)) ** 2, entry["correlation"], kinks=kinks)
    assert loss + entry["noise"] ** 2 == pytest.approx(entry["loss"], rel=tolerance)
    slope = pair_expectation(lambda x, y: teacher.derivative(x) * student.derivative(y), entry["correlation"], kinks=kinks)
    assert -2 * slope == pytest.approx(entry["slope"], rel=tolerance, abs=tolerance)


@pytest.mark.parametrize("name", NAMES)
def test_hermite_of_names_vanish_exactly_by_symmetry_and_agree_with_quadrature(name):
    got = hermite(name, 12)
    np.testing.assert_allclose(got, hermite_coefficients(Activation(name), 12), atol=1e-12 * norm(Activation(name)))
    odd_only, even_only = TABLE[name].parity == "odd", TABLE[name].parity == "even"
    assert odd_only or even_only
    assert np.all(got[3::2] == 0) if even_only else np.all(got[2::2] == 0)


@pytest.mark.parametrize("degree", range(1, 7))
def test_named_hermite_polynomials_are_the_basis(degree):
    np.testing.assert_allclose(Activation(f"h{degree}")(POINTS), hermite_values(POINTS, degree)[degree], rtol=1e-11)
    wanted = np.zeros(8)
    wanted[degree] = 1
    np.testing.assert_allclose(hermite(f"h{degree}", 7), wanted, atol=1e-12)
    np.testing.assert_allclose(hermite(f"he{degree}", 7), wanted * math.sqrt(math.factorial(degree)), atol=1e-10)


@settings(deadline=None, max_examples=25)
@given(shift=st.floats(-2, 2), gain=st.floats(0.1, 3))
def test_moments_of_shifted_relu(shift, gain):
    """The closed forms are E relu(Z-c), P(Z>c) and E relu(Z-c)^2."""
    density, tail = math.exp(-(shift**2) / 2) / math.sqrt(2 * math.pi), math.erfc(shift / math.sqrt(2)) / 2
    got = moments(lambda x: gain * np.maximum(x - shift, 0))
    mean, square = density - shift * tail, (1 + shift**2) * tail - shift * density
    assert got.mean == pytest.approx(gain * mean, rel=1e-11)
    assert got.linear == pytest.approx(gain * tail, rel=1e-11)
    assert got.nonlinear**2 == pytest.approx(gain**2 * (square - mean**2 - tail**2), rel=1e-8)


def test_small_nonlinear_part_keeps_its_digits():
    """For x + 1e-7 h_3 the difference of second moments would have no correct digit."""
    assert moments(lambda x: x + 1e-7 * hermite_values(x, 3)[3]).nonlinear == pytest.approx(1e-7, rel=1e-7)
    line = moments(lambda x: 2 * x + 1)
    assert (line.mean, line.linear) == (pytest.approx(1, rel=1e-14), pytest.approx(2, rel=1e-14))
    assert line.nonlinear == 0.0
    assert moments(lambda x: 0 * x) == Moments(0.0, 0.0, 0.0)


# -- what a law may be given ---------------------------------------------------------------------------------------------


def test_law_accepts_names_functions_and_moments():
    assert Net().activation == Activation("relu")
    assert Net(activation="tanh").activation(0.5) == math.tanh(0.5)
    assert Net(activation=np.tanh).activation(0.5) == math.tanh(0.5)
    assert moments(Net(activation=Moments(0, 1, 0.5)).activation) == Moments(0.0, 1.0, 0.5)
    assert Net(activation=functools.partial(np.power, 2.0)).activation(3.0) == 8.0


@pytest.mark.parametrize("given", ["tanh", "h3", Moments(0.1, 0.5, 0.3)])
def test_json_round_trip(given):
    law = Net(activation=given)
    assert Net.model_validate_json(law.model_dump_json()) == law
    assert Net(**law.model_dump()) == law
    assert law.replace() == law


def test_functions_are_recorded_in_json_but_never_brought_back():
    law = Net(activation=shifted_tanh)
    assert Net(**law.model_dump()) == law
    assert pickle.loads(pickle.dumps(law)) == law
    recorded = json.loads(law.model_dump_json())["activation"]
    assert recorded.startswith(f"{__name__}:shifted_tanh#")
    with pytest.raises(ValidationError, match="pass the function itself"):
        Net.model_validate_json(law.model_dump_json())


def test_record_tells_functions_of_the_same_name_apart():
    records = {Activation(lambda x, c=c: np.maximum(x - c, 0)).name for c in (0.0, 0.1, 0.2, 0.2)}
    assert len(records) == 3


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("rleu", "unknown activation, did you mean 'relu'"),
        ("swishy", "known names: abs, cos"),
        (3, "must be a name, a function of arrays, a table of pairs"),
        (None, "must be a name"),
        (math.tanh, "numpy.vectorize"),
        (lambda x: x[:3], "one value for each"),
        (lambda x: np.sqrt(np.abs(x) - 1e9 * (x > 9) + np.where(x > 2, np.inf, 0)), "finite"),
        ({"mean": 0.0}, "exactly the entries mean, linear and nonlinear"),
        ({"mean": 0.0, "linear": 1.0, "nonlinear": -1.0}, "at least 0"),
    ],
)
def test_bad_activations_are_refused_in_one_sentence(given, message):
    with pytest.raises(ValidationError) as caught:
        Net(activation=given)
    text = caught.value.errors()[0]["msg"]
    assert message in text
    assert text.startswith("activation = ")


def test_direct_construction_refuses_too():
    with pytest.raises(ValueError, match=r"activation = 'rleu' is not allowed: unknown activation, did you mean 'relu'"):
        moments("rleu")
    with pytest.raises(ValueError, match=r"linear = nan"):
        Moments(0.0, math.nan, 1.0)


def test_moments_alone_have_no_values():
    activation = Activation(Moments(0, 1, 1))
    with pytest.raises(ValueError, match="moments"):
        activation(1.0)
    with pytest.raises(ValueError, match="moments"):
        hermite(activation, 3)
    assert activation.kinks == ()


def test_missing_derivatives_say_how_to_give_them():
    steep = Activation(lambda x: np.tanh(x + 0.5) + 1e-3 * np.floor(20 * np.abs(x)) / 20, kinks=())
    with pytest.raises(ConvergenceError, match=r"give it as Activation\(function, derivative=...\)"):
        steep.derivative(0.0)
    with pytest.raises(ValueError, match="no bounded second derivative"):
        Activation("relu").second_derivative(0.0)
    given = Activation(shifted_tanh, derivative=lambda x: 1 - np.tanh(x + 0.5) ** 2)
    assert given.derivative(0.0) == pytest.approx(1 - math.tanh(0.5) ** 2)


def test_works_in_any_pydantic_model_with_a_schema():
    class Plain(BaseModel):
        activation: Activation

    assert "relu" in Plain.model_json_schema()["properties"]["activation"]["anyOf"][0]["enum"]
    assert Plain(activation="cos").model_dump() == {"activation": "cos"}


def test_kinks_are_declared_or_found():
    assert Activation("relu").kinks == (0.0,)
    assert Activation("tanh").kinks == ()
    assert Activation(lambda x: np.maximum(x, 0.1 * x)).kinks == (0.0,)
    assert Activation(np.abs, kinks=[0]).kinks == (0,)
    assert len({Activation("relu"), Activation("relu"), Activation("abs")}) == 2


def test_the_record_covers_all_that_an_activation_computes_with():
    def bump(x):
        return np.exp(-(x**2))

    def record(**more):
        return Activation(bump, **more).name

    right, wrong = (lambda x: -2 * x * np.exp(-(x**2))), (lambda x: 0 * x)

    def curve(x):
        return (4 * x**2 - 2) * np.exp(-(x**2))

    records = [record(), record(derivative=right), record(derivative=right, second_derivative=curve)]
    for mistake in (dict(derivative=wrong), dict(derivative=right, second_derivative=wrong)):
        with pytest.raises(ValueError, match="contradicts"):
            record(**mistake)
    records += [record(derivative=right, kinks=(0.5,))]
    assert len(set(records)) == len(records)  # cells of a store are identified by the record
