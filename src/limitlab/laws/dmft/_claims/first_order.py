"""Claims about gradient descent in the limit of many samples (D1, D13, D16, D22, D23)."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ks_2samp, kstest

from limitlab.lab.check import Check, Number, largest, log_slope, sigmas, standard_error, words
from limitlab.lab.claims import claim
from limitlab.laws.dmft._descent import descent_correlations
from limitlab.laws.dmft._losses import committee
from limitlab.laws.dmft.first_order import FirstOrderDynamics
from limitlab.laws.dmft.two_layer import TwoLayerDynamics
from limitlab.models.activations import Activation
from limitlab.models.designs import white
from limitlab.numerics.spectra.marchenko_pastur import quadrature

Array = NDArray[np.float64]

AREA = "Two-layer dynamics"

AREA_DMFT = "Two-layer dynamics (DMFT)"


SIZES = (100, 200, 400)


CASES: dict[str, dict[str, Any]] = {
    "square": dict(loss="square", step=0.3),
    "tanh": dict(loss="tanh", step=0.3),
    "committee": dict(loss="committee", width=2, step=1.0, start_norm=1.0, start_overlap=0.2),
}


@claim("D1", AREA, FirstOrderDynamics, figure="beyond-gaussian-model", items=("L-19", "D-5", "D-6"))
def general_process(check: Check) -> None:
    """The general dynamical mean-field process describes gradient descent on a smooth loss as n, d grow at fixed n/d.

    Compared: gradient descent at growing d for an exactly solvable loss and for nonlinear losses, and networks for which the Gaussian
    model is not exact. For the square loss the process is also compared with the recursion of the modes of the Marchenko-Pastur law, which
    contains no memory.
    """
    check.below("square loss: largest gap of norm and overlap to the recursion of modes", square_gap(), 1e-9)
    for name in ("square", "tanh") if check.quick else CASES:
        law = FirstOrderDynamics(steps=8, signal_energy=1.0, paths=20000 if check.quick else 160000, **CASES[name])
        statement = f"the process for the {name} loss (errors, norm and overlap after extrapolation in d)"
        (result,) = check.agree(statement, law, sizes=SIZES, seeds=60 if check.quick else 240)
        check.show(f"{name}: accuracy of the process", float(law.theory().attrs["accuracy"]))
        for row in result.rows:
            check.show(f"{name}: gap of the {words(row.observable)}", row.gap)
            check.show(f"{name}: gap of the {words(row.observable)} that would be noticed", row.half_width)
    if not check.quick:
        to_exact, to_gaussian, errors = beyond_the_gaussian_model()
        check.below("distance of a tanh network of two neurons from the process, in standard errors", abs(to_exact), 4)
        check.above("distance of this network from the Gaussian model, in standard errors", abs(to_gaussian), 4)
        for name, number in errors.items():
            check.show(name, number)
    check.note("The square loss is solved exactly. The nonlinear process is sampled, which causes the stated accuracy.")


def square_gap() -> float:
    """Return the largest gap of norm and overlap of the square loss to the recursion G <- G + step (1 - (ridge + x) G) of every mode x."""
    law = FirstOrderDynamics(
        loss="square",
        sample_ratio=1.5,
        noise=0.6,
        step=0.3,
        steps=12,
        signal_energy=1.3,
        start_norm=0.7,
        start_overlap=0.4,
        ridge=0.2,
    )
    x, mass = quadrature(1 / law.sample_ratio)
    along = law.start_overlap / law.signal_energy
    across = law.start_norm - along**2 * law.signal_energy  # squared norm of the start orthogonal to the truth
    gain, left = np.zeros_like(x), np.ones_like(x)  # theta = gain (X^T y / n) + left theta_0
    norms, overlaps = [], []
    for _ in range(law.steps + 1):
        mode = x * gain + along * left
        overlaps.append(law.signal_energy * float(mass @ mode))
        norms.append(
            law.signal_energy * float(mass @ mode**2)
            + across * float(mass @ left**2)
            + law.noise**2 / law.sample_ratio * float(mass @ (x * gain**2))
        )
        shrink = 1 - law.step * (law.ridge + x)
        gain, left = shrink * gain + law.step, shrink * left
    limit = law.theory()
    return largest((float(np.abs(limit.norm - norms).max()), float(np.abs(limit.overlap - overlaps).max())))


def beyond_the_gaussian_model(size: int = 400, draws: int = 60, steps: int = 40) -> tuple[float, float, dict[str, Number]]:
    """Return the distances in standard errors of a tanh network of two neurons to both theories, and its train errors at t = 8."""
    ratio, end, shared = 2.0, 8.0, dict(width=2, noise=0.5, start_overlap=0.1, activation="tanh", target_function="tanh")
    step: dict[str, Any] = dict(sample_ratio=ratio, step=ratio * end / steps, steps=steps)
    law = FirstOrderDynamics(loss="committee", signal_energy=1.0, start_norm=1.0, sphere=True, paths=12000, **step, **shared)
    gaussian = TwoLayerDynamics(sample_ratio=ratio, frozen=True, times=end, **shared)
    runs = law.simulate_batch(size, range(draws)).train_error.isel(time=-1).values
    theory = law.theory()
    exact, approximate = float(theory.train_error[-1]), float(gaussian.theory().train_error)
    error = float(np.hypot(standard_error(runs), theory.attrs["accuracy"] / 2 * exact))
    mean = float(runs.mean())
    errors: dict[str, Number] = {
        "train error of the network at t = 8": mean,
        "train error of the process": exact,
        "train error of the Gaussian model": approximate,
    }
    return (mean - exact) / error, (mean - approximate) / error, errors


ROWS: dict[str, Any] = dict(
    loss="tanh",
    sample_ratio=2.0,
    noise=0.3,
    step=0.5,
    steps=8,
    signal_energy=2.0,
    start_norm=0.6,
    start_overlap=0.3,
    entries="sign",
)


EARLY_STEP, LATE_STEP, SHARE = 3, 8, 0.1


@claim("D16", AREA, FirstOrderDynamics, items=("D-5", "D-6"))
def law_of_the_rows(check: Check) -> None:
    """Given its coefficient of the truth, a row of the parameters is a Gaussian process over the steps, whose mean and covariance follow
    from the overlaps and from C(k, s).

    Measured for tanh regression on signs, with a truth that is zero in nine of ten coordinates and otherwise of one size: the distribution
    of sqrt(d) theta_i after 8 steps, apart for both kinds of coordinates, and of its change since step 3, by the distance of Kolmogorov and
    Smirnov to the Gaussian. In a single draw this distance falls like d^-1/2. The fourth moment over all rows depends on the law of the
    coefficients, and second moments do not.
    """
    law = FirstOrderDynamics(**ROWS)
    mean, covariance = (part.squeeze() for part in law.row_law())
    size, draws = (800, 60) if check.quick else (1600, 100)
    names = ("of rows with coefficient 0", "of rows with another coefficient", "of the change of a row over five steps")
    pooled, moments = standard_rows(law, mean, covariance, size, draws)
    for name, rows in zip(names, pooled, strict=True):
        distance = float(kstest(np.concatenate(rows), "norm").statistic)
        scaled = distance * np.sqrt(sum(map(len, rows)))
        check.below(f"Kolmogorov-Smirnov distance {name}, times the root of their number", scaled, 1.95)
        check.show(f"Kolmogorov-Smirnov distance {name}", distance)
    sizes = (100, 200, 400) if check.quick else (400, 800, 1600)
    distances = []
    for d in sizes:
        change = standard_rows(law, mean, covariance, d, draws)[0][2]
        distances.append(float(np.mean([kstest(rows, "norm").statistic for rows in change])))
    check.near("exponent in d of the distance of a single draw", log_slope(sizes, distances).value, -0.5, 0.1)
    along, spread = mean[LATE_STEP] ** 2 * law.signal_energy, covariance[LATE_STEP, LATE_STEP]
    fourth = along**2 / SHARE + 6 * along * spread + 3 * spread**2
    check.below("fourth moment of the rows: distance in standard errors", sigmas(moments, fourth), 4)
    gaussian = 3 * (along + spread) ** 2
    check.above(
        "fourth moment: distance from that of Gaussian coefficients in standard errors", sigmas(moments, gaussian), 10
    )
    check.show("fourth moment of the rows", float(np.mean(moments)))
    check.show("fourth moment of the law of the rows", float(fourth))
    check.show("fourth moment for Gaussian coefficients with the same second moments", float(gaussian))
    check.note("1.95 is the quantile 0.999 of Kolmogorov's law, which holds for independent rows.")


def standard_rows(
    law: FirstOrderDynamics, mean: Array, covariance: Array, size: int, draws: int
) -> tuple[tuple[list[Array], list[Array], list[Array]], Array]:
    """Return rows that are standard Gaussian in the limit, with one array per draw, and the fourth moments of the rows.

    The rows are those with coefficient zero, those with another coefficient, and the changes of all rows between two steps.
    """
    k, s, energy = LATE_STEP, EARLY_STEP, law.signal_energy
    change = covariance[k, k] + covariance[s, s] - 2 * covariance[k, s]
    zero, other, moved, moments = [], [], [], []
    for seed in range(draws):
        draw = law.draw(size, seed)
        b = draw.rng.choice([-1.0, 0.0, 1.0], size=size, p=[SHARE / 2, 1 - SHARE, SHARE / 2])
        b *= np.sqrt(energy * size) / np.linalg.norm(b)
        truth, start = b[:, None] / np.sqrt(size), draw.rng.standard_normal((size, 1))
        along = law.start_overlap / energy
        start -= truth @ (truth.T @ start) / energy
        start *= np.sqrt(law.start_norm - along**2 * energy) / np.linalg.norm(start)
        n = draw.count("sample_ratio")
        x, e = white(draw.rng, (n, size), law.entries), draw.rng.standard_normal(n)
        theta = [np.sqrt(size) * weights[:, 0] for weights, _ in law.descent(along * truth + start, truth, x, e)]
        rows = (theta[k] - b * mean[k]) / np.sqrt(covariance[k, k])
        zero.append(rows[b == 0])
        other.append(rows[b != 0])
        moved.append((theta[k] - theta[s] - b * (mean[k] - mean[s])) / np.sqrt(change))
        moments.append(np.mean(theta[k] ** 4))
    return (zero, other, moved), np.array(moments)


@claim("D13", AREA_DMFT, FirstOrderDynamics, figure="universality", items=("D-6", "D-10"))
def universality(check: Check) -> None:
    """Inputs with independent sub-Gaussian entries have the same limit as Gaussian inputs if the target is spread over the coordinates.
    If the target depends on a single coordinate, the limits differ.

    Compared for tanh regression on signs at d = 400: norm and overlap after 20 steps with the Gaussian law, also for a sparse target,
    which has to disagree.
    """
    law = FirstOrderDynamics(
        loss="tanh",
        sample_ratio=2.0,
        noise=0.3,
        signal_energy=2.0,
        step=0.5,
        steps=20,
        paths=4000 if check.quick else 16_000,
    )
    limit, draws = law.theory().isel(time=-1), 24 if check.quick else 120
    cases = {
        "signs": law.replace(entries="sign"),
        "sparse signs": law.replace(entries="sign", target_spread=False),
        "sparse Gaussian": law.replace(target_spread=False),
    }
    for name in ("train_error", "norm", "overlap"):
        check.show(f"limit: {name}", float(limit[name]))
    gaps: dict[str, dict[str, float]] = {}
    for case, variant in cases.items():
        runs = variant.simulate_batch(400, range(draws)).isel(time=-1)
        gaps[case] = {}
        for name in ("train_error", "norm", "overlap"):
            mean, error = float(runs[name].mean()), float(runs[name].std(ddof=1)) / np.sqrt(draws)
            gaps[case][name] = max(abs(mean - float(limit[name])) - 2 * error, 0.0)
            check.show(f"{case}: {name}", mean)
    for name in ("norm", "overlap"):
        check.below(f"gap of {name} on signs, spread target, beyond 2 standard errors", gaps["signs"][name], 0.02)
    check.below(
        "gap of the train error on signs, spread target, beyond 2 standard errors", gaps["signs"]["train_error"], 0.002
    )
    check.below(
        "gap of the norm on Gaussian inputs, target on one coordinate, beyond 2 standard errors",
        gaps["sparse Gaussian"]["norm"],
        0.02,
    )
    check.above(
        "gap of the norm on signs, target on one coordinate, beyond 2 standard errors", gaps["sparse signs"]["norm"], 0.25
    )


@claim("D22", AREA, FirstOrderDynamics, items=("D-5",))
def process_of_the_residuals(check: Check) -> None:
    """A stochastic process with memory describes the residual of a sample over the steps of gradient descent.

    Compared for tanh regression: the residuals of all samples after 2 and 8 steps, and their change between these steps, with the sampled
    process, by the distance of Kolmogorov and Smirnov and by the correlation of both times. Residuals on new samples have another law.
    """
    law = FirstOrderDynamics(**{**ROWS, "paths": 40_000})
    limit = residual_paths(law)
    size, draws = (400, 20) if check.quick else (800, 100)
    runs = [residual_runs(law, size, seed) for seed in range(draws)]
    for name, column in (("after 2 steps", 0), ("after 8 steps", 1), ("change between them", 2)):
        pooled = np.concatenate([run[0][column] for run in runs])
        distance = float(ks_2samp(pooled, limit[column]).statistic)
        scaled = distance / np.sqrt(1 / pooled.size + 1 / limit[column].size)
        check.below(
            f"residuals {name}: distance from the process, times the root of the harmonic number of samples", scaled, 2.3
        )
        check.show(f"residuals {name}: Kolmogorov-Smirnov distance", distance)
    products = np.array([np.mean(run[0][0] * run[0][1]) for run in runs])
    target, spread = float(np.mean(limit[0] * limit[1])), standard_error(limit[0] * limit[1])
    check.near(
        "mean product of the residuals after 2 and 8 steps",
        float(products.mean()),
        target,
        4 * float(np.hypot(standard_error(products), spread)),
    )
    fresh = np.concatenate([run[1] for run in runs])
    other = float(ks_2samp(fresh, limit[1]).statistic) / np.sqrt(1 / fresh.size + 1 / limit[1].size)
    check.above("new samples after 8 steps: distance from the process of the training samples, scaled", other, 5.0)
    check.show("mean product of the process", target)


def residual_paths(law: FirstOrderDynamics) -> Array:
    """Return residuals tanh(r) - y of the sampled process after 2 and 8 steps, and their change, shape (3, paths)."""
    run = descent_correlations(
        law.smooth_loss(), law.sample_ratio, law.step, law.steps, signal=law.signal_energy, start_norm=law.start_norm,
        start_overlap=law.start_overlap, ridge=law.ridges()[:-1], paths=law.paths,
    )  # fmt: skip
    first, last = (np.tanh(run.predictions[k, 0]) - np.tanh(run.truth[0]) - law.noise * run.noise for k in (2, 8))
    return np.array([first, last, last - first])


def residual_runs(law: FirstOrderDynamics, size: int, seed: int) -> tuple[Array, Array]:
    """Return the same residuals of one run of gradient descent, and the residuals of as many new samples after 8 steps."""
    draw = law.draw(size, seed)
    n, frame = draw.count("sample_ratio"), np.linalg.qr(draw.rng.standard_normal((size, 2)))[0]
    truth, along = np.sqrt(law.signal_energy) * frame[:, :1], law.start_overlap / law.signal_energy
    theta = along * truth + np.sqrt(law.start_norm - along**2 * law.signal_energy) * frame[:, 1:]
    x, e = draw.rng.standard_normal((n, size)), draw.rng.standard_normal(n)
    labels, states = np.tanh(x @ truth)[:, 0] + law.noise * e, list(law.descent(theta, truth, x, e))
    first, last = (np.tanh(states[k][1][0]) - labels for k in (2, 8))
    new = draw.rng.standard_normal((n, size))
    fresh = np.tanh(new @ states[8][0])[:, 0] - np.tanh(new @ truth)[:, 0] - law.noise * draw.rng.standard_normal(n)
    return np.array([first, last, last - first]), fresh


COUPLING = np.array([[0.6, 0.3], [0.3, 0.2]])
"""Penalty of two neurons at the start, which couples them."""


@claim("D23", AREA, FirstOrderDynamics, items=("D-8",))
def coupled_penalty(check: Check) -> None:
    """The limit covers a penalty matrix that changes in time and couples the neurons.

    Compared for two tanh neurons with the penalty exp(-t) Lambda: overlaps, norms and the inner product of the neurons after every step,
    with gradient descent extrapolated in d. The matrix has different entries, so that the neurons are not exchangeable. The limit without
    the coupling must differ.
    """
    steps, sizes = 8, (50, 100, 200)
    draws = 60 if check.quick else 600
    limits = [
        coupled_limit(steps, matrix, 20_000 if check.quick else 80_000) for matrix in (COUPLING, np.diag(np.diag(COUPLING)))
    ]
    (target, error), (without, _) = limits
    runs = [np.array([coupled_run(steps, d, seed) for seed in range(draws)]) for d in sizes]
    weights = np.array([0.0, -1.0, 2.0])  # remove the term 1/d
    mean = np.tensordot(weights, [part.mean(axis=0) for part in runs], 1)
    noise = np.sqrt(
        sum((weight * part.std(axis=0, ddof=1)) ** 2 for weight, part in zip(weights, runs, strict=True)) / draws + error**2
    )
    z = np.abs(mean - target)[1:] / noise[1:]
    check.below("largest z of overlaps, norms and inner product, steps 1 to 8", float(z.max()), 4.5)
    scale = np.abs(target).max(axis=0)
    check.below(
        "largest distance relative to the largest value of the quantity",
        float((np.abs(mean - target) / scale).max()),
        0.05 if check.quick else 0.02,
    )
    check.above(
        "largest z against the limit without the coupling", float((np.abs(mean - without)[1:] / noise[1:]).max()), 10.0
    )
    for name, value, limit in zip(
        ("first overlap", "second overlap", "first norm", "second norm", "inner product"), mean[-1], target[-1], strict=True
    ):
        check.show(f"{name} at the last step, extrapolated", float(value))
        check.show(f"{name} at the last step, limit", float(limit))


NEURONS: dict[str, float] = dict(sample_ratio=3.0, noise=0.4, step=0.6, signal=1.5, norm=0.8, overlap=0.4)


def penalties(steps: int, matrix: Array) -> Array:
    """Return exp(-t) times a matrix at the times of the steps."""
    return np.asarray(np.exp(-NEURONS["step"] * np.arange(steps))[:, None, None] * matrix)


def coupled_limit(steps: int, matrix: Array, paths: int) -> tuple[Array, Array]:
    """Return both overlaps, both norms and the inner product after every step, with standard errors of the sampling."""
    rows, o = [], NEURONS
    for seed in range(4):
        run = descent_correlations(
            committee(o["noise"], 2, Activation("tanh"), Activation("tanh"), 1.0), o["sample_ratio"], o["step"], steps,
            signal=o["signal"], start_norm=o["norm"] * np.eye(2) + 0.1 * (1 - np.eye(2)), start_overlap=np.full((2, 1), o["overlap"]),
            ridge=penalties(steps, matrix), paths=paths, seed=seed,
        )  # fmt: skip
        gram = np.array([run.correlation[k, k] for k in range(steps + 1)])
        rows.append(np.column_stack([run.overlap[:, :, 0], gram[:, 0, 0], gram[:, 1, 1], gram[:, 0, 1]]))
    return np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / 2


def coupled_run(steps: int, size: int, seed: int) -> Array:
    """Return the same numbers of one run of gradient descent."""
    o, rng = NEURONS, np.random.default_rng([23, size, seed])
    n, frame = round(o["sample_ratio"] * size), np.linalg.qr(rng.standard_normal((size, 3)))[0]
    truth, along = np.sqrt(o["signal"]) * frame[:, 0], o["overlap"] / o["signal"]
    rest = o["norm"] * np.eye(2) + 0.1 * (1 - np.eye(2)) - along**2 * o["signal"]
    theta = along * truth[:, None] + frame[:, 1:] @ np.linalg.cholesky(rest).T
    x = rng.standard_normal((n, size))
    labels, rows = np.tanh(x @ truth) + o["noise"] * rng.standard_normal(n), []
    schedule = penalties(steps, COUPLING)
    for k in range(steps + 1):
        gram, overlap = theta.T @ theta, theta.T @ truth
        rows.append([*overlap, gram[0, 0], gram[1, 1], gram[0, 1]])
        if k < steps:
            s = np.tanh(x @ theta)
            gradient = x.T @ ((s.mean(axis=1) - labels)[:, None] * (1 - s**2) / 2) / n
            theta = theta - o["step"] * (theta @ schedule[k] + gradient)
    return np.array(rows)
