"""Tests of the two-time integrator on a system with a known solution (order, errors, thinned histories, checkpoints)."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from limitlab._core.files import read_arrays, write_arrays
from limitlab.errors import ConvergenceError
from limitlab.numerics.two_time import (
    Flow,
    History,
    Progress,
    Solution,
    ThinnedHistory,
    WholeHistory,
    at_times,
    extrapolate,
    march,
    memory_bytes,
    romberg_table,
)
from limitlab.numerics.two_time._thinned import capacity, interpolate_gaps, kept, spacings, trapezoid_weights
from limitlab.numerics.two_time.examples import DampedOscillator

SYSTEM = DampedOscillator(coupling=2.0)
TIMES = np.linspace(0.0, 5.0, 11)


def worst(solution: Solution) -> float:
    x = np.abs(at_times(solution, "x", TIMES) - SYSTEM.exact(TIMES)).max()
    power = np.abs(at_times(solution, "power", TIMES) - SYSTEM.exact_power(TIMES)).max()
    return float(max(x, power))


def test_halving_the_step_divides_the_error_by_four() -> None:
    errors = [worst(march(SYSTEM, 5.0, steps)) for steps in (100, 200, 400)]
    ratios = [errors[0] / errors[1], errors[1] / errors[2]]
    assert all(3.6 < ratio < 4.4 for ratio in ratios), ratios


@pytest.mark.parametrize("levels", [2, 3, 4])
def test_the_error_estimate_bounds_the_error(levels: int) -> None:
    result = extrapolate(lambda n: march(SYSTEM, 5.0, n), 160, TIMES, levels)
    for name, exact in (("x", SYSTEM.exact), ("power", SYSTEM.exact_power)):
        error = np.abs(result.values[name] - exact(TIMES))
        assert error.max() <= result.errors[name].max()
        assert (
            error.max() > 1e-4 * result.errors[name].max() or levels == 4
        )  # the estimate is at most 10,000 times the error


def test_the_response_depends_on_the_lag_only() -> None:
    response = march(SYSTEM, 4.0, 200).two_time("R")
    lag = np.arange(201) * 0.02
    assert np.abs(response[200] - SYSTEM.exact(lag[::-1])).max() < 2e-4
    assert np.abs(response[100, :101] - response[200, 100:]).max() < 2e-4


def test_multiresolution_memory_converges_to_the_whole_memory() -> None:
    """The stored entries of the last row and the diagonal at all times are compared with those of the whole history."""
    whole = march(SYSTEM, 20.0, 400)
    gaps = []
    for per_octave in (4, 8, 16):
        thinned = march(SYSTEM, 20.0, 400, per_octave=per_octave)
        row = whole.two_time("C")[-1][thinned.history.columns]
        power = np.abs(thinned.paths["power"] - whole.paths["power"]).max()
        gaps.append(max(float(power), float(np.abs(thinned.last_row("C")[1] - row).max())))
    scheme = worst(march(SYSTEM, 5.0, 100))  # trapezoid error at the same step
    assert gaps[2] < 0.05 * scheme
    assert gaps[0] > 6 * gaps[1] > 36 * gaps[2]  # local cubics have a factor close to 16 per doubling


@given(steps=st.integers(3, 300), per_octave=st.integers(2, 12), degree=st.integers(0, 3))
@settings(max_examples=60)
def test_weights_and_interpolation_are_exact_for_cubics(steps: int, per_octave: int, degree: int) -> None:
    """The weights are those of the trapezoid rule of all points, and the gaps are filled."""
    x = np.arange(steps + 1) / steps
    points = np.arange(steps + 1)[kept(np.arange(steps + 1), steps, spacings(steps, per_octave))]
    weights, filled = np.zeros(points.size), np.full(steps + 1, np.nan)
    trapezoid_weights(points, weights)
    np.testing.assert_allclose(weights @ x[points] ** degree, np.trapezoid(x**degree), rtol=1e-10)
    filled[points] = x[points] ** degree
    interpolate_gaps(points, filled)
    np.testing.assert_allclose(filled, x**degree, atol=1e-12)


@given(n=st.integers(1, 40), seed=st.integers(0, 1000), thinned=st.booleans())
@settings(max_examples=40)
def test_memory_integrals_are_trapezoid_sums(n: int, seed: int, thinned: bool) -> None:
    """The integrals agree with full matrices. With many points per octave the thinned history stores all points."""
    rng = np.random.default_rng(seed)
    f, g, full = rng.normal(size=n + 1), rng.normal(size=n + 1), np.tril(rng.normal(size=(n + 1, n + 1)))
    history: History = WholeHistory(("X",), ("Y",), (), (), n, 0.3)
    if thinned:
        history = ThinnedHistory(("X",), ("Y",), (), (), n, 0.3, 30)
    for i in range(n + 1):
        if i:
            history.close_row()
            history.begin_row(i)
        history.row("X")[:] = full[i, : i + 1]
        history.row("Y")[:] = full[i, : i + 1]
    after = np.array([0.3 * np.trapezoid(f[s:] * full[s:, s]) for s in range(n + 1)])
    before = [0.3 * np.trapezoid(g[: s + 1] * full[s, : s + 1]) for s in range(n + 1)]
    symmetric = full + np.tril(full, -1).T
    whole = [0.3 * np.trapezoid(f * symmetric[:, s]) for s in range(n + 1)]
    forward, backward = history.both(f, g, "X")
    np.testing.assert_allclose(forward, after, atol=1e-12)
    np.testing.assert_allclose(backward, before, atol=1e-12)
    np.testing.assert_allclose(history.whole(f, "X"), whole, atol=1e-12)
    np.testing.assert_allclose(history.after(f, "X"), after, atol=1e-12)
    np.testing.assert_allclose(history.before(g, "X"), before, atol=1e-12)
    np.testing.assert_allclose(history.total(f), 0.3 * np.trapezoid(f), atol=1e-12)
    last = 0.15 * f[-1] * full[-1]  # `after_start` leaves out u = t
    history.row("Y")[:] = 0.0
    np.testing.assert_allclose(history.after_start(f, "Y")[:-1], (after - last)[:-1], atol=1e-12)


@given(steps=st.integers(10, 2000), per_octave=st.integers(2, 12))
@settings(max_examples=30)
def test_a_dropped_point_is_never_missed(steps: int, per_octave: int) -> None:
    """After each step the stored points are exactly those that `kept` selects among all points, and they are few."""
    spacing, points = spacings(steps, per_octave), np.zeros(1, dtype=np.int64)
    for index in range(1, steps + 1):
        points = np.append(points[kept(points, index, spacing)], index)
    everything = np.arange(steps + 1)
    np.testing.assert_array_equal(points, everything[kept(everything, steps, spacing)])
    assert points.size <= capacity(steps, per_octave)


class Interrupted(Exception):
    pass


@pytest.mark.parametrize("per_octave", [None, 4])
def test_an_interrupted_march_continues_to_the_same_bits(tmp_path: Path, per_octave: int | None) -> None:
    file = tmp_path / "march.state"

    class Fragile(DampedOscillator):
        calls = 0

        def flow(self, history: History) -> Flow:
            type(self).calls += 1
            if type(self).calls == 101:
                raise Interrupted
            return super().flow(history)

    with pytest.raises(Interrupted):
        march(Fragile(2.0), 5.0, 100, per_octave=per_octave, checkpoint=file, checkpoint_every=0.0)
    assert [path.name for path in tmp_path.iterdir()] == ["march.state"]
    calls = Fragile.calls
    resumed, straight = (
        march(Fragile(2.0), 5.0, 100, per_octave=per_octave, checkpoint=file),
        march(SYSTEM, 5.0, 100, per_octave=per_octave),
    )
    assert Fragile.calls - calls < 110  # the first half was not repeated
    np.testing.assert_array_equal(resumed.paths["x"], straight.paths["x"])
    np.testing.assert_array_equal(resumed.last_row("C"), straight.last_row("C"))
    assert not file.exists()


def test_a_checkpoint_of_another_march_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "march.state"

    class Stopping(DampedOscillator):
        def flow(self, history: History) -> Flow:
            if history.index == 5:
                raise Interrupted
            return super().flow(history)

    with pytest.raises(Interrupted):
        march(Stopping(2.0), 5.0, 100, checkpoint=file, checkpoint_every=0.0)
    with pytest.raises(ValueError, match="written by another integration"):
        march(SYSTEM, 5.0, 200, checkpoint=file)
    about, arrays = read_arrays(file)
    renamed = {name.replace("history/", "history/old_"): array for name, array in arrays.items()}
    write_arrays(file, renamed, about)  # with the names of an older version
    with pytest.raises(ValueError, match=r"checkpoint = '.*' is not allowed: .* another version of limitlab"):
        march(Stopping(2.0), 5.0, 100, checkpoint=file)
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"checkpoint = '.*' is not allowed: it is damaged"):
        march(Stopping(2.0), 5.0, 100, checkpoint=file)


def test_progress_counts_up_and_its_estimate_ends_at_zero() -> None:
    seen: list[Progress] = []
    march(SYSTEM, 5.0, 50, progress=seen.append)
    assert seen[-1].done == seen[-1].steps == 50
    assert seen[-1].remaining == 0
    assert all(a.done < b.done for a, b in pairwise(seen))


@pytest.mark.parametrize(
    ("end", "steps", "limit", "words"),
    [
        (0.0, 10, 1e9, "end = 0.0"),
        (np.inf, 10, 1e9, "end = inf"),
        (1.0, 1, 1e9, "steps = 1"),
        (1.0, 10_000, 1e8, "use at most 3535 steps"),
    ],
)
def test_impossible_marches_are_refused(end: float, steps: int, limit: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        march(SYSTEM, end, steps, memory_limit=limit)


def test_the_memory_estimate_is_what_is_allocated() -> None:
    history = march(SYSTEM, 1.0, 30).history
    assert isinstance(history, WholeHistory)
    assert memory_bytes(SYSTEM, 30) == sum(packed.nbytes for packed in history.triangles.values())
    assert memory_bytes(SYSTEM, 20_000, per_octave=8) < 0.01 * memory_bytes(SYSTEM, 20_000)


def test_a_thinned_history_has_no_triangle() -> None:
    with pytest.raises(ValueError, match="last_row"):
        march(SYSTEM, 1.0, 60, per_octave=2).two_time("C")


def test_an_overflow_names_step_and_rate() -> None:
    class Exploding(DampedOscillator):
        def flow(self, history: History) -> Flow:
            flow = super().flow(history)
            return Flow(
                flow.rates, {**flow.forcings, "x": np.exp(float(min(1000.0, history.path("x")[-1] * 50)))}, flow.observed
            )

    with pytest.raises(ConvergenceError, match="use more steps"), np.errstate(all="ignore"):
        march(Exploding(2.0), 50.0, 100)


def test_romberg_is_exact_for_its_powers_and_refuses_no_level() -> None:
    rng = np.random.default_rng(0)
    c = rng.normal(size=4)
    levels = [np.array(c[0] + c[1] * h**2 + c[2] * h**3 + c[3] * h**4) for h in (0.4, 0.2, 0.1, 0.05)]
    value, error = romberg_table(levels)
    assert abs(value - c[0]) < 1e-12
    assert error >= abs(value - c[0])
    assert np.isinf(romberg_table(levels[:1])[1])
    with pytest.raises(ValueError, match="levels = 0"):
        extrapolate(lambda n: march(SYSTEM, 1.0, n), 10, TIMES, 0)
