"""Chains of ridge regressions, each trained on predictions of the previous model.

Setting.  The linear model of `Ridge`. Generation 1 is trained on n real labels. Generation g is trained on n fresh inputs. A share of them
          (`real_share`) has real labels with noise tau. The others have the predictions of generation g - 1 plus noise tau_s
          (`synthetic_noise`). With data "accumulate", a generation is also trained on the data of all earlier generations, and only the
          first generation has real labels.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`), at a fixed number of generations.
Result.   Equation (1) of `_relabelled` is applied once per generation. It is affine in the state (C, P). The growth factor and the limit
          of many generations therefore follow from one matrix. For accumulated data without a penalty and p < n,

              excess = tau^2 sum_{i <= g} gamma/(i (i - gamma)), exactly tau^2 sum_{i <= g} p/(i (i n - p - 1)) for Gaussian inputs.  (2)

          The derivations are in docs/theory/learning_from_models.md, sections 1 and 2.
Status.   A theorem by induction if no labels or all labels are real (Hastie et al. 2022, Dohmatob et al. 2024). Derived for mixtures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Literal, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Values, parameter
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
NO_GROWTH = (
    "data = 'accumulate' is not allowed here: must be 'replace'; with accumulated data the errors converge, see limit()"
)


def exact_accumulated(samples: int, features: int, noise: float, generations: ArrayLike) -> Array:
    """Return the mean excess risk per generation with accumulated data, exact for Gaussian inputs and p < n - 1 (eq. 2).

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
    """How fast do models get worse that are trained on predictions of earlier models, and which share of real data stops this?

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
    # Three groups on both sides of ratio 1 with a share of real labels and two noise levels, and accumulated data.
    points = (
        dict(ratio=0.8, ridge=0.1, noise=0.5, real_share=0.3, generations=(1, 2, 4), **_GROUPS),
        dict(ratio=1.5, ridge=0.05, noise=0.5, real_share=0.5, synthetic_noise=0.2, generations=(1, 2, 4), **_GROUPS),
        dict(ratio=0.5, ridge=0.0, noise=0.6, synthetic_noise=0.9, data="accumulate", generations=(1, 2, 4), **_GROUPS),
    )
    headline = Headline(
        "A little real data stops the collapse",
        x="generations",
        over=(1.0, 40.0, 40),
        whole=True,
        show=("excess_risk",),
        curves=("real_share", (0, 0.2, 0.6)),
        at=dict(ratio=0.5, ridge=0.01),
        size=60,
        draws=2,
        places=(1.0, 2.0, 4.0, 8.0, 16.0, 28.0, 40.0),
        sliders=("noise", "ratio"),
    )

    ratio: float = parameter(0.8, above=0, scale="log", count="size / value")
    noise: float = parameter(0.5, least=0)
    ridge: float = parameter(0.1, least=0, scale="log")
    generations: int | tuple[int, ...] = parameter(
        (1, 2, 4, 8), "generations", note="the first is trained on real labels only", symbol="g", kind="coordinate", least=1
    )
    real_share: float = parameter(
        0.0, "share of real labels", note="from the second generation on", symbol=r"\pi", least=0, most=1
    )
    synthetic_noise: float | None = parameter(
        None, "standard deviation of the noise on a model's labels", note="not given: that of real labels", least=0
    )
    data: Data = parameter(
        "replace",
        "training data of a generation",
        note="its own data (replace), or those of all generations so far (accumulate)",
    )

    @model_validator(mode="after")
    def _accumulation_is_covered(self) -> Self:
        if self.data == "accumulate":
            wrong = [
                (name, value)
                for name, value, fine in (
                    ("ridge", self.ridge, self.ridge == 0),
                    ("ratio", self.ratio, self.ratio < 1),
                    ("real_share", self.real_share, self.real_share == 0),
                    ("eigenvalues", self.spectrum or self.eigenvalues, bool((self.population.eigenvalues > 0).all())),
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
        """Return the cost of inputs, labels and fits of every generation."""
        return self.matrix_cost(size, matrices=12.0)

    def limit_cost(self) -> Cost:
        """Return the cost of one state per generation, with noise and without noise."""
        rule, last = super().limit_cost(), float(np.max(self.generations))
        return Cost(rule.numbers + 100.0 * last, rule.operations + 1e5 * last)

    def noises(self) -> tuple[float, float]:
        """Return the standard deviations tau and tau_s of the noise of real labels and of synthetic labels."""
        return self.noise, self.noise if self.synthetic_noise is None else self.synthetic_noise

    def states(self, last: int, noises: tuple[float, float]) -> list[State]:
        """Return the models of generations 1 to `last`."""
        energy, fit = self.population.energy, self._fit()
        nothing = np.zeros(len(energy))
        chain = [step(fit, energy, State(nothing, nothing), 1.0, *noises)]
        for _ in range(last - 1):
            chain.append(step(fit, energy, chain[-1], self.real_share, *noises))
        return chain

    def predicted(self, generations: Array) -> Values:
        """Return the limit for every generation."""
        index = generations.astype(int) - 1
        if self.data == "accumulate":
            return self._accumulated(index)
        s, _, energy, _ = self.population
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
        """Return the limit with accumulated data, equation (2). The covariance of the errors is proportional to Sigma^-1."""
        i = np.arange(1, index.max() + 2)
        tau, synthetic = self.noises()
        excess = np.cumsum(np.where(i == 1, tau, synthetic) ** 2 * self.ratio / (i * (i - self.ratio)))[index]
        s, shares, energy, _ = self.population
        norm = sum(energy.tolist()) + excess * float(shares @ (1 / s))
        bias, test = np.zeros_like(excess), excess + self.noise**2
        return dict(bias=bias, excess_risk=excess, test_error=test, coefficient_norm=norm, accuracy=CLOSED_FORM)

    def best_possible(self) -> Best:
        """Raise `Refused`, because the number of real labels differs between generations."""
        raise Refused(
            "ModelCollapse has no single best possible error, because the number of real labels differs between generations; use Ridge "
            "at the ratio of features to real labels"
        )

    # -- the long run -----------------------------------------------------------------------------------------------------

    def _fit(self) -> Shares:
        """Return the effect of the ridge fit, which is the same in every generation."""
        return shares_of(self.ratio, self.ridge, *self.population[:2])

    def _affine(self, fit: Shares, real_share: float) -> tuple[Array, Array]:
        """Return matrix and constant of the step (1) as an affine map of (C, P)."""
        energy = self.population.energy
        groups = len(energy)

        def mapped(x: Array) -> Array:
            return np.concatenate(step(fit, energy, State(x[:groups], x[groups:]), real_share, *self.noises()))

        constant = mapped(np.zeros(2 * groups))
        return np.stack([mapped(unit) - constant for unit in np.eye(2 * groups)], axis=1), constant

    def _growth(self, fit: Shares, real_share: float) -> float:
        """Return the spectral radius of the step at a share of real labels."""
        if fit.gap == 0:
            return math.inf if real_share < 1 else 0.0
        return float(np.abs(np.linalg.eigvals(self._affine(fit, real_share)[0])).max())

    def growth_factor(self) -> float:
        """Return the factor by which the errors grow per generation in the long run, the spectral radius of the step.

        If it is below 1, the errors converge.

        >>> round(ModelCollapse(ratio=0.8, ridge=0.05, real_share=0.3).growth_factor(), 3)
        0.684
        """
        if self.data == "accumulate":
            raise Refused(NO_GROWTH)
        return self._growth(self._fit(), self.real_share)

    def limit(self) -> float:
        """Return the excess risk after many generations, which is infinite if the growth factor is at least 1.

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
        s, _, energy, _ = self.population
        return State(state[: len(s)], state[len(s) :]).excess(s, energy)

    def critical_share(self) -> float:
        """Return the share of real labels above which the errors of a chain converge, or 0 if they converge for every share.

        For one group without a penalty it is (3 gamma - 2)/(2 gamma - 1) for gamma between 2/3 and 1.
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
        """Return `_growth` at every share of the scan.

        The matrix of the step is a cubic polynomial in the share, so it follows from its values at four shares.
        """
        if fit.gap == 0:
            return np.where(SCAN < 1, np.inf, 0.0)
        nodes = np.arange(4) / 3
        at_nodes = np.array([self._affine(fit, float(share))[0] for share in nodes])
        matrices = np.tensordot(np.linalg.solve(np.vander(nodes).T, np.vander(SCAN, 4).T).T, at_nodes, axes=1)
        return np.asarray(np.abs(np.linalg.eigvals(matrices)).max(axis=1))

    def optimal_ridge(self, generation: int | None = None) -> float:
        """Return the penalty of least excess risk at one generation, or in the limit of many generations (None).

        It is infinite if predicting 0 is best.

        >>> law = ModelCollapse(ratio=0.8, noise=0.5)
        >>> [round(law.optimal_ridge(generation), 3) for generation in (1, 2, 8)]
        [0.2, 0.187, inf]
        """
        from scipy.optimize import minimize_scalar

        if self.data == "accumulate":
            raise Refused(
                "data = 'accumulate' is not allowed here: must be 'replace'; accumulated data are covered without a penalty only"
            )

        def excess(log_ridge: float) -> float:
            law = self.replace(ridge=math.exp(log_ridge), **({} if generation is None else {"generations": int(generation)}))
            return law.limit() if generation is None else float(law.evaluate()["excess_risk"])

        grid = np.log(PENALTIES)
        values = [excess(x) for x in grid]
        best = int(np.argmin(values))
        if best in (0, len(grid) - 1):
            return 0.0 if best == 0 else math.inf
        optimum = minimize_scalar(excess, bounds=(grid[best - 1], grid[best + 1]), method="bounded", options={"xatol": 1e-9})
        nothing = float(np.dot(self.population.eigenvalues, self.population.energy))
        return float(math.exp(optimum.x)) if optimum.fun < nothing else math.inf

    # -- on a table ---------------------------------------------------------------------------------------------------------

    @classmethod
    def from_data(cls, X: ArrayLike, y: ArrayLike, samples: int, **parameters: Any) -> Self:
        """Return the law with the spectrum, the best linear predictor and the residual noise of a table.

        The law has one group for each direction.

        Parameters
        ----------
        X, y
            Rows and labels of the whole population, from which every generation draws.
        samples
            Number of rows on which a generation is trained.
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
        """Return `excess_risk` over seeds and generations, from simulations of the chain on drawn rows of the table of `from_data`."""
        table, last = TablePopulation.of(X, y), int(np.max(self.generations))
        samples = table.samples_at(self.ratio, self.eigenvalues)
        generations = np.atleast_1d(self.generations)
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
            )[generations - 1]
            for seed in seeds
        ]
        return xr.Dataset({"excess_risk": (("seed", "generation"), np.array(runs))}, {"generation": generations})

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw, generations: Array) -> Values:
        """Measure a chain of fits, with signal and noise averaged in closed form.

        Every fit is a linear function of beta and of the noises. The code follows the matrix of its mean and its covariance.
        """
        p, n = draw.size, draw.count("ratio")
        population, counts = self.population_at(p)
        s, energy = np.repeat(population.eigenvalues, counts), np.repeat(population.energy / counts, counts)
        tau, synthetic = self.noises()
        T, K, past = np.zeros((p, p)), np.zeros((p, p)), np.zeros((p, p))
        rows = []
        for generation in range(1, int(generations.max()) + 1):
            X = draw_design(draw.rng, n, population.eigenvalues, counts, self.entries).X
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
