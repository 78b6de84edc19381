"""Claims about the bounds of lazy training (J13, J45)."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab._core.draws import mean_and_error
from limitlab.lab.check import SIGMAS, Check, Slope, largest, log_slope
from limitlab.lab.claims import claim
from limitlab.laws.kernels._claims.wide import lazy_data
from limitlab.laws.kernels._lazy_networks import Flow, LazyNetworks, unit_rows
from limitlab.laws.kernels.lazy import LazyCertificate, LazyTraining, lazy_certificate
from limitlab.models.activations import Activation

Array = NDArray[np.float64]


ACTIVATIONS = ("softplus", "gelu", "sigmoid")


def trained(
    seed: int, n: int, d: int, width: int, scale: float, name: str, antisymmetric: bool
) -> tuple[LazyCertificate, Flow, Array]:
    """Return the certificate of one network, its flow, and the times of the flow."""
    X, y = lazy_data(seed, n, d)
    weights = unit_rows(np.random.default_rng([seed, width]), 1, width, d, antisymmetric)
    certificate = lazy_certificate(X, y, weights[0], scale, name)
    times = np.array([0.3, 1.0, 3.0]) * n / certificate.sigma_min**2
    return certificate, LazyNetworks(X, y, weights, scale, Activation(name)).flow(times), times


def used_up(certificate: LazyCertificate, flow: Flow, times: Array, n: int) -> dict[str, float]:
    """Return measured values over certified bounds for every inequality, which are at most 1 if it holds."""
    allowed = certificate.residual**2 / n * np.exp(-certificate.rate * times)
    bounds = (
        (flow.squared_distance, certificate.distance_bound),
        (flow.linear_squared_distance, certificate.linear_distance_bound),
        (flow.squared_deviation, certificate.deviation_bound),
    )
    return {
        "train error": float((flow.train_error[0] / allowed).max()),
        **{
            name: float(np.sqrt(squares.max())) / bound
            for name, (squares, bound) in zip(("distance", "linear distance", "deviation"), bounds, strict=True)
        },
    }


WIDE, WIDE_QUICK = (640, 2560), (320, 1280)


LARGE, LARGE_QUICK = (32.0, 128.0, 512.0), (128.0, 512.0, 2048.0)
"""Widths and output scales. In most of these networks the second branch of the bound on the deviation is the smaller branch."""


@claim("J13", "Kernels and lazy training", LazyTraining, figure="lazy-bounds", items=("J-23", "J-24"))
def certificate_holds(check: Check) -> None:
    """In the lazy regime the train error decays exponentially and the weights stay within explicit bounds.

    Checked: every inequality on a sweep of networks over width, scale, activation and start, and the scalings of the distances. At large
    scales the second branch of the bound on the deviation is the smaller branch, and the deviation is a constant share of it. For labels
    along the weakest direction of the Jacobian the limits of large scales are known: the residual decays at four times the certified
    rate, the distance tends to half of its bound, and that of the linearised network to its whole bound.
    """
    n, d = 8, 16
    widths, scales, seeds = (40, 160, 640), (0.5, 2.0, 8.0), range(1 if check.quick else 4)
    shares: dict[str, list[float]] = {}
    certified = count = 0
    for seed in seeds:
        for width in widths:
            for scale in scales:
                for name in ACTIVATIONS:
                    for antisymmetric in (False, True):
                        certificate, flow, times = trained(seed, n, d, width, scale, name, antisymmetric)
                        for what, share in used_up(certificate, flow, times, n).items():
                            shares.setdefault(what, []).append(share)
                        certified += certificate.holds
                        count += 1
    check.at_least("networks on which every inequality was tested", count, 50)
    for what, values in shares.items():
        check.at_most(f"largest share of the bound on {what} that was used up", largest(values), 1.0)
    check.above("networks for which the assumption of the theorem holds", certified, 0)
    wide, large = (WIDE_QUICK, LARGE_QUICK) if check.quick else (WIDE, LARGE)
    second, largest_share, variation, in_width = second_branch(n, d, wide, large, range(4 if check.quick else 6))
    check.at_least("networks in which the second branch of the bound on the deviation is the smaller one", second, 20)
    check.at_most("largest share of this branch that was used up", largest_share, 1.0)
    check.below(
        f"relative variation of the deviation over this branch for alpha from {large[0]:g} to {large[-1]:g}", variation, 0.01
    )
    # L falls as m^(-1/2) and the other terms of the branch tend to constants
    check.near("exponent in the width of the deviation at large scales", in_width.value, -0.5, 5 * in_width.error)
    if not check.quick:
        check.below("standard error of this exponent", in_width.error, 0.02)
    single = lazy_certificate(
        np.ones((1, d)), np.ones(1), unit_rows(np.random.default_rng(0), 1, 640, d, True)[0], 512.0, "gelu"
    )
    constants = single.deviation_bound / single.sharper_deviation_bound
    check.near(
        "second branch over the sum of the two terms of its proof, for one sample (s_min = s_max)", constants, 1.0, 1e-9
    )
    rate, distance, linear = weakest_labels(n, d, 160, 512.0)
    # the corrections are of order 1/alpha, and the flow ends when e^-12 of the residual is left
    check.near_relative("decay rate over the certified rate, labels along the weakest direction", rate, 4.0, 0.01)
    check.near_relative("distance over its bound, labels along the weakest direction", distance, 0.5, 0.01)
    check.near_relative("distance of the linearised network over its bound, the same labels", linear, 1.0, 0.001)
    alphas = (1.0, 4.0, 16.0)
    by_scale = [trained(0, n, d, 400, alpha, "softplus", True) for alpha in alphas]
    distances = log_slope(alphas, [float(np.sqrt(flow.squared_distance[0, -1])) for _, flow, _ in by_scale]).value
    check.near("exponent in alpha of the distance, antisymmetric start", distances, -1.0, 0.02)
    deviation = log_slope(alphas, [float(np.sqrt(flow.squared_deviation[0, -1])) for _, flow, _ in by_scale]).value
    check.near("exponent in alpha of the deviation, antisymmetric start", deviation, -2.0, 0.04)
    sizes = (100, 400, 1600)
    gaps, lows = zip(*(_mean_gap(n, d, m, 4 if check.quick else 12) for m in sizes), strict=True)
    check.near(
        "exponent in the width of the output's distance from the linearised network's",
        log_slope(sizes, gaps).value,
        -1.0,
        0.25,
    )
    check.below("relative change of s_min over the widths", float(np.ptp(lows) / np.mean(lows)), 0.1)
    check.show("networks", count)
    check.show("with a certificate", certified)
    check.show("share of the second branch that was used up", largest_share)
    check.note("The certificate is sufficient and far from necessary. The inequalities hold also when its assumption fails.")


def _wave(u: Array) -> Array:
    return np.asarray(np.sin(2 * u + 0.5))


def _wave_slope(u: Array) -> Array:
    return np.asarray(2 * np.cos(2 * u + 0.5))


def _wave_curve(u: Array) -> Array:
    return np.asarray(-4 * np.sin(2 * u + 0.5))


WAVE = Activation(_wave, derivative=_wave_slope, second_derivative=_wave_curve, kinks=())
"""sin(2 u + 1/2), whose Hermite coefficients differ from 0. Its derivative is far from linear, so that its Jacobian is well conditioned."""


@claim("J45", "Kernels and lazy training", LazyTraining, figure="lazy-bounds", items=("J-24",))
def orders_of_the_bounds(check: Check) -> None:
    """For Gaussian inputs the terms of the lazy bounds and both distances have explicit orders in the samples n and the dimension d.

    Delta is of order n^(1/2). s_min is at least of order d^(1/2). s_max is at most of order n^(1/2) + d^(1/2), the Lipschitz constant
    is of order (d/m)^(1/2) times this sum, and the distance from the start is of order (n/d)^(1/2). The deviation from the linearised
    network is at most of order n^(5/2)/(d^2 m^(1/2)). The check fits exponents of d at fixed n/d and m/d, and of n at fixed d and m. For
    wide networks it compares s_min, s_max and the distance of the linearised network with those of the kernel to leading order in d.
    """
    dimensions, seeds = ((16, 32, 64), 2) if check.quick else ((16, 32, 64, 128), 4)
    trained_dimensions = dimensions[:2] if check.quick else dimensions[:3]
    shares, alpha, large = (0.5, 1.0, 2.0, 4.0), 1.5, dimensions[-1]
    start = {(d, share): start_terms(d, round(share * d), 16 * d, alpha, seeds) for d in dimensions for share in shares}

    def exponent(term: int, share: float) -> float:
        return log_slope(dimensions, [start[d, share][term] for d in dimensions]).value

    in_d = [float(np.mean([exponent(term, share) for share in shares])) for term in range(4)]
    check.near("exponent of Delta in d at fixed n/d and m/d, mean over n/d", in_d[0], 0.5, 0.1)
    check.at_least("exponent of s_min in d at fixed n/d and m/d, mean over n/d", in_d[1], 0.45)
    check.at_most("exponent of s_max in d at fixed n/d and m/d, mean over n/d", in_d[2], 0.55)
    check.near("exponent of the Lipschitz constant in d at fixed n/d and m/d, mean over n/d", in_d[3], 0.5, 0.1)
    sums = [math.sqrt(share * large) + math.sqrt(large) for share in shares]
    by_n = [log_slope(sums, [start[large, share][term] for share in shares]).value for term in range(4)]
    check.at_most(f"exponent of s_max in n^(1/2) + d^(1/2) at d = {large}", by_n[2], 1.05)
    check.near(f"exponent of the Lipschitz constant in n^(1/2) + d^(1/2) at d = {large}", by_n[3], 1.0, 0.15)
    value = math.sqrt(1 + alpha**2 * WAVE_VARIANCE)
    over = np.array([start[large, share][0] / math.sqrt(share * large) / value for share in shares])
    # Delta^2 is a sum of n terms, whose relative variance is about 2/n
    check.near(f"Delta over its value at d = {large}", float(over.mean()), 1.0, SIGMAS / math.sqrt(2 * 7.5 * large * seeds))
    # a width of 200 d makes the terms of order (n/m)^(1/2) smaller than 1 % at s_min; the leading order in d is exact to about 0.5 % here
    for share in shares[:2] if check.quick else shares:
        d, ratios = 64, []
        for seed in range(1 if check.quick else 3):
            ratios.append(over_equivalent(d, round(share * d), 200 * d, alpha, seed))
        for name, ratio in zip(
            ("s_min", "s_max", "distance of the linearised network"), np.mean(ratios, axis=0), strict=True
        ):
            check.near(
                f"{name} over that of the kernel to leading order, d = {d}, n/d = {share:g}, m = 200 d",
                float(ratio),
                1.0,
                0.02,
            )
    runs = {
        (d, share): distances(d, round(share * d), 16 * d, alpha, range(seeds if d < 64 else 1))
        for d in trained_dimensions
        for share in shares
    }
    last = trained_dimensions[-1]
    moved = [log_slope(trained_dimensions, [runs[d, share][0] for d in trained_dimensions]).value for share in shares]
    check.near(
        "exponent of the distance in d at fixed n/d, mean over n/d", float(np.mean(moved)), 0.0, 0.2 if check.quick else 0.1
    )
    ratio = log_slope(shares, [runs[last, share][0] for share in shares]).value
    check.near(f"exponent of the distance in n/d at d = {last}", ratio, 0.5, 0.1)
    bounded = [runs[last, share][1] / (share * last) ** 2.5 for share in shares]
    check.true(f"the deviation over n^(5/2) falls with n at d = {last}", bool(np.all(np.diff(bounded) < 0)))
    deviations = [log_slope(trained_dimensions, [runs[d, share][1] for d in trained_dimensions]).value for share in shares]
    # n^(5/2)/(d^2 m^(1/2)) does not depend on d at fixed n/d and m/d
    check.at_most("largest exponent of the deviation in d at fixed n/d and m/d", largest(deviations), 0.1)
    check.show("exponents of the deviation in d at fixed n/d and m/d", ", ".join(f"{value:.2f}" for value in deviations))
    growth = log_slope(shares, [runs[last, share][1] for share in shares]).value
    check.show(f"exponent of the deviation in n at d = {last}", growth)
    check.note("The deviation is far below its bound. Its measured exponent in n is below 5/2.")


def start_terms(d: int, n: int, width: int, alpha: float, seeds: int) -> Array:
    """Return means of Delta, s_min, s_max and the Lipschitz constant of networks at a random start."""
    rows = []
    for seed in range(seeds):
        X, y = lazy_data(seed, n, d)
        weights = unit_rows(np.random.default_rng([seed, width, 2]), 1, width, d)
        certificate = lazy_certificate(X, y, weights[0], alpha, WAVE)
        rows.append((certificate.residual, certificate.sigma_min, certificate.sigma_max, certificate.lipschitz))
    return np.mean(rows, axis=0)


WAVE_VARIANCE = (1 - math.cos(1.0) * math.exp(-8)) / 2 - math.sin(0.5) ** 2 * math.exp(-4)
"""Variance of this activation for a standard Gaussian input."""


def over_equivalent(d: int, n: int, width: int, alpha: float, seed: int) -> tuple[float, float, float]:
    """Return s_min, s_max and (y' K^-1 y)^(1/2) of a network over those of the kernel of infinite width to leading order in d.

    With r_i = |x_i|^2/d this kernel is alpha^2 (mu_i mu_j <x_i, x_j> + delta_ij |x_i|^2 (nu_i - mu_i^2)), where mu_i and nu_i are the means
    of s' and s'^2 for a Gaussian of variance r_i.
    """
    X, y = lazy_data(seed, n, d)
    weights = unit_rows(np.random.default_rng([seed, width, 4]), 1, width, d)
    kernel = LazyNetworks(X, y, weights, alpha, WAVE).kernel()[0]
    r = (X**2).sum(axis=1) / d
    mean, square = 2 * math.cos(0.5) * np.exp(-2 * r), 2 + 2 * math.cos(1.0) * np.exp(-8 * r)
    equivalent = alpha**2 * (mean[:, None] * mean * (X @ X.T) + np.diag(d * r * (square - mean**2)))
    values, limits = np.linalg.eigvalsh(kernel), np.linalg.eigvalsh(equivalent)
    distance = float(y @ np.linalg.solve(kernel, y) / (y @ np.linalg.solve(equivalent, y)))
    return math.sqrt(values[0] / limits[0]), math.sqrt(values[-1] / limits[-1]), math.sqrt(distance)


def distances(d: int, n: int, width: int, alpha: float, seeds: Iterable[int]) -> Array:
    """Return means of the distance from the start and of the deviation from the linearised network at the end of training."""
    rows = []
    for seed in seeds:
        X, y = lazy_data(seed, n, d)
        nets = LazyNetworks(X, y, unit_rows(np.random.default_rng([seed, width, 3]), 1, width, d, True), alpha, WAVE)
        low = float(np.linalg.eigvalsh(nets.kernel()[0])[0])
        flow = nets.flow(np.array([1.0, 4.0]) * n / low)
        rows.append((math.sqrt(float(flow.squared_distance.max())), math.sqrt(float(flow.squared_deviation.max()))))
    return np.mean(rows, axis=0)


class SecondBranch(NamedTuple):
    """Results for networks at large scales with the antisymmetric start."""

    networks: int  # in which the second branch is the smaller one
    share: float  # largest share of the second branch that was used up
    variation: float  # largest relative variation of the deviation over the branch, for all scales
    exponent: Slope  # of the deviation in the width


def second_branch(n: int, d: int, widths: tuple[int, ...], scales: tuple[float, ...], seeds: Iterable[int]) -> SecondBranch:
    """Return the number of networks in which the second branch of the bound (4) is the smaller one, and what they use up of it."""
    count, shares, exponents = 0, list[float](), list[float]()
    variation = 0.0
    for seed in seeds:
        deviations = []
        for width in widths:
            used, active = list[float](), list[float]()
            for alpha in scales:
                certificate, flow, _ = trained(seed, n, d, width, alpha, "softplus", True)
                deviation = float(np.sqrt(flow.squared_deviation.max()))
                used.append(deviation * alpha**2)  # the second branch is proportional to alpha^-2
                if certificate.deviation_bound < (1 - 1e-9) * 3 * certificate.residual / certificate.sigma_min:
                    count += 1
                    active.append(deviation / certificate.deviation_bound)
            deviations.append(deviation)
            variation = max(variation, float(np.ptp(used) / np.mean(used)))
            shares += active
        exponents.append(log_slope(widths, deviations).value)
    mean, error = mean_and_error(exponents)
    return SecondBranch(count, largest(shares), variation, Slope(float(mean), float(error)))


def weakest_labels(n: int, d: int, width: int, scale: float) -> tuple[float, float, float]:
    """Return decay rate, distance and linear distance over their certified values, for labels along the weakest direction.

    The weakest direction is the eigenvector of the smallest eigenvalue of the kernel at the antisymmetric start.
    """
    X, y = lazy_data(0, n, d)
    weights = unit_rows(np.random.default_rng(1), 1, width, d, True)
    values, vectors = np.linalg.eigh(LazyNetworks(X, y, weights, scale, Activation("softplus")).kernel()[0])
    labels = math.sqrt(n) * vectors[:, 0]
    certificate = lazy_certificate(X, labels, weights[0], scale, "softplus")
    times = np.array([0.5, 1.5, 12.0]) * n / values[0]
    flow = LazyNetworks(X, labels, weights, scale, Activation("softplus")).flow(times)
    rate = float(np.log(flow.train_error[0, 0] / flow.train_error[0, 1])) / (times[1] - times[0])
    return (
        rate / certificate.rate,
        math.sqrt(float(flow.squared_distance[0, -1])) / certificate.distance_bound,
        math.sqrt(float(flow.linear_squared_distance[0, -1])) / certificate.linear_distance_bound,
    )


def _mean_gap(n: int, d: int, width: int, draws: int) -> tuple[float, float]:
    """Return the mean distance of the outputs from those of the linearised network at the end, and mean s_min."""
    runs = [trained(seed, n, d, width, 2.0, "softplus", True) for seed in range(draws)]
    return float(np.mean([flow.output_gap.max() for _, flow, _ in runs])), float(
        np.mean([certificate.sigma_min for certificate, _, _ in runs])
    )
