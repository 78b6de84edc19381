"""Sample sizes of prediction models, from the limit law of logistic regression and from published criteria.

The input is the number p of candidate predictors, the prevalence and the discrimination (AUC) of the true model. The law
`LogisticCalibration` predicts the calibration and the losses of a fit without penalty to n samples. Each requirement is monotone in p/n, so
it can be solved for n. The result assumes jointly Gaussian predictors (skewed ones need more samples), a correct logistic model, no
selection of predictors and no penalty. The requirements hold in the mean over studies. A single study deviates from this mean, and
`SampleSize.simulated_slopes` shows by how much. The assurance is the probability that a single study meets the requirement on the slope.
See docs/theory/logistic_calibration.md, section "Sample sizes".

Continuous outcomes, times of events and validations have published criteria only (`study_criteria`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.page import Described, Page, Table, rows_of
from limitlab.applied.pilot import Pilot, read_pilot, signal_interval, simulated_fits
from limitlab.applied.study_criteria import SizeCriteria, continuous_size, survival_size, true_score, validation_size
from limitlab.errors import Refused, UnreachableTarget
from limitlab.laws.classification.gaussian_score import Score, TrueScore
from limitlab.laws.classification.logistic_calibration import LogisticCalibration, intercept_of
from limitlab.laws.classification.logistic_system import Existence, existence, solve_logistic
from limitlab.laws.classification.populations import Groups
from limitlab.numerics.quadrature import panel_rule

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SampleSize", "sample_size", "sample_size_figure"]

Array = NDArray[np.float64]

LARGEST_SHARE, SMALLEST_SHARE = 0.98, 1e-7  # limits of the search for p/n, as shares of the existence threshold
MARGIN_OF_ERROR, NORMAL_95 = 0.05, 1.96  # Riley's third criterion
OPTIMISM = 0.05  # Riley's second criterion
NORMAL_90 = 1.645
ASSURANCE_FITS = (200, 300, 500, 1000)  # simulated studies in each round of the search for an assured number of samples
POOR_SLOPE, POOR_FITS = 0.8, 100  # the page reports how often single studies have a smaller slope, from this number of fits
RILEY = {
    "shrinkage": "Riley (i), shrinkage",
    "optimism": "Riley (ii), optimism in R^2",
    "prevalence": "Riley (iii), prevalence within 0.05",
}


@dataclass(frozen=True)
class SampleSize(Described):
    """The number of samples that a logistic regression needs, and the numbers that rules of thumb give.

    Attributes
    ----------
    predictors, auc, prevalence
        The inputs; `auc` is the AUC of the true model.
    intercept, signal
        Mean and standard deviation of the true score, which follow from prevalence and AUC.
    needed
        Number of samples for each requirement, rounded up.
    ratio, samples
        p/n of the strictest requirement, and its number of samples, rounded up.
    riley_samples, riley_r2, riley_criteria
        Riley's criterion (i), the Cox-Snell R^2 that it uses, and all three criteria by name.
    ten_events_samples
        Number of samples with ten labels 1 per predictor.
    slope_at_riley, slope_at_ten_events
        Calibration slope of the law at these numbers of samples (0 if no fit exists).
    existence_threshold
        p/n above which no fit exists.
    pilot
        The results of the pilot table, if there is one.
    interval
        A 90 % interval of `samples` from the pilot table; None without a pilot. Its upper end is infinite if the pilot is consistent with
        no signal.
    """

    predictors: int
    auc: float
    prevalence: float
    intercept: float
    signal: float
    needed: Mapping[str, int]
    ratio: float
    samples: int
    riley_samples: int
    riley_r2: float
    riley_criteria: Mapping[str, int]
    ten_events_samples: int
    slope_at_riley: float
    slope_at_ten_events: float
    existence_threshold: float
    pilot: Pilot | None
    _existence: Existence
    interval: tuple[float, float] | None = None

    @property
    def recommended(self) -> int:
        """The largest of the numbers of samples of all requirements and of all three of Riley's criteria."""
        return max(self.samples, *self.riley_criteria.values())

    @property
    def decides(self) -> str:
        """The name of the requirement or criterion that needs the largest number of samples."""
        if self.samples >= self.recommended:
            return max(self.needed, key=lambda name: self.needed[name]).replace("_", " ")
        return RILEY[max(self.riley_criteria, key=lambda name: self.riley_criteria[name])]

    @cached_property
    def table(self) -> xr.Dataset:
        """Calibration and losses for a range of numbers of samples, which includes those of the law and of the rules of thumb."""
        known = [self.samples, self.riley_samples, self.ten_events_samples]
        least = 1.2 * self.predictors / self.existence_threshold
        return self.curve(np.unique(np.round([*np.geomspace(least, 3 * max(known), 8), *known])))

    def page(self) -> Page:
        """Return the plain description, with the samples for each requirement, the assumptions and a table of sample sizes."""
        events = math.ceil(round(self.recommended * self.prevalence, 9))
        facts = {"samples": f"{self.recommended} ({events} events); the requirement that decides is {self.decides}"}
        if self.interval is not None:
            low, high = self.interval
            end = f"{high:.0f}" if math.isfinite(high) else "infinity, because the pilot is consistent with no signal"
            facts["interval from the pilot"] = f"{low:.0f} to {end} (90 %, for the {self.samples} samples of the law)"
        facts["law"] = f"{self.samples}"
        facts |= {f"  for {name.replace('_', ' ')}": f"{count}" for name, count in self.needed.items()}
        facts["Riley (i)"] = f"{self.riley_samples}, where the slope is {self.slope_at_riley:.3f}"
        facts |= {RILEY[name]: f"{self.riley_criteria[name]}" for name in ("optimism", "prevalence")}
        facts["Riley, all three"] = f"{max(self.riley_criteria.values())}"
        poor = self.poor_share()
        facts |= {
            f"single studies with a slope below {POOR_SLOPE:g}": f"{poor:.0%} of {POOR_FITS} simulated studies with {self.recommended}",
            "ten events per predictor": f"{self.ten_events_samples}, where the slope is {self.slope_at_ten_events:.3f}",
            "design": f"{self.predictors} predictors, AUC {self.auc:.4g}, prevalence {self.prevalence:.4g}",
            "true score": f"mean {self.intercept:.4g}, standard deviation {self.signal:.4g}",
            "": ASSUMES,
        }
        data = {name: value for name, value in asdict(self).items() if not name.startswith("_")}
        data |= {"recommended": self.recommended, "decides": self.decides, "share_below_slope_0.8": poor}
        if self.interval is not None:
            data["interval"] = [end if math.isfinite(end) else None for end in self.interval]
        if self.pilot is not None:
            data["pilot"] = {**data["pilot"], "remarks": self.pilot.remarks()}
        return Page(facts=facts, tables=[Table(rows_of(self.table), "performance by number of samples")], data=data)

    def poor_share(self, slope: float = POOR_SLOPE, samples: int | None = None, fits: int = POOR_FITS) -> float:
        """Return the share of simulated single studies with a calibration slope below a value (default: studies of `recommended` samples).

        >>> sample_size(3, auc=0.9, prevalence=0.5).poor_share(samples=115) > 0.1
        True
        """
        truth = TrueScore(self.intercept, self.signal)
        slopes = simulated_fits(truth, self.predictors, self.recommended if samples is None else samples, fits, 0).slopes
        return float(np.mean(slopes < slope))

    def no_fit_probability(self, samples: ArrayLike) -> Any:
        """Return the probability that no fit exists for this number of samples."""
        return self._existence.no_fit_probability(self.predictors, samples)[()]

    def law(self, samples: float | None = None) -> LogisticCalibration:
        """Return the law for this number of samples (default: `self.samples`)."""
        ratio = self.ratio if samples is None else self.predictors / samples
        return LogisticCalibration(ratio=ratio, intercept=self.intercept, signal=self.signal)

    def simulated_slopes(self, samples: int | None = None, fits: int = 100) -> Array:
        """Return the calibration slopes of simulated single studies of this size.

        The requirement on the slope is about their mean. Their spread shows how far a single study can deviate from it.
        """
        law = self.law(self.samples if samples is None else samples)
        return np.asarray(law.simulate_batch(self.predictors, range(fits)).calibration_slope.values)

    def curve(self, samples: ArrayLike) -> xr.Dataset:
        """Return slope, losses relative to the true model and the probability of no fit, for each number of samples.

        >>> table = sample_size(10, auc=0.8, prevalence=0.3).curve([200, 800])
        >>> bool(table.calibration_slope[0] < table.calibration_slope[1] < 1)
        True
        """
        counts = np.atleast_1d(np.asarray(samples, dtype=float))
        truth = TrueScore(self.intercept, self.signal)
        rows = [_promises(truth, self._existence, self.predictors / n) for n in counts]
        columns = {name: ("samples", np.array([row[name] for row in rows]), {"long_name": ABOUT[name]}) for name in rows[0]}
        risk = ("samples", np.atleast_1d(self.no_fit_probability(counts)), {"long_name": ABOUT["no_fit_probability"]})
        return xr.Dataset({**columns, "no_fit_probability": risk}, {"samples": counts})


ASSUMES = "assumes Gaussian predictors, a logistic model, no selection, no penalty; skewed predictors need more samples"

ABOUT = {
    "calibration_slope": "calibration slope",
    "auc_loss": "AUC lost against the true model",
    "log_loss_excess": "log-loss minus that of the true model",
    "error_excess": "error rate minus that of the true model",
    "no_fit_probability": "probability that no fit exists",
}


@explained
def sample_size(
    predictors: int | None = None,
    auc: float | None = None,
    prevalence: float | None = None,
    calibration_slope: float = 0.9,
    auc_loss: float | None = None,
    log_loss_excess: float | None = None,
    error_excess: float | None = None,
    risk_no_fit: float = 0.01,
    pilot: str | Path | tuple[ArrayLike, ArrayLike] | None = None,
    target: str | None = None,
    assurance: float | None = None,
    outcome: Literal["binary", "continuous", "survival"] = "binary",
    validation: bool = False,
    r_squared: float | None = None,
    mean: float | None = None,
    sd: float | None = None,
    rate: float | None = None,
    follow_up: float | None = None,
    horizon: float | None = None,
    score_mean: float | None = None,
    score_sd: float | None = None,
    threshold: float | None = None,
) -> Any:
    """Return the number of samples that a prediction model needs.

    The result is a `SampleSize` for a logistic regression without penalty, and a `SizeCriteria` for continuous outcomes, times of events
    and validations.

    Parameters
    ----------
    predictors
        Candidate predictors (parameters without the intercept).
    auc
        AUC of the true model, 0.5 to 0.999.
    prevalence
        Share of labels 1.
    calibration_slope
        Smallest acceptable mean calibration slope, between 0 and 1.
    auc_loss
        Largest acceptable mean loss of AUC relative to the true model.
    log_loss_excess
        Largest acceptable mean excess of the log-loss over the true model.
    error_excess
        Largest acceptable mean excess of the error rate over the true model.
    risk_no_fit
        Largest acceptable probability that no fit exists.
    pilot
        A pilot table, as a file (.csv, .parquet or .npz) or as arrays (X, y). limitlab estimates `predictors`, `auc` and `prevalence` from
        the table unless you give them.
    target
        Name of the column of labels in the pilot table.
    assurance
        Also require that a single study has at least `calibration_slope` with this probability, from simulated studies.
    outcome
        Labels, numbers or times of events.
    validation
        Plan the validation of an existing model instead of a new model.
    r_squared
        R^2 of the model in new data (Cox and Snell for labels and times of events). For labels it replaces `auc`.
    mean, sd
        Mean and standard deviation of a continuous outcome.
    rate
        Events per unit of time, for times of events.
    follow_up
        Mean time of follow-up.
    horizon
        Time at which risks are predicted.
    score_mean, score_sd
        Mean and standard deviation of the linear predictor of the model to validate.
    threshold
        Risk at which a decision changes, for the net benefit of a validation.

    Raises
    ------
    ValueError
        If a value is out of range.
    UnreachableTarget
        If a requirement is not met even with 10^7 times as many samples as a fit needs to exist.

    Examples
    --------
    >>> study = sample_size(20, auc=0.8, prevalence=0.2)
    >>> study.samples, study.riley_samples, study.ten_events_samples
    (1323, 882, 1000)
    >>> round(study.slope_at_riley, 6)
    0.854687
    >>> study = sample_size(3, auc=0.9, prevalence=0.5)
    >>> study.samples, study.recommended, study.decides
    (115, 385, 'Riley (iii), prevalence within 0.05')
    >>> sample_size(25, r_squared=0.2, outcome="continuous").samples
    918
    """
    named: dict[str, Any] = dict(
        r_squared=r_squared, mean=mean, sd=sd, rate=rate, follow_up=follow_up, horizon=horizon, score_mean=score_mean,
        score_sd=score_sd, threshold=threshold,
    )  # fmt: skip
    if validation or outcome != "binary":
        named |= dict(predictors=predictors, auc=auc, prevalence=prevalence, pilot=pilot, assurance=assurance)
        return _published(outcome, validation, calibration_slope, named)
    _require_used("for a logistic regression", named, ("r_squared",))
    pilot_study = None if pilot is None else read_pilot(pilot, target)
    interval = None
    if pilot_study is not None:
        if auc is None and r_squared is None:
            interval = signal_interval(pilot_study)
        predictors = pilot_study.predictors if predictors is None else predictors
        auc = pilot_study.auc if auc is None else auc
        prevalence = pilot_study.prevalence if prevalence is None else prevalence
    if r_squared is not None and prevalence is not None:
        if auc is not None:
            raise Refused("auc together with r_squared is not allowed: each determines the other")
        auc = auc_behind(r_squared, prevalence)
    if predictors is None or auc is None or prevalence is None:
        raise Refused("predictors, auc and prevalence are required: give all three, or a pilot table")
    _check(predictors, auc, prevalence, risk_no_fit)
    truth = true_score(auc, prevalence)
    case = existence(truth)
    asked = dict(
        calibration_slope=calibration_slope, auc_loss=auc_loss, log_loss_excess=log_loss_excess, error_excess=error_excess
    )
    ratios = {"no_fit_probability": predictors / _samples_for_a_fit(case, predictors, risk_no_fit)}
    for name, wanted in asked.items():
        if wanted is not None:
            ratios[name] = _largest_ratio(truth, case, name, wanted)
    needed = {name: math.ceil(predictors / ratio) for name, ratio in ratios.items()}
    if assurance is not None:
        if not 0 < assurance < 1:
            raise Refused(f"assurance = {assurance!r} is not allowed: must be above 0 and below 1")
        needed["assurance"] = assured_samples(
            truth, int(predictors), calibration_slope, assurance, needed["calibration_slope"]
        )
        ratios["assurance"] = predictors / needed["assurance"]
    r2 = cox_snell_r2(auc, prevalence)
    riley = riley_criteria(predictors, prevalence, r2, calibration_slope)
    events = math.ceil(round(10 * predictors / prevalence, 9))
    return SampleSize(
        predictors=int(predictors),
        auc=auc,
        prevalence=prevalence,
        intercept=truth.intercept,
        signal=truth.signal,
        needed=needed,
        ratio=min(ratios.values()),
        samples=max(needed.values()),
        riley_samples=riley["shrinkage"],
        riley_r2=r2,
        riley_criteria=riley,
        ten_events_samples=events,
        slope_at_riley=_promises(truth, case, predictors / riley["shrinkage"])["calibration_slope"],
        slope_at_ten_events=_promises(truth, case, predictors / events)["calibration_slope"],
        existence_threshold=case.threshold,
        pilot=pilot_study,
        _existence=case,
        interval=None
        if interval is None or pilot_study is None
        else samples_interval(interval, pilot_study, int(predictors), prevalence, asked, risk_no_fit),
    )


def _published(outcome: str, validation: bool, shrinkage: float, named: dict[str, Any]) -> SizeCriteria:
    """Return the sample size of published criteria. An input that the criteria do not use is refused."""
    if validation:
        if outcome == "survival":
            raise Refused(
                "validation with outcome survival is not available: choose a horizon and plan for the outcome binary"
            )
        used = ("r_squared",) if outcome == "continuous" else ("auc", "prevalence", "score_mean", "score_sd", "threshold")
        _require_used(f"for the validation of a model of a {outcome} outcome", named, used)
        return validation_size(**{name: named[name] for name in used})
    used = ("predictors", "r_squared", *(("mean", "sd") if outcome == "continuous" else ("rate", "follow_up", "horizon")))
    _require_used(f"for a {outcome} outcome", named, used)
    absent = [name for name in used if named[name] is None and name not in ("mean", "sd")]
    if absent:
        raise Refused(f"{absent[0]} is missing: a {outcome} outcome needs {', '.join(used)}")
    values = {name: named[name] for name in used}
    return (continuous_size if outcome == "continuous" else survival_size)(**values, shrinkage=shrinkage)


def _require_used(where: str, named: dict[str, Any], used: tuple[str, ...]) -> None:
    extra = [name for name, value in named.items() if value is not None and name not in used]
    if extra:
        raise Refused(f"{extra[0]} = {named[extra[0]]!r} is not used {where}: leave it out")


def samples_interval(
    signals: tuple[float, float], pilot: Pilot, predictors: int, prevalence: float, asked: Mapping[str, Any], risk: float
) -> tuple[float, float]:
    """Return the interval of the number of samples from that of the signal, widened for the uncertain prevalence of the pilot."""

    def at(signal: float, share: float) -> float:
        if signal <= 0:
            return math.inf
        truth = TrueScore(0.0 if share == 0.5 else intercept_of(share, signal), signal)
        case = existence(truth)
        counts = [_samples_for_a_fit(case, predictors, risk)]
        counts += [
            predictors / _largest_ratio(truth, case, name, wanted) for name, wanted in asked.items() if wanted is not None
        ]
        return math.ceil(max(counts))

    error = NORMAL_90 * math.sqrt(prevalence * (1 - prevalence) / pilot.samples)
    middle = at(pilot.signal, prevalence)
    ends = [at(pilot.signal, min(max(prevalence + sign * error, 1e-3), 1 - 1e-3)) for sign in (-1, 1)]
    shift = max(abs(math.log(end / middle)) for end in ends)
    low, high = (at(signal, prevalence) for signal in signals[::-1])
    return (
        math.floor(middle * math.exp(-math.hypot(math.log(middle / low), shift))),
        math.ceil(middle * math.exp(math.hypot(math.log(high / middle), shift))) if math.isfinite(high) else math.inf,
    )


def assured_samples(truth: TrueScore, predictors: int, slope: float, assurance: float, start: int, seed: int = 0) -> int:
    """Return the number of samples at which a single study has at least this calibration slope with the required probability.

    Simulated slopes have mean 1 - a/n and standard deviation b/sqrt(n) near the answer. In every round, studies of the present size are
    simulated, all slopes are standardised with these two rates, and their quantile determines the next size.
    """
    count = float(start)
    scores: list[Array] = []
    for fits in ASSURANCE_FITS:
        size = max(math.ceil(count), predictors + 2)
        slopes = simulated_fits(truth, predictors, size, fits, seed + len(scores)).slopes
        mean, spread = float(slopes.mean()), max(float(slopes.std(ddof=1)), 1e-6)
        scores.append((slopes - mean) / spread)
        quantile = float(np.quantile(np.concatenate(scores), 1 - assurance))
        loss, noise, gap = (1 - mean) * size, spread * math.sqrt(size) * quantile, 1 - slope
        # 1 - loss/n + noise/sqrt n = slope, a quadratic equation in 1/sqrt n
        root = (noise + math.sqrt(noise**2 + 4 * loss * gap)) / (2 * loss) if loss > 0 else gap / max(-noise, 1e-12)
        count = min(max(1 / root**2, count / 4), count * 8)
    return math.ceil(count)


def _check(predictors: int, auc: float, prevalence: float, risk_no_fit: float) -> None:
    if isinstance(predictors, bool) or not float(predictors).is_integer() or predictors < 1:
        raise Refused(f"predictors = {predictors!r} is not allowed: must be a whole number of at least 1")
    ranges = (("auc", auc, 0.5, 0.999), ("prevalence", prevalence, 0, 1), ("risk_no_fit", risk_no_fit, 0, 1))
    for name, value, low, high in ranges:
        if not low < value < high:
            raise Refused(f"{name} = {value!r} is not allowed: must be above {low:g} and below {high:g}")


# -- the law, solved for n --------------------------------------------------------------------------------------------


def _promises(truth: TrueScore, case: Existence, ratio: float) -> dict[str, float]:
    """Return the slope and the losses of a fit at this p/n relative to the true model.

    Where no fit exists, the values are those of the limit of large scores.
    """
    if ratio >= case.threshold:
        return dict(calibration_slope=0.0, auc_loss=math.inf, log_loss_excess=math.inf, error_excess=math.inf)
    score = solve_logistic(truth, Groups(ratio, (1.0,), (1.0,), (1.0,)), 0.0).score
    best = Score(truth, truth.intercept, truth.signal, 0.0)
    losses, least = score.losses(), best.losses()
    return dict(
        calibration_slope=score.calibration()[0],
        auc_loss=best.auc() - score.auc(),
        log_loss_excess=losses["log_loss"] - least["log_loss"],
        error_excess=losses["classification_error"] - least["classification_error"],
    )


def _largest_ratio(truth: TrueScore, case: Existence, name: str, target: float) -> float:
    """Return the largest p/n that meets a requirement, by bracketing in log p/n."""
    from scipy.optimize import brentq

    wanted = target < 1 if name == "calibration_slope" else True
    if not (target > 0 and wanted):
        bound = "above 0, below 1" if name == "calibration_slope" else "above 0"
        raise Refused(f"{name} = {target!r} is not allowed: must be {bound}")
    sign = -1.0 if name == "calibration_slope" else 1.0

    def missed(log_ratio: float) -> float:
        return sign * (_promises(truth, case, math.exp(log_ratio))[name] - target)

    high = math.log(0.6 * case.threshold)
    if missed(high) < 0:
        high = math.log(LARGEST_SHARE * case.threshold)
        if missed(high) < 0:
            return math.exp(high)
    low = high
    while missed(low) > 0:
        high, low = low, low - 1.5
        if low < math.log(SMALLEST_SHARE * case.threshold):
            best = _promises(truth, case, math.exp(low))[name]
            raise UnreachableTarget(
                f"{name} = {target:g} is not reached with p/n above {math.exp(low):.2g}", best, math.exp(low)
            )
    return math.exp(float(brentq(missed, low, high, xtol=1e-12, rtol=1e-12)))


def _samples_for_a_fit(case: Existence, predictors: int, risk: float) -> float:
    """Return the n at which equation (5), a quadratic equation in sqrt n, gives this risk."""
    from scipy.special import ndtri

    slack = float(ndtri(risk)) * case.spread
    return ((-slack + math.sqrt(slack**2 + 4 * case.threshold * (predictors + 1))) / (2 * case.threshold)) ** 2


# -- rules of thumb ---------------------------------------------------------------------------------------------------


def cox_snell_r2(auc: float, prevalence: float) -> float:
    """Return Cox and Snell's R^2 of two Gaussian groups (cases, controls) of variance 1 at distance sqrt(2) Phi^-1(AUC).

    >>> round(cox_snell_r2(0.8, 0.2), 7)
    0.1827246
    """
    from scipy.special import ndtri

    distance = math.sqrt(2) * float(ndtri(auc))
    x, weight = panel_rule((), width=0.5)
    offset = math.log(prevalence / (1 - prevalence))
    cases, controls = (offset + distance * (x + shift) for shift in (distance / 2, -distance / 2))
    fitted = -prevalence * float(weight @ np.logaddexp(0, -cases)) - (1 - prevalence) * float(
        weight @ np.logaddexp(0, controls)
    )
    return 1 - math.exp(2 * (_null(prevalence) - fitted))


def auc_behind(r_squared: float, prevalence: float) -> float:
    """Return the AUC with this Cox-Snell R^2 of two Gaussian groups, which is the inverse of `cox_snell_r2`.

    >>> round(auc_behind(cox_snell_r2(0.8, 0.2), 0.2), 9)
    0.8
    """
    from scipy.optimize import brentq

    if not 0 < prevalence < 1:
        raise Refused(f"prevalence = {prevalence!r} is not allowed: must be above 0 and below 1")
    low, high = cox_snell_r2(0.501, prevalence), cox_snell_r2(0.998, prevalence)
    if not low < r_squared < high:
        raise Refused(
            f"r_squared = {r_squared!r} is not allowed: must be above {low:.2g} and below {high:.4g} at this prevalence"
        )
    return float(brentq(lambda auc: cox_snell_r2(auc, prevalence) - r_squared, 0.501, 0.998, xtol=1e-12))


def riley_criteria(predictors: int, prevalence: float, r2: float, shrinkage: float = 0.9) -> dict[str, int]:
    """Return Riley's three sample sizes.

    They are for shrinkage of at least S, for optimism in R^2 of at most 0.05, and for an estimate of the prevalence to within 0.05.

    >>> riley_criteria(20, 0.2, cox_snell_r2(0.8, 0.2))
    {'shrinkage': 882, 'optimism': 562, 'prevalence': 246}
    """
    most = 1 - math.exp(2 * _null(prevalence))

    def shrunk(target: float) -> int:
        return math.ceil(predictors / ((target - 1) * math.log(1 - r2 / target))) if r2 < target else predictors + 1

    return {
        "shrinkage": shrunk(shrinkage),
        "optimism": shrunk(r2 / (r2 + OPTIMISM * most)),
        "prevalence": math.ceil((NORMAL_95 / MARGIN_OF_ERROR) ** 2 * prevalence * (1 - prevalence)),
    }


def _null(prevalence: float) -> float:
    """Return the mean log-likelihood of the prediction that is the prevalence for every sample."""
    return prevalence * math.log(prevalence) + (1 - prevalence) * math.log(1 - prevalence)


# -- figures ------------------------------------------------------------------------------------------------------------


@explained
def sample_size_figure(study: SampleSize, fits: int = 0) -> Figure:
    """Draw calibration slope and losses against the number of samples, with the rules of thumb marked.

    With `fits` above 0, the figure also shows the mean and spread of that many simulated studies at a few sizes.
    """
    from limitlab.plotting.style import COLOURS, finish, new_figure, simulation_points, theory_line

    figure, (left, right) = new_figure(columns=2)
    marks = {
        "this law": study.samples,
        "Riley's criterion (i)": study.riley_samples,
        "10 events/predictor": study.ten_events_samples,
    }
    low = 1.3 * study.predictors / study.existence_threshold
    samples = np.geomspace(low, 3 * max(marks.values()), 40)
    table = study.curve(samples)
    theory_line(left, samples, table.calibration_slope, 0, "calibration slope")
    if fits:
        few = np.unique(np.round(np.geomspace(2 * low, 2 * max(marks.values()), 5))).astype(int)
        slopes = [study.simulated_slopes(int(n), fits) for n in few]
        simulation_points(
            left, few, [s.mean() for s in slopes], [s.std(ddof=1) for s in slopes], 0, "one study (mean, spread)"
        )
    for index, (name, count) in enumerate(marks.items()):
        left.axvline(count, color=COLOURS[index + 1], linestyle="--", linewidth=1.4, label=f"{name}: $n = {count}$")
    title = f"$p = {study.predictors}$, AUC {study.auc:g}, prevalence {study.prevalence:g}"
    finish(left, "samples $n$", "calibration slope", title, xscale="log", ylim=(0, 1.15), legend=False)
    left.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, fontsize=11, frameon=False)
    for index, name in enumerate(("auc_loss", "log_loss_excess", "error_excess")):
        theory_line(right, samples, np.maximum(table[name], 1e-9), index, table[name].attrs["long_name"])
    risk = np.asarray(table.no_fit_probability)
    visible = risk > 1e-5
    theory_line(right, samples[visible], risk[visible], 3, "probability that no fit exists", linestyle="--")
    finish(
        right,
        "samples $n$",
        "loss relative to the true model",
        "losses by number of samples",
        xscale="log",
        yscale="log",
        ylim=(1e-5, 2),
    )
    return figure
