"""Claims about the alignment of networks with the spectra of their Hessians and gradients (J22, J23, J38, J39)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.check import Check, Number, largest, log_slope, smallest
from limitlab.lab.claims import claim
from limitlab.laws.alignment.general_mixture import GeneralMixtureAlignment, lives_in, pair_weights
from limitlab.laws.alignment.mixture import MATRICES, MixtureAlignment
from limitlab.laws.alignment.mixture_flow import softmax
from limitlab.laws.alignment.xor import OUTSIDE, XorAlignment, announce
from limitlab.laws.online_sgd.xor import XorMixture
from limitlab.numerics.lanczos import Eigenpairs

Array = NDArray[np.float64]

AREA = "Online SGD"


class Runs(NamedTuple):
    """Largest gaps between runs of SGD and the theory, over all times.

    `gap` belongs to the alignments and `top`, a relative gap, to the top eigenvalues; both are gaps of the mean over runs. `worst_gap` and
    `worst_top` are the same gaps of the worst run. `numbers` holds the values at the last time.
    """

    gap: float
    top: float
    worst_gap: float
    worst_top: float
    numbers: dict[str, Number]


def runs_against_theory(law: MixtureAlignment, size: int, seeds: range, blocks: int) -> Runs:
    """Return the gaps of alignments and top eigenvalues, averaged over the first blocks of every run and then over runs."""
    times = np.atleast_1d(np.asarray(law.times, dtype=float))
    theory, measured = law.theory(), np.array([one_run(law, size, seed, blocks, times) for seed in seeds])
    expected = np.array(
        [[theory[f"{name}_alignment"], theory[f"top_{name}_eigenvalue"]] for name in MATRICES]
    )  # (2, 2, times)
    gaps = (measured - expected) / np.stack([np.ones_like(expected[:, 0]), expected[:, 1]], axis=1)
    errors = gaps.std(axis=0, ddof=1) / len(gaps) ** 0.5
    numbers: dict[str, Number] = {}
    for index, name in enumerate(MATRICES):
        last = f"{name} alignment at t = {times[-1]:g}, M = {law.test_ratio:g} d"
        numbers |= {last: float(measured[:, index, 0, -1].mean()), f"{last} (theory)": float(expected[index, 0, -1])}
    numbers[f"largest standard error of a mean alignment, M = {law.test_ratio:g} d"] = float(errors[:, 0].max())
    mean, worst = np.abs(gaps.mean(axis=0)).max(axis=(0, 2)), np.abs(gaps).max(axis=(0, 1, 3))
    numbers[f"largest gap of an alignment in a single run, M = {law.test_ratio:g} d"] = float(worst[0])
    numbers[f"largest relative gap of a top eigenvalue in a single run, M = {law.test_ratio:g} d"] = float(worst[1])
    return Runs(float(mean[0]), float(mean[1]), float(worst[0]), float(worst[1]), numbers)


def one_run(law: MixtureAlignment, size: int, seed: int, blocks: int, times: Array) -> Array:
    """Return the alignment and the top eigenvalue of both matrices, as means over the first blocks; the shape is (2, 2, times)."""
    from limitlab.laws.alignment._softmax_sgd import block_eigenpairs, draw_mixture, weights_of

    k, draw = law.classes, law.draw(size, seed)
    runs = law.train(draw, times)
    shares, spread = np.full(k, 1 / k), law.snr**-0.5
    samples, labels = draw_mixture(draw.rng, np.eye(k, size), shares, spread, draw.count("test_ratio"), single=True)
    averages = np.empty((2, 2, len(times)))
    for index, name in enumerate(MATRICES):
        for t, x in enumerate(runs):
            pairs = [block_eigenpairs(samples, weights_of(name, samples, labels, x, c), k) for c in range(blocks)]
            rho = [np.linalg.norm(pair.vectors.T @ x[c]) / np.linalg.norm(x[c]) for c, pair in enumerate(pairs)]
            averages[index, :, t] = np.mean(rho), np.mean([pair.values[0] for pair in pairs])
    return averages


@claim("J22", AREA, MixtureAlignment, figure="alignment-mixture", items=("J-48", "J-49", "J-50", "J-52", "J-61"))
def mixture_alignment(check: Check) -> None:
    """In a Gaussian mixture, SGD aligns with the outlier eigenspaces of Hessian and gradient matrix if there are enough test samples.

    The check compares runs with ten classes with the prediction at two test ratios. It counts the outliers, and it tests the limit of many
    test samples and small noise.
    """
    size, times = (300, (10.0, 20.0)) if check.quick else (1000, (10.0, 20.0, 50.0))
    allowed, allowed_top = (0.05, 0.1) if check.quick else (0.02, 0.03)
    law = MixtureAlignment(classes=10, snr=10.0, regularizer=0.01, step=1.0, times=times)
    plans = ((10.0, range(1, 4), 2),) if check.quick else ((10.0, range(1, 6), 2), (100.0, range(1, 3), 1))
    batches = [runs_against_theory(law.replace(test_ratio=ratio), size, seeds, blocks) for ratio, seeds, blocks in plans]
    check.below(
        f"largest gap of an alignment, ten classes, d = {size}, mean of runs", largest([b.gap for b in batches]), allowed
    )
    check.below(
        f"largest relative gap of a top eigenvalue, d = {size}, mean of runs", largest([b.top for b in batches]), allowed_top
    )
    check.below("the same gap of an alignment in the worst run", largest([b.worst_gap for b in batches]), 2 * allowed)
    check.below(
        "the same gap of a top eigenvalue in the worst run", largest([b.worst_top for b in batches]), 2 * allowed_top
    )
    for batch in batches:
        for name, number in batch.numbers.items():
            check.show(name, number)
    few = law.replace(times=(20.0,))
    run = few.simulate(size, 2)
    outside = {name: int(run[f"{name}_outliers"][0]) for name in MATRICES}
    check.equal("gradient outliers of ten classes at M = 10 d, t = 20", outside["gradient"], 1)
    check.true("the Hessian has more outliers than the gradient there", outside["hessian"] > outside["gradient"])
    clean = MixtureAlignment(classes=4, snr=200.0, regularizer=0.05, times=(30.0,), test_ratio=30.0)
    sharp = clean.simulate(150, 0)
    end = clean.fixed_point()
    needed = {name: few.required_test_ratio(20.0, name) for name in MATRICES}
    many = MixtureAlignment(classes=3, snr=20.0, regularizer=0.05, times=(5.0,))
    enough = many.required_test_ratio(5.0, "gradient")
    outlier_counts = [int(many.replace(test_ratio=f * enough).simulate(300, 3).gradient_outliers[0]) for f in (0.25, 6.0)]
    check.equal("gradient outliers of three classes below and above the required test ratio", str(outlier_counts), "[1, 3]")
    check.above("alignment with the Hessian's outliers at small noise", float(sharp.hessian_alignment[0]), 0.97)
    check.above("alignment with the gradient's outliers at small noise", float(sharp.gradient_alignment[0]), 0.97)
    check.below("overlap with the mean of another class at small noise", float(sharp.overlap_other[0]), 0.0)
    check.below("distance of the margin from its fixed point", abs(float(sharp.overlap_own[0]) / end.overlap_own - 1), 0.1)
    noisy = [MixtureAlignment(classes=4, snr=snr, regularizer=0.05).fixed_point().span_alignment for snr in (200.0, 2000.0)]
    rates = [snr * (1 - rho) / clean.misalignment_constant() for snr, rho in zip((200.0, 2000.0), noisy, strict=True)]
    check.below("snr (1 - rho) over c beta k / 4, distance from 1 at snr = 2000", abs(rates[1] - 1), 0.05)
    point, seeds = (MixtureAlignment.check_points()[0], 40) if check.quick else (MixtureAlignment, 100)
    check.agree("theory and simulation at the check points:", point, seeds=seeds, together=True, seconds=30.0)
    check.show("test samples per dimension that show 10 Hessian outliers at t = 20", needed["hessian"])
    check.show("test samples per dimension that show 10 gradient outliers at t = 20", needed["gradient"])
    check.show("alignment with the Hessian's top 4 at snr = 200, t = 30", float(sharp.hessian_alignment[0]))
    check.note(
        "Corrected: with M = 10 d test samples the gradient matrix has one outlier, not k, and the alignment is well below 1."
    )


class RunBlocks(NamedTuple):
    """Blocks of one run on test samples.

    `outside` holds the largest share of a block outside the span of the means, for Hessian and gradient matrix. `turn` holds the largest
    distance 1 - |<u, mu_c>| of the top eigenvector u of a diagonal block from its own mean. `ratio` is the least ratio of the first and
    the second eigenvalue of a diagonal block.
    """

    outside: tuple[float, float]
    turn: float
    ratio: float


def run_blocks(means: Array, x: Array, samples: Array, labels: NDArray[np.int64]) -> RunBlocks:
    """Return the properties of all blocks of Hessian and gradient matrix at the weights x."""
    k, single = len(x), samples.astype(np.float32)
    basis = np.linalg.qr(means.T)[0].T
    pi = softmax(samples @ x.T)
    outside, turns, ratios = [], [], []
    for name in MATRICES:
        shares = []
        weights = np.concatenate([pair_weights(name, pi[labels == c], c) for c in range(k)])
        ordered = np.concatenate([single[labels == c] for c in range(k)])
        for b in range(k):
            for c in range(b, k):
                w = weights[:, b, c].astype(np.float32) / np.float32(len(labels))
                block = np.asarray((ordered * w[:, None]).T @ ordered, dtype=float)
                shares.append(lives_in(block, basis))
                if b == c:
                    values, vectors = np.linalg.eigh(block)
                    turns.append(1 - abs(float(vectors[:, -1] @ means[c])))
                    ratios.append(float(values[-1] / values[-2]))
        outside.append(largest(shares))
    return RunBlocks((outside[0], outside[1]), largest(turns), smallest(ratios))


def one_run_of_blocks(
    law: GeneralMixtureAlignment, size: int, samples: int, seed: int
) -> tuple[Array, Array, list[RunBlocks]]:
    """Return means, weights (times, k, d) and the blocks at every time of one run, the start included."""
    from limitlab.laws.alignment._softmax_sgd import draw_mixture

    draw = law.draw(size, seed)
    times = np.atleast_1d(np.asarray(law.times, dtype=float))
    means, runs = law.train(draw, times)
    points, labels = draw_mixture(draw.rng, means, np.array(law.probabilities), law.snr**-0.5, samples * size)
    return means, runs, [run_blocks(means, x, points, labels) for x in runs]


@claim(
    "J38",
    AREA,
    GeneralMixtureAlignment,
    figure="alignment-lambda",
    quick_decides=False,
    items=("J-48", "J-49", "J-50", "J-51"),
)
def alignment_of_any_mixture(check: Check) -> None:
    """For independent means and any probabilities, the weights and every block H_bc, G_bc live in the span of the means up to an error of
    order 1/lambda, the blocks already at the start. For orthonormal means the top eigenvector of a diagonal block is the mean of its
    class, and the weights have a positive overlap with this mean and negative overlaps with the others.

    The check compares the law with SGD, and measures the exponents in lambda of its errors. It computes all blocks of runs with three
    correlated means of probabilities 0.5, 0.3 and 0.2 on many test samples, at the start and at two times.
    """
    few = check.quick
    points = GeneralMixtureAlignment.check_points()
    check.agree("the law and SGD:", *(points[:1] if few else points), seeds=30 if few else 200, together=True)
    noises = (320.0, 1280.0)
    long = GeneralMixtureAlignment(regularizer=0.1, times=(0.01, 80.0), quasi_points=256)
    limits = [long.replace(snr=noise).theory() for noise in noises]
    for name in ("hessian", "gradient"):
        for index, time in enumerate(("the start", "t = 80")):
            errors = [float(limit[f"{name}_outside"][index]) for limit in limits]
            exponent = log_slope(noises, errors).value
            check.near(f"exponent in lambda of the largest error of a {name} block, law at {time}", exponent, -1.0, 0.05)
            check.show(f"lambda times this error at {time}, lambda = 1280, {name}", noises[-1] * errors[-1])
        errors = [1 - float(limit[f"{name}_alignment"][-1]) for limit in limits]
        check.near(
            f"exponent in lambda of 1 - rho of the weights with the top eigenvectors, {name}, law at t = 80",
            log_slope(noises, errors).value, -1.0, 0.05,
        )  # fmt: skip
    errors = [1 - float(limit.span_alignment[-1]) for limit in limits]
    check.near("the same exponent with the span of the means", log_slope(noises, errors).value, -1.0, 0.05)
    size, samples, strengths = (90, 60, (10.0, 40.0)) if few else (200, 100, (10.0, 40.0, 160.0))
    mixed = GeneralMixtureAlignment(regularizer=0.05, times=(1 / size, 20.0, 50.0))
    outside = np.array(
        [[part.outside for part in one_run_of_blocks(mixed.replace(snr=s), size, samples, 1)[2]] for s in strengths]
    )
    scaled = outside * np.array(strengths)[:, None, None]
    check.below(f"largest lambda times error of a block, one run at d = {size}, M = {samples} d", float(scaled.max()), 4.0)
    slopes = [log_slope(strengths, outside[:, t, m]).value for t in range(3) for m in range(2)]
    check.below("largest exponent in lambda of the errors of this run", largest(slopes), -0.8)
    check_orthonormal(check, size, samples, strengths[1:])
    check.note(
        "The alignment with the gradient matrix needs a larger lambda. At lambda = 10 and M = infinity its top eigenvectors are not all "
        "near the means, and the smallest alignment falls with time."
    )


def check_orthonormal(check: Check, size: int, samples: int, strengths: tuple[float, ...]) -> None:
    """Check the signs and the top eigenvectors of a run with three orthonormal means and equal classes."""
    eye = tuple(map(tuple, np.eye(3)))
    law = GeneralMixtureAlignment(gram=eye, probabilities=(1 / 3, 1 / 3, 1 / 3), regularizer=0.05, times=(20.0, 50.0))
    turns, ratios, own, other = [], [], [], []
    for strength in strengths:
        means, runs, parts = one_run_of_blocks(law.replace(snr=strength), size, samples, 2)
        turns += [strength * part.turn for part in parts]
        ratios += [part.ratio for part in parts]
        for x in runs:
            overlaps = x @ means.T
            own.append(float(np.diag(overlaps).min()))
            other.append(float(overlaps[~np.eye(3, dtype=bool)].max()))
    check.below(
        "orthonormal means: lambda times the largest distance of a top eigenvector from its mean", largest(turns), 2.0
    )
    check.above("orthonormal means: least ratio of the first to the second eigenvalue of a block", smallest(ratios), 1.2)
    check.above("orthonormal means: least overlap of a weight vector with its own mean", smallest(own), 0.4)
    check.below("orthonormal means: largest overlap with another mean", largest(other), -0.15)


def second_layer_values(
    rng: np.random.Generator, dimension: int, width: int, snr: float, time: float, captured: int | None, samples: int
) -> tuple[Array, float]:
    """Return the eigenvalues of the second layer's Hessian block after training and the layer's alignment with the first four.

    The signs of the start select `captured` clusters (`announce`). With None the start is Gaussian.
    """
    from limitlab.laws.alignment._softmax_sgd import (
        alignment,
        draw_xor,
        sample_weights,
        second_layer_block,
        weights_in_space,
    )
    from limitlab.models.xor_chain import random_start, xor_path

    v, a, b, gram = random_start(rng, width, dimension)
    if captured is not None:
        v, a, b, _ = announce(rng, v, a, b, captured, dimension)
    counts, spread = np.array([round(time * dimension)]), snr**-0.5
    xor_path(rng, v, a, b, gram, spread, 0.05, 1 / dimension, dimension, counts)
    w = weights_in_space(a, b, gram, width + 2)  # the second layer's block depends on W Y only
    points, labels = draw_xor(rng, width + 2, spread, samples)
    h, hessian, _ = sample_weights(points, labels, v, w)
    pairs = second_layer_block(h, hessian)
    return pairs.values, alignment(v, pairs, 4)


@claim("J23", AREA, XorAlignment, XorMixture, figure="alignment-xor", quick_decides=False, items=("J-54", "J-57", "J-61"))
def xor_alignment(check: Check) -> None:
    """In the XOR mixture the weights of each layer align with the outliers of this layer's Hessian block, and the block of the second
    layer has one outlier per captured cluster.

    The check counts outliers and captured clusters at small noise and at the noise of the figures. It compares both layers with the
    prediction.
    """
    rng, counts = np.random.default_rng(23), []
    for captured in (1, 2, 3, 4):
        law = XorAlignment(width=6, captured=captured)
        counts.append(int(float(law.simulate(150, captured).second_layer_outliers)))
    check.equal("second-layer outliers of starts that announce 1, 2, 3, 4 clusters", str(counts), "[1, 2, 3, 4]")
    dimension, width = (300, 12) if check.quick else (1000, 20)
    values, aligned = second_layer_values(rng, dimension, width, 10.0, 100.0, None if not check.quick else 4, 20 * dimension)
    noisy = []
    for captured in (1, 2, 3):
        eigenvalues, _ = second_layer_values(rng, dimension, width, 1e4, 60.0, captured, 20 * dimension)
        noisy.append(int(np.sum(eigenvalues > OUTSIDE * eigenvalues[0])))
    check.equal(f"the same for 1, 2, 3 at N = {dimension}, snr = 10^4", str(noisy), "[1, 2, 3]")
    check.above(f"fourth second-layer eigenvalue over the fifth, snr = 10, N = {dimension}", values[3] / values[4], 2.0)
    check.below(f"first second-layer eigenvalue over the fourth, snr = 10, N = {dimension}", values[0] / values[3], 5.0)
    check.above("alignment of the second layer with its four outliers, snr = 10, t = 100", aligned, 0.99)
    aligned_first = [float(XorAlignment(width=6, captured=n).simulate(150, 7).first_layer_alignment) for n in (2, 4)]
    check.above("alignment of first-layer weights with their two outliers", smallest(aligned_first), 0.99)
    check.agree("blocks of both layers at the check points:", XorAlignment, seeds=40 if check.quick else 200, together=True)
    for i in range(5):
        check.show(f"second-layer eigenvalue {i + 1}", float(values[i]))
    check.note(
        "A neuron also has an outlier along the pair of clusters that it does not learn. Its value depends on which of these clusters "
        "other neurons have learned, see eq. (15)."
    )


SMALL = 0.3
"""Neurons whose second-layer weight is smaller than this at the start align late, and are listed apart."""


class LayerErrors(NamedTuple):
    """Distances of one XOR network from theorems 13.6 and 13.7 of the notes, for infinitely many dimensions orthogonal to the weights.

    Entries of first-layer arrays are neurons, and columns of two are Hessian and gradient matrix. `weights` is
    1 - rho(W_i, span(mu, nu)), `aligned` is 1 - rho(W_i, E_2), and `outside` is the share of the block outside span(mu, nu). `second`
    holds, per matrix, 1 - rho(v, E_4) and the share of the block outside the span of the hidden vectors of the four centres. `outliers`
    are means of the first four eigenvalues, and `captured` is the number of outliers of the second layer's Hessian block.
    """

    start: Array
    weights: Array
    aligned: Array
    outside: Array
    second: Array
    outliers: Array
    captured: int


def layer_errors(
    snr: float, dimension: int, width: int, time: float, seed: int, samples: int, penalty: float = 0.05
) -> LayerErrors:
    """Return the errors of a network after training from a Gaussian start, with blocks on the span of centres and weights."""
    from limitlab.laws.alignment._softmax_sgd import alignment, draw_xor, sample_weights, weights_in_space
    from limitlab.models.xor_chain import random_start, xor_path

    rng, spread = np.random.default_rng([39, seed]), snr**-0.5
    v, a, b, gram = random_start(rng, width, dimension)
    start = np.abs(v)
    xor_path(rng, v, a, b, gram, spread, penalty, 1 / dimension, dimension, np.array([round(time * dimension)]))
    w = weights_in_space(a, b, gram, width + 2)
    y, labels = draw_xor(rng, width + 2, spread, samples)
    h, *both = sample_weights(y, labels, v, w)
    hidden, centres = np.maximum(h, 0.0), np.eye(2, width + 2)
    span = np.linalg.qr(np.maximum(np.vstack([centres, -centres]) @ w.T, 0.0).T)[0].T
    aligned, outside, second, outliers, captured = [], [], [], [], 0
    for weight in both:
        block = hidden.T @ (hidden * weight[:, None]) / samples
        pairs = eigenpairs(block)
        captured = captured or int(np.sum(pairs.values > OUTSIDE * pairs.values[0]))
        second.append((1 - alignment(v, pairs, 4), lives_in(block, span)))
        outliers.append(pairs.values[:4].mean())
        for i in range(width):
            active = weight * (h[:, i] > 0)
            block = y.T @ (y * active[:, None]) / samples
            pairs = eigenpairs(block)
            aligned.append(1 - alignment(w[i], pairs, 2))
            outside.append(max(lives_in(block, centres), float(active.mean()) / snr / float(pairs.values[0])))
    first, rest = (np.reshape(part, (2, width)).T for part in (aligned, outside))
    inside = np.sqrt((a**2 + b**2) / (a**2 + b**2 + np.diag(gram)))
    return LayerErrors(start, 1 - inside, first, rest, np.array(second), np.array(outliers), captured)


def eigenpairs(block: Array) -> Eigenpairs:
    """Return all eigenpairs of a symmetric matrix, largest eigenvalue first."""
    values, vectors = np.linalg.eigh(block)
    return Eigenpairs(values[::-1], vectors[:, ::-1])


@claim("J39", AREA, XorAlignment, XorMixture, figure="alignment-layers", quick_decides=False, items=("J-54", "J-61"))
def xor_layers(check: Check) -> None:
    """At fixed lambda the weights and the Hessian and gradient blocks of each layer of an XOR network live in the spans of the theorem.
    The errors of the first layer are of order 1/lambda. Those of the second layer are at most of order lambda^(-1/2), the order by which
    its outliers differ from their limits at lambda = infinity.

    The check trains networks from Gaussian starts at several lambda with the exact chain. It measures the exponents of the errors of both
    layers, and extrapolates the outliers to lambda = infinity. A run with full test samples at lambda = 10 has the setting of the notes.
    """
    few = check.quick
    width, dimension, time, samples = (12, 200, 150.0, 20_000) if few else (12, 300, 150.0, 60_000)
    noises, seeds = (80.0, 320.0, 1280.0), range(2 if few else 4)
    runs = [[layer_errors(noise, dimension, width, time, seed, samples) for seed in seeds] for noise in noises]
    large = [[run.start > SMALL for run in row] for row in runs]
    names = ("W and span(mu, nu)",), ("W and E_2(H)", "W and E_2(G)"), ("H and span(mu, nu)", "G and span(mu, nu)")
    for label, part in zip(names, ("weights", "aligned", "outside"), strict=True):
        tables = [
            np.concatenate([np.atleast_2d(getattr(run, part).T)[:, keep] for run, keep in zip(*pair, strict=True)], axis=1)
            for pair in zip(runs, large, strict=True)
        ]
        for index, name in enumerate(label):
            typical = [float(np.median(table[index])) for table in tables]
            exponent = log_slope(noises, typical).value
            # with 20,000 samples the sampling error of the blocks changes this exponent by up to 0.12
            check.near(f"exponent in lambda of the first layer's error, {name}", exponent, -1.0, 0.15 if few else 0.1)
            check.show(f"median of this error at lambda = {noises[0]:g}, {name}", typical[0])
    for index, name in enumerate(("H", "G")):
        second = np.array([[run.second[index] for run in row] for row in runs])
        check.below(f"largest 1 - rho(v, E_4({name})) over lambda and runs", float(second[..., 0].max()), 2e-3)
        worst = float((second[..., 1] * np.sqrt(noises)[:, None]).max())
        check.below(f"largest sqrt(lambda) times the share of {name}_vv outside its span", worst, 0.05)
    means = np.array([np.mean([run.outliers for run in row if run.captured == 4], axis=0) for row in runs])
    check.show("networks that captured four clusters", sum(run.captured == 4 for row in runs for run in row))
    limit = XorAlignment(captured=4).theory()
    for index, name in enumerate(("hessian", "gradient")):
        target = float(limit[f"second_layer_{name}"])
        exponent = log_slope(noises, means[:, index] - target).value
        check.near(f"exponent in lambda of the distance of the mean {name} outlier from (14)", exponent, -0.5, 0.1)
        table = np.stack([np.ones(3), np.power(noises, -0.5), np.power(noises, -1.0)], axis=1)
        fit = np.linalg.solve(table, means[:, index])
        check.near_relative(f"mean {name} outlier of the second layer, extrapolated, over (14)", fit[0] / target, 1.0, 0.03)
    check_notes_setting(check)
    check.note(
        "The theorem bounds all errors by lambda^(-1/2). Alignments and blocks of the first layer are better, of order 1/lambda. "
        "Neurons with a small second-layer weight at the start align later."
    )


def check_notes_setting(check: Check) -> None:
    """Measure the alignment of both layers with both matrices in the setting of figure 1.6 of the notes, on M = 20 d test samples."""
    from limitlab.laws.alignment._softmax_sgd import (
        alignment,
        draw_xor,
        first_layer_block,
        sample_weights,
        second_layer_block,
        weights_in_space,
    )
    from limitlab.models.xor_chain import random_start, xor_path

    size, width, count = (150, 8, 4) if check.quick else (1000, 20, 8)
    rng, spread = np.random.default_rng(139), 10**-0.5
    v, a, b, gram = random_start(rng, width, size)
    neurons = np.flatnonzero(np.abs(v) > SMALL)[:count]
    xor_path(rng, v, a, b, gram, spread, 0.05, 1 / size, size, np.array([100 * size]))
    w = weights_in_space(a, b, gram, size)
    samples, labels = draw_xor(rng, size, spread, 20 * size)
    h, *both = sample_weights(samples, labels, v, w)
    single = samples.astype(np.float32)
    for name, weight, bound in zip(("Hessian", "gradient matrix"), both, (0.95, 0.94), strict=True):
        first = [alignment(w[i], first_layer_block(single, h, weight, i), 2) for i in neurons]
        where = f"lambda = 10, t = 100, d = {size}, M = 20 d"
        check.above(
            f"least alignment of {len(neurons)} first-layer neurons with the {name}, {where}", smallest(first), bound
        )
        check.above(
            f"alignment of the second layer with the {name}, {where}", alignment(v, second_layer_block(h, weight), 4), 0.99
        )
        check.show(f"largest alignment of these neurons with the {name}", largest(first))
