"""Starts of the mean-field equation on the circle from a mixture, a density and a sampler of the user."""

import numpy as np
import pytest

import limitlab as ll
from limitlab.laws import CircleMeanField
from limitlab.models.distributions import CircleDistribution, Distribution

MIXTURE = [(0.4, 1.0, 0.4), (0.6, 4.0, 0.6)]


def series(theta):
    return 3 + 1.5 * np.cos(theta) + 0.6 * np.sin(theta) + 0.6 * np.cos(2 * theta) + 0.9 * np.sin(2 * theta)


def wrapped(theta):
    turns = theta + 2 * np.pi * np.arange(-4, 5).reshape(-1, *[1] * np.ndim(theta))
    bumps = (share / spread * np.exp(-(((turns - mean) / spread) ** 2) / 2) for share, mean, spread in MIXTURE)
    return sum(bumps).sum(axis=0)


def sampler(rng, count):
    low = rng.random(count) < 0.4
    return np.where(low, 1.0 + 0.4 * rng.standard_normal(count), 4.0 + 0.6 * rng.standard_normal(count))


def arcs(theta):
    return 1.0 * (np.cos(theta - 1) > 0.3) + 2.0 * (np.cos(theta - 4) > 0.9)


@pytest.mark.parametrize("solver", ["fourier", "volumes", "particles"])
def test_a_series_as_a_function_has_the_limit_of_its_coefficients(solver):
    own = CircleMeanField(beta=3.0, start_distribution=series, times=0.8, solver=solver).theory()
    same = CircleMeanField(beta=3.0, density=((0.5, 0.2), (0.2, 0.3)), times=0.8, solver=solver).theory()
    for name in ("cos1", "sin1", "cos2"):
        assert float(own[name]) == pytest.approx(float(same[name]), abs=1e-8)


def test_fourier_coefficients_of_a_mixture_and_of_its_density_agree():
    exact, zero = CircleDistribution(MIXTURE).fourier()
    pairs, error = CircleDistribution(wrapped).fourier()
    assert zero == 0
    assert error < 1e-11
    count = min(len(exact), len(pairs), 15)
    np.testing.assert_allclose(pairs[:count], exact[:count], atol=1e-11)


@pytest.mark.parametrize("start", [MIXTURE, sampler])
def test_particles_are_within_their_error_of_the_fourier_series(start):
    exact = CircleMeanField(start_distribution=MIXTURE).theory()
    values = CircleMeanField(start_distribution=start, solver="particles").theory()
    for name in values.data_vars:
        error = values[name].attrs["numerical_error"]
        assert np.abs(values[name] - exact[name]).max() <= error < 0.05


def test_particles_from_separate_arcs_are_within_their_error_of_many_particles():
    law = CircleMeanField(start_distribution=arcs, solver="particles", times=1.0)
    values, many = law.theory(), law._resolved(np.array([1.0]), 4000)
    for name in values.data_vars:
        assert abs(float(values[name]) - many[name][0]) <= values[name].attrs["numerical_error"] < 0.02


def test_compare_agrees_from_a_mixture():
    law = CircleMeanField(beta=2.0, start_distribution=MIXTURE, times=1.0)
    assert ll.compare(law, sizes=[50, 100, 200], seeds=80).verdict == "agree"


def test_tokens_of_a_sampler_and_of_a_jumping_density_are_drawn_from_it():
    for start in (sampler, arcs):
        law = CircleMeanField(start_distribution=start, solver="particles", times=0.0)
        runs = np.array([float(law.simulate(400, seed=seed).cos1) for seed in range(20)])
        assert abs(runs.mean() - float(law.theory().cos1)) < 4 * runs.std(ddof=1) / np.sqrt(20) + 2e-3


def test_the_headline_view_uses_the_start():
    law = CircleMeanField(start_distribution=MIXTURE, times=0.0)
    angles = np.array([1.0, 2.5, 4.0])
    values = law.headline_line(angles)["density_of_tokens"]
    masses = wrapped(np.linspace(0, 2 * np.pi, 4097)[:-1]).mean() * 2 * np.pi
    np.testing.assert_allclose(values, wrapped(angles) / masses, rtol=2e-2)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (dict(start_distribution=arcs), "do not resolve: use solver = 'particles'"),
        (dict(start_distribution=sampler), "a sampler: use solver = 'particles'"),
        (dict(start_distribution=sampler, solver="volumes"), "solver = 'volumes' is not allowed"),
        (dict(start_distribution=[(1.0, 0.0, 0.005)]), "do not resolve"),
        (dict(start_distribution=MIXTURE, density=((0.1, 0.0),)), "omit one of them"),
        (dict(start_distribution=lambda t: np.exp(-(t**2))), "must have the period 2 pi"),
        (dict(start_distribution=np.cos), "at least 0"),
        (dict(start_distribution=lambda t: 0 * t), "0 everywhere"),
        (dict(start_distribution="uniform"), "must be triples"),
    ],
)
def test_refused_starts(changes, message):
    with pytest.raises(ValueError, match=message):
        CircleMeanField(**changes)


def test_a_distribution_of_numbers_is_converted():
    assert CircleDistribution(Distribution(MIXTURE)) == CircleDistribution(MIXTURE)
