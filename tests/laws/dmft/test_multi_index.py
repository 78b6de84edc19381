"""Particles with several overlaps: reference values, one direction as a special case, energy, Monte Carlo of phihat, refusals."""

import numpy as np
import pytest

from limitlab.laws import MeanFieldSingleIndex, MultiIndexFlow
from limitlab.laws.dmft._finite.multi_index import labels, signal
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
