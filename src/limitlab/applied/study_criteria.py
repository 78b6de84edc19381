"""Sample sizes of prediction models from published criteria, for development and for validation.

The criteria of Riley et al. (2019, parts I and II) and Archer et al. (2021), Riley et al. (2021) are formulas for the smallest number of
samples. For the development of a model they require little shrinkage, little optimism in R^2, and precise estimates of the mean outcome.
For a validation of a model they require that the confidence intervals of its performance have at most given widths. The number of samples
is the largest of the criteria. The formulas are derived in docs/theory/logistic_calibration.md, section "Published criteria".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from limitlab._core.arguments import explained
from limitlab._core.page import Described, Page, Table
from limitlab.errors import Refused
from limitlab.laws.classification.gaussian_score import TrueScore
from limitlab.laws.classification.logistic_calibration import intercept_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SizeCriteria", "continuous_size", "survival_size", "validation_size"]

NORMAL_95 = 1.96
"""Half width of a 95 % interval in standard errors, as in the published formulas."""

OPTIMISM = 0.05
"""Largest acceptable difference between apparent and adjusted R^2 (over its maximum, for labels and times of events)."""

RISK_MARGIN = 0.05
"""Largest acceptable half width of the 95 % interval of a risk."""

MOST = 10**9
"""Largest number of samples that a search considers."""


@dataclass(frozen=True)
class SizeCriteria(Described):
    """The number of samples that published criteria require.

    Attributes
    ----------
    study
        What the number is for, such as "development, continuous outcome".
    inputs
        The inputs by name.
    criteria
        Number of samples that each criterion requires.
    samples, decides
        The largest of these numbers, and the name of its criterion.
    events
        Expected number of events in these samples; None for continuous outcomes.
    notes
        Assumptions, one sentence each.
    """

    study: str
    inputs: Mapping[str, float]
    criteria: Mapping[str, int]
    events: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        """The largest number of samples of the criteria."""
        return max(self.criteria.values())

    @property
    def decides(self) -> str:
        """The name of the criterion that requires the largest number of samples."""
        return max(self.criteria, key=lambda name: self.criteria[name])

    @property
    def table(self) -> xr.Dataset:
        """The number of samples of each criterion."""
        return xr.Dataset(
            {"samples": ("criterion", np.array(list(self.criteria.values())), {"long_name": "number of samples"})},
            {"criterion": list(self.criteria)},
        )

    def page(self) -> Page:
        """Return the plain description, with the number of samples and the criterion that decides in the first line."""
        events = "" if self.events is None else f" ({self.events} events)"
        facts = {"samples": f"{self.samples}{events}; the criterion that decides is {self.decides}", "study": self.study}
        facts |= {name.replace("_", " "): f"{value:.6g}" for name, value in self.inputs.items()}
        rows = [{"criterion": name, "samples": count} for name, count in self.criteria.items()]
        data = {**asdict(self), "samples": self.samples, "decides": self.decides}
        return Page(
            facts=facts, tables=[Table(rows, "samples that each criterion requires")], sentences=list(self.notes), data=data
        )

    def figure(self) -> Figure:
        """Draw the number of samples of each criterion as bars."""
        from limitlab.plotting.style import COLOURS, finish, new_figure

        figure, (axes,) = new_figure(width=7.2)
        names = list(self.criteria)[::-1]
        colours = [COLOURS[1] if name == self.decides else COLOURS[0] for name in names]
        axes.barh(range(len(names)), [self.criteria[name] for name in names], color=colours)
        axes.set_yticks(range(len(names)), names)
        finish(axes, "number of samples", "", self.study, legend=False)
        return figure


# -- development ----------------------------------------------------------------------------------------------------------


@explained
def continuous_size(
    predictors: int,
    r_squared: float,
    mean: float | None = None,
    sd: float | None = None,
    shrinkage: float = 0.9,
    margin: float = 1.1,
) -> SizeCriteria:
    """Return the number of samples for a linear regression (Riley et al. 2019, part I).

    Parameters
    ----------
    predictors
        Candidate predictors (parameters without the intercept).
    r_squared
        R^2 of the model in new data (adjusted R^2 of an earlier model).
    mean, sd
        Mean and standard deviation of the outcome. Without them the precision of the mean is not required.
    shrinkage
        Smallest acceptable shrinkage factor.
    margin
        Largest acceptable ratio of the ends of 95 % intervals to the estimate, for the residual standard deviation and the mean.

    Examples
    --------
    >>> dict(continuous_size(25, 0.2, mean=1.9, sd=0.6).criteria)
    {'shrinkage': 918, 'optimism in R^2': 401, 'residual standard deviation': 259, 'mean outcome': 38}
    """
    _require_whole("predictors", predictors)
    _require_between("r_squared", r_squared, 0, 1)
    _require_between("shrinkage", shrinkage, 0, 1)
    _require_between("margin", margin, 1, math.inf)
    criteria = {
        "shrinkage": first_size(lambda n: linear_shrinkage(n, predictors, r_squared) >= shrinkage, predictors + 2),
        "optimism in R^2": math.ceil(round(1 + predictors * (1 - r_squared) / OPTIMISM, 9)),
        "residual standard deviation": first_size(lambda n: spread_margin(n - predictors - 1) <= margin, predictors + 2),
    }
    if (mean is None) != (sd is None):
        raise Refused("mean and sd belong together: give both, or neither")
    if mean is not None and sd is not None:
        _require_between("sd", sd, 0, math.inf)
        if not (math.isfinite(mean) and mean != 0):
            raise Refused(f"mean = {mean!r} is not allowed: must be finite and not 0, because its margin is relative")
        spread = sd * math.sqrt(1 - r_squared)

        def precise(n: int) -> bool:
            from scipy.stats import t

            half = float(t.ppf(0.975, n - predictors - 1)) * spread / math.sqrt(n)
            return 1 + half / abs(mean) <= margin

        criteria["mean outcome"] = first_size(precise, predictors + 2)
    inputs = dict(predictors=predictors, r_squared=r_squared, shrinkage=shrinkage, margin=margin)
    inputs |= {} if mean is None or sd is None else dict(mean=mean, sd=sd)
    notes = ("The criteria assume a linear model with constant residual variance and without selection of predictors.",)
    return SizeCriteria("development, continuous outcome", inputs, criteria, notes=notes)


def linear_shrinkage(samples: int, predictors: int, r_squared: float) -> float:
    """Return the expected shrinkage factor of a linear regression, with R^2 as the adjusted R^2 (Copas 1983).

    >>> round(linear_shrinkage(918, 25, 0.2), 4)
    0.9001
    """
    apparent = (r_squared * (samples - predictors - 1) + predictors) / (samples - 1)
    return 1 + (predictors - 2) / (samples * math.log(1 - apparent))


def spread_margin(freedom: int) -> float:
    """Return the larger ratio of an end of the 95 % interval of a standard deviation to its estimate."""
    from scipy.stats import chi2

    low, high = chi2.ppf([0.025, 0.975], freedom)
    return math.sqrt(max(freedom / low, high / freedom))


@explained
def survival_size(
    predictors: int, r_squared: float, rate: float, follow_up: float, horizon: float, shrinkage: float = 0.9
) -> SizeCriteria:
    """Return the number of samples for a model of the time to an event (Riley et al. 2019, part II).

    Parameters
    ----------
    predictors
        Candidate predictors (parameters).
    r_squared
        Cox and Snell's R^2 of the model in new data.
    rate
        Events per unit of time.
    follow_up
        Mean time of follow-up.
    horizon
        Time at which risks are predicted.
    shrinkage
        Smallest acceptable shrinkage factor.

    Examples
    --------
    >>> study = survival_size(30, 0.051, rate=0.065, follow_up=2.07, horizon=2)
    >>> study.samples, study.decides, study.events
    (5143, 'shrinkage', 692)
    """
    _require_whole("predictors", predictors)
    for name, value in (("rate", rate), ("follow_up", follow_up), ("horizon", horizon)):
        _require_between(name, value, 0, math.inf)
    _require_between("shrinkage", shrinkage, 0, 1)
    share = rate * follow_up
    largest = 1 - math.exp(2 * share * (math.log(share) - 1)) if share < math.e else 1.0
    _require_between("r_squared", r_squared, 0, largest)

    def precise(n: int) -> bool:
        high = rate + NORMAL_95 * math.sqrt(rate / (follow_up * n))
        return math.exp(-rate * horizon) - math.exp(-high * horizon) <= RISK_MARGIN

    criteria = {
        "shrinkage": shrinkage_size(predictors, r_squared, shrinkage),
        "optimism in R^2": shrinkage_size(predictors, r_squared, r_squared / (r_squared + OPTIMISM * largest)),
        "risk at the horizon": first_size(precise, 1),
    }
    inputs = dict(
        predictors=predictors, r_squared=r_squared, rate=rate, follow_up=follow_up, horizon=horizon, shrinkage=shrinkage
    )
    notes = (
        f"The largest possible R^2 is {largest:.3f}, from a constant rate.",
        "The criteria assume a model without selection of predictors.",
    )
    return SizeCriteria("development, time to an event", inputs, criteria, math.ceil(max(criteria.values()) * share), notes)


def shrinkage_size(predictors: int, r_squared: float, shrinkage: float) -> int:
    """Return the n at which the expected shrinkage factor of a model with this Cox-Snell R^2 is as required."""
    if r_squared >= shrinkage:
        return predictors + 1
    return math.ceil(predictors / ((shrinkage - 1) * math.log(1 - r_squared / shrinkage)))


# -- validation -----------------------------------------------------------------------------------------------------------


@explained
def validation_size(
    prevalence: float | None = None,
    auc: float | None = None,
    r_squared: float | None = None,
    score_mean: float | None = None,
    score_sd: float | None = None,
    ratio_width: float = 0.2,
    slope_width: float = 0.2,
    auc_width: float = 0.1,
    r_squared_width: float = 0.1,
    mean_width: float = 0.2,
    threshold: float | None = None,
    benefit_width: float = 0.2,
) -> SizeCriteria:
    """Return the number of samples that measure the performance of an existing model with given precision.

    With `prevalence` and `auc` the outcome is a label (Riley et al. 2021), with `r_squared` it is a number (Archer et al. 2021).

    Parameters
    ----------
    prevalence, auc
        Share of labels 1, and AUC of the model.
    r_squared
        R^2 of the model, for a continuous outcome.
    score_mean, score_sd
        Mean and standard deviation of the model's linear predictor, if they are known. By default they follow from prevalence and AUC.
    ratio_width, slope_width, auc_width
        Largest widths of the 95 % intervals of observed over expected events, of the calibration slope, and of the AUC.
    r_squared_width, mean_width
        Largest widths of the 95 % intervals of R^2, and of the mean error in standard deviations of the outcome.
    threshold
        Risk at which a decision changes. The net benefit at this risk is then required too.
    benefit_width
        Largest width of the 95 % interval of the standardised net benefit.

    Examples
    --------
    >>> study = validation_size(0.018, auc=0.8, score_mean=-5, score_sd=2.5, ratio_width=1)
    >>> dict(study.criteria)
    {'observed over expected': 906, 'calibration slope': 4554, 'AUC': 4252}
    """
    widths = dict(
        ratio_width=ratio_width, slope_width=slope_width, auc_width=auc_width, r_squared_width=r_squared_width,
        mean_width=mean_width, benefit_width=benefit_width,
    )  # fmt: skip
    for name, width in widths.items():
        _require_between(name, width, 0, math.inf)
    if r_squared is not None:
        if prevalence is not None or auc is not None:
            raise Refused("r_squared together with prevalence or auc is not allowed: r_squared is for continuous outcomes")
        return _continuous_validation(r_squared, r_squared_width, slope_width, mean_width)
    if prevalence is None or auc is None:
        raise Refused("prevalence and auc are required for labels, or r_squared for a continuous outcome")
    _require_between("prevalence", prevalence, 0, 1)
    _require_between("auc", auc, 0.5, 1)
    if (score_mean is None) != (score_sd is None):
        raise Refused("score_mean and score_sd belong together: give both, or neither")
    if score_mean is None or score_sd is None:
        truth = true_score(auc, prevalence)
        score_mean, score_sd = truth.intercept, truth.signal
    _require_between("score_sd", score_sd, 0, math.inf)
    criteria = {
        "observed over expected": math.ceil(
            (1 - prevalence) / (prevalence * (math.asinh(ratio_width / 2) / NORMAL_95) ** 2)
        ),
        "calibration slope": slope_size(score_mean, score_sd, slope_width / 2 / NORMAL_95),
        "AUC": first_size(lambda n: auc_variance(n, auc, prevalence) <= (auc_width / 2 / NORMAL_95) ** 2, 2),
    }
    inputs = dict(prevalence=prevalence, auc=auc, score_mean=score_mean, score_sd=score_sd)
    if threshold is not None:
        _require_between("threshold", threshold, 0, 1)
        criteria["net benefit"] = benefit_size(prevalence, score_mean, score_sd, threshold, benefit_width / 2 / NORMAL_95)
        inputs["threshold"] = threshold
    inputs |= dict(ratio_width=ratio_width, slope_width=slope_width, auc_width=auc_width)
    notes = ("The criteria assume a calibrated model whose linear predictor is Gaussian.",)
    samples = max(criteria.values())
    return SizeCriteria("validation, labels", inputs, criteria, math.ceil(samples * prevalence), notes)


def true_score(auc: float, prevalence: float) -> TrueScore:
    """Return the Gaussian score of a logistic model with this AUC and prevalence.

    >>> score = true_score(0.8, 0.2)
    >>> round(score.intercept, 7), round(score.signal, 7)
    (-1.8258884, 1.3417095)
    """
    from scipy.optimize import brentq

    def at(signal: float) -> TrueScore:
        return TrueScore(0.0 if prevalence == 0.5 else intercept_of(prevalence, signal), signal)

    high = 1.0
    while at(high).auc < auc:
        high *= 2
    return at(float(brentq(lambda signal: at(signal).auc - auc, 1e-4, high, xtol=1e-12, rtol=1e-12)))


def slope_size(mean: float, sd: float, error: float) -> int:
    """Return the n at which the calibration slope of a calibrated Gaussian score has this standard error.

    The standard error is that of the slope in a logistic regression of the labels on the score, from Fisher's information.
    """
    from limitlab.numerics.quadrature import even_gaussian_rule

    u, weight = even_gaussian_rule(min(0.05, 0.2 / sd), 9.0)
    score = mean + sd * u
    bend = weight / (2 + np.exp(score) + np.exp(-score))
    zero, one, two = (float(bend @ score**power) for power in range(3))
    return math.ceil(zero / (error**2 * (zero * two - one**2)))


def auc_variance(samples: int, auc: float, prevalence: float) -> float:
    """Return Newcombe's variance of a measured AUC.

    >>> round(auc_variance(1000, 0.8, 0.2) ** 0.5, 4)
    0.0175
    """
    half = samples / 2 - 1
    spread = 1 + half * (1 - auc) / (2 - auc) + half * auc / (1 + auc)
    return auc * (1 - auc) * spread / (samples**2 * prevalence * (1 - prevalence))


def benefit_size(prevalence: float, mean: float, sd: float, threshold: float, error: float) -> int:
    """Return the n at which the standardised net benefit of a calibrated Gaussian score has this standard error.

    The standardised net benefit is sensitivity - w (1 - specificity), with w = (1 - prevalence)/prevalence threshold/(1 - threshold).
    """
    from scipy.special import expit

    from limitlab.numerics.quadrature import graded_rule

    cut = (math.log(threshold / (1 - threshold)) - mean) / sd
    u, weight = graded_rule([(cut, 1 / sd), TrueScore(mean, sd).layer(1.0)], 24)
    risk, above = expit(mean + sd * u), u >= cut
    cases, controls = float(weight @ risk), float(weight @ (1 - risk))
    sensitivity, false = float(weight @ (risk * above)) / cases, float(weight @ ((1 - risk) * above)) / controls
    odds = (1 - prevalence) / prevalence * threshold / (1 - threshold)
    variance = sensitivity * (1 - sensitivity) / prevalence + odds**2 * false * (1 - false) / (1 - prevalence)
    variance += odds**2 * false**2 / (prevalence * (1 - prevalence))
    return math.ceil(variance / error**2)


def _continuous_validation(r_squared: float, r_squared_width: float, slope_width: float, mean_width: float) -> SizeCriteria:
    _require_between("r_squared", r_squared, 0, 1)
    rest = 1 - r_squared
    error, slope, mean = (width / 2 / NORMAL_95 for width in (r_squared_width, slope_width, mean_width))
    criteria = {
        "R^2": math.ceil(4 * r_squared * rest**2 / error**2),
        "mean error": math.ceil(rest / mean**2),
        "calibration slope": math.ceil(1 + rest / r_squared / slope**2),
        "residual standard deviation": first_size(lambda n: spread_margin(n - 1) <= 1.1, 3),
    }
    inputs = dict(r_squared=r_squared, r_squared_width=r_squared_width, slope_width=slope_width, mean_width=mean_width)
    notes = ("The criteria assume a calibrated model with constant residual variance.",)
    return SizeCriteria("validation, continuous outcome", inputs, criteria, notes=notes)


# -- searches and checks --------------------------------------------------------------------------------------------------


def first_size(meets: Callable[[int], bool], least: int) -> int:
    """Return the smallest number from `least` that meets a requirement which all larger numbers meet too.

    >>> first_size(lambda n: n * n >= 1000, 1)
    32
    """
    high = least
    while not meets(high):
        if high > MOST:
            raise Refused(f"the requirement is not met by {MOST} samples: relax it")
        high *= 2
    low = max(least - 1, high // 2)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if meets(middle) else (middle, high)
    return high


def _require_whole(name: str, value: float) -> None:
    if isinstance(value, bool) or not float(value).is_integer() or value < 1:
        raise Refused(f"{name} = {value!r} is not allowed: must be a whole number of at least 1")


def _require_between(name: str, value: float, low: float, high: float) -> None:
    if not low < value < high:
        bound = f"above {low:g}" + (f" and below {high:.4g}" if math.isfinite(high) else "")
        raise Refused(f"{name} = {value!r} is not allowed: must be {bound}")
