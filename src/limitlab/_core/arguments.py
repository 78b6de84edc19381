"""Errors for arguments of another type than a public function expects.

A public function checks the values of its arguments itself. An argument of another type, such as None in place of a name, may raise
an error of Python or of a library anywhere below. `explained` then compares the arguments with the annotations of the function and
raises `Refused`, with the parameter, its value and what it may be. The decision depends on types only. A call without an error costs
nothing, and an argument that works is never refused.
"""

from __future__ import annotations

import collections.abc
import inspect
import os
import types
import typing
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, ParamSpec, TypeVar

import numpy as np

from limitlab._core.checks import is_whole
from limitlab.errors import Refused

P = ParamSpec("P")
R = TypeVar("R")

FOREIGN = (TypeError, ValueError, AttributeError, LookupError, ArithmeticError, RecursionError, RuntimeError)
"""Types of errors that an argument of another type can cause."""
LIBRARIES = (
    "limitlab", "numpy", "scipy", "pandas", "xarray", "sklearn", "matplotlib", "pydantic", "json", "tomllib", "pathlib", "importlib",
    "posixpath", "ntpath", "genericpath", "codecs", "encodings", "difflib", "re", "sre_parse", "collections", "typing", "functools",
    "h5netcdf", "h5py", "zarr", "csv", "dateutil", "fnmatch", "os", "ast", "jax", "jaxlib", "numba", "joblib",
)  # fmt: skip
"""Packages whose errors of Python's types are not meant for the user. A law of another author may raise such an error on purpose."""
DEPTH = 4
"""Levels of nested containers that are compared with an annotation."""
SHOWN = 80


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function whose errors from arguments of another type name the parameter.

    >>> @explained
    ... def doubled(number: float) -> float:
    ...     return number + number * 1.0
    >>> doubled("a")
    Traceback (most recent call last):
        ...
    limitlab.errors.Refused: number = 'a' is not allowed: must be a number
    """
    foreign, explain = FOREIGN, _explain

    def call(*arguments: P.args, **named: P.kwargs) -> R:
        try:
            return function(*arguments, **named)
        except foreign as error:
            explain(error, function, arguments, named)
            raise

    # The wrapper has the globals of the function, because doctest takes a function for imported otherwise
    wrapper = types.FunctionType(call.__code__, function.__globals__, function.__name__, None, call.__closure__)
    for name in ("__module__", "__name__", "__qualname__", "__doc__", "__annotations__"):
        setattr(wrapper, name, getattr(function, name))
    wrapper.__dict__["__wrapped__"] = function
    return wrapper


def _explain(error: Exception, function: Any, arguments: Any, named: Any) -> None:
    """Raise `Refused` if an argument does not fit its annotation. An error that is meant for the user stays as it is."""
    if type(error).__module__.split(".")[0] not in ("builtins", *LIBRARIES[1:]) or isinstance(error, FloatingPointError):
        return  # limitlab raises FloatingPointError for NaN, with the point at which it occurs
    try:
        bound = inspect.signature(function).bind(*arguments, **named).arguments
    except TypeError as wrong:
        raise Refused(f"{function.__name__}: {wrong}; see help(limitlab.{function.__name__})") from None
    if _module_of(error).split(".")[0] not in LIBRARIES:
        return
    for name, value in _plain(function, bound):
        kind = _kind_of(function, name)
        if not fits(value, kind):
            raise Refused(f"{name} = {_shown(value)} is not allowed: must be {in_words(kind)}") from error
    if type(error) is not RuntimeError:
        given = ", ".join(f"{name} = {_shown(value)}" for name, value in bound.items() if name != "self")
        where = f"limitlab.{function.__name__}"
        raise Refused(
            f"{function.__name__} cannot use these arguments: {given}; help({where}) says what each may be"
        ) from error


def _plain(function: Any, bound: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the arguments by name, where further positional or named arguments are separate entries."""
    pairs: list[tuple[str, Any]] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in bound or name == "self":
            continue
        if parameter.kind is parameter.VAR_POSITIONAL:
            pairs += [(name, value) for value in bound[name]]
        elif parameter.kind is parameter.VAR_KEYWORD:
            continue
        else:
            pairs.append((name, bound[name]))
    return pairs


def _kind_of(function: Any, name: str) -> Any:
    """Return the annotation of a parameter, or `Any` if it cannot be evaluated at run time."""
    annotation = function.__annotations__.get(name, Any)
    if not isinstance(annotation, str):
        return annotation
    places = {**vars(typing), **vars(collections.abc), "os": os, **function.__globals__}
    try:
        return eval(annotation, places)  # the text of an annotation in this package
    except Exception:  # a name that only a type checker imports
        return Any


def fits(value: Any, kind: Any, depth: int = DEPTH) -> bool:
    """Return whether a value may have a type. Types that cannot be decided fit every value.

    >>> fits([1, 2], collections.abc.Sequence[int] | None), fits({"risk": "a"}, Mapping[str, float]), fits("3", int)
    (True, False, False)
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is Any or isinstance(kind, (TypeVar, str)) or depth == 0:
        return True
    if kind is None or kind is type(None):
        return value is None
    if origin in (typing.Union, types.UnionType):
        return any(fits(value, each, depth) for each in inner)
    if origin is typing.Annotated:
        return fits(value, inner[0], depth)
    if origin is typing.Literal:
        return isinstance(value, collections.abc.Hashable) and value in inner
    if kind is float:
        return _is_number(value, Real)
    if kind is int:
        return _is_number(value, Integral) or is_whole(value)
    if kind is bool:
        return isinstance(value, (bool, np.bool_))
    base = origin or kind
    if base is np.ndarray or getattr(base, "__module__", "").startswith(
        "numpy._typing"
    ):  # the latter are parts of ArrayLike
        return _is_numeric(value)
    if not isinstance(base, type):
        return True
    if base is tuple and isinstance(value, list):  # lists are accepted in place of tuples
        value = tuple(value)
    if isinstance(value, np.ndarray) and issubclass(base, (collections.abc.Iterable, list, tuple)):
        value = value.tolist()
    if not isinstance(value, base) or (isinstance(value, (str, bytes)) and base not in (str, bytes, object)):
        return False
    if issubclass(base, collections.abc.Mapping) and len(inner) == 2:
        return all(fits(key, inner[0], depth - 1) and fits(entry, inner[1], depth - 1) for key, entry in value.items())
    if base is tuple and inner and inner[-1] is not Ellipsis:
        return len(value) == len(inner) and all(
            fits(entry, each, depth - 1) for entry, each in zip(value, inner, strict=True)
        )
    if isinstance(value, (list, tuple)) and inner:
        return all(fits(entry, inner[0], depth - 1) for entry in value)
    return True


def _is_number(value: Any, kind: type) -> bool:
    plain = value.item() if isinstance(value, np.ndarray) and value.ndim == 0 else value
    return isinstance(plain, kind) and not isinstance(plain, (bool, np.bool_))


def _is_numeric(value: Any) -> bool:
    try:
        return np.asarray(value, dtype=float).size > 0
    except (TypeError, ValueError, OverflowError):
        return False


_WORDS: dict[Any, str] = {
    float: "a number", int: "a whole number", str: "a text", bool: "True or False", type(None): "None", bytes: "bytes",
    np.ndarray: "numbers", os.PathLike: "a path", collections.abc.Callable: "a function",
}  # fmt: skip


def in_words(kind: Any) -> str:
    """Return a type in words.

    >>> in_words(Mapping[str, float] | None)
    'a mapping from a text to a number, or None'
    """
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if kind is None:
        return "None"
    if origin in (typing.Union, types.UnionType):
        return ", or ".join(dict.fromkeys(map(in_words, inner)))
    if origin is typing.Annotated:
        return in_words(inner[0])
    if origin is typing.Literal:
        return " or ".join(map(repr, inner))
    base = origin or kind
    if base in _WORDS:
        return _WORDS[base]
    if isinstance(base, type) and issubclass(base, collections.abc.Mapping):
        return f"a mapping from {in_words(inner[0])} to {in_words(inner[1])}" if len(inner) == 2 else "a mapping"
    if base is tuple and inner and inner[-1] is not Ellipsis:
        return f"{len(inner)} values, each {in_words(inner[0])}"
    if (
        isinstance(base, type)
        and issubclass(base, collections.abc.Iterable)
        and base.__module__ in ("builtins", "collections.abc")
    ):
        return f"a list of which each entry is {in_words(inner[0])}" if inner else "a list"
    return "another value" if kind is Any else f"a {getattr(base, '__name__', base)}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) < SHOWN else text[: SHOWN - 3] + "..."


def _module_of(error: Exception) -> str:
    """Return the name of the module whose code raised an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else str(trace.tb_frame.f_globals.get("__name__", ""))
