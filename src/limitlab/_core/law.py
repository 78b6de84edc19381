"""The base class of laws, with the limit that a law predicts and the finite experiment that has this limit.

A law declares its parameters (`parameter`), its observables, its experiment (`Experiment`) and its check points, and writes two
methods:

- `predicted(...)` returns the limit as arrays. Its arguments are the coordinates (`times`) and every parameter in its signature, as
arrays that broadcast against each other;
- `measured(draw, ...)` returns the same observables of one finite experiment. Its arguments are the coordinates and every parameter
in its signature. One draw serves every value of these parameters.

limitlab derives everything else from these methods: checks of names, labelled results, sweeps, comparisons, plans, the command
line. The random stream of a draw depends on the parameters that `measured` does not name. A change of the signature of `measured`
therefore changes the random numbers.
"""

from __future__ import annotations

import contextlib
import functools
import math
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BaseModel
from pydantic_core import ValidationError

import limitlab._core.cost as costs
from limitlab._core.about import full_docstring, law_page
from limitlab._core.arguments import explained
from limitlab._core.checks import numbers_in
from limitlab._core.cost import Cost
from limitlab._core.declaration import Declaration
from limitlab._core.draws import Draw, checked_seed, checked_size, computation_hash
from limitlab._core.files import resumable
from limitlab._core.results import absolute_errors, scale_of, stacked, to_dataset
from limitlab.errors import FailedFunction, NotComputable, Refused, TooCostly

if TYPE_CHECKING:
    import xarray as xr

    from limitlab._core.declaration import Declaration

Values = Mapping[str, Any]
"""Observables by name.

A prediction has a further entry "accuracy", its estimated numerical error. This is one number relative to the scale of every
observable (its largest absolute value), or a mapping from observables to absolute errors. `CLOSED_FORM` stands for rounding alone.
A prediction may also have an entry "notes", a mapping of further attributes of the result.
"""

_PYDANTIC = {name for name in dir(BaseModel) if not name.startswith("__")} - {
    "model_dump", "model_dump_json", "model_fields", "model_validate", "model_validate_json",
}  # fmt: skip
"""Names of pydantic that completion omits."""


class Law(Declaration):
    """A limit theorem about a learning system. Subclasses are frozen, validated records of parameters.

    Class attributes
    ----------------
    status
        "theorem", "derived" (a physicist's derivation, checked) or "conjecture".
    regime, assumptions, references
        Where the law holds, what it assumes, keys of its sources in `references.bib`.
    page
        Name of its theory page, `docs/theory/<page>.md`.
    observables
        The quantities that prediction and experiment share: names of the vocabulary, or a mapping from names to `observable(...)`.
    simulation
        The finite experiment: `Experiment("dimension d", sizes=(50, 100, 200), draws=20, rate=1.0)`.
    points
        Parameters, as dictionaries, at which no term of the equations is zero. Comparison, contract and report use them by default.
    revision
        A whole number. Raise it when the law's numbers change, so that stored results of an earlier revision are not used again.
    """

    @classmethod
    def __pydantic_init_subclass__(cls, **options: Any) -> None:
        super().__pydantic_init_subclass__(**options)
        cls.__written__ = vars(cls).get("__doc__")
        cls.__doc__ = full_docstring(cls)

    # -- methods that a law defines -------------------------------------------------------------------------------------

    def predicted(self, *args: Any, **kwargs: Any) -> Values:
        """Return every observable of the limit, from the coordinates and the parameters in the signature of the method."""
        raise NotImplementedError(f"{type(self).__name__} has no prediction")

    def measured(self, draw: Draw, *args: Any, **kwargs: Any) -> Values:
        """Return every observable of one finite experiment, at the coordinates and the parameters in the signature."""
        raise NotImplementedError(f"{type(self).__name__} has no experiment")

    # -- the limit ------------------------------------------------------------------------------------------------------

    def theory(self) -> xr.Dataset:
        """Return the limit as an `xarray.Dataset` of observables.

        Its attributes are `accuracy`, `law`, `parameters`, `status`, `version`, `revision` and `kind`.
        """
        costs.check_prediction(self)
        values = self._evaluated({})
        caveat = self.caveat()
        about: dict[str, Any] = {**({"caveat": caveat} if caveat else {}), **values.pop("notes", {})}
        return to_dataset(self, values, kind="theory", **about)

    @explained
    def evaluate(self, **grid: ArrayLike) -> dict[str, Any]:
        """Return the limit as arrays of shape (*grid, *coordinates), over arrays of parameters that broadcast.

        >>> from limitlab.laws import Ridge
        >>> Ridge(ridge=0.0, noise=0.7).evaluate(ratio=[0.5, 2.0])["test_error"].round(6).tolist()
        [0.98, 1.48]
        """
        values = self._evaluated(grid)
        values.pop("notes", None)
        return values

    def _evaluated(self, grid: Mapping[str, ArrayLike]) -> dict[str, Any]:
        """Return the result of `evaluate`, with the notes of the prediction."""
        served = self.array_parameters()
        arrays = self._checked(grid, served, "the prediction")
        try:
            with (
                costs.announced(lambda: f"the prediction of {type(self).__name__}"),
                resumable(lambda: computation_hash(self, arrays)),
                quiet_at_extremes(self, arrays),
            ):
                values = self.predicted(**self._arguments(arrays, served))
        except FAILURES as error:
            if (other := replacement(error, self)) is not None:
                raise other from error
            raise
        shaped = self._shaped(values, arrays)
        check_ranges(self, shaped)
        return shaped

    def estimated_errors(self) -> dict[str, float]:
        """Return estimated numerical errors, by observable, of a prediction that does not state its accuracy.

        The estimate is the change of the prediction when it is solved with more effort. A law without solver options is solved
        again at parameters that are moved by one unit in the last place.

        >>> from limitlab.laws import Ridge
        >>> 0 < Ridge().estimated_errors()["test_error"] < 1e-12
        True
        """
        finer, values = self.finer(), self.evaluate()
        others = [law.evaluate() for law in ([finer] if finer != self else self._moved_by_rounding())]
        errors = {}
        for name in self.observed():
            value = np.asarray(values[name], dtype=float)
            with np.errstate(invalid="ignore"):  # infinite limits stay infinite
                changes = [np.asarray(other[name], dtype=float) - value for other in others]
            errors[name] = max([np.finfo(float).eps * scale_of(value), *map(scale_of, changes)])
        return errors

    def _moved_by_rounding(self) -> Iterator[Self]:
        """Yield the law with one parameter moved to a neighbouring floating-point number, for every allowed move."""
        for name, meta in type(self).parameters().items():
            value = getattr(self, name)
            if meta.kind == "physics" and isinstance(value, float):
                for end in (math.inf, -math.inf):
                    with contextlib.suppress(ValueError):
                        yield self.replace(**{name: math.nextafter(value, end)})

    @explained
    def cost(self, size: int | None = None) -> Cost:
        """Return the estimated cost of one experiment of this size, or (without a size) of one prediction.

        >>> from limitlab.laws import Ridge
        >>> round(Ridge(ratio=1.0).cost(10_000).memory / 1e9, 1)     # gigabytes
        3.2
        """
        return costs.estimate(self, None if size is None else checked_size(size))

    # -- the experiment -------------------------------------------------------------------------------------------------

    @explained
    def simulate(self, size: int, seed: int) -> xr.Dataset:
        """Return the observables of one finite experiment. The same size and seed give the same result."""
        costs.check_draw(self, checked_size(size))
        return to_dataset(self, self.experiment(size, seed), kind="simulation", size=int(size), seed=int(seed))

    @explained
    def simulate_batch(self, size: int, seeds: Sequence[int]) -> xr.Dataset:
        """Return experiments for several seeds along a dimension `seed`. The result of a seed does not depend on the batch."""
        costs.check_draw(self, checked_size(size), len(seeds))
        return stacked([self.simulate(size, int(seed)) for seed in seeds], seeds)

    @explained
    def experiment(self, size: int, seed: int, **path: ArrayLike) -> dict[str, NDArray[Any]]:
        """Return one draw as arrays of shape (*path, *coordinates), over arrays of parameters that one draw serves."""
        served = self.path_parameters()
        arrays = self._checked(path, served, "one draw")
        draw = self.draw(size, seed)
        try:
            about = lambda: f"an experiment of {type(self).__name__} at size {draw.size}"  # noqa: E731
            with (
                costs.announced(about),
                resumable(lambda: computation_hash(self, arrays, draw.size, draw.seed)),
                quiet_at_extremes(self, arrays),
            ):
                values = self.measured(draw, **self._arguments(arrays, served))
        except FAILURES as error:
            if (other := replacement(error, self, draw.size)) is not None:
                raise other from error
            raise
        check_divergence(self, values, draw.size)
        return self._shaped(values, arrays)

    def draw(self, size: int, seed: int) -> Draw:
        """Return the size, the counts and the random numbers of one experiment."""
        return Draw(self, checked_size(size), checked_seed(seed))

    # -- in a notebook --------------------------------------------------------------------------------------------------

    def _repr_html_(self) -> str:
        """Return the description of the law that a notebook shows."""
        from limitlab._core.page import html

        return html(law_page(self))

    def __dir__(self) -> list[str]:
        private = {name for name in super().__dir__() if name.startswith("_") and not name.startswith("__")}
        return sorted({*super().__dir__()} - private - _PYDANTIC)

    # -- arguments in, results out --------------------------------------------------------------------------------------

    def _checked(self, arrays: Mapping[str, ArrayLike], served: Collection[str], who: str) -> dict[str, NDArray[np.float64]]:
        """Return arrays of parameters after a check of their names and bounds."""
        metas, law = type(self).parameters(), type(self).__name__
        for name in arrays:
            if name not in metas:
                raise Refused(f"{law} has no parameter {name!r}: {self.hint(name)}")
            if name not in served:
                names = ", ".join(served) or "none of its parameters"
                raise Refused(
                    f"{law} takes one value of {name} at a time ({who} takes arrays of {names}): set it on the law, or sweep over it"
                )
        return {name: metas[name].checked_array(values) for name, values in arrays.items()}

    def _arguments(self, arrays: Mapping[str, NDArray[np.float64]], served: Iterable[str]) -> dict[str, NDArray[np.float64]]:
        """Return coordinates as arrays along their own axes, and the served parameters with these axes appended."""
        lines = self.coordinates()
        axes = (1,) * len(lines)
        arguments = {}
        for name, meta in type(self).parameters().items():
            if meta.kind == "coordinate":
                after = len(lines) - 1 - list(lines).index(meta.dimension)
                arguments[name] = np.reshape(np.asarray(lines[meta.dimension], dtype=float), (-1,) + (1,) * after)
        for name in served:  # never 0-dimensional, because NumPy rounds some operations on such arrays differently
            value = np.atleast_1d(arrays[name] if name in arrays else np.asarray(getattr(self, name), dtype=float))
            arguments[name] = value.reshape(value.shape + axes)
        return arguments

    def _shaped(self, values: Values, arrays: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
        """Return every observable with the shape (*arrays, *coordinates); single coordinates have no axis."""
        lead = np.broadcast_shapes(*(array.shape for array in arrays.values()))
        wide = lead or (1,)
        lines = [np.asarray(line) for line in self.coordinates().values()]
        metas = type(self).all_outputs()
        out: dict[str, Any] = {}
        for name, value in values.items():
            if name in ("accuracy", "notes"):
                out[name] = value
                continue
            array = np.asarray(value)
            if name not in metas:
                raise TypeError(f"{type(self).__name__} returns {name!r}, which is not declared among its observables")
            dims = metas[name].dims
            if dims is None and not lead and not lines and array.size == 1:
                out[name] = array.reshape(-1)[0]  # the general case gives the same and takes four times as long
            elif dims is not None:
                out[name] = array[tuple(0 if self._single(dim) else slice(None) for dim in dims)]
            elif metas[name].scalar:
                out[name] = np.broadcast_to(array, wide + (1,) * len(lines)).reshape(lead)
            else:
                full = np.broadcast_to(array, wide + tuple(line.size for line in lines))
                selected = full[(..., *(slice(None) if line.ndim else 0 for line in lines))]
                out[name] = selected if lead else selected[0]
        return out

    def _single(self, dimension: str) -> bool:
        """Return whether a dimension is a coordinate with a single value, which has no axis."""
        return np.ndim(self.coordinates().get(dimension, ())) == 0


# -- errors of predictions and experiments --------------------------------------------------------------------------------
# At allowed parameters numbers may overflow, vanish or exceed the memory. Errors are distinguished by their type. An error of
# limitlab for bad input (`Refused`), and every other exception class of limitlab or of another author, passes through `Law.evaluate`
# and `Law.experiment` unchanged. An arithmetic error, and a `ValueError` or `RuntimeError` that NumPy, SciPy or another library
# raises, becomes `NotComputable`. Its message is one sentence that names the law and its most extreme parameters, and its cause is
# the original error. A `ValueError` that the code of another author raises stays as it is.

FAILURES = (ArithmeticError, ValueError, RuntimeError, MemoryError)
"""Types of errors that extreme numbers cause. Errors of other types are mistakes in a program and stay as they are."""

ROUNDING = 1e-12
"""How far rounding may take an observable of scale 1 out of its range, as in 1 - 1 + 1e-13."""

EXTREME = 1e4
"""The factor between a parameter and its default above which an error message names the parameter first."""

LIBRARIES = ("limitlab", "numpy", "scipy", "numba", "sklearn", "jax", "jaxlib")
"""Packages whose code computes predictions and experiments."""


def replacement(error: Exception, law: Declaration, size: int | None = None) -> Exception | None:
    """Return the error that replaces an error of a law, or None if the error stays as it is."""
    where = type(law).__name__ + ("" if size is None else f" at size {size}")
    if isinstance(error, FailedFunction):
        changed = ", ".join(f"{name} = {value!r}" for name, value in _extremes(law).items())
        return FailedFunction(f"{where}{f' with {changed}' if changed else ''}: {error}")
    if isinstance(error, MemoryError):
        return TooCostly(f"{where} needs more memory than is available: choose a smaller size, or fewer points")
    if is_intended(error):
        return None
    return _not_computable(law, where)


def _not_computable(law: Declaration, where: str, detail: str = "") -> NotComputable:
    """Return the error for numbers that floating-point arithmetic does not give, with the parameters to move."""
    extremes = _extremes(law)
    at = f" at {', '.join(f'{name} = {value!r}' for name, value in extremes.items())}" if extremes else ""
    towards = ", ".join(f"{name} towards {_default(law, name)}" for name in extremes) or "a parameter"
    return NotComputable(f"{where} cannot be computed{at} in floating-point numbers{detail}: move {towards}")


def is_intended(error: Exception) -> bool:
    """Return whether the message of an error is meant for the user.

    This holds if the class of the error belongs to limitlab or to another author, or if code of another author raised the error.

    >>> from limitlab.errors import Refused
    >>> is_intended(Refused("ratio = 0 is not allowed")), is_intended(ZeroDivisionError("division by zero"))
    (True, False)
    """
    if isinstance(error, (ValidationError, NotImplementedError)):
        return True
    author = type(error).__module__.split(".")[0]
    if author == "limitlab" or (author != "builtins" and author not in LIBRARIES):
        return True
    return not isinstance(error, ArithmeticError) and _raised_in(error).split(".")[0] not in LIBRARIES


def check_divergence(law: Declaration, values: Mapping[str, Any], size: int) -> None:
    """Raise `NotComputable` if an observable of an experiment contains NaN."""
    observed = type(law).outputs()
    arrays = {name: np.asarray(value) for name, value in values.items() if name in observed}
    bad = [name for name, array in arrays.items() if array.dtype.kind == "f" and np.isnan(array).any()]
    if bad:
        at = ", ".join(f"{name} = {value!r}" for name, value in _extremes(law).items())
        where = f"at size {size}" + (f" and {at}" if at else "")
        raise NotComputable(
            f"the experiment of {type(law).__name__} {where} diverges ({', '.join(bad)}): choose a larger size, a smaller step or "
            "parameters closer to their defaults"
        )


def quiet_at_extremes(
    law: Declaration, arrays: Mapping[str, NDArray[np.float64]]
) -> contextlib.AbstractContextManager[None]:
    """Return a context without NumPy's floating-point warnings at parameters that are far from their defaults.

    There, numbers may overflow, and the results are checked afterwards. At other parameters the warnings are given as usual.
    """

    def respond(kind: str, _: int) -> None:
        values = {**_extremes(law), **{name: array.ravel().tolist() for name, array in arrays.items()}}
        if not any(_is_far(law, name, value) for name, value in values.items()):
            warnings.warn(f"{kind} encountered in {type(law).__name__}", RuntimeWarning, stacklevel=3)

    return np.errstate(over="call", invalid="call", divide="call", call=respond)


def check_ranges(law: Declaration, values: Mapping[str, Any]) -> None:
    """Raise `NotComputable` if an observable of a prediction leaves its declared range by more than its numerical error.

    The same holds for NaN at parameters that are far from their defaults. At other parameters NaN is a mistake of limitlab. If the
    prediction does not state its accuracy, the observable may leave the range by a millionth of its scale.
    """
    bad = [name for name, value in values.items() if name != "accuracy" and _has_nan(value)]
    if bad and any(_is_far(law, name, value) for name, value in _extremes(law).items()):
        raise _not_computable(law, type(law).__name__, f": {', '.join(bad)} would be NaN")
    errors = None
    for name, least, most in _ranges(type(law)):
        if name not in values:
            continue
        array = np.asarray(values[name], dtype=float)
        array = array[np.isfinite(array)]  # infinite limits are allowed
        if not array.size or not (array.min() < least or array.max() > most):  # NaN has a check of its own
            continue
        if errors is None:
            metas = type(law).all_outputs()
            errors = absolute_errors(
                {key: np.asarray(value) for key, value in values.items() if key in metas},
                values.get("accuracy"),
                law.natural_scale,
            )
        scale, error = scale_of(array), errors.get(name, math.inf)
        allowance = max(ROUNDING * max(scale, 1.0), error if math.isfinite(error) else 1e-6 * scale)
        if (excess := max(least - array.min(), array.max() - most)) > allowance:
            known = type(law).all_outputs()[name].range
            raise _not_computable(law, type(law).__name__, f": {name} would leave its range ({known}) by {excess:.2g}")


def _has_nan(value: Any) -> bool:
    array = np.asarray(value)
    return array.dtype.kind in "fc" and bool(np.isnan(array).any())


def _is_far(law: Declaration, name: str, value: Any) -> bool:
    return _distance(value, _default(law, name)) > EXTREME


@functools.cache
def _ranges(law: type[Declaration]) -> tuple[tuple[str, float, float], ...]:
    """Return the observables with a bounded range, with both ends."""
    return tuple(
        (name, meta.least, meta.most)
        for name, meta in law.all_outputs().items()
        if math.isfinite(meta.least) or math.isfinite(meta.most)
    )


def _raised_in(error: Exception) -> str:
    """Return the name of the module whose code raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))


def _extremes(law: Declaration) -> dict[str, Any]:
    """Return the parameters that are far from their defaults, or all that differ from their defaults if none is far.

    Values whose text has 60 characters or more are omitted.
    """
    changed = {
        name: value
        for name, meta in type(law).parameters().items()
        if meta.kind in ("physics", "coordinate") and (value := getattr(law, name)) != meta.default
    }
    far = {name: value for name, value in changed.items() if _is_far(law, name, value)}
    return {name: value for name, value in (far or changed).items() if len(repr(value)) < 60}


def _default(law: Declaration, name: str) -> Any:
    return type(law).parameters()[name].default


def _distance(value: Any, default: Any) -> float:
    """Return the largest factor by which a number in a value is larger or smaller than the numbers in the default."""
    usual = max((abs(number) for number in numbers_in(default) if math.isfinite(number)), default=1.0) or 1.0
    sizes = [abs(number) for number in numbers_in(value) if number and math.isfinite(number)]
    return max((max(size / usual, usual / size if size * 1e300 > usual else math.inf) for size in sizes), default=1.0)
