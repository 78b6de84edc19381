"""Figures of spectral alignment."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from limitlab.lab import compare
from limitlab.lab.judging import extrapolated
from limitlab.laws.alignment.general_mixture import GeneralMixtureAlignment
from limitlab.laws.alignment.mixture import MATRICES, MixtureAlignment
from limitlab.laws.alignment.xor import XorAlignment, announce, second_layer_path
from limitlab.plotting.along import along
from limitlab.plotting.style import COLOURS, finish, legend_of_styles, new_figure, simulation_points, theory_line

Array = NDArray[np.float64]

MATRIX_NAMES = {"hessian": "Hessian", "gradient": "gradient"}


def alignment_mixture(quick: bool = True) -> Figure:
    """Alignment of SGD with the top eigenspaces of Hessian and gradient blocks over time, for ten classes and several test ratios."""
    figure, panels = new_figure(columns=3, width=4.3)
    sizes, runs, points = ((80, 160), 4, 64) if quick else ((125, 250, 500), 8, 128)
    times, few = (*np.linspace(1.0, 21.0, 14), *np.linspace(25.0, 60.0, 7)), (5.0, 10.0, 20.0, 35.0, 50.0)
    law = MixtureAlignment(classes=10, snr=10.0, regularizer=0.01, step=1.0)
    span = law.replace(times=times, quasi_points=16).theory().span_alignment
    for axes in panels[:2]:
        theory_line(axes, times, span, 3, "span of the means")
    names = [f"{matrix}_alignment" for matrix in MATRICES]
    for index, ratio in enumerate((10.0, 30.0, 100.0)):
        tested = law.replace(test_ratio=ratio, quasi_points=points)
        along(panels[:2], tested, "times", names, times, index=index, label=f"$M = {ratio:g}\\,d$")
        if ratio < 50 or not quick:
            comparison = compare(tested.replace(times=few), sizes, runs, observables=names)
            for axes, name in zip(panels, names, strict=False):
                simulation_points(axes, few, *extrapolated(comparison, name), index)
    ran = ", ".join(str(size) for size in sizes)
    legend_of_styles(panels[1], None, f"SGD, extrapolated\n($d = {ran}$)")
    finish(panels[0], "time $t$", r"alignment $\rho(x^c,E_{10}(H_{cc}))$", "with Hessian blocks", ylim=(0, 1.02))
    finish(panels[1], "time $t$", r"alignment $\rho(x^c,E_{10}(G_{cc}))$", "with gradient blocks", ylim=(0, 1.02))
    needed = np.linspace(2.0, 60.0, 8 if quick else 30)
    for index, matrix in enumerate(MATRICES):
        ratios = [law.required_test_ratio(float(t), matrix) for t in needed]
        theory_line(panels[2], needed, ratios, index, f"{MATRIX_NAMES[matrix]} blocks")
    panels[2].axhline(10.0, color="grey", linestyle=":", label="$M = 10\\,d$")
    finish(panels[2], "time $t$", "test samples per dimension $M/d$", "samples needed for ten outliers", yscale="log")
    return figure


def alignment_spectra(quick: bool = True) -> Figure:
    """Eigenvalues of one Hessian and one gradient block of ten classes, with the predicted edge and outliers."""
    from limitlab.laws.alignment._softmax_sgd import draw_mixture, weights_of

    figure, panels = new_figure(columns=2, rows=2)
    size, time = (700, 20.0) if quick else (1000, 20.0)
    for row, ratio in enumerate((10.0, 30.0)):
        law = MixtureAlignment(times=(time,), test_ratio=ratio)
        draw = law.draw(size, 0)
        x = law.train(draw, np.array([time]))[0]
        samples, labels = draw_mixture(draw.rng, np.eye(10, size), np.full(10, 0.1), law.snr**-0.5, draw.count("test_ratio"))
        for column, matrix in enumerate(MATRICES):
            axes = panels[2 * row + column]
            weights = weights_of(matrix, samples, labels, x, 0)
            values = np.linalg.eigvalsh(samples.T @ (samples * weights[:, None]) / len(samples))
            predicted = law.blocks(law.state(time), matrix)[0]
            axes.hist(values, bins=80, color=COLOURS[5], alpha=0.6, label=f"one run, $d = {size}$")
            axes.axvline(predicted.edge, color=COLOURS[6], linestyle="--", label="predicted edge")
            for number, value in enumerate(sorted(set(np.round(predicted.outliers, 7)))):
                axes.axvline(value, color=COLOURS[1], linewidth=1.2, label=None if number else "predicted outliers")
            symbol = "H" if matrix == "hessian" else "G"
            count = f"{len(predicted.outliers)} outlier{'s' if len(predicted.outliers) > 1 else ''}"
            finish(
                axes,
                "eigenvalue $x$",
                "number of eigenvalues",
                f"${symbol}_{{cc}}$, $t = 20$, $M = {ratio:g}\\,d$: {count}",
                ylim=(0.6, 3e2),
                yscale="log",
                legend=False,
            )
            if matrix == "gradient":
                axes.legend(loc="upper center", bbox_to_anchor=(0.66, 1.0), fontsize=11, frameon=False)
    return figure


def alignment_xor(quick: bool = True) -> Figure:
    """Second-layer outliers over time for starts that lead to 1 to 4 clusters of XOR, and first-layer outliers against the penalty."""
    figure, panels = new_figure(columns=3, rows=2, width=4.3, height=3.9)
    size, width, snr = (200, 8, 1e3) if quick else (1000, 20, 1e4)
    for captured, axes in zip((1, 2, 3, 4), panels, strict=False):
        _second_layer_run(axes, captured, size, width, snr)
        title = f"{captured} captured cluster{'s' if captured > 1 else ''}, $N = {size}$"
        finish(axes, "time $t$", "eigenvalues of $H_{vv}$", title, legend=False, ylim=(-0.004, 0.1))
    panels[3].legend(ncols=2, loc="upper left", fontsize=11, frameon=False)
    names = {"second_layer_hessian": "$H_{vv}$", "second_layer_gradient": "$G_{vv}$"}
    clusters = (1, 2, 3, 4)
    along(panels[4], XorAlignment(), "captured", names, clusters, clusters, size=100, seeds=6 if quick else 40)
    title = "second layer at the end, $N = 100$"
    finish(panels[4], "clusters captured", "mean outlier", title, ylim=(0, 0.07), xticks=clusters)
    penalties, tried = np.linspace(0.005, 0.12, 60), (0.02, 0.05, 0.08, 0.11)
    for index, captured in enumerate((4, 3, 2, 1)):
        law, label = XorAlignment(captured=captured), f"{captured} cluster{'s' if captured > 1 else ''}"
        draws = (
            (12 if captured == 2 else 4) if quick else 40
        )  # two clusters may or may not share a label, and a draw shows one of the two values
        along(
            panels[5], law, "regularizer", "first_layer_gradient", penalties, tried,
            size=100, seeds=draws, index=index, label=label,
        )  # fmt: skip
    label = r"mean outlier of $G_{W_iW_i}/v_i^2$"
    finish(panels[5], r"penalty $\alpha$", label, "first layer at the end, $N = 100$")
    return figure


def _second_layer_run(axes: Axes, captured: int, size: int, width: int, snr: float) -> None:
    """Draw the five largest second-layer eigenvalues of one run, and eq. (16) for each cluster that a neuron serves."""
    from limitlab.laws.alignment._softmax_sgd import draw_xor, sample_weights, second_layer_block, weights_in_space
    from limitlab.models.xor_chain import random_start, xor_path

    penalty, times, fine = 0.05, np.linspace(0.0, 90.0, 10), np.linspace(0.0, 90.0, 181)
    rng = np.random.default_rng(captured)
    v, a, b, gram = random_start(rng, width, size)
    v, a, b, classes = announce(rng, v, a, b, captured, size)
    squares = np.bincount(classes, weights=v**2, minlength=4)
    samples, labels = draw_xor(rng, width + 2, snr**-0.5, 100 * size)
    rows = []
    for wait in np.diff(times, prepend=0.0):
        xor_path(rng, v, a, b, gram, snr**-0.5, penalty, 1 / size, size, np.array([round(wait * size)]))
        h, hessian, _ = sample_weights(samples, labels, v, weights_in_space(a, b, gram, width + 2))
        rows.append(second_layer_block(h, hessian).values[:5])
    paths = [second_layer_path(penalty, float(square), fine) for square in squares[squares > 0]]
    ordered = np.sort(paths, axis=0)[::-1]
    for index, eigenvalues in enumerate(np.array(rows).T):
        if index < captured:
            theory_line(axes, fine, ordered[index], index, "limit, eq. (16)" if index == 0 else None)
        simulation_points(axes, times, eigenvalues, None, index, f"eigenvalue {index + 1}")
    axes.axhline(0.0, color="grey", linewidth=0.8)


def alignment_layers(quick: bool = True) -> Figure:
    """Alignment of both layers of an XOR network with their outliers, and components of the eigenvectors of a mixture's block."""
    from limitlab.laws.alignment._softmax_sgd import (
        alignment,
        block_eigenpairs,
        draw_mixture,
        draw_xor,
        first_layer_block,
        sample_weights,
        second_layer_block,
        weights_in_space,
        weights_of,
    )
    from limitlab.models.xor_chain import random_start, xor_path

    figure, (left, middle, right) = new_figure(columns=3, width=4.8)
    size, width, times = (300, 8, np.linspace(5.0, 100.0, 24)) if quick else (1000, 20, np.linspace(5.0, 150.0, 30))
    rng = np.random.default_rng(4)
    v, a, b, gram = random_start(rng, width, size)
    first_size = np.abs(v)
    samples, labels = draw_xor(rng, size, 10**-0.5, 20 * size)
    second, first = np.empty((2, times.size)), np.empty((2, times.size, width))
    for row, wait in enumerate(np.diff(times, prepend=0.0)):
        xor_path(rng, v, a, b, gram, 10**-0.5, 0.05, 1 / size, size, np.array([round(wait * size)]))
        w = weights_in_space(a, b, gram, size)
        h, *both = sample_weights(samples, labels, v, w)
        for matrix, weights in enumerate(both):
            second[matrix, row] = alignment(v, second_layer_block(h, weights), 4)
            first[matrix, row] = [alignment(w[i], first_layer_block(samples, h, weights, i), 2) for i in range(width)]
    for matrix, (axes, name) in enumerate(((left, "Hessian"), (middle, "gradient matrix"))):
        for i, track in enumerate(first[matrix].T):
            axes.plot(times, track, color=COLOURS[4 if first_size[i] < 0.3 else 5], linewidth=1, label=None)
        axes.plot([], [], color=COLOURS[5], label=r"first layer $\rho(W_i,E_2)$")
        axes.plot([], [], color=COLOURS[4], label=r"the same, $|v_i(0)| < 0.3$")
        axes.plot(times, second[matrix], "o-", color=COLOURS[0], markersize=4, label=r"second layer $\rho(v,E_4)$")
        title = f"{name}, $N = {size}$, $K = {width}$, $\\lambda = 10$"
        finish(axes, "time $t$", r"alignment $\rho$", title, ylim=(0, 1.03), legend=False)
    left.legend(loc="center right", bbox_to_anchor=(1.0, 0.52), fontsize=10, frameon=True, framealpha=0.9)
    law = MixtureAlignment(times=(20.0,))
    draw = law.draw(size, 1)
    x = law.train(draw, np.array([20.0]))[0]
    points, classes = draw_mixture(draw.rng, np.eye(10, size), np.full(10, 0.1), law.snr**-0.5, 50 * size, single=True)
    vectors = block_eigenpairs(points, weights_of("hessian", points, classes, x, 0), 14).vectors
    image = right.imshow(np.abs(vectors[:30].T), aspect="auto", cmap="viridis", vmin=0, vmax=1)
    right.grid(False)
    figure.colorbar(image, ax=right).set_label("size of the component", fontsize=12)
    finish(
        right,
        "coordinate (the first ten: the means)",
        "eigenvector, by eigenvalue",
        "$H_{00}$ of ten classes, $t = 20$, $M = 50\\,d$",
        legend=False,
    )
    return figure


def alignment_entries(quick: bool = True) -> Figure:
    """Entries of the weights of one class, and of the ten top eigenvectors of its blocks of Hessian and gradient matrix."""
    from limitlab.laws.alignment._softmax_sgd import block_eigenpairs, draw_mixture, weights_of

    figure, (left, middle, right) = new_figure(columns=3, width=4.8)
    size = 500  # as in the source: the means are e_(50 i), and the weights are those after 50 d steps
    law = MixtureAlignment(times=(50.0,))
    draw = law.draw(size, 1)
    x = law.train(draw, np.array([50.0]))[0]
    order = np.empty(size, dtype=int)  # coordinate 50 i has the place of the i-th mean
    means = 50 * np.arange(1, 11) - 1
    order[means], order[np.setdiff1d(np.arange(size), means)] = np.arange(10), np.arange(10, size)
    left.vlines(np.arange(1, size + 1), 0, x[0][order], color=COLOURS[0], linewidth=1)
    left.axhline(0.0, color="grey", linewidth=0.8)
    finish(left, "coordinate", "entry of $x^1$", "weights of the first class", legend=False)
    count = (200 if quick else 400) * size
    points, classes = draw_mixture(draw.rng, np.eye(10, size), np.full(10, 0.1), law.snr**-0.5, count, single=True)
    for axes, matrix, name in ((middle, MATRICES[0], "H"), (right, MATRICES[1], "G")):
        vectors = block_eigenpairs(points, weights_of(matrix, points, classes, x, 0), 10).vectors[order].T
        for index, vector in enumerate(vectors):
            axes.vlines(
                np.arange(1, size + 1), index + 1, index + 1 - 0.9 * np.abs(vector), color=COLOURS[index % 6], linewidth=1
            )
        title = f"${name}_{{11}}$, $M = {count // size}\\,d$"
        finish(axes, "coordinate", "eigenvector (height: size of the entry)", title, ylim=(10.5, -0.2), legend=False)
        axes.set_yticks(range(1, 11))
    return figure


def alignment_clusters(quick: bool = True) -> Figure:
    """Eigenvalues of the second-layer block of the gradient matrix over time, for XOR networks that discern 1 to 4 clusters."""
    figure, panels = new_figure(columns=4, width=3.7)
    size, width, test = (500, 6, 20) if quick else (1000, 6, 100)
    for captured, axes in zip((1, 2, 3, 4), panels, strict=True):
        times, eigenvalues = second_layer_gradients(captured, size, width, 10.0, test)
        for index, values in enumerate(eigenvalues.T):
            axes.plot(times, values, "o-", color=COLOURS[index] if index < captured else "grey", markersize=3, linewidth=1)
        title = f"{captured} cluster{'s' if captured > 1 else ''}, $\\lambda = 10$, $N = {size}$, $K = {width}$"
        finish(axes, "time $t$", "eigenvalues of $G_{vv}$", title, legend=False, ylim=(-0.002, 0.05))
    return figure


def second_layer_gradients(captured: int, size: int, width: int, snr: float, test: int) -> tuple[Array, Array]:
    """Return times and the eigenvalues of G_vv for a network that discerns `captured` clusters at the end.

    The signs at the start announce these clusters. At a finite signal-to-noise ratio neurons may serve other clusters, so that runs are
    repeated until the network discerns this number of clusters.
    """
    from limitlab.laws.alignment._softmax_sgd import draw_xor, sample_weights, second_layer_block, weights_in_space
    from limitlab.laws.online_sgd.xor import capture_level, centre_margins
    from limitlab.models.xor_chain import random_start, xor_path

    times, spread = np.linspace(0.0, 100.0, 21), snr**-0.5
    for seed in range(200):
        rng = np.random.default_rng([8, captured, seed])
        v, a, b, gram = random_start(rng, width, size)
        v, a, b, _ = announce(rng, v, a, b, captured, size)
        states = []
        for wait in np.diff(times, prepend=0.0):
            xor_path(rng, v, a, b, gram, spread, 0.05, 1 / size, size, np.array([round(wait * size)]))
            states.append((v.copy(), weights_in_space(a, b, gram, width + 2)))
        margins = centre_margins(v, a, b)
        if np.sum(margins > capture_level(margins)) == captured:
            break
    samples, labels = draw_xor(rng, width + 2, spread, test * size)
    rows = []
    for v, w in states:
        h, _, gradient = sample_weights(samples, labels, v, w)
        rows.append(second_layer_block(h, gradient).values)
    return times, np.array(rows)


def alignment_training(quick: bool = True) -> Figure:
    """Eigenvalues of one Hessian block, and overlaps of its weights with the means, over the course of training on ten classes."""
    from limitlab.laws.alignment._softmax_sgd import block_eigenpairs, draw_mixture, weights_of

    figure, (left, right) = new_figure(columns=2)
    size, ratio = (500, 30) if quick else (1000, 30)
    times, fine = np.array([0.5, 2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0]), tuple(np.linspace(0.5, 50.0, 23))
    law = MixtureAlignment(classes=10, snr=10.0, regularizer=0.01, test_ratio=ratio, quasi_points=128)
    draw = law.draw(size, 3)
    runs = law.train(draw, times)
    means, shares = np.eye(10, size), np.full(10, 0.1)
    samples, labels = draw_mixture(draw.rng, means, shares, law.snr**-0.5, ratio * size, single=True)
    values = np.array([block_eigenpairs(samples, weights_of("hessian", samples, labels, x, 0), 12).values for x in runs])
    for index in range(12):
        colour = 0 if index == 0 else (5 if index < 10 else 6)
        name = {0: "largest eigenvalue", 1: "eigenvalues 2 to 10", 10: "eigenvalues 11 and 12"}.get(index)
        simulation_points(left, times, values[:, index], None, colour, name)
    predicted = [law.blocks(law.state(t), "hessian")[0] for t in fine]
    theory_line(left, fine, [block.top for block in predicted], 0, "limit: outlier along the own mean")
    others = [block.outliers[1] if len(block.outliers) > 1 else np.nan for block in predicted]
    theory_line(left, fine, others, 5, "limit: outliers along other means")
    theory_line(left, fine, [block.edge for block in predicted], 6, "limit: edge of the bulk", linestyle="--")
    finish(left, "time $t$", "eigenvalues of $H_{11}$", f"$d = {size}$, $M = {ratio}\\,d$, $\\lambda = 10$", ylim=(0, 0.05))
    left.legend(fontsize=10, frameon=False, ncols=2, loc="upper center")
    theory = law.replace(times=fine, quasi_points=16).theory()
    theory_line(right, fine, theory.overlap_own, 0, r"limit, $a = 1$")
    theory_line(right, fine, theory.overlap_other, 5, r"limit, $a \neq 1$")
    for mean in range(10):
        names = {0: r"run, $a = 1$", 1: r"run, $a = 2, \dots, 10$"}
        simulation_points(right, times, runs[:, 0, mean], None, 0 if mean == 0 else 5, names.get(mean))
    finish(right, "time $t$", r"overlap $\langle x^1, \mu_a\rangle$", "weights of class 1")
    return figure


def alignment_lambda(quick: bool = True) -> Figure:
    """Shares of weights and blocks outside the span of three unequal means, against lambda, for the limit and runs of SGD."""
    figure, (left, right) = new_figure(columns=2)
    law = GeneralMixtureAlignment(regularizer=0.05, times=20.0, quasi_points=256)
    noises, few = np.geomspace(5, 640, 8 if quick else 20), (10.0, 40.0, 160.0)
    size, seeds = (120, 6) if quick else (240, 20)
    for index, (name, label) in enumerate((("hessian_outside", "Hessian"), ("gradient_outside", "gradient matrix"))):
        along(left, law, "snr", name, noises, few, size=size, seeds=seeds, index=index, label=label)
    left.plot(noises, 1.6 / noises, color="grey", linestyle=":", label=r"slope of $1/\lambda$")
    title = f"all blocks $b, c$; $t = 20$, SGD at $d = {size}$"
    finish(left, r"$\lambda$", r"largest $|A - PA|\,/\,|A|$", title, xscale="log", yscale="log")
    names = {
        "span_alignment": "span of the means",
        "hessian_alignment": "top 3 eigenvectors of $H_{cc}$",
        "gradient_alignment": "top 3 eigenvectors of $G_{cc}$",
    }
    for index, (name, label) in enumerate(names.items()):
        along(right, law, "snr", name, noises, few, size=size, seeds=seeds, index=index, label=label)
    finish(right, r"$\lambda$", r"smallest alignment $\rho(x^c, \cdot)$", "weights, $t = 20$", xscale="log", ylim=(0, 1.03))
    return figure


FIGURES: dict[str, Callable[[bool], Figure]] = {
    "alignment-mixture": alignment_mixture,
    "alignment-spectra": alignment_spectra,
    "alignment-xor": alignment_xor,
    "alignment-layers": alignment_layers,
    "alignment-lambda": alignment_lambda,
    "alignment-training": alignment_training,
    "alignment-entries": alignment_entries,
    "alignment-clusters": alignment_clusters,
}

ITEMS = {
    "alignment-mixture": ("J-48", "J-52"),
    "alignment-spectra": ("J-49",),
    "alignment-clusters": ("J-57",),
    "alignment-xor": ("J-57",),
    "alignment-entries": ("J-53",),
    "alignment-layers": ("J-55",),
    "alignment-lambda": ("J-49",),
    "alignment-training": ("J-56",),
}
"""Items of the lecture notes that the figures cover."""
