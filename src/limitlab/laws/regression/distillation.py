"""Ridge regression of a student that is trained on the predictions of a teacher.

Setting.  The linear model of `Ridge`. With inputs "fresh", the teacher is fitted to n_t real labels (`teacher_ratio`, `teacher_ridge`) and
          may be restricted to some groups of features (`teacher_groups`). The student is fitted to predictions of the teacher on n fresh
          inputs (noise `student_noise`). With inputs "same", teacher and student have the same n inputs, and the labels of the student
          are (1 - mix) y + mix X b_teacher.
Limit.    All sizes -> infinity at fixed ratios.
Result.   For fresh inputs, equation (1) of `_relabelled` is applied twice. For the same inputs, the student fits a share f(x) of a
          direction in which X'X/n has the eigenvalue x. With the penalties a of the student and b of the teacher,

              1 - f(x) = (1 - mix) g_a(x) + mix (a g_a(x) - b g_b(x))/(a - b),   g_a(x) = a/(x + a).                       (3)

          Let c_a and c_b be the coefficients of g_a and g_b in (3). The bias is the sum of c_i c_j Q(i, j) and the variance is tau^2
          times the sum of c_i c_j D(i, j) over i, j in {a, b}, with

              Q(a, b) = sum B s u_a u_b/(1 - df2(a, b)),   D(a, b) = df2(a, b)/(1 - df2(a, b)),   df2(a, b) = sum m l_a l_b,    (4)

          u = kappa/(s + kappa), l = 1 - u. The derivations are in docs/theory/learning_from_models.md, sections 3 to 5.
Status.   A theorem for fresh inputs (two ridge regressions, each with a fixed target). Derived for the same inputs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Headline, Values, observable, parameter, shared
from limitlab.laws.classification.beside_best import Best
from limitlab.laws.regression._label_chains import TablePopulation, taught
from limitlab.laws.regression._relabelled import State, shares_of, step
from limitlab.laws.regression.linear_model import LinearModel
from limitlab.models.designs import draw_design, ridge_resolvent
from limitlab.numerics.equivalents import both_shares, ridge_equivalent

__all__ = ["Distillation"]

Array = NDArray[np.float64]


Inputs = Literal["fresh", "same"]

PENALTIES = np.geomspace(1e-5, 1e3, 60)


class Surrogate(NamedTuple):
    """Labels that would be best for a student.

    Attributes
    ----------
    gain
        Factor of the true coefficients in each group.
    excess_risk
        Excess risk of the student with these labels.
    excess_risk_true_labels
        Excess risk of the student with true labels, for comparison.
    """

    gain: Array
    excess_risk: float
    excess_risk_true_labels: float


_GROUPS: dict[str, Any] = dict(eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2))


class Distillation(LinearModel):
    """When does a student that learns from a teacher's predictions have a smaller error than the teacher?

    Examples
    --------
    >>> groups = dict(eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2))
    >>> law = Distillation(ratio=0.5, ridge=0.1, teacher_ratio=0.8, teacher_ridge=0.05, noise=1.0, **groups)
    >>> result = law.theory()
    >>> round(float(result.teacher_excess_risk), 9), round(float(result.excess_risk), 9)
    (0.971905201, 0.715084759)
    """

    status = "derived"
    regime = "n, p -> infinity with fixed features per sample of teacher and student"
    references = ("ildiz2025high", "mobahi2020self", "pareek2024understanding", "hastie2022surprises")
    page = "learning_from_models"
    observables = {
        "teacher_excess_risk": observable(
            "mean squared error of the teacher on a new noiseless label", r"R_{\mathrm{t}}", least=0
        ),
        **shared("excess_risk", "bias", "variance"),
        "gain": observable("excess risk of the teacher minus excess risk of the student", r"R_{\mathrm{t}}-R"),
    }
    simulation = replace(LinearModel.simulation, sizes=(60, 120, 240), draws=20)
    # Fresh inputs with a restricted teacher and noisy labels; the same inputs with unequal and with equal penalties.
    points = (
        dict(
            ratio=0.6,
            ridge=0.15,
            teacher_ratio=0.8,
            teacher_ridge=0.05,
            teacher_groups=(0, 1),
            noise=0.8,
            student_noise=0.3,
            **_GROUPS,
        ),
        dict(ratio=2.0, ridge=0.3, teacher_ridge=0.1, noise=0.5, inputs="same", mix=0.7, **_GROUPS),
        dict(ratio=0.8, ridge=0.2, teacher_ridge=0.2, noise=1.0, inputs="same", mix=1.3, **_GROUPS),
    )
    headline = Headline(
        "A penalised student beats its overfitted teacher",
        x="ridge",
        over=(0.001, 10.0, 61),
        scale="log",
        show=("excess_risk", "teacher_excess_risk"),
        at=dict(noise=1.0, ratio=0.3),
        size=120,
        draws=4,
        places=(0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0),
        sliders=("ratio", "teacher_ridge"),
    )

    ratio: float = parameter(0.5, above=0, scale="log", count="size / value")
    noise: float = parameter(0.5, least=0)
    ridge: float = parameter(0.1, note="of the student", least=0, scale="log")
    teacher_ratio: float = parameter(
        0.8,
        "features per sample of the teacher",
        note="not used with the same inputs",
        symbol=r"\gamma_{\mathrm{t}}",
        above=0,
        scale="log",
        count="size / value",
    )
    teacher_ridge: float = parameter(
        0.05, "ridge penalty of the teacher", symbol=r"\lambda_{\mathrm{t}}", least=0, scale="log"
    )
    teacher_groups: tuple[int, ...] | None = parameter(
        None, "groups of features that the teacher uses", note="counted from 0; not given: all", least=0
    )
    student_noise: float = parameter(
        0.0, "standard deviation of the noise on the teacher's labels", note="0: soft labels", symbol=r"\tau_s", least=0
    )
    inputs: Inputs = parameter("fresh", note="of the student; fresh, or those of the teacher (same)", symbol="")
    mix: float = parameter(
        1.0,
        "share of the teacher's labels among the student's",
        note="with the same inputs; below 0 and above 1 are allowed",
        symbol=r"\xi",
    )

    @model_validator(mode="after")
    def _what_is_covered(self) -> Self:
        groups = self.teacher_groups
        if groups is not None and self.spectrum is not None:
            raise Refused(
                f"teacher_groups = {groups} is not allowed together with spectrum: groups are those of `eigenvalues`; give eigenvalues, "
                "weights and signal_energy"
            )
        if groups is not None and (not groups or max(groups) >= len(self.eigenvalues) or len(set(groups)) < len(groups)):
            raise Refused(
                f"teacher_groups = {groups} is not allowed: must name one or more of the {len(self.eigenvalues)} groups, each once, "
                "counted from 0"
            )
        if self.inputs == "same":
            for name, value, fine in (("student_noise", self.student_noise, 0.0), ("teacher_groups", groups, None)):
                if value != fine:
                    raise Refused(f"{name} = {value} is not allowed with inputs = 'same': must be {fine}")
        elif self.mix != 1:
            raise Refused(
                f"mix = {self.mix:g} is not allowed with inputs = 'fresh': must be 1 because fresh inputs have no labels"
            )
        return self

    # -- the limit --------------------------------------------------------------------------------------------------------

    def _groups(self) -> tuple[Array, Array, Array]:
        return self.population[:3]

    def _fresh(self, noise: float, student_noise: float) -> tuple[State, State]:
        """Return teacher and student on fresh inputs. Features that the teacher does not use act as label noise for the teacher."""
        s, w, energy = self._groups()
        seen = list(range(len(s)) if self.teacher_groups is None else self.teacher_groups)
        unseen = np.delete(s * energy, seen).sum()
        nothing = np.zeros(len(seen))
        fit = shares_of(self.teacher_ratio, self.teacher_ridge, s[seen], w[seen])
        partial = step(fit, energy[seen], State(nothing, nothing), 1.0, math.sqrt(noise**2 + unseen), 0.0)
        teacher = State(np.zeros(len(s)), np.zeros(len(s)))
        for whole, part in zip(teacher, partial, strict=True):
            whole[seen] = part
        student = step(shares_of(self.ratio, self.ridge, s, w), energy, teacher, 0.0, noise, student_noise)
        return teacher, student

    def _risks(self) -> tuple[float, float, float]:
        """Return the excess risk of the teacher, and bias and variance of the student."""
        s, w, energy = self._groups()
        if self.inputs == "fresh":
            teacher, student = self._fresh(self.noise, self.student_noise)
            clean = self._fresh(0.0, 0.0)[1].excess(s, energy)
            return teacher.excess(s, energy), clean, student.excess(s, energy) - clean
        alone = mixed_filter(self.teacher_ridge, self.teacher_ridge, 0.0)
        bias_t, variance_t, _ = same_inputs(alone, self.ratio, s, w, energy)
        bias, variance, _ = same_inputs(mixed_filter(self.ridge, self.teacher_ridge, self.mix), self.ratio, s, w, energy)
        return bias_t + self.noise**2 * variance_t, bias, self.noise**2 * variance

    def predicted(self) -> Values:
        """Return the limit at the parameters of the law. Without a penalty it is infinite at the interpolation threshold of a fit."""
        with np.errstate(invalid="ignore"):
            teacher, bias, variance = (math.inf if math.isnan(value) else value for value in self._risks())
            gain = teacher - bias - variance
        return dict(
            teacher_excess_risk=teacher,
            excess_risk=bias + variance,
            bias=bias,
            variance=variance,
            gain=-math.inf if math.isnan(gain) else gain,
            accuracy=CLOSED_FORM,
        )

    def best_possible(self) -> Best:
        """Return the best method on the real labels of the teacher, which bounds the error of every student."""
        return self._best_with(self.ratio if self.inputs == "same" else self.teacher_ratio, "excess_risk")

    def best_surrogate(self) -> Surrogate:
        """Return the gains t_k of the labels <t beta, x> that are best for this student.

        The gains are equation (6) of docs/theory/learning_from_models.md.

        >>> groups = dict(eigenvalues=(4.0, 1.0, 0.2), weights=(0.2, 0.3, 0.5), signal_energy=(0.5, 0.3, 0.2))
        >>> Distillation(ratio=2.0, ridge=0.0, noise=0.3, **groups).best_surrogate().gain.round(6).tolist()
        [1.103722, 1.025925, 0.27138]
        """
        s, w, energy = self._groups()
        fit = shares_of(self.ratio, self.ridge, s, w)
        a, amplified = fit.learned, (1 - fit.gap) / fit.gap

        def excess(t: Array) -> float:
            left = s * energy
            return float(left @ (1 - a * t) ** 2 + amplified * (left @ ((1 - a) ** 2 * t**2) + self.noise**2))

        gain = a / (a**2 + (1 - a) ** 2 * amplified)
        return Surrogate(gain, excess(gain), excess(np.ones_like(gain)))

    def optimal_ridge(self) -> float:
        """Return the student's penalty of least excess risk, which may be 0 and is infinite if predicting 0 is best.

        >>> law = Distillation(ratio=0.5, teacher_ratio=0.8, teacher_ridge=0.2, noise=0.5)  # a teacher at its own best penalty
        >>> law.optimal_ridge()
        0.0
        """
        from scipy.optimize import minimize_scalar

        def excess(ridge: float) -> float:
            return float(self.replace(ridge=ridge).evaluate()["excess_risk"])

        values = [excess(ridge) for ridge in (0.0, *PENALTIES)]
        best = int(np.argmin(values))
        if best == len(values) - 1:
            return math.inf
        if best <= 1:
            return 0.0
        grid = np.log(PENALTIES)
        optimum = minimize_scalar(
            lambda x: excess(math.exp(x)), bounds=(grid[best - 2], grid[best]), method="bounded", options={"xatol": 1e-9}
        )
        return float(math.exp(optimum.x))

    # -- on a table ---------------------------------------------------------------------------------------------------------

    @classmethod
    def from_data(
        cls, X: ArrayLike, y: ArrayLike, samples: int, teacher_samples: int | None = None, **parameters: Any
    ) -> Self:
        """Return the law with the spectrum, the best linear predictor and the residual noise of a table.

        The law has one group for each direction, largest eigenvalue first.

        Parameters
        ----------
        X, y
            Rows and labels of the whole population, from which teacher and student draw.
        samples, teacher_samples
            Numbers of rows of the student and of the teacher (default: the same number).
        parameters
            Other parameters of the law. `teacher_groups=range(k)` restricts the teacher to the k leading directions.

        Examples
        --------
        >>> from limitlab.laws.regression._label_chains import shipped_images
        >>> law = Distillation.from_data(*shipped_images(), samples=800, teacher_samples=200, teacher_ridge=1e-4, ridge=0.01)
        >>> bool(law.theory().gain > 0)
        True
        """
        table = TablePopulation.of(X, y)
        directions = len(table.eigenvalues)
        ratios = {"ratio": directions / samples, "teacher_ratio": directions / (teacher_samples or samples)}
        if "teacher_groups" in parameters and parameters["teacher_groups"] is not None:
            parameters["teacher_groups"] = tuple(parameters["teacher_groups"])
        return cls(**{**table.spectrum(), **ratios, **parameters})

    def on_table(self, X: ArrayLike, y: ArrayLike, seeds: Iterable[int] = range(20)) -> xr.Dataset:
        """Return the excess risks and the gain over seeds, from simulations of teacher and student on rows of the table of `from_data`."""
        table, same = TablePopulation.of(X, y), self.inputs == "same"
        samples = table.samples_at(self.ratio, self.eigenvalues)
        pair = (samples if same else table.samples_at(self.teacher_ratio, self.eigenvalues), samples)
        runs = [
            taught(
                np.random.default_rng([seed, *pair]),
                table,
                pair,
                (self.teacher_ridge, self.ridge),
                self.teacher_groups,
                self.student_noise,
                self.mix if same else None,
            )
            for seed in seeds
        ]
        worse, excess = np.array(runs).T
        return xr.Dataset(
            {
                name: ("seed", values)
                for name, values in (("teacher_excess_risk", worse), ("excess_risk", excess), ("gain", worse - excess))
            }
        )

    # -- the experiment ---------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw) -> Values:
        """Measure both fits on drawn inputs. The fits are linear in beta and the noises, which are averaged in closed form."""
        p, n = draw.size, draw.count("ratio")
        population, counts = self.population_at(p)
        s, energy = np.repeat(population.eigenvalues, counts), np.repeat(population.energy / counts, counts)

        def covariance(samples: int) -> Array:
            X = draw_design(draw.rng, samples, population.eigenvalues, counts, self.entries).X
            return np.asarray(X.T @ X / samples)

        if self.inputs == "same":
            S = covariance(n)
            Rt, R = ridge_resolvent(S, self.teacher_ridge), ridge_resolvent(S, self.ridge)
            teacher, teacher_noise = Rt @ S, self.noise**2 / n * Rt @ S @ Rt
            labels = (1 - self.mix) * np.eye(p) + self.mix * S @ Rt  # of X'y/n
            student, noise = R @ labels @ S, self.noise**2 / n * R @ labels @ S @ labels.T @ R
        else:
            samples = draw.count("teacher_ratio")
            groups = range(len(counts)) if self.teacher_groups is None else self.teacher_groups
            seen = np.isin(np.repeat(np.arange(len(counts)), counts), list(groups))
            St, S = covariance(samples), covariance(n)
            Rt, R = np.zeros((p, p)), ridge_resolvent(S, self.ridge)
            Rt[np.ix_(seen, seen)] = ridge_resolvent(St[np.ix_(seen, seen)], self.teacher_ridge)
            teacher, teacher_noise = Rt @ St, self.noise**2 / samples * Rt @ St @ Rt
            student = R @ S @ teacher
            noise = R @ S @ teacher_noise @ S @ R + self.student_noise**2 / n * R @ S @ R

        def unlearned_energy(T: Array) -> float:
            return float(s @ (T - np.eye(p)) ** 2 @ energy)

        worse, bias = unlearned_energy(teacher) + float(s @ np.diag(teacher_noise)), unlearned_energy(student)
        variance = float(s @ np.diag(noise))
        return dict(
            teacher_excess_risk=worse,
            excess_risk=bias + variance,
            bias=bias,
            variance=variance,
            gain=worse - bias - variance,
        )


# -- a student on the inputs of its teacher, as a combination of ridge filters of the sample covariance ----------------

NEAR = 2.0  # for penalties within this factor the divided differences cancel; use an integral of the derivative instead
NODES = 16


class Filter(NamedTuple):
    """Combination sum_i values_i g_{ridges_i} + slopes_i dg_{ridges_i}/da of ridge filters."""

    ridges: Array
    values: Array
    slopes: Array


def mixed_filter(ridge: float, teacher_ridge: float, mix: float) -> Filter:
    """Return equation (3) as a combination of ridge filters, with an integral over penalties if both penalties nearly agree.

    >>> mixed_filter(0.3, 0.1, 1.0).values.round(12).tolist()
    [1.5, -0.5]
    >>> float(mixed_filter(0.1, 0.1, 0.7).values.sum().round(12))
    1.0
    """
    a, b = ridge, teacher_ridge
    if max(a, b) > NEAR * min(a, b):
        return Filter(np.array([a, b]), np.array([1 - mix + mix * a / (a - b), -mix * b / (a - b)]), np.zeros(2))
    points, weights = np.polynomial.legendre.leggauss(NODES)
    between = b + (a - b) * (points + 1) / 2
    share = mix * weights / 2
    return Filter(np.r_[a, between], np.r_[1 - mix, share], np.r_[0.0, share * between])


def same_inputs(
    combination: Filter, ratio: float, eigenvalues: Array, weights: Array, energy: Array
) -> tuple[float, float, float]:
    """Return bias, variance over tau^2, and 1 - df2 of a combination of ridge filters (eq. 4 and its derivatives)."""
    s, load = eigenvalues, ratio * weights
    equivalent = ridge_equivalent(combination.ridges, s, load[None])
    kappa, gap = np.atleast_1d(equivalent.kappa), float(np.min(equivalent.gap2))
    if gap == 0:
        return math.inf, math.inf, 0.0
    u, learned = (np.asarray(share) for share in both_shares(kappa, s))
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = np.where(s > 0, learned / (s + kappa[:, None]), 0.0) * np.asarray(equivalent.derivative).reshape(
            -1, 1
        )  # du/da

    def form(left: Array, right: Array, weight: Array) -> Array:
        return np.asarray((left * weight) @ right.T)

    c, d = combination.values, combination.slopes
    left = 1 - form(learned, learned, load)  # 1 - df2(a, b)
    m1 = -form(
        slope, learned, load
    )  # derivatives of df2 in its first argument (m1), in its second (m1.T), and in both (m12)
    m12 = form(slope, slope, load)

    def combined(n: Array, n1: Array, n12: Array) -> float:
        """Return the sum over pairs of (c + d d/da)(c + d d/db) n/(1 - df2)."""
        first = n1 / left + n * m1 / left**2
        both = n12 / left + (n1 * m1.T + n1.T * m1 + n * m12) / left**2 + 2 * n * m1 * m1.T / left**3
        return float(c @ (n / left) @ c + 2 * d @ first @ c + d @ both @ d)

    signal = energy * s
    bias = combined(form(u, u, signal), form(slope, u, signal), form(slope, slope, signal))
    zero = np.zeros_like(left)
    return bias, combined(zero + 1, zero, zero) - 1, gap
