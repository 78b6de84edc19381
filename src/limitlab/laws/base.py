"""The shape of a law: parameters, the limit it predicts, the finite experiment that it predicts it for.

A law implements

- `evaluate(**grid)`, the limit as plain arrays (closed-form laws: any of `array_parameters` may be given as broadcasting
  arrays), or `theory()` itself where there is no array form;
- `experiment(size, seed, **path)`, one draw of the finite system as plain arrays (any of `path_parameters` may be given as an
  array that one draw serves, such as a whole ridge path), or `simulate()` itself.

Everything else (results with their attributes, sweeps, comparisons, plans, the CLI) follows from these two.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError, ValidationError

from limitlab.errors import did_you_mean
from limitlab.laws.parameters import Parameter, numbers_in, plain, read_metadata, refusal
from limitlab.laws.results import Values, package

Status = Literal["theorem", "derived", "conjecture"]


class Law(BaseModel):
    """What a learning system does when it is large. Subclasses are frozen, validated records of parameters.

    Class attributes
    ----------------
    status
        "theorem", "derived" (a physicist's derivation, checked) or "conjecture".
    regime, assumptions, references, claims
        Where the law holds, what it assumes, BibTeX entries of its sources, ids of its claims in the ledger.
    observables
        Names that theory and simulation share (vocabulary: `limitlab.laws.results.OBSERVABLES`).
    scalar_observables
        Those that do not depend on `coordinates()`: `evaluate` and `experiment` give them axes of length one there.
    array_parameters
        Parameters over which `evaluate` broadcasts.
    path_parameters
        Parameters for whose every value one simulated draw serves.
    size_meaning
        What `size` counts in `simulate`.
    finite_size_rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r: one number, or one per observable.
        `math.inf` says that the law is exact at every size.
    default_sizes, default_seeds
        A comparison that takes seconds.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, arbitrary_types_allowed=True, ser_json_inf_nan="strings"
    )

    status: ClassVar[Status] = "derived"
    regime: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ()
    references: ClassVar[tuple[str, ...]] = ()
    claims: ClassVar[tuple[str, ...]] = ()
    observables: ClassVar[tuple[str, ...]] = ()
    scalar_observables: ClassVar[tuple[str, ...]] = ()
    array_parameters: ClassVar[tuple[str, ...]] = ()
    path_parameters: ClassVar[tuple[str, ...]] = ()
    size_meaning: ClassVar[str] = "dimension d"
    finite_size_rate: ClassVar[float | Mapping[str, float]] = 1.0
    default_sizes: ClassVar[tuple[int, ...]] = (50, 100, 200)
    default_seeds: ClassVar[int] = 20

    # -- the two things a law says ----------------------------------------------------------------------------------

    def evaluate(self, **grid: Any) -> Values:
        """The limit as arrays: every observable, broadcast over the given parameter arrays, then over `coordinates()`.

        May hold one further entry, "accuracy": the estimated relative error of the numbers (default: rounding).
        """
        raise NotImplementedError(f"{type(self).__name__} has no array form: call theory()")

    def experiment(self, size: int, seed: int, **path: Any) -> Values:
        """One draw of the finite system: every observable, broadcast over the path arrays, then over `coordinates()`."""
        raise NotImplementedError(f"{type(self).__name__} has no experiment")

    # -- what follows from them -------------------------------------------------------------------------------------

    def theory(self) -> xr.Dataset:
        """The limit: an `xarray.Dataset` of observables with attrs `accuracy`, `law`, `parameters`, `status`, `version`."""
        return package(self, self.evaluate(), kind="theory")

    def simulate(self, size: int, seed: int) -> xr.Dataset:
        """One finite experiment of the given size: the same observables. Same seed, same result."""
        return package(self, self.experiment(checked_size(size), seed), kind="simulation", size=int(size), seed=int(seed))

    def simulate_batch(self, size: int, seeds: Sequence[int]) -> xr.Dataset:
        """Experiments for several seeds along a dimension `seed`; a seed's result does not depend on its batch."""
        runs = [self.simulate(size, int(seed)) for seed in seeds]
        if not runs:
            raise ValueError("seeds = [] is not allowed: give at least one seed")
        stacked = {
            name: (("seed", *first.dims), np.stack([run[name].values for run in runs]), first.attrs)
            for name, first in runs[0].data_vars.items()
        }
        coords = {**runs[0].coords, "seed": np.asarray(seeds, dtype=np.int64)}
        return xr.Dataset(stacked, coords, {key: value for key, value in runs[0].attrs.items() if key != "seed"})

    def coordinates(self) -> dict[str, Any]:
        """Coordinates that the observables depend on (such as `time`); scalars give no dimension."""
        return {}

    def realised(self, size: int) -> Self:
        """The law with its ratios as an experiment of this size realises them (n = round(size / ratio), say)."""
        return self

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed, validated like a new law.

        >>> from limitlab.laws import Ridge
        >>> Ridge(ratio=2.0).replace(ridge=0.5).ridge
        0.5
        """
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def arrays(self, given: Mapping[str, Any], *names: str) -> list[NDArray[np.float64]]:
        """Parameters as arrays, in the order named: those given (a grid or a path), and the law's own value of the others.

        >>> from limitlab.laws import Ridge
        >>> Ridge(ratio=2.0).arrays({"ridge": [0.1, 1.0]}, "ratio", "ridge")
        [array(2.), array([0.1, 1. ])]
        """
        unknown = sorted(name for name, value in given.items() if value is not None and name not in names)
        if unknown:
            raise TypeError(
                f"{type(self).__name__} does not broadcast over {', '.join(unknown)}: only over {', '.join(names)}"
            )
        chosen = (given[name] if given.get(name) is not None else getattr(self, name) for name in names)
        return [np.asarray(value, dtype=float) for value in chosen]

    def rng(self, size: int, seed: int) -> np.random.Generator:
        """The only source of randomness: a generator made from (seed, size), so that sizes are independent."""
        return np.random.default_rng(np.random.SeedSequence([checked_seed(seed), int(size)]))

    def rate(self, observable: str) -> float:
        """Exponent of the finite-size gap of an observable (see `finite_size_rate`)."""
        declared = self.finite_size_rate
        return float(declared if isinstance(declared, (int, float)) else declared.get(observable, 1.0))

    @classmethod
    def title(cls) -> str:
        """The first line of the law's docstring: the question it answers."""
        return (inspect.getdoc(cls) or cls.__name__).split("\n")[0]

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Metadata of every parameter, in order."""
        return dict(_metadata(cls))

    # -- validation -------------------------------------------------------------------------------------------------

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            for name in given:
                if name not in cls.model_fields:
                    hint = did_you_mean(str(name), cls.model_fields)
                    raise PydanticCustomError("parameter", f"{cls.__name__} has no parameter {str(name)!r}: {hint}")
        return given

    @field_validator("*", mode="wrap")
    @classmethod
    def _one_sentence(cls, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        """Type and bounds, refused in one sentence that names parameter, value and range."""
        meta = _metadata(cls)[str(info.field_name)]
        if isinstance(value, bool) and not isinstance(meta.default, bool):
            raise refusal(meta, value, "must be a number, not True or False")
        try:
            checked = handler(plain(value))
        except ValidationError as error:
            raise refusal(meta, value, _reason(meta, error)) from None
        if not all(meta.allows(number) for number in numbers_in(checked)):
            raise refusal(meta, value)
        return checked


@functools.cache
def _metadata(law: type[Law]) -> dict[str, Parameter]:
    return {name: read_metadata(name, field) for name, field in law.model_fields.items()}


def _reason(meta: Parameter, error: ValidationError) -> str:
    """Why pydantic refused a value; where it wanted a number, with the numbers allowed."""
    first = error.errors()[0]
    wanted = {"float": "must be a number", "int": "must be a whole number"}.get(first["type"].split("_")[0])
    return first["msg"].lower() if wanted is None else ", ".join([wanted, *([meta.allowed] if meta.bounded else [])])


def checked_size(size: int) -> int:
    """A size that an experiment can have."""
    if isinstance(size, bool) or not float(size).is_integer() or size < 2:
        raise ValueError(f"size = {size!r} is not allowed: must be a whole number of at least 2")
    return int(size)


def checked_seed(seed: int) -> int:
    """A seed that numpy's SeedSequence takes."""
    if isinstance(seed, bool) or math.isnan(seed) or not float(seed).is_integer() or seed < 0:
        raise ValueError(f"seed = {seed!r} is not allowed: must be a whole number of at least 0")
    return int(seed)
