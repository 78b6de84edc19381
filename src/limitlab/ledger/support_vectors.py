"""A claim about separable data: few support vectors, and a residual of descent that converges (J30)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.criteria import Criterion, Number, above, at_most, below
from limitlab.lab.measures import largest, sigmas
from limitlab.laws.classification.perceptron import Perceptron
from limitlab.laws.descent.logistic import LogisticDescent
from limitlab.numerics.margin import hard_margin

Array = NDArray[np.float64]

ON_MARGIN = 1e-9


@claim(
    "J30",
    "Implicit bias, interpolation, spectra",
    "Almost every data set has at most d support vectors, and the residual w(t) - w_hat log t of descent stays bounded.",
    laws=("LogisticDescent", "Perceptron"),
    figure="residual",
)
def few_support_vectors(quick: bool) -> Outcome:
    """Samples on the margin, counted; their share; sign vectors as a counterexample; the residual in log time with its rate."""
    draws = 20 if quick else 80
    dimensions, criteria, measured = (5, 20, 60) if quick else (5, 20, 60, 120), [], dict[str, Number]()
    over, shares = 0, dict[float, Array]()
    for ratio in (0.8, 2.0):
        for p in dimensions:
            n, counts = round(p / ratio), []
            for seed in range(draws):
                vectors = np.random.default_rng([p, n, seed]).standard_normal((n, p))
                if hard_margin(vectors).separable:
                    counts.append(on_margin(vectors))
            over += int(np.sum(np.array(counts) > min(n, p)))
            shares[ratio] = np.array(counts) / n
        limit = float(Perceptron(ratio=ratio).theory().support_fraction)
        name = f"share of support vectors at p/n = {ratio:g}, p = {dimensions[-1]}"
        criteria.append(below(f"{name}, distance from Phi(kappa) in standard errors", sigmas(shares[ratio], limit), 5.0))
        measured[name] = float(shares[ratio].mean())
        measured[f"Phi(kappa) at p/n = {ratio:g}"] = limit
    lattice = [on_margin(sign_vectors(np.random.default_rng(seed))) > 4 for seed in range(60 if quick else 300)]
    measured["share of sign data with more than 4 support vectors"] = float(np.mean(lattice))
    return Outcome(
        (
            at_most("data sets with more samples on the margin than min(n, p)", over, 0),
            *criteria,
            above("share of sign vectors in R^4 with more than 4 samples on the margin", float(np.mean(lattice)), 0.5),
            *residuals(6 if quick else 20),
        ),
        measured,
        note="The residual does more than stay bounded: it converges, like t^-rate in the span of the support vectors.",
    )


def on_margin(vectors: Array) -> int:
    """Samples that are as close to the boundary as the margin, whether or not they carry weight."""
    found = hard_margin(vectors)
    return int((vectors @ found.direction < found.margin * (1 + ON_MARGIN)).sum())


def sign_vectors(rng: np.random.Generator, samples: int = 12) -> Array:
    """y x for distinct x in {-1, 1}^4, labelled by a hyperplane with whole coefficients that meets none of them."""
    cube = 1.0 - 2.0 * ((np.arange(16)[:, None] >> np.arange(4)) & 1)
    normal = rng.integers(1, 4, 4).astype(float)
    normal[0] += 1 - normal.sum() % 2  # an odd sum of odd multiples is never 0
    x = cube[rng.permutation(16)[:samples]]
    return np.asarray(np.sign(x @ normal)[:, None] * x)


def residuals(data_sets: int, dimension: int = 6) -> list[Criterion]:
    """Criteria on the residual of so many data sets: it falls in the span of the support vectors, at its rate, and settles across it."""
    rises, rates, settles = [], [], []
    for X, y in itertools.islice(separable_data_sets(dimension), data_sets):
        law = LogisticDescent.from_data(X, y)
        flow, rate = law.flow, law.residual_rate
        times = np.array([6.0, 8.0, 10.0, 12.0, 16.0, 32.0]) / rate
        found = law.residual(times)
        inside = np.array([flow.in_span(one) for one in found])
        across, size = found - inside, np.linalg.norm(inside, axis=1)
        settles.append(float(np.linalg.norm(across[5] - across[4])))
        if flow.exponents[1] < 1.25 * rate:  # two powers of t that only later times tell apart
            continue
        rises.append(float(np.max(np.diff(size[size > 1e-8]), initial=0.0)))  # below is the rounding of the flow
        if size[4] > 1e-8:
            rates.append(abs(float(np.log(size[3] / size[4])) / (times[4] - times[3]) / rate - 1))
    return [
        at_most(
            "largest rise of the residual in the span of the support vectors, log t from 6 to 32 over the rate",
            largest(rises),
            0.0,
        ),
        at_most("largest relative error of the rate, log t from 12 to 16 over the rate", largest(rates), 0.05),
        above("data sets whose rate could be measured", len(rates), data_sets / 3),
        at_most(
            "largest change of the residual across that span, log t from 16 to 32 over the rate", largest(settles), 1e-4
        ),
    ]


def separable_data_sets(dimension: int = 6, samples: int = 9) -> Iterator[tuple[Array, Array]]:
    """Random data sets that can be separated: inputs and labels, one pair after another."""
    for seed in itertools.count():
        rng = np.random.default_rng([7, seed])
        X = rng.standard_normal((samples, dimension))
        y = np.sign(X[:, 0] + 0.5 * rng.standard_normal(samples))
        if hard_margin(y[:, None] * X).separable:
            yield X, y
