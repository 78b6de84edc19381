"""Output scale: reference values, the flow of the risk's gradient, the residual identity, slopes in alpha."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab.laws import OutputScale, output_scale_flow
from limitlab.laws.mean_field.output_scale import kernel
from limitlab.laws.mean_field.output_scale_flow import tangent_kernel
from references import label, reference


def coupled(inputs, scale, times, **options):
    """The network of the reference values."""
    i, k, j = np.arange(inputs["n"])[:, None], np.arange(inputs["d"]), np.arange(inputs["N"])[:, None]
    x, y = np.sin(0.4 + 1.7 * i * (k + 1)), np.cos(2 * i[:, 0])
    w, a = np.cos(0.2 + 1.1 * j * (k + 1)), 1 + 0.5 * np.sin(3 * j[:, 0])
    return output_scale_flow(x, y, w, a, scale, times, shift=inputs["shift"], **options), (x, y, w, a)


@pytest.mark.parametrize("entry", reference("mean_field", "mf_alpha_coupled"), ids=label)
def test_reference(entry):
    given_, want = entry["inputs"], entry["outputs"]
    run, _ = coupled(given_, given_["alpha"], [0.0, given_["T"]])
    found = {
        "risk0": run.risk[0],
        "risk_T": run.risk[1],
        "risk_T_linearised": run.linearised_risk[1],
        "kernel_rel_change": run.kernel_change[1],
        "rms_displacement": run.displacement[1],
        "dnorm2_dt_at_0": run.residual_slope[0],
    }
    for name, value in want.items():
        assert found[name] == pytest.approx(value, abs=entry["tolerance"]), name


SMALL = {"n": 4, "d": 2, "N": 5, "shift": 0.3}


@given(st.floats(0.5, 20), st.booleans())
@settings(max_examples=6, deadline=None)
def test_the_residual_identity_holds_along_the_flow(scale, centred):
    """d|u|^2/dt = -2 <u, H u>, by centred differences, and u' = -(1/n) H u."""
    gap, time = 1e-3, 1.0
    run, (x, _, w, a) = coupled(SMALL, scale, [time - gap, time, time + gap], centred=centred, tolerance=1e-12)
    slope = (run.risk[2] - run.risk[0]) / (2 * gap)
    assert slope == pytest.approx(run.residual_slope[1], rel=1e-5)
    start, _ = coupled(SMALL, scale, [0.0, gap], centred=centred, tolerance=1e-12)
    rate = -tangent_kernel(x, w, a, 0.3) @ start.residual[0] / 4
    np.testing.assert_allclose((start.residual[1] - start.residual[0]) / gap, rate, rtol=5e-3, atol=1e-4)


def test_the_flow_is_the_gradient_of_the_risk():
    """A short step changes every weight by -(N / (2 alpha^2)) dR/dtheta, the gradient by differences."""
    scale, small = 2.0, 1e-4
    _, (x, y, w, a) = coupled(SMALL, scale, [0.0])

    def risk(second_layer, weights):
        output = scale / 5 * (np.tanh(x @ weights.T + 0.3) @ second_layer - np.tanh(x @ w.T + 0.3) @ a)
        return np.mean((y - output) ** 2)

    gradient = []
    for j in range(5):
        bump = 1e-6 * np.eye(5)[j]
        gradient.append((risk(a + bump, w) - risk(a - bump, w)) / 2e-6)
        for k in range(2):
            nudge = np.zeros_like(w)
            nudge[j, k] = 1e-6
            gradient.append((risk(a, w + nudge) - risk(a, w - nudge)) / 2e-6)
    length = 5 / (2 * scale**2) * np.linalg.norm(gradient)
    run, _ = coupled(SMALL, scale, [small], tolerance=1e-12)
    assert run.displacement[0] * np.sqrt(5) / small == pytest.approx(length, rel=1e-3)


def test_the_law_of_neurons_has_the_kernel_of_many_neurons():
    law = OutputScale(start_std=0.8)
    x, _ = law.data()
    limit = kernel(law._neurons(40), x @ x.T)
    weights, second_layer = law.start(np.random.default_rng(0), 200_000)
    np.testing.assert_allclose(tangent_kernel(x, weights, second_layer, law.score_shift), limit, atol=0.02)


@pytest.mark.parametrize(("start", "slope"), [("generic", -1), ("paired", -2), ("signs", -2)])
def test_slopes_of_the_limit(start, slope):
    law, scales = OutputScale(initialisation=start, times=2.0), np.array([16.0, 64.0, 256.0])
    found = [law.replace(scale=float(scale)).theory() for scale in scales]
    assert law.lazy_limit().slope == slope
    for name in ("kernel_change", "linearisation_distance"):
        values = [float(one[name]) for one in found]
        assert np.polyfit(np.log(scales), np.log(values), 1)[0] == pytest.approx(slope, abs=0.1), name
    moves = [float(one.weight_displacement) for one in found]
    assert np.polyfit(np.log(scales), np.log(moves), 1)[0] == pytest.approx(-1, abs=0.02)


def test_no_shift_makes_an_odd_network_lazy_at_second_order():
    """With an odd activation and symmetric first layers the first order vanishes too, whatever the second layer is."""
    assert OutputScale(score_shift=0.0).lazy_limit().slope == -2


def test_the_lazy_limit_is_the_limit():
    law = OutputScale(times=3.0)
    limit, far = law.lazy_limit(), law.replace(scale=1e4).theory()
    assert 1e4 * float(far.weight_displacement) == pytest.approx(limit.displacement, rel=1e-3)
    assert 1e4 * float(far.kernel_change) == pytest.approx(limit.kernel_change, rel=1e-3)


@pytest.mark.parametrize(("start", "rate"), [("generic", -0.5), ("paired", -1.0)])
def test_alpha_equal_to_the_root_of_the_width(start, rate):
    """At alpha = sqrt(N) the kernel changes by N^(-1/2), by 1/N for pairs."""
    widths, changes = np.array([64, 256, 1024]), []
    for width in widths:
        law = OutputScale(initialisation=start, scale=float(np.sqrt(width)), times=2.0)
        changes.append(float(law.simulate_batch(int(width), range(12)).kernel_change.mean()))
    assert np.polyfit(np.log(widths), np.log(changes), 1)[0] == pytest.approx(rate, abs=0.1)


def test_independent_signs_keep_a_first_order_at_finite_width():
    """Pairs fall by 100 from alpha = 30 to 300, independent signs by 10 only."""
    falls = {}
    for start in ("paired", "signs"):
        law = OutputScale(initialisation=start, times=2.0)
        near, far = (float(law.replace(scale=s).simulate_batch(100, range(6)).kernel_change.mean()) for s in (30.0, 300.0))
        falls[start] = near / far
    assert falls["paired"] == pytest.approx(100, rel=0.05)
    assert falls["signs"] == pytest.approx(10, rel=0.2)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (dict(y=np.ones(3)), "one label per row"),
        (dict(second_layer=np.ones(4)), "weights of shape"),
    ],
)
def test_bad_input(change, words):
    good = dict(X=np.ones((4, 2)), y=np.ones(4), weights=np.ones((5, 2)), second_layer=np.ones(5), scale=1.0, times=1.0)
    with pytest.raises(ValueError, match=words):
        output_scale_flow(**{**good, **change})


def test_pairs_need_an_even_width():
    with pytest.raises(ValueError, match="must be even"):
        OutputScale(initialisation="paired").simulate(7, 0)
    with pytest.raises(ValueError, match="scale"):
        OutputScale(scale=0.0)


def test_equal_steps_are_as_good():
    law = OutputScale(scale=0.7, initialisation="paired")
    x, y = law.data()
    start = law.start(np.random.default_rng(0), 40)
    adaptive, even = (output_scale_flow(x, y, *start, 0.7, [1.0, 4.0], 0.7, **how) for how in ({}, {"step": 0.25}))
    np.testing.assert_allclose(even.risk, adaptive.risk, rtol=1e-5)
    np.testing.assert_allclose(even.kernel_change, adaptive.kernel_change, rtol=1e-4)
