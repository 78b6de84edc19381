"""Generations of ridge regressions, each trained on labels that its predecessor wrote.

Setting.  The linear model of `Ridge`. Generation 1 sees n real labels. Generation g sees n fresh inputs: a share (`real_share`) has real
          labels (noise tau), the rest the predictions of generation g - 1 plus noise tau_s (`synthetic_noise`). With data "accumulate" it
          sees the data of all earlier generations too (no real labels after the first generation).
Limit.    n, p -> infinity with p/n -> gamma (`ratio`), at a fixed number of generations.
Result.   Equation (1) of `relabelled`, once per generation: it is linear in the state (C, P), so that growth factor and limit follow
          from one matrix. Accumulated data without a penalty, p < n:

              excess = tau^2 sum_{i <= g} gamma/(i (i - gamma)), exactly tau^2 sum_{i <= g} p/(i (i n - p - 1)) for Gaussian inputs.  (2)

          docs/theory/learning_from_models.md, sections 1 and 2.
Status.   No or only real labels: theorem by induction (Hastie et al. 2022, Dohmatob et al. 2024); mixtures: derived.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.apportion import apportion
from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Values, parameter
from limitlab.laws.classification.beside_best import Best
from limitlab.laws.regression._label_chains import TablePopulation, collapse_chain
from limitlab.laws.regression._relabelled import Shares, State, shares_of, step
from limitlab.laws.regression.linear_model import LinearModel
from limitlab.models.designs import draw_design, ridge_resolvent

__all__ = ["ModelCollapse", "exact_accumulated"]

Array = NDArray[np.float64]
Data = Literal["replace", "accumulate"]

SCAN = np.r_[
    np.geomspace(1e-4, 0.01, 40, endpoint=False), np.linspace(0.01, 1.0, 400)
]  # shares of real labels that are tried
PENALTIES = np.geomspace(1e-4, 1e3, 60)
NO_GROWTH = "data = 'accumulate' is not allowed here: the errors grow by a sum that converges, see limit()"


def exact_accumulated(samples: int, features: int, noise: float, generations: ArrayLike) -> Array:
    """Mean excess risk per generation with accumulated data, exact for Gaussian inputs at finite n and p < n - 1 (eq. 2).

    >>> exact_accumulated(200, 100, 0.5, [1, 2]).round(9).tolist()
    [0.252525253, 0.294331273]
    """
    if features >= samples - 1:
        raise Refused(f"features = {features} is not allowed: must be below samples - 1 = {samples - 1}")
    last = np.asarray(generations, dtype=int)
    if (last < 1).any():
        raise Refused("generations is not allowed: must be at least 1")
    i = np.arange(1, last.max() + 1)
    return np.asarray(np.cumsum(noise**2 * features / (i * (i * samples - features - 1.0)))[last - 1])


_GROUPS: dict[str, Any] = dict(eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2))


class ModelCollapse(LinearModel):
    """If each model is trained on what its predecessor wrote, how fast does it rot, and how much real data stops it?

    Examples
    --------
    >>> law = ModelCollapse(ratio=0.8, ridge=0.0, noise=0.5, real_share=0.3, generations=(1, 2, 4))
    >>> law.theory().excess_risk.values.round(6).tolist()
    [1.0, 2.33, 6.451537]
    >>> round(law.growth_factor(), 9), law.limit(), round(law.critical_share(), 9)
    (1.33, inf, 0.666666667)
    """

    status = "derived"
    regime = "n, p -> infinity with p/n fixed, a fixed number of generations, every generation with fresh inputs"
    references = ("dohmatob2024model", "dohmatob2025strong", "gerstgrasser2024model", "hastie2022surprises")
    page = "learning_from_models"
    observables = ("bias", "excess_risk", "test_error", "coefficient_norm")
    simulation = Experiment("number of features p", sizes=(60, 120, 240), draws=12)
    # Three groups on both sides of ratio 1, a share of real labels, two kinds of noise; and accumulated data
    points = (
        dict(ratio=0.8, ridge=0.1, noise=0.5, real_share=0.3, generations=(1, 2, 4), **_GROUPS),
        dict(ratio=1.5, ridge=0.05, noise=0.5, real_share=0.5, synthetic_noise=0.2, generations=(1, 2, 4), **_GROUPS),
        dict(ratio=0.5, ridge=0.0, noise=0.6, synthetic_noise=0.9, data="accumulate", generations=(1, 2, 4), **_GROUPS),
    )

    ratio: float = parameter(0.8, above=0, scale="log", count="size / value")
    noise: float = parameter(0.5, least=0)
    ridge: float = parameter(0.1, least=0, scale="log")
    generations: int | tuple[int, ...] = parameter(
        (1, 2, 4, 8), "generations", note="the first sees real labels only", symbol="g", kind="coordinate", least=1
    )
    real_share: float = parameter(
        0.0, "share of real labels", note="from the second generation on", symbol=r"\pi", least=0, most=1
    )
    synthetic_noise: float | None = parameter(
        None, "standard deviation of the noise on a model's labels", note="not given: that of real labels", least=0
    )
    data: Data = parameter("replace", "what a generation is trained on", note="its own data, or all so far (accumulate)")

    @model_validator(mode="after")
    def _accumulation_is_covered(self) -> Self:
        if self.data == "accumulate":
            wrong = [
                (name, value)
                for name, value, fine in (
                    ("ridge", self.ridge, self.ridge == 0),
                    ("ratio", self.ratio, self.ratio < 1),
                    ("real_share", self.real_share, self.real_share == 0),
                    ("eigenvalues", self.eigenvalues, min(self.eigenvalues) > 0),
                )
                if not fine
            ]
            if wrong:
                name, value = wrong[0]
                raise Refused(
                    f"{name} = {value} is not allowed with data = 'accumulate': must have ridge = 0, ratio below 1, real_share = 0 "
                    "and eigenvalues above 0 (no other case is covered: use data = 'replace')"
                )
        return self

    # -- the limit --------------------------------------------------------------------------------------------------------

    def draw_cost(self, size: int) -> Cost:
        """Inputs, labels and fits of every generation."""
        return self.matrix_cost(size, matrices=12.0)

    def limit_cost(self) -> Cost:
        """One state per generation, with noise and without."""
        rule, last = super().limit_cost(), float(np.max(self.generations))
        return Cost(rule.numbers + 100.0 * last, rule.operations + 1e5 * last)

    def noises(self) -> tuple[float, float]:
        """tau and tau_s."""
        return self.noise, self.noise if self.synthetic_noise is None else self.synthetic_noise

    def states(self, last: int, noises: tuple[float, float]) -> list[State]:
        """The models of generations 1 to `last`."""
        energy, nothing, fit = np.asarray(self.signal_energy), np.zeros(len(self.eigenvalues)), self._fit()
        chain = [step(fit, energy, State(nothing, nothing), 1.0, *noises)]
        for _ in range(last - 1):
            chain.append(step(fit, energy, chain[-1], self.real_share, *noises))
        return chain

    def predicted(self, generations: Array) -> Values:
        """The limit, generation by generation."""
        index = generations.astype(int) - 1
        if self.data == "accumulate":
            return self._accumulated(index)
        s, energy = np.asarray(self.eigenvalues), np.asarray(self.signal_energy)
        chain, clean = (self.states(int(index.max()) + 1, noises) for noises in (self.noises(), (0.0, 0.0)))
        with np.errstate(invalid="ignore"):
            excess = np.array([state.excess(s, energy) for state in chain])
            norm = np.array([state.norm.sum() for state in chain])
        diverged = ~np.isfinite(excess)  # from the interpolation threshold on, and after an overflow
        excess, norm = (np.where(diverged, np.inf, values)[index] for values in (excess, norm))
        bias = np.array([state.excess(s, energy) for state in clean])[index]
        test = excess + self.noise**2
        return dict(bias=bias, excess_risk=excess, test_error=test, coefficient_norm=norm, accuracy=CLOSED_FORM)

    def _accumulated(self, index: NDArray[np.int_]) -> Values:
        """Equation (2); errors have covariance proportional to Sigma^-1."""
        i = np.arange(1, index.max() + 2)
        tau, synthetic = self.noises()
        excess = np.cumsum(np.where(i == 1, tau, synthetic) ** 2 * self.ratio / (i * (i - self.ratio)))[index]
        norm = sum(self.signal_energy) + excess * float(self.shares @ (1 / np.asarray(self.eigenvalues)))
        bias, test = np.zeros_like(excess), excess + self.noise**2
        return dict(bias=bias, excess_risk=excess, test_error=test, coefficient_norm=norm, accuracy=CLOSED_FORM)

    def best_possible(self) -> Best:
        """Refused: every generation has seen another number of real labels."""
        raise Refused(
            "ModelCollapse has no one best possible error: each generation has seen another number of real labels; ask Ridge at the "
            "ratio of features to real labels"
        )

    # -- the long run -----------------------------------------------------------------------------------------------------

    def _fit(self) -> Shares:
        """What the fit of every generation does."""
        return shares_of(self.ratio, self.ridge, self.eigenvalues, self.shares)

    def _affine(self, fit: Shares, real_share: float) -> tuple[Array, Array]:
        """Matrix and constant of the step (1) as an affine map of (C, P)."""
        groups, energy = len(self.eigenvalues), np.asarray(self.signal_energy)

        def mapped(x: Array) -> Array:
            return np.concatenate(step(fit, energy, State(x[:groups], x[groups:]), real_share, *self.noises()))

        constant = mapped(np.zeros(2 * groups))
        return np.stack([mapped(unit) - constant for unit in np.eye(2 * groups)], axis=1), constant

    def _growth(self, fit: Shares, real_share: float) -> float:
        """The spectral radius of the step at a share of real labels."""
        if fit.gap == 0:
            return math.inf if real_share < 1 else 0.0
        return float(np.abs(np.linalg.eigvals(self._affine(fit, real_share)[0])).max())

    def growth_factor(self) -> float:
        """Factor per generation by which the errors of a chain grow in the long run (spectral radius); below 1 it settles.

        >>> round(ModelCollapse(ratio=0.8, ridge=0.05, real_share=0.3).growth_factor(), 3)
        0.684
        """
        if self.data == "accumulate":
            raise Refused(NO_GROWTH)
        return self._growth(self._fit(), self.real_share)

    def limit(self) -> float:
        """Excess risk after many generations; infinite where the growth factor is 1 or more.

        >>> round(ModelCollapse(ratio=0.8, ridge=0.05, real_share=0.3).limit(), 3)
        1.447
        """
        tau, synthetic = self.noises()
        if self.data == "accumulate":
            from scipy.special import digamma

            total, first = float(digamma(1.0) - digamma(1 - self.ratio)), self.ratio / (1 - self.ratio)
            return tau**2 * first + synthetic**2 * (total - first)
        if self.growth_factor() >= 1 - 1e-12:
            return math.inf
        matrix, constant = self._affine(self._fit(), self.real_share)
        state = np.asarray(np.linalg.solve(np.eye(len(constant)) - matrix, constant), dtype=np.float64)
        groups = len(self.eigenvalues)
        return State(state[:groups], state[groups:]).excess(np.asarray(self.eigenvalues), np.asarray(self.signal_energy))

    def critical_share(self) -> float:
        """Share of real labels above which a chain settles; 0 if any share is enough.

        One group, no penalty: (3 gamma - 2)/(2 gamma - 1) for gamma between 2/3 and 1.
        """
        from scipy.optimize import brentq

        if self.data == "accumulate":
            raise Refused(NO_GROWTH)
        fit = self._fit()

        def growth(share: float) -> float:
            return self._growth(fit, float(share)) - 1

        growing = np.flatnonzero(self._scanned_growth(fit) > 1 + 1e-12)
        return float(brentq(growth, SCAN[growing[-1]], SCAN[growing[-1] + 1], xtol=1e-14)) if growing.size else 0.0

    def _scanned_growth(self, fit: Shares) -> Array:
        """`_growth` at every share of the scan: the matrix of the step is a cubic polynomial in the share, known from four of them."""
        if fit.gap == 0:
            return np.where(SCAN < 1, np.inf, 0.0)
        nodes = np.arange(4) / 3
        known = np.array([self._affine(fit, float(share))[0] for share in nodes])
        matrices = np.tensordot(np.linalg.solve(np.vander(nodes).T, np.vander(SCAN, 4).T).T, known, axes=1)
        return np.asarray(np.abs(np.linalg.eigvals(matrices)).max(axis=1))

    def optimal_ridge(self, generation: int | None = None) -> float:
        """The penalty of least excess risk at one generation (None: in the limit of many); infinite where predicting 0 is best.

        >>> law = ModelCollapse(ratio=0.8, noise=0.5)
        >>> [round(law.optimal_ridge(generation), 3) for generation in (1, 2, 8)]
        [0.2, 0.187, inf]
        """
        from scipy.optimize import minimize_scalar

        if self.data == "accumulate":
            raise Refused("data = 'accumulate' is not allowed here: it is covered without a penalty only")

        def excess(log_ridge: float) -> float:
            law = self.replace(ridge=math.exp(log_ridge), **({} if generation is None else {"generations": int(generation)}))
            return law.limit() if generation is None else float(law.evaluate()["excess_risk"])

        grid = np.log(PENALTIES)
        values = [excess(x) for x in grid]
        best = int(np.argmin(values))
        if best in (0, len(grid) - 1):
            return 0.0 if best == 0 else math.inf
        found = minimize_scalar(excess, bounds=(grid[best - 1], grid[best + 1]), method="bounded", options={"xatol": 1e-9})
        nothing = float(np.dot(self.eigenvalues, self.signal_energy))
        return float(math.exp(found.x)) if found.fun < nothing else math.inf

    # -- on a table ---------------------------------------------------------------------------------------------------------

    @classmethod
    def from_data(cls, X: ArrayLike, y: ArrayLike, samples: int, **parameters: Any) -> Self:
        """The law at the spectrum, the best linear predictor and its residual of a table, one group for each direction.

        Parameters
        ----------
        X, y
            Rows and labels: the whole population from which every generation draws.
        samples
            Rows that a generation sees.
        parameters
            Other parameters of the law.

        Examples
        --------
        >>> from limitlab.laws.regression._label_chains import shipped_images
        >>> X, y = shipped_images()
        >>> law = ModelCollapse.from_data(X, y, samples=400, ridge=0.001, generations=(1, 2, 4))
        >>> law.theory().excess_risk.values.round(4).tolist()
        [0.0809, 0.134, 0.2057]
        """
        table = TablePopulation.of(X, y)
        return cls(**{**table.spectrum(), "ratio": len(table.eigenvalues) / samples, **parameters})

    def on_table(self, X: ArrayLike, y: ArrayLike, seeds: Iterable[int] = range(20)) -> xr.Dataset:
        """The chain itself on drawn rows of the table that the law was made from: `excess_risk` over seeds and generations."""
        table, last = TablePopulation.of(X, y), int(np.max(self.generations))
        samples = table.samples_at(self.ratio, self.eigenvalues)
        chosen = np.atleast_1d(self.generations)
        runs = [
            collapse_chain(
                np.random.default_rng([seed, samples]),
                table,
                samples,
                last,
                self.ridge,
                self.real_share,
                self.noises()[1],
                self.data == "accumulate",
            )[chosen - 1]
            for seed in seeds
        ]
        return xr.Dataset({"excess_risk": (("seed", "generation"), np.array(runs))}, {"generation": chosen})

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw, generations: Array) -> Values:
        """A chain of fits as linear maps of beta and of the noises: mean map T and error covariance K; signal and noise are averaged."""
        p, n = draw.size, draw.count("ratio")
        counts = [int(count) for count in apportion(p, self.weights)]
        s, energy = np.repeat(self.eigenvalues, counts), np.repeat(np.asarray(self.signal_energy) / counts, counts)
        tau, synthetic = self.noises()
        T, K, past = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p))
        rows = []
        for generation in range(1, int(generations.max()) + 1):
            X = draw_design(draw.rng, n, self.eigenvalues, counts, self.entries).X
            real = n if generation == 1 else round(self.real_share * n)
            S1, S2 = X[:real].T @ X[:real] / n, X[real:].T @ X[real:] / n
            R = ridge_resolvent(S1 + S2 + past, self.ridge)
            labels = (tau**2 * S1 + synthetic**2 * S2) / n
            T, K = R @ (S1 + (S2 + past) @ T), R @ ((S2 + past) @ K @ (S2 + past) + labels) @ R
            if self.data == "accumulate":
                past = past + S1 + S2
            bias = float(s @ (T - np.eye(p)) ** 2 @ energy)
            rows.append((bias, bias + float(s @ np.diag(K)), float((T**2 @ energy).sum() + np.trace(K))))
        bias_, excess, norm = np.array(rows)[generations.astype(int) - 1].T
        return dict(bias=bias_, excess_risk=excess, test_error=excess + tau**2, coefficient_norm=norm)
