"""Claims about tokens of transformers as particles on the sphere (J24 to J29, J35, J37, J49)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, Slope, largest, log_slope, slope, smallest, standard_error
from limitlab.lab.claims import claim
from limitlab.laws.attention._circle_density import spectral_density
from limitlab.laws.attention.circle import CircleMeanField, escape_time, growth_rates, most_unstable, poisson_radius
from limitlab.laws.attention.clustering import TokenClustering, critical_beta, merging_time, plateau_time
from limitlab.laws.attention.equiangular import EquiangularTokens, collapse_time
from limitlab.laws.attention.residual import ResidualFlow
from limitlab.laws.attention.single_cluster import SingleCluster
from limitlab.laws.attention.token_flow import TokenFlow
from limitlab.models.attention.circle import angle_moments, circle_flow, density_quantiles, harmonics
from limitlab.models.attention.clusters import circle_clusters, energy_rate, pair_fraction, token_energy
from limitlab.models.attention.engines import gram_flow, random_tokens, token_paths
from limitlab.models.attention.ensembles import Ensemble, ensemble_paths, phase_diagram
from limitlab.models.attention.token_flow import Attention, FeedForward, Head, flow
from limitlab.numerics.special import von_mises_coefficients
from limitlab.numerics.sphere_flow import flow_on_spheres, tangent

# -- attention ----------------------------------------------------------------------------------------------------

Array = NDArray[Any]

AREA = "Transformers"


@claim("J24", AREA, EquiangularTokens, TokenFlow, figure="token-collapse", items=("J-63",))
def particles(check: Check) -> None:
    """Self-attention with any heads, matrices and feed-forward layer is an interacting particle system on the sphere. With
    Q = K = V = I the energy sum exp(beta <x_i, x_j>) / (2 beta n^2) increases. Layer normalisation is a first-order integrator
    in a slower time.

    The check tests energy identities, symmetries and orders of the integrators, for the full model with heads and a feed-forward layer.
    """
    systems = 3 if check.quick else 20
    gaps = [energy_gap(seed, beta, kind) for seed in range(systems) for beta in (0.5, 3.0) for kind in (True, False)]
    check.below("largest relative gap between dE/dt and its formula", largest(gaps), 1e-9)
    rising = all(energy_increases(seed, kind) for seed in range(systems) for kind in (True, False))
    check.true("the energy never decreases", rising)
    check.below("gap between the flow of turned tokens and the turned flow", rotation_gap(), 1e-9)
    check.below("gap between the flow of permuted tokens and the permuted flow", permutation_gap(), 1e-9)
    check.below("gap between scaled matrices and scaled beta or time", rescaling_gap(), 1e-9)
    check.below("gap between the Gram equation and the overlaps of the vectors", gram_gap(), 1e-7)
    order = integrator_orders(160 if check.quick else 320)
    check.near("order of the Runge-Kutta method", order.pop("rk4"), 4, 0.3)
    for name, value in order.items():
        check.near(f"order of the method '{name}'", value, 1, 0.2)
    check.agree("layers with matrices of their own, a feed-forward layer and skipped blocks tend to the flow:", TokenFlow)
    check.note(
        "For softmax attention dE/dt has the weights Z_i/n, so the flow is a gradient ascent of the energy in another metric."
    )


def energy_gap(seed: int, beta: float, normalised: bool) -> float:
    """Return the relative gap between dE/dt along the flow (centred differences of order 6) and its formula."""
    x = random_tokens(np.random.default_rng(seed), 1, 10, 4)[0]
    field = Attention(beta, normalised=normalised)
    velocity = tangent(x, field.drift(0.0, x))
    h = 1e-2 if normalised else 1e-2 * math.exp(-beta)
    times = h * np.arange(1, 4)
    forward = flow(x, beta, times, normalised=normalised, tolerance=1e-14)
    backward = flow_on_spheres(lambda t, y: -field.drift(t, y), x, times, method="adaptive", tolerance=1e-14)
    rises = [
        float(token_energy(a @ a.T, beta) - token_energy(b @ b.T, beta)) for a, b in zip(forward, backward, strict=True)
    ]
    rate = float(np.dot([45.0, -9.0, 1.0], rises)) / (60 * h)
    return abs(rate / energy_rate(x, velocity, beta, normalised) - 1)


def energy_increases(seed: int, normalised: bool, beta: float = 4.0) -> bool:
    """Return whether the energy is non-decreasing along a trajectory, up to the error of the integration."""
    x = random_tokens(np.random.default_rng(seed), 1, 12, 3)[0]
    paths = token_paths(x, beta, np.linspace(0, 20 if normalised else 1, 80), normalised=normalised, tolerance=1e-10)
    energy = token_energy(paths @ np.swapaxes(paths, -1, -2), beta)
    return bool(np.all(np.diff(energy) > -1e-8 * energy.max()))


def _full_model(seed: int, d: int) -> tuple[list[Head], FeedForward]:
    rng = np.random.default_rng(seed)
    q, k, v = rng.standard_normal((3, 2, d, d)) / np.sqrt(d)
    w, a = rng.standard_normal((2, d, d)) / np.sqrt(d)
    return [Head(q[h], k[h], v[h]) for h in range(2)], FeedForward(w, a, 0.1 * rng.standard_normal(d))


def _rotated(matrix: Any, turn: Array) -> Array:
    return np.asarray(turn @ matrix @ turn.T)


def rotation_gap() -> float:
    """Return the gap between the rotated trajectory and the trajectory of rotated tokens and matrices.

    The activation acts on the hidden units, so the matrix `a` is rotated on its right side only.
    """
    heads, layer = _full_model(0, 4)
    rng = np.random.default_rng(1)
    x, turn = random_tokens(rng, 1, 6, 4)[0], np.linalg.qr(rng.standard_normal((4, 4)))[0]
    turned = [Head(_rotated(h.Q, turn), _rotated(h.K, turn), _rotated(h.V, turn)) for h in heads]
    moved = FeedForward(turn @ np.asarray(layer.w), np.asarray(layer.a) @ turn.T, layer.b)
    rotated = flow(x, 1.5, 2.0, heads=heads, feed_forward=layer) @ turn.T
    return float(np.abs(rotated - flow(x @ turn.T, 1.5, 2.0, heads=turned, feed_forward=moved)).max())


def permutation_gap() -> float:
    """Return the gap between the permuted trajectory and the trajectory of permuted tokens."""
    heads, layer = _full_model(0, 4)
    x, order = random_tokens(np.random.default_rng(2), 1, 6, 4)[0], np.array([3, 1, 0, 5, 4, 2])
    permuted = flow(x, 1.5, 2.0, heads=heads, feed_forward=layer)[order]
    return float(np.abs(permuted - flow(x[order], 1.5, 2.0, heads=heads, feed_forward=layer)).max())


def rescaling_gap(scale: float = 1.7) -> float:
    """Return the gap of two identities, Q = K = scale I as beta times scale^2 and V = scale I as time times scale."""
    x, eye = random_tokens(np.random.default_rng(3), 1, 6, 4)[0], scale * np.eye(4)
    hotter = flow(x, 1.2, 2.0, Q=eye, K=eye) - flow(x, 1.2 * scale**2, 2.0)
    faster = flow(x, 1.2, 2.0, V=eye) - flow(x, 1.2, 2.0 * scale)
    return float(max(np.abs(hotter).max(), np.abs(faster).max()))


def gram_gap() -> float:
    """Return the largest difference between the Gram engine and the overlaps of the vectors, d >= n."""
    gaps = []
    for d, beta in ((8, 1.0), (64, 5.0)):
        x = random_tokens(np.random.default_rng(d), 1, 8, d)[0]
        paths = flow(x, beta, [1.0, 4.0, 9.0])
        gaps.append(
            np.abs(gram_flow(x @ x.T, beta, [1.0, 4.0, 9.0], tolerance=1e-10) - paths @ np.swapaxes(paths, -1, -2)).max()
        )
    return float(max(gaps))


def integrator_orders(finest: int, beta: float = 3.0, horizon: float = 4.0) -> dict[str, float]:
    """Return the order of each method, from the errors with `finest` / 2 and `finest` steps."""
    x = random_tokens(np.random.default_rng(4), 1, 12, 5)[0]
    exact = flow(x, beta, horizon, tolerance=1e-13)

    def error(method: Any, steps: int) -> float:
        return float(np.abs(flow(x, beta, horizon, method=method, step=horizon / steps) - exact).max())

    methods = ("rk4", "exponential", "projected", "layers")
    return {name: math.log2(error(name, finest // 2) / error(name, finest)) for name in methods}


@claim("J25", AREA, SingleCluster, items=("J-67",))
def single_cluster(check: Check) -> None:
    """At beta = 0 almost every start collapses to a single cluster, for all n and d of at least 2.

    The check tests that every random start has collapsed by t = 60.
    """
    cases = ((2, 2), (2, 8), (3, 16), (10, 32)) if check.quick else ((2, 2), (2, 8), (2, 64), (3, 64), (10, 32))
    seeds, time = (20, 60.0) if check.quick else (200, 60.0)
    what = f"share of {seeds} starts whose overlaps are all above 1 - 1e-6 at t = {time:g}"
    for d, n in cases:
        check.equal(f"{what}, d = {d}, n = {n}", SingleCluster(tokens=n, dimension=d).collapsed(time, seeds), 1.0)


SCALES = (1.0, 3.0, 10.0, 100.0)
"""Times of the shares, in units of e^(2 beta)."""


@claim("J37", AREA, SingleCluster, EquiangularTokens, figure="single-cluster-map", items=("J-66", "J-68"))
def warm_clusters(check: Check) -> None:
    """At positive temperature tokens converge to a single cluster too, in more and in fewer dimensions than tokens. The time is of
    order e^(2 beta) at most, and the last stage is e^(-2t) at every beta.

    The check measures the share of uniform starts that have collapsed at growing multiples of e^(2 beta), for several beta and d at n = 8
    (full check: also n = 32). For two tokens the share is compared with its law. The rate of the last stage is measured for d < n.
    """
    seeds, betas = (20, (0.25, 1.0, 2.0)) if check.quick else (30, (0.25, 1.0, 2.0, 3.0))
    cases = [(8, d, beta) for d in (2, 3, 8, 12) for beta in betas]
    if not check.quick:
        cases += [(32, d, beta) for d in (2, 40) for beta in (0.5, 1.5)]
    first, last, falls = [], [], []
    for n, d, beta in cases:
        law = SingleCluster(tokens=n, dimension=d, beta=beta)
        shares = law.collapse_shares([scale * math.exp(2 * beta) for scale in SCALES], seeds if n == 8 else 8)
        first.append(float(shares[0]))
        last.append(float(shares[-1]))
        falls.append(float(np.diff(shares).min()))
        if beta == betas[-1]:
            for scale, share in zip(SCALES, shares, strict=True):
                check.show(
                    f"share of collapsed starts at {scale:g} e^(2 beta), n = {n}, d = {d}, beta = {beta:g}", float(share)
                )
    check.above("least share of collapsed starts at t = 100 e^(2 beta), over beta, d and n", smallest(last), 0.94)
    check.above("mean of this share", float(np.mean(last)), 0.99)
    check.above("mean rise of this share from t = e^(2 beta) to 100 e^(2 beta)", float(np.mean(last) - np.mean(first)), 0.2)
    check.at_least("least rise of a share between two of the times", smallest(falls), 0.0)
    check_pairs(check)
    rates = [final_rate_below(d, beta) for d in (2, 3) for beta in (0.5, 2.0)]
    check.near("rate at which 1 - <x_i, x_j> falls, 8 tokens in 2 or 3 dimensions, least", smallest(rates), 2, 0.01)
    check.near("the same rate, largest", largest(rates), 2, 0.01)


def check_pairs(check: Check) -> None:
    """Compare the share of pairs of tokens that have merged with its law, at three times for several beta and d."""
    seeds, z, gaps = 500 if check.quick else 4000, [], []
    for d in (2, 3, 10):
        for beta in (1.0, 3.0) if check.quick else (0.5, 1.0, 3.0, 4.0):
            law = SingleCluster(tokens=2, dimension=d, beta=beta)
            times = [law_time for scale in (0.5, 1.0, 1.5) if (law_time := max(2.0, 1.5 * math.exp(scale * beta)))]
            shares = law.collapse_shares(times, seeds)
            expected = np.array([law.pair_collapse_share(t) for t in times])
            spread = np.sqrt(np.maximum(expected * (1 - expected), 0.5 / seeds) / seeds)
            z += (np.abs(shares - expected) / spread).tolist()
            gaps += (shares - expected).tolist()
    check.below("largest z of the share of merged pairs of tokens against its law", largest(z), 4.0)
    check.near("mean gap of this share", float(np.mean(gaps)), 0.0, 2 / math.sqrt(seeds * len(gaps)))


def final_rate_below(dimension: int, beta: float) -> float:
    """Return the final exponential rate of 8 random tokens in fewer dimensions, as the median over ten starts."""
    law = SingleCluster(tokens=8, dimension=dimension, beta=beta)
    start = law._starts([law.draw(2, seed) for seed in range(10)])
    times = np.arange(0.5, 10 * math.exp(2 * beta) + 20, 0.25)
    gaps = 1 - law._grams(times.tolist(), start, beta).min(axis=(-2, -1))
    rates = []
    for track in gaps.T:
        window = np.flatnonzero((track < 1e-4) & (track > 1e-6))
        if window.size >= 2:
            rates.append(-slope(times[window], np.log(track[window])).value)
    return float(np.median(rates))


@claim("J26", AREA, EquiangularTokens, TokenClustering, figure="overlap-histograms", items=("J-64", "J-68", "J-69"))
def plateaus(check: Check) -> None:
    """Tokens cluster over the layers through metastable plateaus whose length grows like exp(beta). The final convergence is
    e^(-2t) at every beta.

    The check measures the final rate, the length of the plateaus, and the number of clusters over the layers.
    """
    betas = np.array([9.0, 12.0, 15.0])
    exact = np.asarray(collapse_time(1e-3, 2000, betas))
    walked = {beta: particle_collapse(beta, 32) for beta in (3.0, 5.0, 7.0)}
    off = [abs(time / float(collapse_time(1e-3, 32, beta)) - 1) for beta, time in walked.items()]
    for beta in (0.0, 1.0, 4.0):
        check.near(f"rate at which 1 - <x_i, x_j> falls at beta = {beta:g}", final_rate(beta), 2, 1e-3)
    check.between("growth of log t* per unit of beta, n = 2000", slope(betas, np.log(exact)).value, 0.85, 1.05)
    check.below(
        "particles, n = 32: largest relative gap of the collapse time to its closed form, beta = 3, 5, 7", largest(off), 1e-3
    )
    plateau_growth = float(np.log(walked[7.0] / walked[5.0])) / 2
    check.near(
        "particles, n = 32: growth of log t* per unit of beta from 5 to 7 over that of the closed form",
        plateau_growth / (float(np.diff(np.log(collapse_time(1e-3, 32, np.array([5.0, 7.0]))))[0]) / 2),
        1,
        0.01,
    )
    check.above("particles, n = 32: collapse time at beta = 7 over that at beta = 3", walked[7.0] / walked[3.0], 3)
    lives = float(np.diff(np.log(merging_time(-0.5, np.array([30.0, 40.0]))))[0]) / 10
    check.near("growth of the log life of two clusters at overlap -1/2 per unit of beta", lives, 1.5, 0.05)
    diagram = phase_diagram(32, 2, [7.0], [0.0, 2.0, 10.0, 30.0], systems=10 if check.quick else 60, count=True)
    clusters = [float(count) for count in diagram.clusters[0]]
    check.true(
        "clusters on the circle at beta = 7 become fewer from t = 0 to 2 and to 10, and not more to 30",
        clusters[0] > clusters[1] > clusters[2] >= clusters[3],
    )
    check.above("mean number of clusters at t = 30", clusters[3], 1.5)
    check.below("share of close pairs at t = 30", float(diagram.pair_probability[0, -1]), 0.7)
    for t, count in zip((0, 2, 10), clusters[:3], strict=True):
        check.show(f"mean number of clusters at t = {t}", count)
    for beta, time in walked.items():
        check.show(f"particles, n = 32: collapse time at beta = {beta:g}", time)
    check.show("plateau formula over the exact time at beta = 15, n = 2000", float(plateau_time(15.0, 2000) / exact[-1]))
    check.note(
        "At large beta the collapse is slow because of a plateau of length e^beta. The final rate is 2 and not of order e^-beta."
    )


def particle_collapse(beta: float, tokens: int) -> float:
    """Return the time at which orthogonal tokens under their attention have an overlap of 1 - 1e-3."""
    times = np.linspace(0.5, 1.5, 201) * float(collapse_time(1e-3, tokens, beta))
    overlap = np.array([x[0] @ x[1] for x in flow(np.eye(tokens), beta, times, tolerance=1e-10)])
    return float(np.interp(1 - 1e-3, overlap, times))


def final_rate(beta: float) -> float:
    """Return the final exponential rate at which random tokens approach each other, measured on particles."""
    x = random_tokens(np.random.default_rng(5), 1, 8, 12)[0]
    late = float(collapse_time(1e-3, 8, beta)) + np.array([1.0, 3.0])
    gaps = []
    for paths in flow(x, beta, late, tolerance=1e-13):
        differences = paths[:, None] - paths[None, :]  # 1 - <x, y> = |x - y|^2 / 2 avoids cancellation
        gaps.append(float((differences**2).sum(axis=-1).max()) / 2)
    return math.log(gaps[0] / gaps[1]) / float(late[1] - late[0])


HALF_TIMES = {128: {1.0: 5.28, 3.0: 5.92, 5.0: 9.14}, 1024: {1.0: 5.26, 3.0: 5.91, 5.0: 9.50}}
"""Times at which half of 32 tokens' pairs are close, from 64 systems of an independent program."""

ENSEMBLE_CASES: tuple[tuple[Ensemble, float], ...] = (
    ("A", 2.0), ("B", 2.0), ("C", 2.0), ("C", 5.0), ("D", 2.0), ("D", 5.0),
)  # fmt: skip
"""Ensembles and temperatures of the full check."""


@claim("J27", AREA, EquiangularTokens, TokenClustering, figure="attention-phase-diagram", items=("J-68", "J-70"))
def phase_diagrams(check: Check) -> None:
    """For Q = K = V = I in high dimension the boundary of the phase diagram of clustering is the closed-form collapse time. Of four
    random ensembles two collapse, and two with V proportional to Q^T K stay in several groups.

    The check compares half-collapse times for Q = K = V = I, extrapolated in the dimension, with the closed form. For random matrices it
    tests that the ensembles A and B collapse and that C and D stay metastable.
    """
    from_table = []
    halves_of: dict[int, Array] = {}
    for d, table in HALF_TIMES.items():
        times = np.arange(4.0, 12.0, 0.1)
        halves = phase_diagram(32, d, list(table), times, systems=16 if check.quick else 64).half_time()
        halves_of[d] = halves
        for (beta, expected), half in zip(table.items(), halves, strict=True):
            check.show(f"half-collapse time at d = {d}, beta = {beta:g}", float(half))
            from_table.append(abs(half / expected - 1))
    check.below(
        "largest relative gap of half-collapse times from an independent table",
        largest(from_table),
        0.06 if check.quick else 0.03,
    )
    limits = (1024 * halves_of[1024] - 128 * halves_of[128]) / (1024 - 128)  # the gap falls like 1/d
    exact = collapse_time(1e-3, 32, np.array(list(HALF_TIMES[128])))
    check.below(
        "largest relative gap of half-collapse times, extrapolated in 1/d, from the closed form",
        float(np.abs(limits / exact - 1).max()),
        0.01,
    )
    check.show("largest beta that has collapsed at t = 30", float(critical_beta(30.0, 32)))
    draws = 2 if check.quick else 50
    cases = (("A", 2.0), ("B", 2.0), ("C", 2.0), ("D", 2.0)) if check.quick else ENSEMBLE_CASES
    shares: dict[str, list[float]] = {"AB": [], "CD": []}
    for name, beta in cases:
        close, either = ensemble_share(name, beta, draws, 0.2 if check.quick else 0.1)
        check.show(f"share of close pairs, ensemble {name}, beta = {beta:g}", close)
        if name in "CD":
            check.show(f"share of close or antipodal pairs, ensemble {name}, beta = {beta:g}", either)
        shares["CD" if name in "CD" else "AB"].append(close)
    check.above(
        f"least mean share of close pairs in ensembles A, B at t = 15, {draws} systems", smallest(shares["AB"]), 0.95
    )
    check.below(
        f"largest mean share of close pairs in ensembles C, D at t = 30, {draws} systems", largest(shares["CD"]), 0.6
    )
    check.note(
        "The ensembles have d = 128. In ensemble B, V = G G^T / d, because a symmetric Gaussian matrix is practically never positive "
        "semidefinite at this size."
    )


def ensemble_share(name: Ensemble, beta: float, draws: int, step: float) -> tuple[float, float]:
    """Return the mean share of close pairs, and of close or antipodal pairs, over systems with random matrices.

    The systems have d = 128 and n = 32. The time is t = 30 for the ensembles C and D, and t = 15 for A and B, which should have collapsed
    by then.
    """
    grams = []
    for draw in range(draws):
        rng = np.random.default_rng([draw, ord(name)])
        x = ensemble_paths(rng, name, 32, 128, beta, 30.0 if name in "CD" else 15.0, step=step)
        grams.append(x @ x.T)
    return float(np.mean(pair_fraction(grams))), float(np.mean(pair_fraction(grams, antipodal=True)))


# -- mean field tokens --------------------------------------------------------------------------------------------


@claim("J28", AREA, CircleMeanField, figure="instability-spectrum", items=("J-65", "J-69"))
def mean_field(check: Check) -> None:
    """With many tokens the density on the circle solves a continuity equation. The uniform density is unstable, and the tokens form about
    k clusters, where k is the degree of the harmonic with the largest growth rate sigma_k.

    The check compares the equation with particles. It compares two solvers with each other, with linear growth rates and with a closed
    form. It also counts the clusters that independent uniform tokens begin to form, as maxima of their smoothed density shortly before
    the end of the linear stage. The mean number is compared with argmax sigma_k and with the mean number of maxima of a Gaussian field
    whose harmonics have grown at the rates sigma_k.
    """
    check.agree(
        "the density for stratified tokens, moved pair by pair:",
        CircleMeanField,
        seeds=40 if check.quick else 160,
        together=True,
    )
    law = CircleMeanField(beta=4.0, density=((0.5, 0.0), (0.0, 0.3)), times=(1.0, 2.0, 3.0), stratified=False)
    rate, error = fluctuation_rate(law, (50, 200, 800) if check.quick else (100, 400, 1600), 100 if check.quick else 400)
    check.near("exponent in n of the fluctuations of independent tokens", rate, -0.5, 0.1)
    check.below("standard error of the exponent of the fluctuations", error, 0.03)
    grown = [abs(particle_growth(k) / float(growth_rates(k, 4.0)) - 1) for k in (1, 2, 3)]
    check.below(
        "largest relative gap of the growth of three small harmonics of 400 tokens, pair by pair", largest(grown), 0.02
    )
    check.below("gap to the closed form of the wrapped Cauchy law at beta = 0", wrapped_cauchy_gap(), 1e-10)
    growth = [abs(measured_growth(k) / float(growth_rates(k, 4.0)) - 1) for k in (1, 2, 3)]
    check.below("largest relative gap of the growth rates of three small harmonics", largest(growth), 1e-5)
    tokens, seeds = (1000, 20) if check.quick else (2000, 40)
    apart, off = [], []
    for beta in (5.0, 9.0, 25.0) if check.quick else (5.0, 9.0, 16.0, 25.0, 50.0):
        counts = [number_of_maxima(beta, tokens, seed) for seed in range(seeds)]
        mean, error = float(np.mean(counts)), standard_error(counts)
        apart.append(mean - most_unstable(beta))
        off.append(abs(mean - expected_maxima(beta, tokens)) - 4 * error)
        check.show(f"mean number of maxima at beta = {beta:g}", mean)
        check.show(f"standard error of this number at beta = {beta:g}", error)
        check.show(f"expected number of maxima at beta = {beta:g}", expected_maxima(beta, tokens))
    check.near("number of maxima of the density minus argmax sigma_k, mean over beta", float(np.mean(apart)), 0, 0.5)
    check.below(
        "largest distance of the number of maxima from the linear theory, beyond 4 standard errors", largest(off), 0.1
    )
    if not check.quick:
        check.below("largest gap between finite volumes and the Fourier solution", solver_gap(law), 1e-5)


def solver_gap(law: CircleMeanField) -> float:
    """Return the largest difference between the moments of the Fourier solution and of finite volumes."""
    fourier, volumes = (law.replace(solver=solver).theory() for solver in ("fourier", "volumes"))
    return largest(float(np.abs(fourier[name] - volumes[name]).max()) for name in law.observables)


def fluctuation_rate(law: CircleMeanField, sizes: tuple[int, ...], draws: int) -> Slope:
    """Return the exponent of the root-mean-square gap of the moments in the number of tokens, with its standard error."""
    theory, times = law.theory(), np.atleast_1d(law.times)
    limit = np.concatenate([theory[name].values for name in law.observables])
    spreads, errors = [], []
    for size in sizes:
        squares = []
        for seed in range(draws):
            start = density_quantiles(law.density, np.random.default_rng([seed, size]).random(size))
            moments = angle_moments(circle_flow(start, law.beta, times, step=0.1))
            simulated = np.concatenate([moments[name] for name in law.observables])
            squares.append(float(np.mean((simulated - limit) ** 2)))
        spreads.append(0.5 * np.log(np.mean(squares)))
        errors.append(0.5 * np.std(squares, ddof=1) / np.mean(squares) / np.sqrt(draws))
    x = np.log(sizes) - np.mean(np.log(sizes))
    # unweighted, because with few draws a small gap and its small estimated error occur together
    return Slope(slope(x, spreads).value, float(np.sqrt((x**2) @ np.asarray(errors) ** 2) / (x @ x)))


def particle_growth(k: int, beta: float = 4.0, size: float = 1e-3, tokens: int = 400) -> float:
    """Return the growth rate of a small harmonic of evenly placed tokens, from the attention of all pairs."""
    density = tuple((size if degree == k else 0.0, 0.0) for degree in range(1, k + 1))
    theta = density_quantiles(density, (np.arange(tokens) + 0.5) / tokens)
    paths = token_paths(np.stack([np.cos(theta), np.sin(theta)], axis=-1), beta, [0.0, 1.0], tolerance=1e-10)
    angles = np.arctan2(paths[..., 1], paths[..., 0])
    waves = np.abs(np.exp(1j * k * angles).mean(axis=-1))
    return float(np.log(waves[1] / waves[0]))


def wrapped_cauchy_gap(start: float = 0.3, time: float = 1.5) -> float:
    """Return the gap between the density at beta = 0 from a wrapped Cauchy start and the closed form of its order parameter."""
    harmonics = tuple((2 * start**k, 0.0) for k in range(1, 40))
    law = CircleMeanField(beta=0.0, density=harmonics, times=time)
    return abs(float(law.theory().cos1) - float(poisson_radius(start, time)))


def measured_growth(k: int, beta: float = 4.0, size: float = 1e-6) -> float:
    """Return the growth rate of a small harmonic under the full equation."""
    density = tuple((size if degree == k else 0.0, 0.0) for degree in range(1, k + 1))
    rho, _ = spectral_density(density, beta, [0.0, 1.0])
    waves = np.abs(np.fft.rfft(rho, axis=-1)[:, k])
    return float(np.log(waves[1] / waves[0]))


LINEAR = 0.8
"""Share of `escape_time` at which maxima are counted."""


def number_of_maxima(beta: float, tokens: int, seed: int) -> int:
    """Return the number of maxima of the attention mass of uniform tokens on the circle, shortly before the end of the linear stage."""
    start = np.random.default_rng([seed, int(beta)]).uniform(0, 2 * np.pi, tokens)
    angles = circle_flow(start, beta, LINEAR * escape_time(beta, tokens), step=0.2)
    even, _ = von_mises_coefficients(beta, harmonics(beta))
    waves = np.exp(-1j * np.outer(np.arange(even.size), angles)).mean(axis=1) * even
    mass = np.fft.irfft(waves, 16 * even.size)
    return int(np.sum((mass > np.roll(mass, 1)) & (mass >= np.roll(mass, -1))))


def expected_maxima(beta: float, tokens: int) -> float:
    """Return the mean number of maxima of a periodic Gaussian field with the variances e^(2 sigma_k t) of the grown harmonics.

    The field is the attention mass, and the number is the root of the ratio of sum k^4 S_k to sum k^2 S_k (Rice's formula).
    """
    even, _ = von_mises_coefficients(beta, harmonics(beta))
    k = np.arange(1, even.size)
    variance = even[1:] ** 2 * np.exp(2 * growth_rates(k, beta) * LINEAR * escape_time(beta, tokens))
    return math.sqrt(float(k**4 @ variance) / float(k**2 @ variance))


def seen_clusters(beta: float, tokens: int, seed: int) -> int:
    """Return the number of clusters of uniform tokens on the circle at t = 10."""
    start = np.random.default_rng([seed, int(beta)]).uniform(0, 2 * np.pi, tokens)
    return circle_clusters(circle_flow(start, beta, 10.0, step=0.2))


@claim("J29", AREA, ResidualFlow, figure="residual-depth", items=("J-62",))
def residual_networks(check: Check) -> None:
    """A residual network of L layers with steps T/L is Euler's method for a differential equation, with an error of order 1/L.

    The check measures the order in the number of layers without noise, and compares the means over noisy weights with the equation.
    """
    depths = np.array([20, 40, 80, 160] if check.quick else [20, 40, 80, 160, 320, 640])
    errors = ResidualFlow().depth_errors(depths)
    check.near("exponent in 1/L of the error without noise", -log_slope(depths, errors).value, 1, 0.1)
    check.agree(
        "the differential equation as the mean over noisy weights",
        ResidualFlow,
        seeds=200 if check.quick else 800,
        together=True,
    )
    check.show("error of 20 layers", float(errors[0]))
    check.show("error of 160 layers", float(errors[3]))
    check.note("The step has to be T/L. A network without this factor does not tend to the differential equation.")


# -- landscapes ---------------------------------------------------------------------------------------------------

Array_landscapes = NDArray[np.float64]


@claim("J35", "Transformers", SingleCluster, figure="token-saddles", items=("J-67",))
def strict_saddles(check: Check) -> None:
    """At beta = 0 every critical point at which the tokens do not all coincide is a strict saddle, with explicit rates.

    The check compares the explicit spectra with the Jacobian of the flow, computed by differences. It also measures the escape of tokens
    that start close to a saddle.
    """
    poles = [(5, 4, 3), (6, 4, 4), (7, 6, 2), (8, 7, 5), (6, 3, 3)]
    gaps = [rate_gap(two_poles(*case), SingleCluster.saddle_rates(*case)) for case in poles]
    balanced = [balanced_tokens(np.random.default_rng(i), n, d) for i, (n, d) in enumerate(((4, 2), (6, 3), (10, 4)))]
    tops = []
    for x in balanced:
        rates = SingleCluster.saddle_rates(positions=x)
        gaps.append(rate_gap(x, rates))
        tops.append(rates[0] - (1 - 1 / x.shape[1]))
    check.below("largest gap between the closed rates and the Jacobian of the flow", largest(gaps), 1e-8)
    lowest = smallest(
        SingleCluster.saddle_rates(n, k, d)[0] for n in range(2, 9) for k in range(n // 2, n) for d in (2, 3, 6)
    )
    check.above("least positive rate at poles other than consensus", lowest, 0.99)
    check.above("largest rate at balanced tokens minus 1 - 1/d, least", smallest(tops), -1e-12)
    consensus = largest(SingleCluster.saddle_rates(n, n, d)[0] for n in (2, 5, 9) for d in (2, 4))
    check.equal("largest rate at consensus", consensus, 0.0)
    runs = 20 if check.quick else 200
    growth, ended = escape(two_poles(6, 4, 3), runs)
    check.near("rate of escape from 4 and 2 tokens at the poles", growth, 1.0, 0.01)
    check.equal(f"runs of {runs} that end in one cluster", ended, runs)


def two_poles(tokens: int, at_pole: int, dimension: int) -> Array_landscapes:
    """Return `at_pole` tokens at the first unit vector and the remaining tokens opposite to it."""
    x = np.zeros((tokens, dimension))
    x[:, 0] = np.where(np.arange(tokens) < at_pole, 1.0, -1.0)
    return x


def balanced_tokens(rng: np.random.Generator, tokens: int, dimension: int) -> Array_landscapes:
    """Return random unit vectors with mean 0, from a random start by Newton steps."""
    x = rng.standard_normal((tokens, dimension))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    for _ in range(200):
        blocks = np.eye(dimension) - x[:, :, None] * x[:, None, :]
        push = np.linalg.lstsq(blocks.mean(axis=0), -x.mean(axis=0), rcond=None)[0]
        x += (blocks @ push) * 0.8
        x /= np.linalg.norm(x, axis=1, keepdims=True)
    return x


def rate_gap(x: Array_landscapes, rates: Array_landscapes) -> float:
    """Return the largest gap between `rates` and the eigenvalues of the Jacobian of the flow in the tangent space.

    The Jacobian is computed by central differences.
    """
    n, d = x.shape
    frames = [np.linalg.svd(row[None])[2][1:] for row in x]  # d - 1 directions across every token
    basis = np.zeros((n * (d - 1), n, d))
    for i, frame in enumerate(frames):
        basis[i * (d - 1) : (i + 1) * (d - 1), i] = frame
    attention, h = Attention(0.0), 1e-5

    def velocity(y: Array_landscapes) -> Array_landscapes:
        return tangent(y, attention.drift(0.0, y))

    columns = [(velocity(_moved(x, h * e)) - velocity(_moved(x, -h * e))) / (2 * h) for e in basis]
    jacobian = np.einsum("aid,bid->ab", basis, np.array(columns))
    return float(np.max(np.abs(np.sort(np.linalg.eigvals(jacobian).real) - np.sort(rates))))


def _moved(x: Array_landscapes, by: Array_landscapes) -> Array_landscapes:
    moved = x + by
    return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))


def escape(saddle: Array_landscapes, runs: int) -> tuple[float, int]:
    """Return the growth rate of the distance from a saddle after a perturbation of 1e-6, and the number of runs that end in one cluster."""
    rng = np.random.default_rng(0)
    start = np.stack([_moved(saddle, 1e-6 * rng.standard_normal(saddle.shape)) for _ in range(runs)])
    times = np.array([5.0, 8.0, 60.0])
    paths = token_paths(start, 0.0, times, tolerance=1e-12)
    square = [float(np.mean((paths[i] - saddle) ** 2)) for i in range(2)]
    grams = paths[2] @ np.swapaxes(paths[2], -1, -2)
    return float(np.log(square[1] / square[0]) / (2 * (times[1] - times[0]))), int(
        np.sum(grams.min(axis=(-2, -1)) > 1 - 1e-6)
    )


@claim("J49", AREA, TokenClustering, items=("J-65",))
def continuity_on_spheres(check: Check) -> None:
    """On spheres of any dimension the empirical measure of the tokens solves a continuity equation whose velocity is the attention field.

    The equation is solved for measures that are symmetric around an axis, as rings whose heights move along characteristics, with the
    average of the attention field over a ring in closed form. Tokens with random places on the rings are moved pair by pair. The distance
    of the distribution of their heights from the equation falls like n^(-1/2), and their mean, extrapolated in 1/n, equals it.
    """
    from scipy.stats import wasserstein_distance

    times, sizes, draws = (0.5, 1.0), (50, 100, 200) if check.quick else (50, 100, 200, 400), 16 if check.quick else 120
    z, spans = [], []
    for d, beta in ((3, 2.0), (5, 3.0)):
        start = ring_heights(d, 400)
        limit = ring_paths(start, d, beta, times)
        gaps: list[list[float]] = []
        moments, errors = [], []
        for n in sizes:
            heights = np.array([tokens_on_rings(d, beta, n, seed, times) for seed in range(draws)])  # (draws, times, n)
            gaps.append(
                [float(np.mean([wasserstein_distance(run[k], limit[k]) for run in heights])) for k in range(len(times))]
            )
            means = np.stack([heights.mean(axis=2), (heights**2).mean(axis=2)], axis=2)
            moments.append(means.mean(axis=0))
            errors.append(means.std(axis=0, ddof=1) / math.sqrt(draws))
        target = np.stack([limit.mean(axis=1), (limit**2).mean(axis=1)], axis=1)
        extrapolated = 2 * moments[-1] - moments[-2]
        error = np.hypot(2 * errors[-1], errors[-2])
        z.append(largest(np.abs(extrapolated - target) / error))
        spans.append(float(np.max(np.abs(target - [start.mean(), (start**2).mean()]) / error)))
        for k, time in enumerate(times):
            exponent = log_slope(sizes, [row[k] for row in gaps]).value
            check.near(
                f"d = {d}, t = {time:g}: exponent in n of the distance of the heights",
                exponent,
                -0.5,
                0.2 if check.quick else 0.1,
            )
            check.show(f"d = {d}, t = {time:g}: distance at n = {sizes[-1]}", gaps[-1][k])
        check.show(f"d = {d}: mean height at t = {times[-1]:g}, equation", float(target[-1, 0]))
        check.show(f"d = {d}: mean height at t = {times[-1]:g}, tokens", float(extrapolated[-1, 0]))
    check.below("largest z of mean and mean square of the heights, d = 3 and 5, extrapolated in n", largest(z), 4.0)
    check.above("least change of these moments from the start, in standard errors", smallest(spans), 10.0)


def ring_heights(d: int, count: int) -> Array:
    """Return quantiles of the heights <x, e> = tanh((1 + g) / 2) of tokens at the start, for a standard Gaussian g."""
    from scipy.special import ndtri

    return np.tanh((1 + ndtri((np.arange(count) + 0.5) / count)) / 2)


def ring_paths(start: Array, d: int, beta: float, times: tuple[float, ...]) -> Array:
    """Return the heights of rings of equal mass at the times, by the continuity equation.

    The mean of exp(kappa <u, v>) over v on the sphere of R^(d-1) is Gamma(q + 1) (2 / kappa)^q I_q(kappa) with q = (d - 3) / 2.
    """
    from scipy.special import gamma, ive

    from limitlab.numerics.ode import states_at

    q = (d - 3) / 2

    def velocity(_: float, z: Array) -> Array:
        s = np.sqrt(1 - z**2)
        kappa = np.maximum(beta * np.outer(s, s), 1e-12)
        weight = np.exp(beta * np.outer(z, z) + kappa) * gamma(q + 1) * (2 / kappa) ** q
        value, slope = weight * ive(q, kappa), weight * ive(q + 1, kappa)  # the derivative in kappa has the order q + 1
        along, across = value @ z, slope @ s
        return np.asarray((along - z * (z * along + s * across)) / value.sum(axis=1))

    return np.asarray(states_at(velocity, start, np.array(times), tolerance=1e-7))


def tokens_on_rings(d: int, beta: float, n: int, seed: int, times: tuple[float, ...]) -> Array:
    """Return the heights (times, n) of tokens that start at independent places with the distribution of `ring_heights`."""
    rng = np.random.default_rng([49, d, n, seed])
    z, across = np.tanh((1 + rng.standard_normal(n)) / 2), rng.standard_normal((n, d - 1))
    across *= np.sqrt(1 - z**2)[:, None] / np.linalg.norm(across, axis=1, keepdims=True)
    paths = token_paths(np.column_stack([z, across]), beta, np.array(times), tolerance=1e-5)
    return np.asarray(np.asarray(paths)[..., 0])
