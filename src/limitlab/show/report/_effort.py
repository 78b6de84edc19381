"""The computations for a law in the report, which are a comparison and the headline view, with fixed numbers of draws.

The verdict of a quick report depends on the law, its check point and its seeds only. It does not depend on the speed or the load of the
machine, because no time limits the number of draws.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from limitlab._core.draws import identity, is_builtin
from limitlab._core.registry import library_digest
from limitlab.lab.store import FORMAT, Cell
from limitlab.lab.tasks import run_tasks

if TYPE_CHECKING:
    from limitlab._core.law import Law
    from limitlab.lab import Comparison
    from limitlab.plotting.headline import HeadlineView

QUICK_RESOLUTION, FULL_RESOLUTION = 0.1, 0.05
"""The smallest gap to detect in a quick and in a full report, relative to the scale of an observable."""
FULL_SECONDS = 300.0
"""Seconds per law for further draws in a full report."""
QUICK_DRAWS = {
    "Distillation": 80,
    "FirstOrderDynamics": 120,
    "InterpolationTransition": 300,
    "LogisticCalibration": 240,
    "LogisticDescent": 200,
    "MarginEquivalence": 120,
    "MultiPassLeastSquares": 240,
    "RandomFeaturesMargin": 160,
    "ResidualFlow": 240,
    "RidgeScaling": 240,
    "SpikedTensorDiffusion": 320,
    "TwoLayerDynamics": 400,
    "XorMixture": 240,
}
"""Largest number of draws per size in a quick report, for laws whose own number is too small for a verdict at one check point."""


def quick_draws(law: type[Law]) -> int:
    """Return the largest number of draws per size in a quick report.

    A comparison stops at an eighth, a quarter or half of them if these draws agree.

    >>> from limitlab.laws import Ridge
    >>> quick_draws(Ridge) >= 8
    True
    """
    return QUICK_DRAWS.get(law.__name__, law.simulation.draws) if is_builtin(law) else law.simulation.draws


def attempt(law: type[Law], quick: bool) -> Comparison | Exception:
    """Return the comparison of a law at its check points (in a quick report at the first), or the error that it raised."""
    from limitlab.lab import compare

    try:
        if quick:
            point = law.check_points()[0]
            return compare(point, seeds=quick_draws(law), budget=0, early=True, resolution=QUICK_RESOLUTION, progress=False)
        return compare(law, budget=FULL_SECONDS, resolution=FULL_RESOLUTION, progress=False)
    except Exception as error:  # the card of the law shows the error
        return error


@dataclass(frozen=True)
class HeadlineTask:
    """The numbers of a headline view as a task, so that a changed page does not compute them again."""

    law: type[Law]

    @property
    def content(self) -> dict[str, Any]:
        """Return everything that the numbers depend on."""
        law = {"law": identity(self.law), "revision": self.law.revision}
        return {"format": FORMAT, "part": "headline view", **law, "source": library_digest("show", "applied")}

    @property
    def where(self) -> str:
        """Return the task in words."""
        return f"headline view of {self.law.__name__}"

    def run(self) -> Cell:
        """Compute the headline view."""
        from limitlab.plotting.headline import headline_view

        return Cell({"view": np.array(json.dumps(headline_view(self.law).as_dict()))})


def headline(law: type[Law]) -> HeadlineView | Exception:
    """Return the headline view of a law, from a surrounding `caching` block if it has it, or the error that it raised."""
    from limitlab.plotting.headline import HeadlineView, Landmark, Series, headline_view

    try:
        if not is_builtin(law):
            return headline_view(law)
        (cell,) = run_tasks([HeadlineTask(law)], progress=False).complete("the headline view")
        numbers = json.loads(str(cell.values["view"]))
    except Exception as error:  # the card of the law shows the error
        return error

    def as_series(plain: dict[str, Any]) -> Series:
        return Series(**{**plain, **{name: tuple(plain[name]) for name in ("x", "y", "error")}})

    series = tuple(map(as_series, numbers["series"]))
    marks = tuple(Landmark(**plain) for plain in numbers["marks"])
    return HeadlineView(**{**numbers, "series": series, "marks": marks, "scales": tuple(numbers["scales"])})
