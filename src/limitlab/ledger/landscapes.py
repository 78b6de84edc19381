"""Claims about landscapes: the Hessian of a network (J31), saddles of tokens (J35)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.criteria import above, below, equal, near, true
from limitlab.lab.measures import largest, smallest
from limitlab.laws.attention.single_cluster import SingleCluster
from limitlab.laws.landscapes.hessian import hessian_inertia, hessian_parts
from limitlab.models.attention.engines import token_paths
from limitlab.models.attention.fields import Attention
from limitlab.numerics.sphere_flow import tangent

Array = NDArray[np.float64]

# -- J31: the Hessian of an overparametrised network ----------------------------------------------------------------------


@claim(
    "J31",
    "Implicit bias, interpolation, spectra",
    "An overparametrised network has a number of negative Hessian eigenvalues of the order of the input dimension at a random start (half "
    "of all, at fixed width), and p - n flat directions at interpolation.",
    figure="hessian-inertia",
)
def hessian_signs(quick: bool) -> Outcome:
    """Counts at random starts, at interpolation and close to it; near it, against the curvature on the kernel of the Jacobian."""
    cases = ((10, 10, 40), (10, 20, 40), (10, 20, 80))
    exact = [hessian_inertia(d, width, n) for d, width, n in cases]
    wrong = sum(
        (one.negative, one.zero, one.positive) != (0, width * (d + 1) - n, n)
        for one, (d, width, n) in zip(exact, cases, strict=True)
    )
    dimensions = (10, 20) if quick else (10, 20, 40)
    counts = [
        hessian_inertia(d, 10, n * d, interpolate=False, seed=seed).negative / d
        for d in dimensions
        for n in (2, 8)
        for seed in range(3)
    ]
    shares = [count * d / (10 * (d + 1)) for count, d in zip(counts, np.repeat(dimensions, 6), strict=True)]
    equal_counts, slopes = [], []
    for seed in range(2 if quick else 6):
        jacobian, bend = hessian_parts(10, 20, 80, True, seed, residual=1e-3)
        kernel = np.linalg.svd(jacobian)[2][80:]
        inside = np.linalg.eigvalsh(kernel @ bend @ kernel.T)
        found = hessian_inertia(10, 20, 80, seed=seed, residual=1e-3)
        equal_counts.append(found.negative == int(np.sum(inside < 0)))
        slopes.append(found.eigenvalues[0] / inside[0])
    far = hessian_inertia(10, 20, 80, residual=1.0).negative
    return Outcome(
        (
            equal("cases of 3 at interpolation that do not have n positive, p - n zero and no negative eigenvalues", wrong, 0),
            above("least share of negative eigenvalues at a random start", smallest(shares), 0.4),
            below("largest share of negative eigenvalues at a random start", largest(shares), 0.6),
            near("negative eigenvalues per input dimension at width 10, mean", float(np.mean(counts)), 5.3, 0.7),
            true("close to interpolation as many negative eigenvalues as E on the kernel of the Jacobian", all(equal_counts)),
            near("lowest eigenvalue close to interpolation over that on the kernel, mean", float(np.mean(slopes)), 1.0, 0.06),
            above("negative eigenvalues at residual 1 minus those at 1e-3", far - hessian_inertia(10, 20, 80, residual=1e-3).negative, 10),
        ),
        {"negative eigenvalues at residual 1": far},
        note="The source's 'order of the input dimension' is (N/2) d at width N: half of all parameters.",
    )  # fmt: skip


# -- J35: saddles of tokens at beta = 0 ---------------------------------------------------------------------------------


@claim(
    "J35",
    "Transformers",
    "At beta = 0 every critical point other than consensus is a strict saddle, with explicit rates.",
    laws=("SingleCluster",),
    figure="token-saddles",
)
def strict_saddles(quick: bool) -> Outcome:
    """Closed spectra against the Jacobian of the flow, by differences; escape of tokens that were put beside a saddle."""
    poles = [(5, 4, 3), (6, 4, 4), (7, 6, 2), (8, 7, 5), (6, 3, 3)]
    gaps = [rate_gap(two_poles(*case), SingleCluster.saddle_rates(*case)) for case in poles]
    balanced = [balanced_tokens(np.random.default_rng(i), n, d) for i, (n, d) in enumerate(((4, 2), (6, 3), (10, 4)))]
    tops = []
    for x in balanced:
        rates = SingleCluster.saddle_rates(positions=x)
        gaps.append(rate_gap(x, rates))
        tops.append(rates[0] - (1 - 1 / x.shape[1]))
    lowest = smallest(
        SingleCluster.saddle_rates(n, k, d)[0] for n in range(2, 9) for k in range(n // 2, n) for d in (2, 3, 6)
    )
    consensus = largest(SingleCluster.saddle_rates(n, n, d)[0] for n in (2, 5, 9) for d in (2, 4))
    runs = 20 if quick else 200
    growth, ended = escape(two_poles(6, 4, 3), runs)
    return Outcome(
        (
            below("largest gap between the closed rates and the Jacobian of the flow", largest(gaps), 1e-8),
            above("least positive rate at poles other than consensus", lowest, 0.99),
            above("largest rate at balanced tokens minus 1 - 1/d, least", smallest(tops), -1e-12),
            equal("largest rate at consensus", consensus, 0.0),
            near("rate of escape from 4 and 2 tokens at the poles", growth, 1.0, 0.01),
            equal(f"runs of {runs} that end in one cluster", ended, runs),
        ),
    )


def two_poles(tokens: int, at_pole: int, dimension: int) -> Array:
    """`at_pole` tokens at the first unit vector, the others opposite."""
    x = np.zeros((tokens, dimension))
    x[:, 0] = np.where(np.arange(tokens) < at_pole, 1.0, -1.0)
    return x


def balanced_tokens(rng: np.random.Generator, tokens: int, dimension: int) -> Array:
    """Random unit vectors with mean 0: Newton steps back to it from a random start."""
    x = rng.standard_normal((tokens, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for _ in range(200):
        blocks = np.eye(dimension) - x[:, :, None] * x[:, None, :]
        push = np.linalg.lstsq(blocks.mean(axis=0), -x.mean(axis=0), rcond=None)[0]
        x += (blocks @ push) * 0.8
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def rate_gap(x: Array, rates: Array) -> float:
    """Largest gap between given rates and the eigenvalues of the Jacobian of the flow in the tangent space, by central differences."""
    n, d = x.shape
    frames = [np.linalg.svd(row[None])[2][1:] for row in x]  # d - 1 directions across every token
    basis = np.zeros((n * (d - 1), n, d))
    for i, frame in enumerate(frames):
        basis[i * (d - 1) : (i + 1) * (d - 1), i] = frame
    attention, h = Attention(0.0), 1e-5

    def velocity(y: Array) -> Array:
        return tangent(y, attention.drift(0.0, y))

    columns = [(velocity(_moved(x, h * e)) - velocity(_moved(x, -h * e))) / (2 * h) for e in basis]
    jacobian = np.einsum("aid,bid->ab", basis, np.array(columns))
    return float(np.max(np.abs(np.sort(np.linalg.eigvals(jacobian).real) - np.sort(rates))))


def _moved(x: Array, by: Array) -> Array:
    moved = x + by
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def escape(saddle: Array, runs: int) -> tuple[float, int]:
    """Rate at which the mean square distance from a saddle grows after a kick of 1e-6, and how many runs end in one cluster."""
    rng = np.random.default_rng(0)
    start = np.stack([_moved(saddle, 1e-6 * rng.standard_normal(saddle.shape)) for _ in range(runs)])
    times = np.array([5.0, 8.0, 60.0])
    paths = token_paths(start, 0.0, times, tolerance=1e-12)
    square = [float(np.mean((paths[i] - saddle) ** 2)) for i in range(2)]
    grams = paths[2] @ np.swapaxes(paths[2], -1, -2)
    return float(np.log(square[1] / square[0]) / (2 * (times[1] - times[0]))), int(
        np.sum(grams.min(axis=(-2, -1)) > 1 - 1e-6)
    )
