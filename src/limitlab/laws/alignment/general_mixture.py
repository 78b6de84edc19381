"""How much of the weights and of all blocks of Hessian and gradient matrix lies outside the span of the class means (alignment.md).

Setting.  k linearly independent means with the Gram matrix `gram`, class probabilities `probabilities`, noise N(0, I / lambda); softmax
          regression by online SGD with step c / d and penalty beta; blocks H_bc = E[pi_b (1_{b=c} - pi_c) Y Y^T] and
          G_bc = E[(y_b - pi_b)(y_c - pi_c) Y Y^T] for infinitely many test samples.
Limit.    d -> infinity at fixed times (c / d) * steps, from the start N(0, I / d).
Result.   Equation (2) is the flow of the overlaps m and of the Gram matrix Q of the parts of the weights orthogonal to the means. Given
          m and Q, a block is (17) on the span of means and weights, and E[w] / lambda on all other directions. A block lives in the span
          of the means up to |A - P A| / |A|, where P is the projection to this span.
Status.   Derived, checked against SGD runs of the d-dimensional weights. That the numbers are O(1/lambda) is a theorem.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import field_validator, model_validator
from pydantic_core import PydanticCustomError

from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.alignment.mixture_flow import checked_mixture, gaussian_nodes, mixture_flow, softmax

__all__ = ["GeneralMixtureAlignment"]

Array = NDArray[np.float64]

MATRICES = ("hessian", "gradient")
SCRAMBLES = (0, 1)  # independent sets of quasi-random points; the spread of their results is the stated error


def coordinates(gram: Array, overlaps: Array, orthogonal: Array) -> tuple[Array, Array]:
    """Return means and weights (k, 2k) in an orthonormal basis whose first k vectors span the means.

    >>> means, weights = coordinates(np.eye(2), np.ones((2, 2)), 4 * np.eye(2))
    >>> means.tolist(), weights.tolist()
    ([[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]], [[1.0, 1.0, 2.0, 0.0], [1.0, 1.0, 0.0, 2.0]])
    """
    factor = np.linalg.cholesky(gram)
    values, vectors = np.linalg.eigh(orthogonal)
    root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    inside = np.linalg.solve(factor, overlaps.T).T
    return np.hstack([factor, np.zeros_like(factor)]), np.hstack([inside, root])


def pair_weights(matrix: str, pi: Array, label: int) -> Array:
    """Return the weights of samples of class `label` in every block, with shape (samples, k, k), from their predicted probabilities.

    >>> pair_weights("gradient", np.array([[0.75, 0.25]]), 0).tolist()
    [[[0.0625, -0.0625], [-0.0625, 0.0625]]]
    """
    outer = pi[:, :, None] * pi[:, None, :]
    if matrix == "hessian":
        return np.asarray(pi[:, :, None] * np.eye(pi.shape[1]) - outer)
    error = np.eye(pi.shape[1])[label] - pi
    return np.asarray(error[:, :, None] * error[:, None, :])


def blocks(
    means: Array, weights: Array, shares: Array, snr: float, matrix: str, points: int, scramble: int
) -> tuple[Array, Array]:
    """Return all blocks (k, k, 2k, 2k) on the span of means and weights, eq. (17), and their value (k, k) on all other directions."""
    k, scale = len(shares), snr**-0.5
    factor = np.linalg.cholesky(weights @ weights.T + 1e-14 * np.eye(k))
    along = np.linalg.solve(factor, weights)  # orthonormal rows, the directions on which the logits depend
    zeta = gaussian_nodes(k, points, scramble)
    rest = np.eye(2 * k) - along.T @ along
    inside, outside = np.zeros((k, k, 2 * k, 2 * k)), np.zeros((k, k))
    for a, share in enumerate(shares):
        pi = softmax(weights @ means[a] + scale * zeta @ factor.T)
        w = share / len(zeta) * pair_weights(matrix, pi, a)
        s = means[a] + scale * zeta @ along
        total = w.sum(axis=0)
        inside += np.einsum("nbc,ni,nj->bcij", w, s, s, optimize=True) + total[..., None, None] * rest * scale**2
        outside += total * scale**2
    return inside, outside


def outside_share(inside: Array, outside: Array) -> Array:
    """Return |A - P A| / |A| of every block, where P projects to the first half of the coordinates (definition 13.2 of the notes).

    >>> outside_share(np.diag([2.0, 1.0])[None, None], np.array([[0.5]])).tolist()
    [[0.5]]
    """
    half = inside.shape[-1] // 2
    norms = np.linalg.norm(inside, ord=2, axis=(-2, -1))
    gaps = np.linalg.norm(inside[..., half:, :], ord=2, axis=(-2, -1))
    return np.asarray(np.maximum(gaps, np.abs(outside)) / np.maximum(norms, np.abs(outside)))


def lives_in(block: Array, basis: Array) -> float:
    """Return the smallest eps with which a matrix lives in the span of the orthonormal rows of `basis`, |A - P A| / |A|.

    >>> lives_in(np.diag([4.0, 1.0, 2.0]), np.eye(2, 3))
    0.5
    """
    gap = block - basis.T @ (basis @ block)
    return float(np.linalg.norm(gap, ord=2) / np.linalg.norm(block, ord=2))


def statistics(means: Array, weights: Array, parts: dict[str, tuple[Array, Array]]) -> dict[str, float]:
    """Return the observables at one time, from means and weights in coordinates and the blocks of both matrices."""
    k = len(means)
    lengths = np.linalg.norm(weights, axis=1)
    inside = np.linalg.norm(weights[:, :k], axis=1) / lengths
    numbers = {
        "own_overlap": float(np.diag(weights @ means.T).mean()),
        "span_alignment": float(inside.min()),
    }
    for name, (block, outside) in parts.items():
        numbers[f"{name}_outside"] = float(outside_share(block, outside).max())
        own = np.array([block[c, c] for c in range(k)])
        values, vectors = np.linalg.eigh(own)
        top = vectors[:, :, -k:]  # the k leading directions of every diagonal block; the others have smaller eigenvalues
        rho = np.linalg.norm(np.einsum("cij,ci->cj", top, weights), axis=1) / lengths
        numbers[f"{name}_alignment"] = float(rho.min())
        numbers[f"top_{name}_eigenvalue"] = float(values[:, -1].max())
    return numbers


class GeneralMixtureAlignment(Law):
    """Which share of the weights and of the blocks of both test matrices lies in the span of the means, for any mixture?

    The classes can differ. The three alignments are those of the class with the smallest alignment, and the largest eigenvalues are those
    of all diagonal blocks.

    Examples
    --------
    >>> law = GeneralMixtureAlignment(snr=40.0, times=(20.0,))
    >>> theory = law.theory()
    >>> float(theory.hessian_outside[0].round(3)), float(theory.gradient_outside[0].round(3)), float(theory.span_alignment[0].round(3))
    (0.046, 0.05, 0.918)
    """

    status, page = "derived", "alignment"
    regime = "d -> infinity with step c / d and infinitely many test samples, at fixed times"
    assumptions = (
        "linearly independent means, isotropic Gaussian noise",
        "one fresh sample per step",
        "start N(0, I / d), in the experiment orthonormal and orthogonal to the means",
    )
    references = ("benarous2024high", "benarous2022high")
    observables = {
        "own_overlap": observable(
            "overlap of a weight vector with the mean of its class, mean over classes", r"\langle x^c,\mu_c\rangle"
        ),
        # the classes differ, and alignments are those of the class with the smallest alignment
        "span_alignment": observable(),
        "hessian_alignment": observable(),
        "gradient_alignment": observable(),
        "hessian_outside": observable(
            "largest share of a Hessian block outside the span of the means, in operator norm",
            r"\varepsilon(H_{bc})",
            least=0,
        ),
        "gradient_outside": observable(
            "largest share of a gradient block outside the span of the means, in operator norm",
            r"\varepsilon(G_{bc})",
            least=0,
        ),
        "top_hessian_eigenvalue": observable(),
        "top_gradient_eigenvalue": observable(),
    }
    simulation = Experiment("dimension d", sizes=(60, 120, 240), draws=60)
    # Means at different angles, different probabilities, a step that is not 1; early and late times
    points = (
        dict(snr=12.0, regularizer=0.06, step=1.4, times=(2.0, 6.0)),
        dict(
            gram=((1.0, -0.2), (-0.2, 1.0)),
            probabilities=(0.65, 0.35),
            snr=20.0,
            regularizer=0.08,
            step=0.7,
            times=(1.5, 8.0),
        ),
    )
    headline = Headline(
        "Rare classes reach the span of means last",
        x="times",
        over=(0.1, 40.0, 41),
        scale="log",
        show=("span_alignment", "hessian_alignment"),
        curves=("probabilities", ((0.34, 0.33, 0.33), (0.7, 0.2, 0.1))),
        size=100,
        draws=2,
        places=(0.5, 2.0, 5.0, 10.0, 20.0, 40.0),
        sliders=("snr", "regularizer"),
    )

    gram: tuple[tuple[float, ...], ...] = parameter(
        ((1.0, 0.3, 0.3), (0.3, 1.0, 0.3), (0.3, 0.3, 1.0)), "inner products of the class means", symbol=r"\Gamma"
    )
    probabilities: tuple[float, ...] = parameter((0.5, 0.3, 0.2), "probabilities of the classes", symbol="p_a")
    snr: float = parameter(10.0, note="inverse variance of the noise", above=0, scale="log")
    regularizer: float = parameter(0.01, symbol=r"\beta", least=0)
    step: float = parameter(1.0, note="times the dimension", symbol=r"c_\delta", above=0)
    times: float | tuple[float, ...] = parameter(
        (10.0, 20.0), note="step times samples over the dimension", kind="coordinate", above=0
    )
    quasi_points: int = parameter(2048, note="rounded up to a power of 2", kind="solver", least=64, finer=2, scale="log")
    test_samples: int = parameter(
        20_000, "number of test samples, of which only the components along means and weights are drawn",
        kind="experiment", least=100, scale="log",
    )  # fmt: skip

    @field_validator("gram", "probabilities", mode="before")
    @classmethod
    def _as_tuples(cls, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return value.tolist()
        return value

    @model_validator(mode="after")
    def _is_a_mixture(self) -> Self:
        try:
            checked_mixture(self.gram, self.probabilities)
        except (Refused, ValueError) as error:
            raise PydanticCustomError("mixture", "{reason}", {"reason": str(error)}) from None
        return self

    def predicted(self, times: Array) -> Values:
        """Return the flow (2) and the blocks (17) at each of its states."""
        sets = []
        for scramble in SCRAMBLES:
            overlaps, orthogonal = mixture_flow(
                self.gram, self.probabilities, self.snr, self.regularizer, self.step, times, self.quasi_points, scramble
            )
            rows = [self.numbers(m, q, scramble) for m, q in zip(overlaps, orthogonal, strict=True)]
            sets.append({name: np.array([row[name] for row in rows]) for name in rows[0]})
        first, second = sets
        values: dict[str, Any] = {name: (first[name] + second[name]) / 2 for name in first}
        # the difference of two sets estimates the error of their mean with one degree of freedom, hence the factor
        accuracy = {name: 3 * float(np.abs(first[name] - second[name]).max()) + 1e-6 for name in first}
        return {**values, "accuracy": accuracy}

    def numbers(self, overlaps: Array, orthogonal: Array, scramble: int = 0) -> dict[str, float]:
        """Return the observables for given overlaps, and for a given Gram matrix of the weights' parts orthogonal to the means."""
        means, weights = coordinates(np.array(self.gram), overlaps, orthogonal)
        shares = np.array(self.probabilities)
        parts = {name: blocks(means, weights, shares, self.snr, name, self.quasi_points, scramble) for name in MATRICES}
        return statistics(means, weights, parts)

    def measured(self, draw: Draw, times: Array) -> Values:
        """Run SGD on the d-dimensional weights and measure the blocks on fresh test samples.

        The components of the test samples that are orthogonal to means and weights are independent of the weights of the samples. They are
        replaced by their mean square.
        """
        means, runs = self.train(draw, times)
        k, rows = len(self.probabilities), []
        for x in runs:
            inside = x[:, :k]
            triangle = np.asarray(np.linalg.qr(x[:, k:].T, mode="r"))
            weights = np.hstack([inside, triangle.T])
            local = np.hstack([means[:, :k], np.zeros((k, k))])
            rows.append(statistics(local, weights, self.sampled_blocks(draw.rng, local, weights)))
        return {name: np.array([row[name] for row in rows]) for name in rows[0]}

    def sampled_blocks(self, rng: np.random.Generator, means: Array, weights: Array) -> dict[str, tuple[Array, Array]]:
        """Return averages over test samples of the blocks on the span of means and weights, and their values elsewhere."""
        k, count = len(means), self.test_samples
        labels = rng.choice(k, size=count, p=np.array(self.probabilities))
        y = means[labels] + self.snr**-0.5 * rng.standard_normal((count, 2 * k))
        logits = y @ weights.T
        power = np.exp(logits - logits.max(axis=1, keepdims=True))
        pi = power / power.sum(axis=1, keepdims=True)
        error = (labels[:, None] == np.arange(k)) - pi
        parts = {name: (np.empty((k, k, 2 * k, 2 * k)), np.empty((k, k))) for name in MATRICES}
        for b in range(k):
            for c in range(k):
                each = {"hessian": pi[:, b] * (float(b == c) - pi[:, c]), "gradient": error[:, b] * error[:, c]}
                for name, w in each.items():
                    parts[name][0][b, c] = y.T @ (w[:, None] * y) / count
                    parts[name][1][b, c] = w.mean() / self.snr
        return parts

    def train(self, draw: Draw, times: Array) -> tuple[Array, Array]:
        """Return the means (k, d), which lie in the first k axes, and the weights (times, k, d) of one run."""
        from limitlab.laws.alignment._softmax_sgd import sgd_path

        k, d, delta = len(self.probabilities), draw.size, self.step / draw.size
        if d < 3 * k:
            raise Refused(f"size = {d} is not allowed: must be at least 3 classes = {3 * k}")
        means = np.zeros((k, d))
        means[:, :k] = np.linalg.cholesky(np.array(self.gram))
        start = draw.rng.standard_normal((k, d))
        start[:, :k] = 0.0
        start = np.linalg.qr(start.T)[0].T.copy()
        counts = np.floor(times.ravel() / delta + draw.rng.random()).astype(
            np.int64
        )  # random rounding with the correct mean
        shares = np.array(self.probabilities)
        return means, np.asarray(sgd_path(draw.rng, start, means, shares, self.snr**-0.5, self.regularizer, delta, counts))
