"""Laws and kinds of functions of a user, for `tests/lab/test_own_functions.py` and the page that `docs/_ext/own_functions.py` writes."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import limitlab.laws as laws
from limitlab.errors import ConvergenceError, NotComputable, Refused
from limitlab.laws import Law


def named(x: Any) -> Any:
    """Return a function that has the name of a module."""
    return np.tanh(x) + 0.2 * x


def failing(x: Any) -> Any:
    """Raise an error, as a mistake in the code of a user does."""
    raise KeyError("a mistake of the user")


def failing_late(x: Any) -> Any:
    """Raise an error for many numbers only."""
    if np.size(x) > 100:
        raise KeyError("a mistake for many numbers")
    return np.tanh(x)


GRID = np.linspace(-4.0, 4.0, 9)
TABLE = tuple((float(x), float(np.tanh(x))) for x in GRID)

KINDS: dict[str, Any] = {
    "name": "tanh",
    "lambda": lambda x: np.tanh(0.8 * x) + 0.1 * x,
    "function of a module": named,
    "np.tanh": np.tanh,
    "cubic polynomial": lambda x: x + 0.1 * x**3,
    "kink at 0.3": lambda x: np.maximum(x - 0.3, 0.0),
    "np.abs": np.abs,
    "jump": np.sign,
    "integer steps": lambda x: np.where(x > 0.3, 1, 0),
    "table": TABLE,
    "only numbers": math.tanh,
    "wrong shape": lambda x: x[:3],
    "NaN": np.log,
    "exception": failing,
    "late exception": failing_late,
}
"""Functions of one variable, by kind."""

PROBABILITIES: dict[str, Any] = {
    "name": "logit",
    "lambda": lambda t: 1 / (1 + np.exp(-2 * t)),
    "kink at 0.3": lambda t: np.clip(0.5 + 0.3 * (t - 0.3), 0.1, 0.9),
    "jump": lambda t: np.where(t > 0.3, 0.9, 0.2),
    "only numbers": lambda t: 0.9 if t > 0 else 0.1,
    "wrong shape": lambda t: np.full(3, 0.5),
    "NaN": np.log,
    "exception": failing,
    "above 1": np.exp,
}
"""Functions with values in [0, 1], for links."""


@dataclass(frozen=True)
class Place:
    """A parameter of a law that takes a function, with other parameters and a small experiment."""

    law: str
    parameter: str
    rest: dict[str, Any]
    size: int
    draws: int
    kinds: dict[str, Any]

    def build(self, function: Any) -> Law:
        """Return the law with this function."""
        law: Law = getattr(laws, self.law)(**{**self.rest, self.parameter: function})
        return law


FREE = dict(start_second_layer=0.8, start_overlap=0.3, noise=0.5, times=(0.5, 1.0))
PLACES = (
    Place(
        "RandomFeaturesRidge", "activation", dict(width_ratio=3.0, sample_ratio=2.0, ridge=0.05, noise=0.4), 80, 30, KINDS
    ),
    Place(
        "GaussianEquivalence", "activation", dict(width_ratio=3.0, sample_ratio=2.0, ridge=0.05, noise=0.4), 60, 20, KINDS
    ),
    Place("RandomFeaturesMargin", "activation", dict(width_ratio=3.0, sample_ratio=2.0), 50, 30, KINDS),
    Place("MarginEquivalence", "activation", dict(width_ratio=3.0, sample_ratio=2.0), 40, 20, KINDS),
    Place("ConvexLoss", "activation", dict(ridge=0.1, width_ratio=1.5, sample_ratio=2.0), 60, 30, KINDS),
    Place(
        "FirstOrderDynamics",
        "activation",
        dict(loss="committee", width=2, start_norm=1.0, start_overlap=0.3, steps=4, step=0.4),
        150,
        40,
        KINDS,
    ),
    Place(
        "FirstOrderDynamics",
        "target_function",
        dict(loss="committee", width=2, start_norm=1.0, start_overlap=0.3, steps=4, step=0.4),
        150,
        40,
        KINDS,
    ),
    Place(
        "TwoLayerDynamics",
        "activation",
        dict(FREE, start_correlation=0.3, width=8, sample_ratio=8.0, target_function="tanh", experiment_model="network"),
        60,
        20,
        KINDS,
    ),
    Place(
        "TwoLayerDynamics",
        "target_function",
        dict(FREE, start_correlation=0.3, width=8, sample_ratio=8.0, activation="tanh", experiment_model="network"),
        60,
        20,
        KINDS,
    ),
    Place("PopulationFlow", "activation", dict(FREE, start_correlation=0.3, width=3, target_function="tanh"), 20, 10, KINDS),
    Place("MeanFieldSingleIndex", "activation", dict(FREE, target_function="tanh"), 16, 10, KINDS),
    Place(
        "InterpolationTransition",
        "activation",
        dict(samples_per_weight=0.5, noise=0.7, second_layer=0.8, times=(0.5, 1.0)),
        30,
        40,
        KINDS,
    ),
    Place(
        "AdiabaticGrowth",
        "activation",
        dict(samples_per_weight=0.3, noise=0.8, times=(2.5,), start_second_layer=0.8, experiment_model="two-time"),
        24,
        3,
        KINDS,
    ),
    Place("MiddleRegime", "activation", dict(start_second_layer=0.8, x=(0.5,)), 20, 10, KINDS),
    Place(
        "KernelGradientFlow",
        "activation",
        dict(weight_std=1.2, bias_std=0.3, samples=4, step=0.3, times=(0.6, 1.2), networks=20),
        64,
        10,
        KINDS,
    ),
    Place("WideNetwork", "activation", dict(layers=2, weight_std=1.2, bias_std=0.3, networks=40), 64, 20, KINDS),
    Place("LazyTraining", "activation", dict(scale=2.0, times=(0.2, 0.6), networks=10), 60, 10, KINDS),
    Place(
        "OnlineSingleIndex",
        "student",
        dict(teacher="tanh", step=0.4, noise=0.3, start_overlap=0.3, times=(0.5, 1.0)),
        200,
        30,
        KINDS,
    ),
    Place(
        "OnlineSingleIndex",
        "teacher",
        dict(student="tanh", step=0.4, noise=0.3, start_overlap=0.3, times=(0.5, 1.0)),
        200,
        30,
        KINDS,
    ),
    Place("MeanFieldParticles", "activation", dict(times=(0.2, 0.4)), 16, 60, KINDS),
    Place("MeanFieldParticles", "target_function", dict(times=(0.2, 0.4)), 16, 60, KINDS),
    Place("TangentInterpolation", "activation", dict(samples_over_parameters=1.6, noise=0.7, width=4.0), 30, 60, KINDS),
    Place("Staircase", "activation", dict(model="rf", dimension=16, width=32, degrees=(0, 1, 2)), 12, 20, KINDS),
    Place("Staircase", "activation", dict(model="nt", dimension=16, width=60, degrees=(0, 1, 2)), 12, 20, KINDS),
    Place(
        "QuadraticTarget",
        "activation",
        dict(model="rf", width=12, eigenvalues=(1.0, 0.9, 0.5, 0.5, 0.4, 0.2)),
        24,
        20,
        KINDS,
    ),
    Place("MaxMargin", "link", dict(ratio=1.5), 80, 30, PROBABILITIES),
    Place("LogisticDescent", "link", dict(ratio=1.5), 40, 20, PROBABILITIES),
    Place(
        "ConvexLoss", "link", dict(ridge=0.1, width_ratio=1.5, sample_ratio=2.0, activation="tanh"), 60, 30, PROBABILITIES
    ),
    Place("RandomFeaturesMargin", "link", dict(width_ratio=3.0, sample_ratio=2.0, activation="tanh"), 50, 30, PROBABILITIES),
)
"""Parameters that take a function, in small experiments."""


@dataclass(frozen=True)
class Outcome:
    """What a law does with a function: "works" with the largest z-score, or "refused" with its sentence, or "late" with an error."""

    verdict: str
    text: str
    seconds: float
    z: float = math.nan


def outcome(place: Place, function: Any) -> Outcome:
    """Return what a law does with a function.

    A function may be refused at construction, or at the first prediction if the reason needs a computation. An error after a prediction is
    "late".
    """
    start = time.perf_counter()

    def result(verdict: str, text: str, z: float = math.nan) -> Outcome:
        return Outcome(verdict, text.split("\n")[0], time.perf_counter() - start, z)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            law = place.build(function)
        except ValueError as error:
            return result("refused", sentence(error))
        except Exception as error:
            return result("late", f"construction: {type(error).__name__}: {error}")
        try:
            theory = law.theory()
        except (Refused, ConvergenceError, NotComputable) as error:
            return result("refused by the prediction", sentence(error))
        except Exception as error:
            return result("late", f"theory: {type(error).__name__}: {error}")
        try:
            runs = law.simulate_batch(place.size, range(place.draws))
        except Refused as error:
            return result("refused by the experiment", sentence(error))
        except Exception as error:
            return result("late", f"experiment: {type(error).__name__}: {error}")
    return result("works", "", largest_z(theory, runs, place.size))


def sentence(error: Exception) -> str:
    """Return the sentence of an error."""
    errors: Callable[[], Any] | None = getattr(error, "errors", None)
    text = str(errors()[0]["msg"]) if callable(errors) else str(error)
    return text.removeprefix("Value error, ")


def largest_z(theory: Any, runs: Any, size: int) -> float:
    """Return the largest deviation of a mean from its prediction, in standard errors plus the numerical error and a share 1/size."""
    worst = 0.0
    for name, limit in theory.data_vars.items():
        if name not in runs or limit.dtype.kind != "f":
            continue
        values = runs[name]
        mean, spread = values.mean("seed"), values.std("seed", ddof=1) / math.sqrt(values.sizes["seed"])
        scale = float(np.abs(limit).max())
        allowed = spread + limit.attrs.get("numerical_error", 0.0) + 3 * scale / size + 1e-12
        gaps = np.abs(mean - limit).values / allowed.values
        if np.isfinite(gaps).any():
            worst = max(worst, float(np.nanmax(gaps)))
    return worst
