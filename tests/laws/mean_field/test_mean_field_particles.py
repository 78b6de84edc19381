"""Finite networks around the mean-field flow: response against differences, closed forms, exact start, several widths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtri
from scipy.stats import qmc

from limitlab.laws import MeanFieldParticles
from limitlab.laws.mean_field._neuron_means import NeuronFlow
from limitlab.laws.mean_field._training import ScalarNetwork, flow_risks
from limitlab.laws.mean_field.particles import ScalarFlow
from limitlab.models.activations import Activation
from limitlab.numerics.gaussian import hermite_rule, panel_rule
from limitlab.numerics.quadrature import gaussian_quantiles


def scalar_flow(activation="tanh", target="sin", teacher=1.5):
    x, w = panel_rule((0.0,), order=12, width=1.6, reach=8.0)
    return ScalarFlow(Activation(activation), x, w, np.asarray(Activation(target)(teacher * x)))


def moved_risk(flow, nodes, shares, times):
    """Risk of the flow from other shares on the same nodes, by its own integration."""
    from scipy.integrate import solve_ivp

    found = solve_ivp(
        lambda _, theta: flow.velocity(theta, shares), (0, times[-1]), nodes, "DOP853", times, rtol=1e-12, atol=1e-12
    )
    return np.array([flow.risk(theta, shares) for theta in found.y.T])


@pytest.mark.parametrize("activation", ["tanh", "gelu", "erf"])
def test_response_is_the_derivative_of_the_flow(activation):
    """g and k against differences in the shares of the law at the start."""
    flow, times = scalar_flow(activation), np.array([0.4, 1.0])
    z, shares = gaussian_quantiles(16)
    nodes = 0.3 + 0.7 * z
    found = flow.response(nodes, shares, times, 1e-10)
    e, middle = 0.02, moved_risk(flow, nodes, shares, times)
    first, second = np.empty((16, 2)), np.empty((16, 2))
    for k in range(16):
        direction = np.eye(16)[k] - shares
        far_down, down, up, far_up = (moved_risk(flow, nodes, shares + s * e * direction, times) for s in (-2, -1, 1, 2))
        first[k] = (far_down - 8 * down + 8 * up - far_up) / (12 * e)
        second[k] = (-far_down + 16 * down - 30 * middle + 16 * up - far_up) / (12 * e**2)
    np.testing.assert_allclose(found.risk, middle, rtol=1e-8)
    np.testing.assert_allclose(found.fluctuation, shares @ first**2, rtol=1e-4)
    np.testing.assert_allclose(found.bias, shares @ second / 2, rtol=1e-3, atol=1e-5)


@given(st.floats(-1, 1), st.floats(0.2, 1.5), st.floats(-2, 2))
@settings(max_examples=8, deadline=None)
def test_linear_neurons_have_a_closed_form(mean, std, teacher):
    """R_N = (mean of theta - theta*)^2 e^{-4t}: limit, variance and bias are moments of a Gaussian mean."""
    law = MeanFieldParticles(
        activation="identity",
        target_function="identity",
        teacher_weight=teacher,
        start_mean=mean,
        start_std=std,
        times=(0.0, 0.4),
        solver_steps=120,
    )
    found, shrink = law.theory(), np.exp(-4 * np.array([0.0, 0.4]))
    np.testing.assert_allclose(found.risk, (mean - teacher) ** 2 * shrink, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(found.risk_bias, std**2 * shrink, rtol=2e-3)
    np.testing.assert_allclose(found.risk_fluctuation, 4 * (mean - teacher) ** 2 * std**2 * shrink**2, rtol=2e-3, atol=1e-6)


def test_the_start_has_a_closed_form():
    """At time 0 the bias is E U(theta, theta) - E U(theta, theta'), exactly for every N, and the variance is that of 2 V + 2 int U."""
    law = MeanFieldParticles(
        activation="erf", target_function="erf", teacher_weight=1.5, start_mean=0.4, start_std=0.8, times=0.0
    )
    z, w = hermite_rule(60)
    theta = 0.4 + 0.8 * z
    table = law.interaction(theta[:, None], theta)
    slope = 2 * law.potential(theta) + 2 * table @ w
    found = law.theory()
    assert float(found.risk_bias) == pytest.approx(w @ np.diag(table) - w @ table @ w, rel=1e-4)
    assert float(found.risk_fluctuation) == pytest.approx(w @ slope**2 - (w @ slope) ** 2, rel=1e-4)
    assert float(found.risk) == pytest.approx(
        law.interaction(1.5, 1.5) + 2 * w @ law.potential(theta) + w @ table @ w, abs=1e-5
    )


@pytest.mark.parametrize(("activation", "other"), [("tanh", "sin"), ("relu", "relu"), ("square", "h2")])
def test_potentials_by_quadrature(activation, other):
    from scipy.integrate import quad

    law = MeanFieldParticles(activation=activation, target_function=other, teacher_weight=1.3)
    s, t = Activation(activation), Activation(other)

    def mean(f):
        return sum(quad(lambda x: f(x) * np.exp(-x * x / 2) / np.sqrt(2 * np.pi), a, b)[0] for a, b in ((-12, 0), (0, 12)))

    assert law.interaction(0.7, -1.1) == pytest.approx(mean(lambda x: float(s(0.7 * x) * s(-1.1 * x))), abs=1e-8)
    assert law.potential(0.7) == pytest.approx(-mean(lambda x: float(s(0.7 * x) * t(1.3 * x))), abs=1e-8)


def test_compiled_networks_are_the_networks():
    """The compiled flow against the NumPy network with another rule for the inputs."""
    from limitlab.numerics.ode import follow, runge_kutta

    theta = np.random.default_rng(0).standard_normal((3, 20)) * 0.7 - 0.3
    times = np.array([0.0, 0.5, 1.0])
    fast = flow_risks(theta, Activation("tanh"), Activation("sin"), 1.5, times, 0.05)
    network = ScalarNetwork.of("tanh", "sin", 1.5, spacing=0.05)
    advance = runge_kutta(lambda _, state: network.velocity(state))
    for row in range(3):
        slow = [network.risk(state) for state in follow(advance, theta[row], times, 0.05)]
        np.testing.assert_allclose(fast[row], slow, atol=3e-4)


def test_network_velocity_is_minus_n_times_the_gradient():
    network, theta = ScalarNetwork.of("tanh", "sin", 1.5), np.array([0.3, -0.8, 1.4])
    step = 1e-6 * np.eye(3)
    slope = [(network.risk(theta + e) - network.risk(theta - e)) / 2e-6 for e in step]
    np.testing.assert_allclose(network.velocity(theta), -3 * np.array(slope), rtol=1e-6)


def test_rate_of_the_gap():
    """rms of R_N - R over independent networks: exponent -1/2, and the predicted size."""
    law = MeanFieldParticles(target_function="sin", teacher_weight=1.5, start_mean=-0.5, start_std=0.7, times=0.6)
    limit, sizes, rms = float(law.theory().risk), (20, 60, 180), []
    for size in sizes:
        start = -0.5 + 0.7 * np.random.default_rng(size).standard_normal((600, size))
        gaps = flow_risks(start, law.activation, law.target_function, 1.5, np.array([0.6]))[:, 0] - limit
        rms.append(np.sqrt(np.mean(gaps**2)))
    assert np.polyfit(np.log(sizes), np.log(rms), 1)[0] == pytest.approx(-0.5, abs=0.1)
    np.testing.assert_allclose(rms, law.rms_gap(np.array(sizes), 0.6), rtol=0.12)


def test_bad_input():
    with pytest.raises(ValueError, match="start_std"):
        MeanFieldParticles(start_std=0.0)
    with pytest.raises(ValueError, match="second derivative"):
        MeanFieldParticles(activation="relu").theory()


def test_velocity_of_neurons_is_the_gradient_of_the_risk():
    flow = NeuronFlow.draw(3)
    theta, h = np.random.default_rng(4).standard_normal((2, 6, 5)), 1e-5
    expected = np.empty_like(theta)
    for i, k in np.ndindex(6, 5):
        moved = np.zeros((6, 5))
        moved[i, k] = h
        expected[:, i, k] = -6 * (flow.risk(theta + moved) - flow.risk(theta - moved)) / (2 * h)
    assert np.allclose(flow.velocity(theta), expected, atol=1e-8)


def test_the_limit_is_a_network_of_its_points():
    flow, times = NeuronFlow.draw(3), (0.0, 1.0, 4.0)
    normal = ndtri(qmc.Sobol(5, rng=np.random.default_rng(1)).random(64))
    assert np.allclose(flow.finite(flow.start(normal[None], 0.7), times)[:, 0], flow.limit(0.7, times, 64), atol=2e-4)
