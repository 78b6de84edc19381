"""Small laws for the tests of sweeps; a module of their own, so that worker processes can import them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from limitlab.errors import UnreachableTarget
from limitlab.laws import Draw, Experiment, Law, observable, parameter, shared


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class ShrunkMean(Law):
    """How far is a shrunken sample mean from the truth?"""

    observables = {**shared("excess_risk"), "mean_bias": observable()}
    simulation = Experiment("samples n")

    signal: float = parameter(1.0, "true mean", symbol=r"\mu")
    noise: float = parameter(1.0, "standard deviation", symbol=r"\sigma", least=0)
    shrink: float = parameter(0.1, "shrinkage", symbol="s", least=0, most=1)
    rule: Literal["mean", "median"] = parameter("mean", "what is shrunk")
    weights: tuple[float, ...] = parameter((1.0,), "weights of the repetitions", above=0)
    delay: float = parameter(0.0, "seconds that an experiment takes", least=0)
    digits: int = parameter(8, "an option that changes only the accuracy", kind="solver", least=1, finer=2)

    @model_validator(mode="after")
    def _not_all_noise(self) -> ShrunkMean:
        if self.noise > 100 * abs(self.signal) and self.shrink < 0.01:
            raise ValueError(f"noise = {self.noise} needs shrink of at least 0.01 when signal = {self.signal}")
        return self

    def predicted(self, signal: Any, noise: Any, shrink: Any) -> dict[str, Any]:
        return {"excess_risk": (shrink * signal) ** 2 + 0 * noise, "mean_bias": -shrink * signal, "accuracy": 1e-15}

    def measured(self, draw: Draw, shrink: Any) -> dict[str, Any]:
        time.sleep(self.delay)
        y = self.signal + self.noise * draw.rng.standard_normal((len(self.weights), draw.size))
        centre = np.average(np.mean(y, axis=1) if self.rule == "mean" else np.median(y, axis=1), weights=self.weights)
        return {"excess_risk": ((1 - shrink) * centre - self.signal) ** 2, "mean_bias": (1 - shrink) * centre - self.signal}


class Decay(Law):
    """A law with times: one, or several that become a dimension."""

    observables = ("overlap",)

    speed: float = parameter(1.0, "speed", symbol="r", above=0)
    times: float | tuple[float, ...] = parameter(1.0, "times", symbol="t", kind="coordinate", least=0)
    level: float = parameter(0.5, "level", least=0)

    def predicted(self, times: Any, speed: Any) -> dict[str, Any]:
        return {"overlap": np.exp(-speed * times) + self.level}

    def measured(self, draw: Draw, times: Any) -> dict[str, Any]:
        return {"overlap": np.exp(-self.speed * times) + draw.rng.standard_normal() / draw.size}


class Snapshots(Law):
    """A law whose coordinate depends on another of its parameters, and which has no array form."""

    observables = ("overlap",)
    moments: tuple[float, ...] = parameter((1.0, 2.0), "when to look", least=0)
    speed: float = parameter(1.0, "speed", above=0)

    def coordinates(self) -> dict[str, Any]:
        return {"time": self.moments}

    def predicted(self) -> dict[str, Any]:
        return {"overlap": np.exp(-self.speed * np.asarray(self.moments))}


class Fragile(Law):
    """A law some of whose tasks fail, in a way of choice."""

    observables = ("overlap",)
    level: int = parameter(0, "tasks at level 2 fail", least=0)
    how: Literal["raise", "unpicklable", "die", "nan", "never"] = parameter("raise", "how they fail")

    def predicted(self) -> dict[str, Any]:
        return {"overlap": self._value()}

    def measured(self, draw: Draw) -> dict[str, Any]:
        return {"overlap": self._value() + draw.rng.standard_normal() / draw.size}

    def _value(self) -> float:
        if self.level == 2:
            if self.how == "raise":
                raise RuntimeError("two is too much")
            if self.how == "unpicklable":
                raise UnreachableTarget("out of reach", best=0.0, at=1.0)
            if self.how == "die":
                os._exit(3)
            if self.how == "nan":
                return float("nan")
        return float(self.level)
