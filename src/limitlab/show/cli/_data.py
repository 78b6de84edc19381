"""The commands `sample-size`, `forecast` and `scaling-fit` for your own data, each made from a function."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from limitlab.errors import Refused
from limitlab.show.cli._expose import Option, Shown, expose
from limitlab.show.cli._law import read_numbers

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from limitlab.applied import Components, ForecastStudy, LaterStudy, SampleSize, ScalingStudy, SizeCriteria


@expose(
    "limitlab.applied.sample_size",
    "sample-size",
    "sample-size --predictors 20 --auc 0.8 --prevalence 0.2 --plot buys.png. With a pilot: limitlab sample-size "
    "--pilot patients.csv --target died. For numbers: limitlab sample-size --outcome continuous --predictors 25 --r-squared 0.2",
    "solving for the number of samples",
    {
        "predictors": Option(metavar="P"),
        "pilot": Option(metavar="FILE"),
        "target": Option(metavar="COLUMN"),
        "calibration_slope": Option("--slope"),
        "log_loss_excess": Option("--log-loss"),
        "error_excess": Option("--error"),
        "risk_no_fit": Option("--risk"),
    },
)
def sample_size(answer: SampleSize | SizeCriteria) -> Shown:
    """Compute the number of samples that a prediction model needs, from the limit law and from published criteria."""
    from limitlab.applied import SampleSize, sample_size_figure

    if not isinstance(answer, SampleSize):
        return Shown(answer.page(), answer.table, answer.figure)

    def draw() -> Figure:
        return sample_size_figure(answer)

    pilot = answer.pilot
    notes = [] if pilot is None else [*(f"note: {note}" for note in pilot.notes), *pilot.remarks()]
    return Shown(answer.page(), answer.table, draw, notes)


def read_ridge(text: str) -> float | Literal["best"]:
    """Return the ridge of `--ridge`.

    >>> read_ridge("0.1"), read_ridge("best")
    (0.1, 'best')
    """
    if text.strip().lower() == "best":
        return "best"
    values = read_numbers("ridge", text)
    if len(values) != 1 or not isinstance(values[0], float) or not values[0] >= 0:
        raise Refused(f"--ridge {text} is not allowed: give one number of at least 0, or best")
    return values[0]


def read_counts(text: str) -> Any:
    """Return the numbers of rows of `--n` as sorted whole numbers without repetitions.

    >>> read_counts("10:20:3,5").tolist()
    [5.0, 10.0, 15.0, 20.0]
    """
    import numpy as np

    from limitlab.lab.grid import parse_range

    try:
        return np.unique(np.round(parse_range(text)))
    except ValueError as error:
        raise Refused(f"--n: {error}") from None


@expose(
    "limitlab.applied.forecast._later.forecast_command",
    "forecast",
    "forecast houses.csv --target price --n 100:10000:20log --plot curve.png. Later: limitlab forecast houses.csv --target price "
    "--save houses.json, and limitlab forecast houses.json --against more.csv",
    "forecasting",
    {
        "data": Option("DATA"),
        "target": Option(metavar="COLUMN"),
        "n": Option(metavar="RANGE", read=read_counts),
        "ridge": Option(metavar="NUMBER", read=read_ridge),
        "test_file": Option(metavar="FILE"),
        "groups": Option(metavar="COLUMN"),
        "time": Option(metavar="COLUMN"),
        "model": Option(metavar="EXPRESSION"),
        "scoring": Option(metavar="NAME"),
        "save": Option(metavar="FILE"),
        "against": Option(metavar="FILE"),
    },
    leave_out=("seconds",),
)
def forecast(study: ForecastStudy | LaterStudy) -> Shown:
    """Forecast the learning curve of your own data, with an uncertainty band and advice.

    The first line is the error now and with twice the rows. The learning curve is the expected test error against the number of rows.
    """
    from limitlab.applied import LaterStudy

    if isinstance(study, LaterStudy):
        return Shown(
            study.page(), study.tests, study.figure, [f"note: {note}" for note in study.notes], failed=not study.passed
        )
    notes = [*(f"note: {note}" for note in study.notes), *(f"warning: {words}" for words in study.warnings)]
    return Shown(study.page(), study.curve, study.figure, notes, failed=not study.passed)


def read_names(text: str) -> list[str]:
    """Return the names of columns of `--leave-out`.

    >>> read_names("a, b")
    ['a', 'b']
    """
    return [name.strip() for name in text.split(",") if name.strip()]


@expose(
    "limitlab.applied.components",
    "components",
    "components genes.csv --leave-out patient --plot spectrum.png",
    "decomposing the table",
    {
        "data": Option("DATA"),
        "array": Option(metavar="NAME"),
        "leave_out": Option(metavar="COLUMNS", read=read_names),
    },
    tables=True,
)
def components(result: Components) -> Shown:
    """Count the components of a table that are separated from noise.

    The table may have more columns than rows, and its noise may be correlated between columns or in time.
    """
    return Shown(result.page(), result.table, result.figure, [f"note: {note}" for note in result.notes])


def read_budgets(text: str) -> list[float]:
    """Return the budgets of `--compute`.

    >>> read_budgets("1e22,1e24")
    [1e+22, 1e+24]
    """
    return [float(total) for total in read_numbers("compute", text)]


@expose(
    "limitlab.applied.scaling_study",
    "scaling-fit",
    "scaling-fit runs.csv --compute 1e22,1e24 --plot fit.png",
    "fitting the runs",
    {
        "runs": Option("RUNS"),
        "size": Option(metavar="COLUMN"),
        "data": Option(metavar="COLUMN"),
        "loss": Option(metavar="COLUMN"),
        "budget": Option(metavar="COLUMN"),
        "compute": Option(metavar="RANGE", read=read_budgets),
    },
    tables=True,
)
def scaling_fit(study: ScalingStudy) -> Shown:
    """Fit L = E + A N^-a + B D^-b to your runs, with intervals and the best size for a budget.

    A warning names the parameters that the runs do not determine.
    """
    notes = [f"warning: {words}" for words in study.fit.warnings]
    return Shown(study.page(), study.parameters(), study.figure, notes, failed=not study.passed)
