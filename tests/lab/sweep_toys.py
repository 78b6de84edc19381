"""Small laws for the tests of sweeps; a module of their own, so that worker processes can import them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import model_validator

from limitlab.errors import UnreachableTarget
from limitlab.laws.base import Law
from limitlab.laws.parameters import parameter


def tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder with its bytes."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


class ShrunkMean(Law):
    """How far is a shrunken sample mean from the truth?"""

    observables = ("excess_risk", "bias")
    array_parameters = ("signal", "noise", "shrink")
    path_parameters = ("shrink",)
    size_meaning = "samples n"

    signal: float = parameter(1.0, "true mean", symbol=r"\mu")
    noise: float = parameter(1.0, "standard deviation", symbol=r"\sigma", least=0)
    shrink: float = parameter(0.1, "shrinkage", symbol="s", least=0, most=1)
    rule: Literal["mean", "median"] = parameter("mean", "what is shrunk")
    weights: tuple[float, ...] = parameter((1.0,), "weights of the repetitions", above=0)
    delay: float = parameter(0.0, "seconds that an experiment takes", least=0)

    @model_validator(mode="after")
    def _not_all_noise(self) -> ShrunkMean:
        if self.noise > 100 * abs(self.signal) and self.shrink < 0.01:
            raise ValueError(f"noise = {self.noise} needs shrink of at least 0.01 when signal = {self.signal}")
        return self

    def evaluate(self, **grid: Any) -> dict[str, Any]:
        mu, sigma, s = (grid.get(name, getattr(self, name)) for name in ("signal", "noise", "shrink"))
        mu, sigma, s = np.broadcast_arrays(mu, sigma, s)
        return {"excess_risk": (s * mu) ** 2 + 0 * sigma, "bias": -s * mu, "accuracy": 1e-15 * (1 + s)}

    def experiment(self, size: int, seed: int, **path: Any) -> dict[str, Any]:
        time.sleep(self.delay)
        rng = self.rng(size, seed)
        s = np.asarray(path.get("shrink", self.shrink))
        y = self.signal + self.noise * rng.standard_normal((len(self.weights), size))
        centre = np.average(np.mean(y, axis=1) if self.rule == "mean" else np.median(y, axis=1), weights=self.weights)
        return {"excess_risk": ((1 - s) * centre - self.signal) ** 2, "bias": (1 - s) * centre - self.signal}


class Decay(Law):
    """A law with a time: scalar, or a sequence that becomes a dimension."""

    observables = ("overlap",)
    array_parameters = ("speed",)

    speed: float = parameter(1.0, "speed", symbol="r", above=0)
    time: float | tuple[float, ...] = parameter(1.0, "time", symbol="t", least=0)
    level: float = parameter(0.5, "level", least=0)

    def coordinates(self) -> dict[str, Any]:
        return {"time": self.time, "level": self.level}

    def evaluate(self, **grid: Any) -> dict[str, Any]:
        speed = np.asarray(grid.get("speed", self.speed))
        t = np.asarray(self.time)
        return {"overlap": np.exp(-speed.reshape(speed.shape + (1,) * t.ndim) * t) + self.level}

    def experiment(self, size: int, seed: int, **path: Any) -> dict[str, Any]:
        return {"overlap": np.exp(-self.speed * np.asarray(self.time)) + self.rng(size, seed).standard_normal() / size}


class Snapshots(Law):
    """A law whose parameter `moments` gives the coordinate `time` another name, and which has no array form."""

    observables = ("overlap",)
    moments: tuple[float, ...] = parameter((1.0, 2.0), "times", least=0)
    speed: float = parameter(1.0, "speed", above=0)

    def coordinates(self) -> dict[str, Any]:
        return {"time": self.moments}

    def evaluate(self, **grid: Any) -> dict[str, Any]:
        return {"overlap": np.exp(-self.speed * np.asarray(self.moments))}


class Fragile(Law):
    """A law some of whose tasks fail, in a way of choice."""

    observables = ("overlap",)
    level: int = parameter(0, "tasks at level 2 fail", least=0)
    how: Literal["raise", "unpicklable", "die", "nan", "never"] = parameter("raise", "how they fail")

    def evaluate(self, **grid: Any) -> dict[str, Any]:
        return {"overlap": self._value()}

    def experiment(self, size: int, seed: int, **path: Any) -> dict[str, Any]:
        return {"overlap": self._value() + self.rng(size, seed).standard_normal() / size}

    def _value(self) -> float:
        if self.level == 2:
            if self.how == "raise":
                raise ZeroDivisionError("two is too much")
            if self.how == "unpicklable":
                raise UnreachableTarget("out of reach", best=0.0, at=1.0)
            if self.how == "die":
                os._exit(3)
            if self.how == "nan":
                return float("nan")
        return float(self.level)
