"""Two centred Gaussians: reference values, the shell function, convergence of the characteristics, SGD against the equation."""

import itertools
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import gamma

from limitlab.laws import TwoGaussians
from limitlab.laws.mean_field import _radial as radial
from limitlab.laws.mean_field._training import ramp, ramp_risk, ramp_sgd
from limitlab.numerics.gaussian import expectation
from references import label, reference


@pytest.mark.parametrize("entry", reference("mean_field", "mf_two_gaussians_pde"), ids=label)
def test_reference_paths(entry):
    given_ = entry["inputs"]
    levels = (given_["activation"]["s1"], given_["activation"]["s2"])
    knots = (given_["activation"]["t1"], given_["activation"]["t2"])
    law = TwoGaussians(
        separation=given_["Delta"],
        dimension=given_["d"],
        initial_scale=given_["init_sigma"],
        times=given_["t"],
        knots=knots,
        levels=levels,
    )
    found = law.theory()
    for name in ("risk", "mean_radius"):
        want = np.array(entry["outputs"][name])
        assert np.abs(found[name] - want).max() <= entry["tolerance"] * max(1, np.abs(want).max())


@pytest.mark.parametrize("entry", reference("mean_field", "mf_two_gaussians_potentials"), ids=label)
def test_reference_potentials(entry):
    given_, want = entry["inputs"], entry["outputs"]
    law = TwoGaussians(separation=given_["Delta"], dimension=given_["d"])
    assert law.interaction(given_["r1"], given_["r2"]) == pytest.approx(want["u_d"], abs=1e-9)
    assert law.potential(given_["r1"]) == pytest.approx(want["v_r1"], abs=1e-9)


@pytest.mark.parametrize("dimension", [3, 4, 10, 40])
@pytest.mark.parametrize("s", [0.3, 0.7, 2.0, 9.0])
def test_shell_mean_is_the_average_over_directions(dimension, s):
    """Against the density of a coordinate, (1 - c^2)^((d-3)/2), integrated between the kinks."""
    knots, levels = (0.5, 1.5), (-2.5, 7.5)
    norm = gamma(dimension / 2) / (np.sqrt(np.pi) * gamma((dimension - 1) / 2))
    edges = [-1.0, *(k / s for k in knots if k < s), 1.0]
    pieces = (
        quad(lambda c: ramp(s * c, knots, levels) * norm * (1 - c * c) ** ((dimension - 3) / 2), a, b)[0]
        for a, b in itertools.pairwise(edges)
    )
    h, slope = radial.shell_mean(s, dimension, knots, levels)
    assert h == pytest.approx(sum(pieces), abs=1e-8)
    step = 1e-5
    difference = (
        radial.shell_mean(s + step, dimension, knots, levels)[0] - radial.shell_mean(s - step, dimension, knots, levels)[0]
    ) / (2 * step)
    assert slope == pytest.approx(difference, abs=1e-4)


@given(st.floats(0, 1e4), st.integers(4, 200))
@settings(max_examples=60, deadline=None)
def test_table_is_the_function(s, dimension):
    table = radial.shell_table(dimension, (0.5, 1.5), (-2.5, 7.5))
    h, slope = radial.look_up(*table, s)
    want, want_slope = radial.shell_mean(s, dimension, (0.5, 1.5), (-2.5, 7.5))
    assert h == pytest.approx(float(want), abs=2e-7)
    assert slope == pytest.approx(float(want_slope), abs=2e-4)


def test_potential_does_not_depend_on_the_dimension():
    values = [TwoGaussians(dimension=d).potential([0.5, 1.0, 2.0]) for d in (5, 40, 400)]
    law = TwoGaussians()
    want = [
        -sum(y * expectation(lambda g, y=y, r=r: ramp((1 + y * 0.8) * r * g, law.knots, law.levels)) for y in (-1, 1)) / 2
        for r in (0.5, 1.0, 2.0)
    ]
    for found in values:
        np.testing.assert_allclose(found, np.array(want), atol=2e-7)


def test_shell_mean_tends_to_the_gaussian_mean_at_rate_one_over_d():
    law = TwoGaussians()
    gaps = []
    limit = float(expectation(lambda g: ramp(2 * g, law.knots, law.levels)))
    for d in (40, 400, 4000):
        gaps.append(float(radial.shell_mean(2 * np.sqrt(d), d, law.knots, law.levels)[0]) - limit)
    assert -np.diff(np.log(np.abs(gaps))) == pytest.approx(np.log(10), rel=0.1)


def test_interaction_is_symmetric_and_consistent_with_the_risk():
    """For all weights of one radius R = 1 + 2 v + u."""
    law = TwoGaussians(separation=0.5, dimension=8)
    assert law.interaction(0.4, 1.7) == pytest.approx(law.interaction(1.7, 0.4), rel=1e-13)
    chi, table = radial.chi_nodes(8, 120), radial.shell_table(8, law.knots, law.levels)
    risk = sum(
        chi.weights @ (y - radial.shell_outputs(np.array([1.2]), np.ones(1), chi.points, 1 + y * 0.5, *table)) ** 2 / 2
        for y in (-1.0, 1.0)
    )
    assert risk == pytest.approx(1 + 2 * law.potential(1.2) + law.interaction(1.2, 1.2), abs=1e-6)


def test_velocity_is_minus_the_gradient_of_the_risk():
    """dr_j/dt = -(1/w_j) dR/dr_j for a discrete law of radii."""
    law = TwoGaussians(separation=0.6, dimension=10)
    chi, table = radial.chi_nodes(10, 80), radial.shell_table(10, law.knots, law.levels)
    r, w = np.array([0.5, 0.9, 1.6]), np.array([0.2, 0.5, 0.3])

    def risk(radii):
        return sum(
            chi.weights @ (y - radial.shell_outputs(radii, w, chi.points, 1 + y * 0.6, *table)) ** 2 / 2 for y in (-1.0, 1.0)
        )

    step = 1e-5 * np.eye(3)
    slope = [(risk(r + e) - risk(r - e)) / 2e-5 for e in step]
    np.testing.assert_allclose(radial.radial_velocity(r, w, *chi, 0.6, *table), -np.array(slope) / w, rtol=1e-6)


def test_orders_of_convergence():
    """Even quantiles are of first order; the weighted ones fall by more than a factor 30 when doubled."""
    law = TwoGaussians(separation=0.8, times=7.0)
    exact = law._observed_at(np.array([7.0]), 800)["risk"][0]
    errors = [abs(law._observed_at(np.array([7.0]), n)["risk"][0] - exact) for n in (200, 400)]
    assert errors[0] / errors[1] > 30
    assert errors[1] < 1e-6


@pytest.mark.slow
def test_even_quantiles_are_of_first_order(monkeypatch):
    law = TwoGaussians(separation=0.8, times=7.0)
    exact = law._observed_at(np.array([7.0]), 1600)["risk"][0]
    monkeypatch.setattr(radial, "radius_nodes", radial.quantile_nodes)
    errors = [abs(law._observed_at(np.array([7.0]), n)["risk"][0] - exact) for n in (500, 1000, 2000)]
    order = -np.polyfit(np.log([500, 1000, 2000]), np.log(errors), 1)[0]
    assert order == pytest.approx(1.1, abs=0.2)


def test_ten_units_of_time_take_seconds():
    law = TwoGaussians(times=(1.0, 10.0))
    law.replace(times=0.1).theory()  # compiled
    start = time.process_time()
    law.theory()
    assert time.process_time() - start < 5


def test_risk_falls():
    found = TwoGaussians(separation=0.6, dimension=12, times=tuple(np.linspace(0, 2, 21))).theory()
    assert np.all(np.diff(found.risk) < 0)


def test_time_zero_is_the_start():
    law = TwoGaussians(dimension=7, initial_scale=0.6, times=0.0)
    found = law.theory()
    g = np.linalg.norm(np.random.default_rng(0).standard_normal((200_000, 7)), axis=1) * 0.6 / np.sqrt(7)
    assert float(found.mean_radius) == pytest.approx(g.mean(), abs=1e-3)
    assert float(found.radius_spread) == pytest.approx(g.std(), abs=1e-3)


def test_sgd_step_is_the_step_of_the_definition():
    """The compiled loop against one line of NumPy per sample, on the same samples."""
    w0 = np.random.default_rng(1).standard_normal((30, 5)) * 0.5
    knots, levels, step, separation = (0.4, 1.3), (-1.0, 2.0), 0.01, 0.5
    fast = next(iter(ramp_sgd(np.random.default_rng(2), w0, separation, knots, levels, step, [50])))
    rng = np.random.default_rng(2)
    labels = rng.integers(0, 2, 50) * 2.0 - 1.0
    inputs = rng.standard_normal((50, 5)) * (1 + separation * labels)[:, None]
    w, slope = w0.copy(), 3.0 / 0.9
    for x, y in zip(inputs, labels, strict=True):
        z = w @ x
        w += 2 * step * (y - ramp(z, knots, levels).mean()) * (slope * ((z > 0.4) & (z < 1.3)))[:, None] * x
    np.testing.assert_allclose(fast, w, rtol=1e-10, atol=1e-12)


def test_stratified_risk_is_the_risk():
    rng = np.random.default_rng(0)
    w = rng.standard_normal((40, 6)) * 0.6
    task = (0.5, (0.5, 1.5), (-2.5, 7.5))
    found = np.mean([ramp_risk(rng, w, *task, 500) for _ in range(40)])
    y = rng.integers(0, 2, 200_000) * 2.0 - 1.0
    x = rng.standard_normal((200_000, 6)) * (1 + 0.5 * y)[:, None]
    plain = (y - ramp(x @ w.T, *task[1:]).mean(axis=1)) ** 2
    assert found == pytest.approx(plain.mean(), abs=5 * plain.std() / np.sqrt(plain.size) + 0.01)


@pytest.mark.slow
@pytest.mark.parametrize("separation", [0.4, 0.8])
def test_sgd_at_the_published_size(separation):
    """N = 800, step 3e-5: risk within 0.04 and mean radius within 0.02, averaged over runs."""
    law = TwoGaussians(separation=separation, times=(0.5, 1.0, 2.0, 3.0, 5.0), test_points=10_000)
    runs, limit = law.simulate_batch(800, range(4)), law.theory()
    assert np.abs(runs.risk.mean("seed") - limit.risk).max() < 0.04
    assert np.abs(runs.mean_radius.mean("seed") - limit.mean_radius).max() < 0.02


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (dict(knots=(1.5, 0.5)), "knots = .* the first must be below the second"),
        (dict(knots=(0.0, 1.0)), "knots"),
    ],
)
def test_bad_input(bad, words):
    with pytest.raises(ValueError, match=words):
        TwoGaussians(**bad)


def test_the_table_is_safe_outside():
    """Trial steps of an integrator may leave the domain: a negative radius is at rest, and what is not a number stays so."""
    table = radial.shell_table(10, (0.5, 1.5), (-2.5, 7.5))
    assert radial.look_up(*table, -0.1) == pytest.approx((-2.5, 0.0))
    assert np.isnan(radial.look_up(*table, np.nan)[0])


def test_the_final_risk_feels_the_width():
    """At Delta = 0.4 SGD ends at the limit plus about 5/N."""
    limit = float(TwoGaussians(separation=0.4, times=3.0).theory().risk)
    for width, seeds in ((100, 6), (200, 2)):
        runs = TwoGaussians(separation=0.4, times=3.0, step=1e-4 * width).simulate_batch(width, range(seeds)).risk
        assert 3.8 < width * float(runs.mean() - limit) < 5.6


def test_the_radius_feels_the_step():
    """At Delta = 0.8 a step that is half as long brings the mean radius at least twice as close."""
    limit, gaps = float(TwoGaussians(times=2.0).theory().mean_radius), []
    for step in (1.2e-3, 6e-4, 3e-4):
        runs = TwoGaussians(times=2.0, step=200 * step).simulate_batch(200, range(4)).mean_radius
        gaps.append(float(runs.mean()) - limit)
    assert gaps[2] > 0
    assert gaps[0] > 2 * gaps[1] > 4 * gaps[2]
