"""Claims about lazy training: the inequalities of the certificate and their scalings (J13)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.criteria import above, at_least, at_most, below, near
from limitlab.lab.measures import largest, log_slope
from limitlab.laws.kernels.lazy import LazyCertificate, lazy_certificate
from limitlab.laws.kernels.lazy_networks import Flow, LazyNetworks, unit_rows
from limitlab.ledger.wide_networks import lazy_data
from limitlab.models.activations import Activation

Array = NDArray[np.float64]

ACTIVATIONS = ("softplus", "gelu", "sigmoid")


def trained(
    seed: int, n: int, d: int, width: int, scale: float, name: str, antisymmetric: bool
) -> tuple[LazyCertificate, Flow, Array]:
    """One network: its certificate, its flow, and the times at which it was seen."""
    X, y = lazy_data(seed, n, d)
    weights = unit_rows(np.random.default_rng([seed, width]), 1, width, d, antisymmetric)
    certificate = lazy_certificate(X, y, weights[0], scale, name)
    times = np.array([0.3, 1.0, 3.0]) * n / certificate.sigma_min**2
    return certificate, LazyNetworks(X, y, weights, scale, Activation(name)).flow(times), times


def used_up(certificate: LazyCertificate, flow: Flow, times: Array, n: int) -> dict[str, float]:
    """Measured over certified, for every inequality: at most 1 where it holds."""
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


@claim(
    "J13",
    "Kernels and lazy training",
    "In the lazy regime the train error decays exponentially and the weights stay within explicit bounds.",
    laws=("LazyTraining",),
    figure="lazy-bounds",
)
def certificate_holds(quick: bool) -> Outcome:
    """Every inequality on a sweep of networks over width, scale, activation and start; the scalings of distance and deviation."""
    n, d = 8, 16
    widths, scales, seeds = (40, 160, 640), (0.5, 2.0, 8.0), range(1 if quick else 4)
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
    alphas = (1.0, 4.0, 16.0)
    by_scale = [trained(0, n, d, 400, alpha, "softplus", True) for alpha in alphas]
    distance = log_slope(alphas, [float(np.sqrt(flow.squared_distance[0, -1])) for _, flow, _ in by_scale]).value
    deviation = log_slope(alphas, [float(np.sqrt(flow.squared_deviation[0, -1])) for _, flow, _ in by_scale]).value
    sizes = (100, 400, 1600)
    gaps, lows = zip(*(_mean_gap(n, d, m, 4 if quick else 12) for m in sizes), strict=True)
    return Outcome(
        (
            at_least("networks on which every inequality was tested", count, 50),
            *(
                at_most(f"largest share of the bound on {what} that was used up", largest(values), 1.0)
                for what, values in shares.items()
            ),
            above("networks for which the assumption of the theorem holds", certified, 0),
            near("exponent in alpha of the distance, antisymmetric start", distance, -1.0, 0.1),
            near("exponent in alpha of the deviation, antisymmetric start", deviation, -2.0, 0.2),
            near(
                "exponent in the width of the output's distance from the linearised network's",
                log_slope(sizes, gaps).value,
                -1.0,
                0.25,
            ),
            below("relative change of s_min over the widths", float(np.ptp(lows) / np.mean(lows)), 0.1),
        ),
        {"networks": count, "with a certificate": certified},
        note="The certificate is sufficient and far from necessary: the inequalities hold also where its assumption fails.",
    )


def _mean_gap(n: int, d: int, width: int, draws: int) -> tuple[float, float]:
    """Mean distance of the outputs from those of the linearised network at the end, and mean s_min."""
    runs = [trained(seed, n, d, width, 2.0, "softplus", True) for seed in range(draws)]
    return float(np.mean([flow.output_gap.max() for _, flow, _ in runs])), float(
        np.mean([one.sigma_min for one, _, _ in runs])
    )
