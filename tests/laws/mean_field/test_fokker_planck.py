"""Scharfetter-Gummel: positive, conservative, second order in space, first in time, free energy of a given potential falls."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import xlogy

from limitlab.laws.mean_field._free_energy import bernoulli, diffusion_step


@given(st.floats(-50, 50))
def test_bernoulli_identity(z):
    """B(-z) = B(z) + z."""
    assert abs(bernoulli(-z) - bernoulli(z) - z) < 1e-10 * max(1, abs(z))


@given(st.integers(0, 10**6), st.floats(0.1, 100), st.floats(1e-4, 1.0))
@settings(max_examples=40)
def test_every_step_conserves_and_lowers_the_free_energy(seed, beta, time):
    rng = np.random.default_rng(seed)
    psi, masses = rng.standard_normal(60).cumsum(), rng.dirichlet(np.ones(60))
    moved = diffusion_step(masses, psi, 0.1, beta, time)
    assert abs(moved.sum() - 1) < 1e-12
    assert moved.min() >= 0

    def energy(p):
        return psi @ p + xlogy(p, p).sum() / beta

    assert energy(moved) <= energy(masses) + 1e-11


def ornstein_uhlenbeck_error(cells, steps):
    """Error of the second moment at t = 0.5 from N(0, 0.2^2), drift -theta, beta = 2."""
    from scipy.special import ndtr

    edges = np.linspace(-5, 5, cells + 1)
    centres, masses = (edges[1:] + edges[:-1]) / 2, np.diff(ndtr(edges / 0.2))
    for _ in range(steps):
        masses = diffusion_step(masses, centres**2 / 2, 10 / cells, 2.0, 0.5 / steps)
    return abs(centres**2 @ masses - (0.5 + (0.04 - 0.5) * np.exp(-1.0)))


def test_orders_of_convergence():
    space = [ornstein_uhlenbeck_error(cells, 40_000 // 4) for cells in (40, 80)]
    time = [ornstein_uhlenbeck_error(1600, steps) for steps in (10, 20)]
    assert 3.5 < space[0] / space[1] < 4.6
    assert 1.8 < time[0] / time[1] < 2.2
