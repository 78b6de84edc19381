"""The generic effective dynamics against closed forms, and statistics that do not close."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from limitlab.laws.online_sgd._effective import EffectiveDynamics
from limitlab.laws.online_sgd.spiked_tensor import SpikedTensor, velocity

SNR, STEP = 1.7, 0.8


def overlap_and_residual(x):
    return jnp.array([x[0], x @ x - x[0] ** 2])


def matrix_loss(x, noise):
    signal = SNR * x[0] ** 2 + x @ noise @ x  # <Y, x x^T>
    return (x @ x) ** 2 - 2 * signal  # |Y|^2 does not depend on x


def matrices(key, count, dimension):
    return jax.random.normal(key, (count, dimension, dimension))


def gaussians(key, count, dimension):
    return jax.random.normal(key, (count, dimension))


def phase_loss(x, a):
    return (a[0] ** 2 - (a @ x) ** 2) ** 2


def point(u, dimension=60, kind="one axis"):
    x = np.zeros(dimension)
    x[0] = u[0]
    if kind == "one axis":
        x[1] = np.sqrt(u[1])
    else:
        x[1:] = np.sqrt(u[1] / (dimension - 1))
    return x


def phase_drift(m, q, step):
    square = m**2 + q
    sixth = 3 * square + 12 * m**2 - 6 * square**2 - 24 * m**2 * square + 15 * square**3
    return np.array([12 * m * (1 - square), 8 * q * (1 - 3 * square) + 16 * step * sixth])


@pytest.fixture(scope="module")
def matrix():
    return EffectiveDynamics(matrix_loss, overlap_and_residual, matrices, STEP)


def test_spiked_matrix_drift(matrix):
    found = matrix.at(point((0.7, 0.6)), samples=800)
    want = np.array([float(part) for part in velocity(2, SNR, STEP, 0.7, 0.6)])
    np.testing.assert_allclose(want, [1.708, 1.744], atol=1e-12)
    assert np.all(np.abs(found.drift - want) < 5 * found.drift_error + 2 * np.abs(want) / 60)
    assert np.all(found.drift_error < 0.3)
    # of order 1/N: 8 c (R^2 + m^2) along m
    assert found.volatility[0, 0] * 60 == pytest.approx(8 * STEP * (1.09 + 0.49), rel=0.2)


def test_phase_retrieval_drift():
    dynamics = EffectiveDynamics(phase_loss, overlap_and_residual, gaussians, 0.02)
    found, want = dynamics.at(point((0.5, 0.3), 200), samples=20_000), phase_drift(0.5, 0.3, 0.02)
    assert np.all(np.abs(found.drift - want) < 5 * found.drift_error + 2 * np.abs(want) / 200)
    assert np.all(found.drift_error < 0.3)


def test_statistics_that_close_and_that_do_not(matrix):
    same = [point((0.7, 0.6)), point((0.7, 0.6), kind="all axes")]
    assert matrix.closure(same, samples=500).closes
    overlap_only = EffectiveDynamics(matrix_loss, lambda x: x[:1], matrices, STEP)
    verdict = overlap_only.closure([point((0.7, 0.6)), point((0.7, 1.4))], samples=500)
    assert not verdict.closes
    assert verdict.largest_z > 5


def test_flow_follows_the_ode(matrix):
    law = SpikedTensor(order=2, snr=SNR, step=STEP, start_overlap=0.4, start_residual=1.0, times=(0.1, 0.2))
    found = matrix.flow(lambda u: point(u, 40), (0.4, 1.0), law.times, samples=2000, substeps=2)
    want = np.stack([law.theory().overlap, law.theory().residual], axis=1)
    # evaluations share their samples: the error of the drift adds up over time
    error = np.outer(law.times, matrix.at(point((0.4, 1.0), 40), samples=2000).drift_error)
    assert np.all(np.abs(found - want) < 5 * error + 1 / 40)
    assert np.all(error < 0.05)
    noisy = matrix.flow(point, (0.4, 1.0), (0.1,), samples=200, substeps=2, diffusion=True)
    assert np.all(np.isfinite(noisy))


def test_refusals(matrix):
    with pytest.raises(ValueError, match="step = 0"):
        EffectiveDynamics(matrix_loss, overlap_and_residual, matrices, 0)
    with pytest.raises(ValueError, match="must agree"):
        matrix.closure([point((0.7, 0.6)), point((0.2, 0.6))], samples=10)
    with pytest.raises(ValueError, match="fewer than two points"):
        matrix.closure([point((0.7, 0.6))], samples=10)
    with pytest.raises(ValueError, match="samples = 1"):
        matrix.at(point((0.7, 0.6)), samples=1)
