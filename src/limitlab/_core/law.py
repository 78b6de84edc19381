"""The shape of a law: its declaration, the limit it predicts, the finite experiment that it predicts it for.

A law declares its parameters (`parameter`) and observables, and writes two functions:

- `predicted(...)`, the limit as arrays. It gets, by name, its coordinates (`times`) and every parameter that `broadcasts`, as arrays
  shaped so that they broadcast against each other;
- `measured(draw, ...)`, the same observables of one finite experiment. It gets its coordinates and every parameter of which one draw
  serves many values.

Everything else follows from these: checking of names, labelled results, sweeps, comparisons, plans, the command line.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel, ConfigDict, ValidationInfo, field_validator, model_validator
from pydantic_core import PydanticCustomError, ValidationError

import limitlab._core.costs as costs
from limitlab._core.about import law_page, written
from limitlab._core.apportion import apportion
from limitlab._core.checkpoints import computing
from limitlab._core.draws import Draw, checked_seed, checked_size, computation
from limitlab._core.limits import Cost
from limitlab._core.meta import LawType, worth_knowing
from limitlab._core.observables import Observable, declared
from limitlab._core.parameters import Parameter, not_a_number, numbers_in, plain, read_metadata, refusal
from limitlab._core.reach import RIDDLES, explained, refuse_divergence
from limitlab._core.results import package, stacked
from limitlab.errors import did_you_mean

if TYPE_CHECKING:
    import xarray as xr

Status = Literal["theorem", "derived", "conjecture"]
Values = Mapping[str, Any]
"""Observables by name. A prediction that is not a closed form has one more entry, "accuracy", its estimated numerical error: one number
relative to the scale of every observable (its largest absolute value), or a mapping from observables to absolute errors."""


class Law(BaseModel, metaclass=LawType):
    """What a learning system does when it is large. Subclasses are frozen, validated records of parameters.

    Class attributes
    ----------------
    status
        "theorem", "derived" (a physicist's derivation, checked) or "conjecture".
    regime, assumptions, references
        Where the law holds, what it assumes, keys of its sources in `references.bib`.
    page
        Name of its theory page, `docs/theory/<page>.md`.
    observables
        What theory and simulation share: names of the vocabulary, or a mapping from names to `observable(...)`.
    extras
        Declarations of what only one of them gives (a threshold, raw eigenvalues).
    size_meaning
        What `size` counts in `simulate`.
    finite_size_rate
        Exponent r of the gap between experiment and limit, gap ~ size^-r, unless an observable has its own; `math.inf` says that the
        law is exact at every size, two numbers that the exponent lies between them and is not known better.
    default_sizes, default_seeds
        A comparison that takes seconds.
    revision
        Raised when the law's numbers change: stored results of an earlier revision are not used again.
    matrices_held
        Matrices of the size of the data that an experiment holds at once, for the estimate of its memory.
    former_names
        Parameters that were called otherwise: refused with their new names.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, arbitrary_types_allowed=True, ser_json_inf_nan="strings"
    )

    status: ClassVar[Status] = "derived"
    regime: ClassVar[str] = ""
    assumptions: ClassVar[tuple[str, ...]] = ()
    references: ClassVar[tuple[str, ...]] = ()
    page: ClassVar[str] = ""
    observables: ClassVar[Collection[str]] = ()
    extras: ClassVar[Mapping[str, Observable]] = {}
    size_meaning: ClassVar[str] = "dimension d"
    finite_size_rate: ClassVar[float | tuple[float, float]] = 1.0
    default_sizes: ClassVar[tuple[int, ...]] = (50, 100, 200)
    default_seeds: ClassVar[int] = 20
    revision: ClassVar[int] = 1
    matrices_held: ClassVar[float] = 4.0
    former_names: ClassVar[Mapping[str, str]] = {}

    # -- what a law says ------------------------------------------------------------------------------------------------

    def predicted(self, *args: Any, **kwargs: Any) -> Values:
        """The limit: every observable, from coordinates and broadcasting parameters that are given by name."""
        raise NotImplementedError(f"{type(self).__name__} has no prediction")

    def measured(self, draw: Draw, *args: Any, **kwargs: Any) -> Values:
        """One draw of the finite system: every observable, at the coordinates and path parameters that are given by name."""
        raise NotImplementedError(f"{type(self).__name__} has no experiment")

    @classmethod
    def check_points(cls) -> list[Self]:
        """Laws at which no term is switched off: where comparison, contract, report and ledger look when they are not told where."""
        return [cls()]

    def observed(self) -> tuple[str, ...]:
        """The observables at these parameters: all that the law declares, unless some belong to one of its models only."""
        return tuple(type(self).observables)

    def natural_scale(self, observable: str) -> float:
        """The scale on which an observable that may be small by itself is judged, such as tau^2 for a late train error; 0: its own."""
        return 0.0

    def is_random(self) -> bool:
        """Whether experiments with other seeds give other numbers."""
        return True

    def caveat(self) -> str:
        """What is said beside every prediction and verdict of the law."""
        return ""

    def remarks(self) -> dict[str, Any]:
        """Further attributes of a prediction."""
        return {}

    def coordinates(self) -> dict[str, Any]:
        """Coordinates that the observables depend on (such as `time`), by dimension; a single number gives no dimension."""
        return {
            meta.dimension: getattr(self, name) for name, meta in _metadata(type(self)).items() if meta.kind == "coordinate"
        }

    def count(self, parameter: str, size: int) -> int:
        """The whole number that a ratio becomes in an experiment of this size, as its declaration says (at least 1)."""
        value, rule = getattr(self, parameter), _metadata(type(self))[parameter].count
        if math.isinf(value):
            raise ValueError(f"{parameter} = inf is not allowed in a simulation: choose a finite value")
        exact = float(size) * value if rule == "size * value" else size / value
        if math.isinf(exact):
            raise ValueError(
                f"{parameter} = {value!r} is not allowed in a simulation of size {size}: it would count more than 1e308"
            )
        return max(1, round(exact))

    def realised(self, size: int) -> Self:
        """The law with its ratios and shares as an experiment of this size realises them (n = round(size / ratio), say)."""
        changes: dict[str, Any] = {}
        for name, meta in _metadata(type(self)).items():
            if meta.count == "shares of size":
                changes[name] = tuple(float(part) for part in apportion(size, getattr(self, name)))
            elif meta.count is not None:
                whole = self.count(name, size)
                changes[name] = whole / size if meta.count == "size * value" else size / whole
        return self.replace(**changes) if changes else self

    def draw_cost(self, size: int) -> Cost:
        """What one experiment of this size takes; a law whose experiment does not decompose a data matrix says it itself."""
        return costs.draw_cost(self, size)

    def limit_cost(self) -> Cost:
        """What one prediction takes, with all its coordinates."""
        return costs.limit_cost(self)

    # -- what follows: the limit ----------------------------------------------------------------------------------------

    def theory(self) -> xr.Dataset:
        """The limit: an `xarray.Dataset` of observables with attrs `accuracy`, `law`, `parameters`, `status`, `version`."""
        costs.refuse_limit(self)
        caveat = self.caveat()
        said: dict[str, Any] = {"caveat": caveat} if caveat else {}
        return package(self, self.evaluate(), kind="theory", **said, **self.remarks())

    def evaluate(self, **grid: ArrayLike) -> dict[str, Any]:
        """The limit as arrays, over given arrays of any parameters that broadcast: shape (*grid, *coordinates).

        >>> from limitlab.laws import Ridge
        >>> Ridge(ridge=0.0, noise=0.7).evaluate(ratio=[0.5, 2.0])["test_error"].round(6).tolist()
        [0.98, 1.48]
        """
        served = self.array_parameters()
        given = self._checked(grid, served, "the prediction")
        try:
            with computing(lambda: computation(self, given)):
                found = self.predicted(**self._arguments(given, served))
        except RIDDLES as error:
            raise explained(self, error) from error
        return self._shaped(found, given)

    def cost(self, size: int | None = None) -> Cost:
        """What one experiment of this size takes, or (without a size) one prediction: numbers held at once, operations.

        >>> from limitlab.laws import Ridge
        >>> round(Ridge(ratio=1.0).cost(10_000).memory / 1e9, 1)     # gigabytes
        3.2
        """
        return costs.estimate(self, None if size is None else checked_size(size))

    # -- what follows: the experiment -----------------------------------------------------------------------------------

    def simulate(self, size: int, seed: int) -> xr.Dataset:
        """One finite experiment of the given size: the same observables. Same seed, same result."""
        costs.refuse_draw(self, checked_size(size))
        return package(self, self.experiment(size, seed), kind="simulation", size=int(size), seed=int(seed))

    def simulate_batch(self, size: int, seeds: Sequence[int]) -> xr.Dataset:
        """Experiments for several seeds along a dimension `seed`; a seed's result does not depend on its batch."""
        costs.refuse_draw(self, checked_size(size), len(seeds))
        return stacked([self.simulate(size, int(seed)) for seed in seeds], seeds)

    def experiment(self, size: int, seed: int, **path: ArrayLike) -> dict[str, NDArray[Any]]:
        """One draw as arrays, over given arrays of any parameters that one draw serves: shape (*path, *coordinates)."""
        served = self.path_parameters()
        given = self._checked(path, served, "one draw")
        draw = self.draw(size, seed)
        try:
            with computing(lambda: computation(self, given, draw.size, draw.seed)):
                found = self.measured(draw, **self._arguments(given, served))
        except RIDDLES as error:
            raise explained(self, error, draw.size) from error
        refuse_divergence(self, found, draw.size)
        return self._shaped(found, given)

    def draw(self, size: int, seed: int) -> Draw:
        """What tells this experiment from others: its size, its counts, its random numbers."""
        return Draw(self, checked_size(size), checked_seed(seed))

    # -- what follows: copies and metadata ------------------------------------------------------------------------------

    def replace(self, **changes: Any) -> Self:
        """A copy with some parameters changed, validated like a new law.

        >>> from limitlab.laws import Ridge
        >>> Ridge(ratio=2.0).replace(ridge=0.5).ridge
        0.5
        """
        return type(self)(**{**{name: getattr(self, name) for name in type(self).model_fields}, **changes})

    def finer(self) -> Self:
        """The same law solved with more effort: its solver options multiplied as their declarations say."""
        changes = {}
        for name, meta in _metadata(type(self)).items():
            value = getattr(self, name)
            if meta.finer is not None and value is not None:
                changes[name] = type(value)(value * meta.finer)
        return self.replace(**changes) if changes else self

    @classmethod
    def title(cls) -> str:
        """The first line of the law's docstring: the question it answers."""
        return written(cls).split("\n")[0]

    @classmethod
    def parameters(cls) -> dict[str, Parameter]:
        """Metadata of every parameter, in order."""
        return dict(_metadata(cls))

    @classmethod
    def outputs(cls) -> dict[str, Observable]:
        """Metadata of every observable, in order."""
        return dict(_outputs(cls)[0])

    @classmethod
    def hint(cls, name: str) -> str:
        """What to say about a name that is not a parameter: its new name if it was one, or those that are close."""
        new = cls.former_names.get(name)
        return f"it is called {new!r} now" if new else did_you_mean(name, cls.model_fields)

    @classmethod
    def array_parameters(cls) -> tuple[str, ...]:
        """Parameters over which the prediction broadcasts."""
        return tuple(name for name, meta in _metadata(cls).items() if meta.broadcasts)

    @classmethod
    def path_parameters(cls) -> tuple[str, ...]:
        """Parameters for whose every value one simulated draw serves."""
        return tuple(name for name, meta in _metadata(cls).items() if meta.one_draw_serves_many)

    @classmethod
    def rates(cls, observable: str) -> tuple[float, float]:
        """Bounds of the exponent of the finite-size gap of an observable: equal where it is known."""
        own = _outputs(cls)[0][observable].rate
        declared = cls.finite_size_rate if own is None else own
        return declared if isinstance(declared, tuple) else (declared, declared)

    # -- in a notebook --------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """The law as a notebook shows it."""
        from limitlab._core.page import html

        return html(law_page(self))

    def __dir__(self) -> list[str]:
        return worth_knowing(super().__dir__())

    # -- arguments in, results out --------------------------------------------------------------------------------------

    def _checked(self, given: Mapping[str, ArrayLike], served: Collection[str], who: str) -> dict[str, NDArray[np.float64]]:
        """Arrays that were given by name: known names that are served, numbers within bounds."""
        metas, law = _metadata(type(self)), type(self).__name__
        for name in given:
            if name not in metas:
                raise ValueError(f"{law} has no parameter {name!r}: {self.hint(name)}")
            if name not in served:
                names = ", ".join(served) or "none of its parameters"
                raise ValueError(
                    f"{law} takes one value of {name} at a time ({who} takes arrays of {names}): set it on the law, or sweep over it"
                )
        return {name: metas[name].checked_array(values) for name, values in given.items()}

    def _arguments(self, given: Mapping[str, NDArray[np.float64]], served: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Coordinates as arrays along their own axes, and the served parameters with these axes appended."""
        lines = self.coordinates()
        axes = (1,) * len(lines)
        arguments = {}
        for name, meta in _metadata(type(self)).items():
            if meta.kind == "coordinate":
                after = len(lines) - 1 - list(lines).index(meta.dimension)
                arguments[name] = np.reshape(np.asarray(lines[meta.dimension], dtype=float), (-1,) + (1,) * after)
        for name in served:  # never 0-dimensional: NumPy rounds some operations differently for those
            value = np.atleast_1d(given[name] if name in given else np.asarray(getattr(self, name), dtype=float))
            arguments[name] = value.reshape(value.shape + axes)
        return arguments

    def _shaped(self, values: Values, given: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """What a law returned, every observable with the shape (*given, *coordinates); single coordinates have no axis."""
        lead = np.broadcast_shapes(*(array.shape for array in given.values()))
        wide = lead or (1,)
        lines = [np.asarray(line) for line in self.coordinates().values()]
        metas = _results(type(self))
        out: dict[str, Any] = {}
        for name, value in values.items():
            if name == "accuracy":
                out[name] = value
                continue
            array = np.asarray(value)
            if name not in metas:
                raise TypeError(
                    f"{type(self).__name__} gives {name!r}, which it does not declare among its observables or extras"
                )
            own = metas[name].dims
            if own is None and not lead and not lines and array.size == 1:
                out[name] = array.reshape(-1)[0]  # what follows gives the same, in four times the time
            elif own is not None:
                out[name] = array[tuple(0 if self._single(dim) else slice(None) for dim in own)]
            elif metas[name].scalar:
                out[name] = np.broadcast_to(array, wide + (1,) * len(lines)).reshape(lead)
            else:
                full = np.broadcast_to(array, wide + tuple(line.size for line in lines))
                kept = full[(..., *(slice(None) if line.ndim else 0 for line in lines))]
                out[name] = kept if lead else kept[0]
        return out

    def _single(self, dimension: str) -> bool:
        """Whether a dimension is a coordinate of one value, which has no axis."""
        return np.ndim(self.coordinates().get(dimension, ())) == 0

    # -- validation -----------------------------------------------------------------------------------------------------

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, given: Any) -> Any:
        if isinstance(given, Mapping):
            for name in given:
                if name not in cls.model_fields:
                    raise PydanticCustomError(
                        "parameter", f"{cls.__name__} has no parameter {str(name)!r}: {cls.hint(str(name))}"
                    )
        return given

    @field_validator("*", mode="wrap")
    @classmethod
    def _one_sentence(cls, value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
        """Type and bounds, refused in one sentence that names parameter, value and range."""
        meta = _metadata(cls)[str(info.field_name)]
        bare = plain(value)
        if isinstance(bare, bool) and not isinstance(meta.default, bool):
            raise refusal(meta, value, "must be a number, not True or False")
        try:
            checked = handler(bare)
        except ValidationError as error:
            raise refusal(meta, value, _reason(meta, error)) from None
        if reason := not_a_number(bare, checked):
            raise refusal(meta, value, reason)
        if not all(meta.allows(number) for number in numbers_in(checked)):
            raise refusal(meta, value)
        if meta.kind == "coordinate" and isinstance(checked, tuple) and not _increasing(checked):
            raise refusal(meta, value, "must hold at least one number, in increasing order")
        return checked


@functools.cache
def _metadata(law: type[Law]) -> dict[str, Parameter]:
    return {name: read_metadata(name, field) for name, field in law.model_fields.items()}


@functools.cache
def _outputs(law: type[Law]) -> tuple[dict[str, Observable], dict[str, Observable]]:
    return declared(law.observables), declared(law.extras)


@functools.cache
def _results(law: type[Law]) -> dict[str, Observable]:
    return {name: meta for declarations in _outputs(law) for name, meta in declarations.items()}


def _increasing(numbers: tuple[float, ...]) -> bool:
    return bool(numbers) and all(a < b for a, b in itertools.pairwise(numbers))


def _reason(meta: Parameter, error: ValidationError) -> str:
    """Why pydantic refused a value; where it wanted a number, with the numbers allowed."""
    first = error.errors()[0]
    wanted = {"float": "must be a number", "int": "must be a whole number"}.get(first["type"].split("_")[0])
    return first["msg"].lower() if wanted is None else ", ".join([wanted, *([meta.allowed] if meta.bounded else [])])
