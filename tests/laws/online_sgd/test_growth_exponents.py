"""Growth exponents of SGD's noise: reference slopes, a loss typed by a user, heavy tails, refusals."""

import numpy as np
import pytest

from limitlab.laws import SpikedTensor, growth_exponents
from limitlab.laws.online_sgd._claims.steps import online_pca, phase_retrieval_fifth, student_inputs
from limitlab.laws.online_sgd.growth import ALLOWED, GrowthExponents, Point, fitted
from references import reference

TOLERANCE = 0.15  # of both entries


def test_moments_of_the_examples():
    (entry,) = reference("further_dynamics", "sgd_assumptions")
    sizes, want = entry["inputs"]["N"], entry["outputs"]
    found = online_pca(sizes, 4000)
    assert found.directional_second == pytest.approx(want["slope_directional_second_moment"], abs=TOLERANCE)
    assert found.norm_fifth == pytest.approx(want["slope_fifth_moment_of_norm"], abs=TOLERANCE)
    assert found.regular
    slope = np.polyfit(np.log(sizes), [np.log(phase_retrieval_fifth(n)) for n in sizes], 1)[0]
    assert slope == pytest.approx(2.499, abs=2e-3)


def test_localizability_of_the_spiked_matrix():
    (entry,) = reference("further_dynamics", "sgd_localizability")
    want, found = entry["outputs"], SpikedTensor(order=2).growth_exponents(entry["inputs"]["N"], 2000)
    for name, key in (
        ("norm_eighth", "slope_norm_8"),
        ("directional_fourth", "slope_directional_4"),
        ("curvature_variance", "slope_curvature_variance"),
    ):
        assert getattr(found, name) == pytest.approx(want[key], abs=TOLERANCE)
    assert found.largest_step_exponent == pytest.approx(entry["inputs"]["step_exponent"], abs=0.05)
    assert found.localizable(-1.0)
    assert not found.localizable(-0.8)
    assert found.reliable


def test_a_typed_loss_agrees_with_the_noise_known_in_law():
    """The spiked matrix, with all its entries drawn, in few dimensions."""
    jax = pytest.importorskip("jax")
    jnp = jax.numpy

    def at_half(size):
        return [0.5 * np.eye(size)[0] + np.sqrt(0.75) * np.eye(size)[1]]

    sizes = (10, 20, 40)
    typed = growth_exponents(
        lambda x, w: jnp.sum((2.0 * jnp.outer(jnp.eye(x.size)[0], jnp.eye(x.size)[0]) + w - jnp.outer(x, x)) ** 2),
        lambda x: jnp.array([x[0], x @ x - x[0] ** 2]),
        lambda key, count, size: jax.random.normal(key, (count, size, size)),
        at_half,
        sizes,
        samples=1500,
    )
    known = SpikedTensor(order=2).growth_exponents(sizes, 1500, overlaps=(0.5,))
    for name in ("norm_fifth", "norm_eighth", "curvature_variance", "hessian_norm"):
        assert getattr(typed, name) == pytest.approx(getattr(known, name), abs=0.15)


@pytest.mark.parametrize("seed", range(3))
def test_heavy_tails_are_not_certified(seed):
    """The control that must fail: the moments do not exist."""
    found = student_inputs((50, 100, 200, 400), 1000, seed)
    assert not (found.regular and found.reliable)


def test_power_laws_are_found():
    def at(size):
        rng = np.random.default_rng(size)
        noise = size**0.3 * rng.uniform(-1, 1, (4000, 1)) * np.ones(size) / np.sqrt(size)
        yield Point(noise, np.full((1, size), 1 / np.sqrt(size)), size**0.25 * np.eye(size)[None])

    found = fitted(at, (20, 40, 80))
    assert found.norm_eighth == pytest.approx(8 * 0.3, abs=0.1)
    assert found.directional_fourth == pytest.approx(4 * 0.3, abs=0.1)
    assert found.curvature_variance == pytest.approx(4 * 0.3 + 2 * 0.25, abs=0.1)
    assert found.hessian_norm == pytest.approx(0.25)
    assert found.largest_step_exponent == pytest.approx(-max(0.5, 0.6, 0.6, 1.7 / 3), abs=0.05)


def test_refusals():
    with pytest.raises(ValueError, match="sizes"):
        fitted(lambda size: iter(()), (10,))
    with pytest.raises(AttributeError, match="norm_tenth"):
        _ = SpikedTensor().growth_exponents((10, 20), 100).norm_tenth


@pytest.mark.parametrize(
    ("name", "per_step"),
    [("hessian_norm", 0.5), ("norm_eighth", 4.0), ("directional_fourth", 2.0), ("curvature_variance", 3.0)],
)
def test_every_condition_can_bind(name, per_step):
    """delta^-1/2, delta^-4, delta^-2 and delta^-3 allow these multiples of the exponent of 1/delta."""
    found = GrowthExponents({**dict.fromkeys(ALLOWED, -1.0), name: 6.0}, dict.fromkeys(ALLOWED, 0.0))
    assert found.largest_step_exponent == pytest.approx(-6.0 / per_step)
    assert found.localizable(-6.0 / per_step)
    assert not found.localizable(-5.0 / per_step)
