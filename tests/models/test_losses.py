"""Tests that proximal maps of losses solve their equation and that fits are minimisers."""

import numpy as np
import pytest

from limitlab.models.losses import LOSSES, fit, loss


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 80.0, 1e6])
def test_proximal_map_minimises(name, scale):
    chosen, w = loss(name), np.linspace(-60.3, 40.1, 41)
    found = chosen.proximal(w, scale)
    np.testing.assert_allclose(found.point, w + scale * found.force, rtol=1e-12, atol=1e-12 * scale)

    def objective(p):
        return chosen.value(p) + (p - w) ** 2 / (2 * scale)

    here = objective(found.point)
    for step in (1e-3, -1e-3, 1.0, -1.0):
        assert (objective(found.point + step) >= here - 1e-9 * (1 + np.abs(here))).all()
    away = np.abs(w[:, None] - np.array([*chosen.kinks(scale), 1e9])).min(axis=1) > 1e-3
    step = 1e-2 if name == "logistic" and scale > 1 else 1e-6
    slope = (chosen.proximal(w + step, scale).force - chosen.proximal(w - step, scale).force) / (2 * step)
    np.testing.assert_allclose(-slope[away], found.stiffness[away], rtol=1e-3, atol=1e-5 / (1 + scale))


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("shape", [(60, 20), (40, 90)])
def test_fit_is_the_minimiser(name, shape):
    rng = np.random.default_rng(0)
    V, ridge = rng.standard_normal(shape) + 0.3, 0.05
    a = fit(name, V, ridge)

    def objective(b):
        return loss(name).value(V @ b).mean() + ridge / 2 * (b @ b)

    best = objective(a)
    for _ in range(50):
        b = a + 10 ** rng.uniform(-4, 0) * rng.standard_normal(shape[1])
        assert objective(b) >= best + 0.49 * ridge * ((b - a) @ (b - a)) - 1e-8  # strong convexity


def test_refusals():
    with pytest.raises(ValueError, match="loss = 'hing'"):
        loss("hing")
    with pytest.raises(ValueError, match="ridge = 0"):
        fit("square", np.eye(2), 0)
