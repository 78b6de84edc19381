"""Claims about the singularity at n = d (M13) and about tangent kernels of residual networks (M14)."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import Criterion, Number, above, agrees, below, between
from limitlab.lab.measures import effort, log_slope, sigmas
from limitlab.laws.kernels.residual import resnet_ntk
from limitlab.laws.kernels.residual_networks import residual_tangent_kernel
from limitlab.laws.spectra.marchenko_pastur import MarchenkoPastur
from limitlab.laws.spectra.square_matrix import SquareMatrixEdge, mean_inverse_trace

_AREA = "Kernels and lazy training"

Array = NDArray[np.float64]


@claim(
    "M13",
    _AREA,
    "At n = d the design is infinitely ill conditioned (condition number of order n); away from it, it is well conditioned.",
    laws=("SquareMatrixEdge", "MarchenkoPastur"),
    figure="square-matrix",
)
def conditioning(quick: bool) -> Outcome:
    """Edelman's laws by Kolmogorov-Smirnov tests; means of the inverse's trace; condition numbers off the diagonal."""
    from scipy.stats import kstest

    rng, law, draws = np.random.default_rng(0), SquareMatrixEdge(), 1000 if quick else 3000
    singular = np.linalg.svd(rng.standard_normal((draws, 50, 50)), compute_uv=False)
    smallest = 50 * singular[:, -1] ** 2
    chance = float(kstest(smallest, law.smallest_cdf).pvalue)
    wrong = float(kstest(smallest, lambda x: -np.expm1(-np.sqrt(x))).pvalue)  # the law without x/2
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {
        "p value of the law of n lambda_min, n = 50": chance,
        "median condition number over n": float(np.median(singular[:, 0] / singular[:, -1])) / 50,
    }
    for n, d in ((40, 36), (40, 44)) if quick else ((40, 36), (40, 44), (200, 190)):
        traces = [inverse_trace(rng.standard_normal((n, d))) for _ in range(200 if quick else 1000)]
        criteria.append(
            below(
                f"mean trace of the pseudo-inverse at n = {n}, d = {d} in standard errors",
                sigmas(traces, mean_inverse_trace(n, d)),
                4.0,
            )
        )
    size = 200 if quick else 400
    for ratio in (0.25, 0.5):
        low, high = MarchenkoPastur(ratio=ratio).support()[0]
        shape = (6 if quick else 20, round(size / ratio), size)
        values = np.linalg.svd(rng.standard_normal(shape), compute_uv=False)
        found = float(np.mean(values[:, 0] / values[:, -1])) / math.sqrt(high / low)
        criteria.append(between(f"condition number at d/n = {ratio:g} over its limit, d = {size}", found, 0.92, 1.0))
    square = np.linalg.svd(rng.standard_normal((200, 20, 20)), compute_uv=False)
    medians = [float(np.median(found[:, 0] / found[:, -1])) for found in (square, singular)]
    return Outcome(
        (
            above("p value of Edelman's law of n lambda_min at n = 50", chance, 1e-3),
            below("p value of the same law without its term x/2", wrong, 1e-3),
            *criteria,
            between("exponent in n of the median condition number", log_slope((20, 50), medians).value, 0.7, 1.3),
            agrees(
                "the two means of Edelman's laws",
                compare(law, seeds=100 if quick else 220, **effort(quick)),
            ),
        ),
        measured,
        note="At n = d the mean of the trace is infinite: medians are reported there.",
    )


def inverse_trace(X: Array) -> float:
    """tr (X'X)^+."""
    return float((np.linalg.svd(X, compute_uv=False) ** -2.0).sum())


PAIR = np.array([[1.0, 0.5, -0.3, 0.8], [0.2, -1.0, 0.4, 0.6]])


@claim("M14", _AREA, "Tangent kernels extend to other architectures: residual networks.", figure="residual-kernel")
def residual_networks(quick: bool) -> Outcome:
    """The recursion against the tangent kernel of finite networks by backpropagation: rate in the width, mean at the largest."""
    widths, draws = ((50, 100, 200), 150) if quick else ((50, 100, 200, 400), 200)
    criteria: list[Criterion] = []
    measured: dict[str, Number] = {}
    for blocks, branch in ((3, 1.0), (10, 0.3)):
        name, limit = f"{blocks} blocks, branch {branch:g}", resnet_ntk(PAIR, None, blocks, branch).ntk
        runs = {width: tangent_kernels(blocks, branch, width, draws) for width in widths}
        gaps = [float(np.sqrt(np.mean((found - limit)[:, 0, 1] ** 2))) for found in runs.values()]
        last, plain = runs[widths[-1]], resnet_ntk(PAIR, None, blocks, branch).nngp
        criteria += [
            between(f"exponent in the width of the rms gap, {name}", log_slope(widths, gaps).value, -0.7, -0.35),
            below(f"mean at width {widths[-1]} in standard errors, {name}", sigmas(last, limit), 4.0),
            above(f"the same against the NNGP kernel, {name}", sigmas(last, plain), 4.0),
        ]
        measured |= {f"rms gap at width {width}, {name}": gap for width, gap in zip(widths, gaps, strict=True)}
    return Outcome(tuple(criteria), measured, note="Graph and recurrent networks: not checked.")


def tangent_kernels(blocks: int, branch: float, width: int, draws: int) -> Array:
    """Tangent kernels of the pair of inputs for so many networks of finite width, by backpropagation."""
    rngs = (np.random.default_rng([blocks, width, k]) for k in range(draws))
    return np.array([residual_tangent_kernel(rng, PAIR, width, blocks, branch) for rng in rngs])
