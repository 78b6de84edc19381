"""Two-time integration: fused passes and Romberg against the plain NumPy scheme; cost of long times.

    python benchmarks/bench_two_time.py [--full]

Part 1 solves the single-index problem (m = 20, t <= 40) with the plain scheme (full matrices, matrix-vector products, one grid) and with
the library at equal accuracy, in one run and in processor time. Part 2 fits how the time of a march grows with its horizon,
for a network (m = 40, t = 10 m) and for ageing that never ends.
`--full` also runs the plain scheme on the grid that it needs for 1e-5 (minutes) and compares there.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from limitlab.laws import InterpolationTransition, TwoLayerDynamics
from limitlab.laws.dmft.examples import single_index
from limitlab.numerics.two_time import extrapolate

NAMES = ("train_error", "test_error", "second_layer", "overlap")


def plain_scheme(law: TwoLayerDynamics, end: float, steps: int) -> dict[str, np.ndarray]:
    """The scheme as one writes it first: T x T arrays, trapezoid weights, one NumPy matrix-vector product per memory integral."""
    kernels, m, ratio = law.kernels(), law.width, law.sample_ratio
    h0, h1, h2 = (
        np.polynomial.Polynomial(kernels.kernel).deriv(k) if k else np.polynomial.Polynomial(kernels.kernel)
        for k in range(3)
    )
    p0 = np.polynomial.Polynomial(kernels.target)
    p1 = p0.deriv()
    dt, size = end / steps, steps + 1
    c_p, c_m, r_p, r_m, r, label = (np.zeros((size, size)) for _ in range(6))
    a, v = np.zeros(size), np.zeros(size)
    out = {name: np.zeros(size) for name in NAMES}
    a[0], v[0] = law.start_second_layer, law.overlap_at_start
    c_p[0, 0], c_m[0, 0] = 1 + (m - 1) * law.correlation_at_start, 1 - law.correlation_at_start
    r_p[0, 0] = r_m[0, 0] = 1.0

    def evaluate(i: int) -> tuple[Any, ...]:
        k = slice(0, i + 1)
        w = np.full(i + 1, dt)
        w[0] *= 0.5
        w[-1] *= 0.5
        if i == 0:
            w[0] = 0.0
        cp, cm, rp, rm = c_p[i, k], c_m[i, k], r_p[i, k], r_m[i, k]
        cd, co, rd, ro = (cp + (m - 1) * cm) / m, (cp - cm) / m, (rp + (m - 1) * rm) / m, (rp - rm) / m
        hh, hr = h0(cd) / m + (m - 1) / m * h0(co), h1(cd) * rd / m + (m - 1) / m * h1(co) * ro
        norm = law.noise**2 + kernels.target_norm
        label[i, k] = label[k, i] = norm - a[i] * p0(v[i]) - a[k] * p0(v[k]) + a[i] * a[k] * hh
        sr = a[i] * a[k] * hr

        def after(f: np.ndarray, x: np.ndarray) -> np.ndarray:  # int_s^t, x lower triangular
            full = dt * f.copy()
            full[-1] *= 0.5
            return full @ x[k, k] - 0.5 * dt * f * np.diagonal(x)[k]

        def before(f: np.ndarray, x: np.ndarray) -> np.ndarray:  # int_0^s
            full = dt * f.copy()
            full[0] *= 0.5
            result = x[k, k] @ full - 0.5 * dt * f * np.diagonal(x)[k]
            result[0] = 0.0
            return result

        r[i, k] = 0.0
        r[i, k] = (sr - after(sr, r)) / (1 + 0.5 * dt * sr[-1])
        r[i, i] = sr[-1]
        q = label[i, k] - (w * r[i, k]) @ label[k, k]
        ca = q - before(q, r)
        ia = 1 - w @ r[i, k]
        kk = ratio / m**2 * a[i] * a[k]
        sd, so = kk * (r[i, k] * h1(cd) + ca * h2(cd) * rd), kk * (r[i, k] * h1(co) + ca * h2(co) * ro)
        dd, do = kk * ca * h1(cd), kk * ca * h1(co)
        ld, lo = kk[-1] * h1(cd[-1]), kk[-1] * h1(co[-1])
        signal = ratio * p1(v[i]) * a[i] * ia
        s_p, s_m, d_p, d_m, l_p, l_m = sd + (m - 1) * so, sd - so, dd + (m - 1) * do, dd - do, ld + (m - 1) * lo, ld - lo
        f_p = (w * s_p) @ c_p[k, k] + before(d_p, r_p) + signal * v[k]
        f_m = (w * s_m) @ c_m[k, k] + before(d_m, r_m)
        nu = (f_p[-1] - l_p * cp[-1] + (m - 1) * (f_m[-1] - l_m * cm[-1])) / m
        speed = ratio / m
        f_a = speed * (p0(v[i]) * ia + w @ (r[i, k] * a[k] * hh) + w @ (ca * a[k] * hr))
        for name, value in zip(NAMES, (ca[-1], label[i, i], a[i], v[i]), strict=True):
            out[name][i] = value
        return (
            nu + l_p,
            nu + l_m,
            speed * hh[-1],
            f_p,
            f_m,
            after(s_p, r_p),
            after(s_m, r_m),
            signal / m + w @ (s_p * v[k]),
            f_a,
        )

    old = evaluate(0)
    for i in range(1, size):
        new = old
        for _ in range(2):
            half, j = 0.5 * dt, slice(0, i)
            for x, rate, force in ((c_p, 0, 3), (c_m, 1, 4), (r_p, 0, 5), (r_m, 1, 6)):
                x[i, j] = (x[i - 1, j] * (1 - half * old[rate]) + half * (old[force] + new[force][:i])) / (
                    1 + half * new[rate]
                )
            c_p[i, i] = (c_p[i - 1, i - 1] * (1 - dt * old[0]) + dt * (old[3][-1] + new[3][-1])) / (1 + dt * new[0])
            c_m[i, i] = (m - c_p[i, i]) / (m - 1)
            c_p[j, i], c_m[j, i] = c_p[i, j], c_m[i, j]
            r_p[i, i] = r_m[i, i] = 1.0
            v[i] = (v[i - 1] * (1 - half * old[0]) + half * (old[7] + new[7])) / (1 + half * new[0])
            a[i] = (a[i - 1] * (1 - half * old[2]) + half * (old[8] + new[8])) / (1 + half * new[2])
            new = evaluate(i)
        old = new
    return out


def timed(run: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    result = run()
    return result, time.process_time() - start


def equal_accuracy(full: bool) -> tuple[float, float]:
    """Error of the plain scheme on its finest grid (or, in full, 1e-5), and how many times faster the library reaches it."""
    law = single_index(20, times=40.0, memory_points=0)
    law.march(20)  # compile
    times = np.linspace(0.0, 40.0, 41)
    truth = extrapolate(law.march, *((1600, times, 4) if full else (800, times, 3)), NAMES).values

    def error(values: dict[str, Any]) -> float:
        return max(float(np.abs(values[name] - truth[name]).max()) for name in NAMES)

    print("m = 20, t <= 40; errors are the largest over t and over train error, test error, a, v")
    plain: dict[int, tuple[float, float]] = {}
    grids = [400, 1600]
    for steps in grids:
        result, seconds = timed(lambda steps=steps: plain_scheme(law, 40.0, steps))
        plain[steps] = (error({name: result[name][:: steps // 40] for name in NAMES}), seconds)
        print(f"  plain NumPy, {steps} steps: error {plain[steps][0]:.1e}, {seconds:.2f} s")
        if full and steps == 1600:
            grids.append(int(np.ceil(1600 * np.sqrt(plain[1600][0] / 1e-5) / 40)) * 40)
    wanted, others = plain[max(grids)]
    for steps in (200, 400, 800):
        result, seconds = timed(lambda steps=steps: extrapolate(law.march, steps, times, 3, NAMES))
        found = error(dict(result.values))
        print(f"  limitlab, Romberg {steps // 4}/{steps // 2}/{steps}: error {found:.1e}, {seconds:.2f} s")
        if found <= wanted:
            print(f"  gain at {wanted:.0e}: {others / seconds:.0f} x")
            return wanted, others / seconds
    raise AssertionError(f"the library did not reach the accuracy {wanted:.1e}")


def growth(
    make: Callable[[float, int], TwoLayerDynamics], horizons: Sequence[float], per_time: int, points: int
) -> list[float]:
    """Processor time of one march to every horizon, printed with the exponent fitted to the last three of them."""
    make(horizons[0], points).march(200, end=20.0)  # compile
    seconds = [timed(lambda end=end: make(end, points).march(int(per_time * end), memory_limit=8e9))[1] for end in horizons]
    exponent = np.polyfit(np.log(horizons[-3:]), np.log(seconds[-3:]), 1)[0]
    label = f"{points} points per octave" if points else "whole history"
    print(f"  {label}: {', '.join(f'{s:.2f}' for s in seconds)} s; time grows like T^{exponent:.2f}")
    return seconds


def growing(end: float, points: int) -> TwoLayerDynamics:
    """The single-index problem at m = 40."""
    return single_index(40, times=float(end), memory_points=points)


def aging(end: float, points: int) -> TwoLayerDynamics:
    """Pure noise at the interpolation threshold, where nothing ever stops moving."""
    law = InterpolationTransition(samples_per_weight=0.3, kernel=(0, 0, 0, 1.0))
    return law.replace(second_layer=law.threshold()).dynamics(times=float(end)).replace(memory_points=points)


def long_times(horizons: tuple[float, ...]) -> float:
    """Cost against the horizon, and the gain of a thinned history over the whole one on the same grid."""
    print(f"m = 40, single index, 8 steps per unit of time, horizons {', '.join(format(end, 'g') for end in horizons)}")
    thinned, whole = (growth(growing, horizons, 8, points) for points in (10, 0))
    return whole[-1] / thinned[-1]


def accuracy_of_long_times() -> None:
    """t = 10 m: how far steps and thinning are from what they approximate."""
    law = growing(400.0, 10).replace(times=(40.0, 100.0, 200.0, 400.0), solver_steps=3200)
    values = {}
    for points in (10, 20):
        values[points], seconds = timed(lambda points=points: law.replace(memory_points=points).solve(NAMES))
        scale = {n: np.abs(values[points].values[n]).max() for n in NAMES}
        worst = max(float(np.max(values[points].errors[n] / scale[n])) for n in NAMES)
        print(
            f"  Romberg 800/1600/3200 to t = 400, {points} per octave: {seconds:.0f} s, estimated error of the step {worst:.1e}"
        )
    change = max(float(np.max(np.abs(values[10].values[n] - values[20].values[n]) / scale[n])) for n in NAMES)
    print(f"  relative change from 10 to 20 points per octave: {change:.1e}")
    for name in NAMES:
        print(f"  {name} at t = 40, 100, 200, 400: {np.array2string(values[20].values[name], precision=5)}")


def ratios() -> dict[str, float]:
    """Gain over the plain scheme at the accuracy that it reaches with 1600 steps, and of forgetting at t = 5 m."""
    accuracy, gain = equal_accuracy(False)
    return {
        f"plain NumPy two-time scheme, 1600 steps, at its accuracy {accuracy:.0e}": gain,
        "two-time march to t = 200 with the whole history, same grid of 1600 steps": long_times((50.0, 100.0, 200.0)),
    }


def main() -> None:
    equal_accuracy("--full" in sys.argv)
    long_times((50.0, 100.0, 200.0, 400.0))
    print("pure noise at the threshold, 2 steps per unit of time, horizons 320, 640, ..., 5120")
    growth(aging, (320.0, 640.0, 1280.0, 2560.0, 5120.0), 2, 10)
    accuracy_of_long_times()


if __name__ == "__main__":
    main()
