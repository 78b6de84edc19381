"""One draw of a finite experiment, with its size, its seed, its counts and its random numbers.

The random stream of a draw depends on the law, on its physics and experiment parameters, on the size and on the seed. It does not
depend on the parameters that `measured` names, because one draw serves all their values, nor on solver options and coordinates. The
same law, size and seed therefore give the same numbers alone, in a sweep, in a comparison, and on every engine.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.arguments import explained
from limitlab._core.checks import is_whole, refusal_of, whole
from limitlab._core.cost import check_listing
from limitlab._core.results import package_version

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration


@dataclass(frozen=True)
class Draw:
    """The size, the seed, the counts and the random numbers of one experiment; the first argument of `Law.measured`.

    Attributes
    ----------
    law
        The law that is simulated.
    size
        The size of the experiment, in the meaning of `Law.simulation.size_meaning`.
    seed
        The number of the draw.

    Examples
    --------
    >>> from limitlab.laws import Ridge
    >>> draw = Ridge(ratio=2.0).draw(size=100, seed=7)
    >>> draw.count("ratio")     # samples that go with 100 features
    50
    """

    law: Declaration
    size: int
    seed: int

    @cached_property
    def rng(self) -> np.random.Generator:
        """The random number generator of the draw, its only source of randomness."""
        return np.random.default_rng(np.random.SeedSequence([self.seed, self.size, *seed_entropy(self.law)]))

    def count(self, parameter: str) -> int:
        """Return the whole number that a ratio becomes at this size."""
        return self.law.count(parameter, self.size)


def seed_entropy(law: Declaration) -> list[int]:
    """Return the part of the seed that comes from the law.

    It is a hash of the law's identity and of the physics and experiment parameters that `measured` does not name.
    """
    kind = type(law)
    drawn = {name for name, meta in kind.parameters().items() if meta.kind in ("physics", "experiment")}
    drawn.difference_update(kind.path_parameters())
    content = digest({"law": identity(type(law)), "parameters": key_parameters(law, drawn)})
    return [int(content[i : i + 8], 16) for i in range(0, len(content), 8)]


def computation_hash(law: Declaration, arguments: Mapping[str, Any], *draw: int) -> str:
    """Return a hash of everything on which a prediction or a draw depends. It names the files of saved states."""
    arrays = {name: np.asarray(values).tolist() for name, values in arguments.items()}
    content = {"law": identity(type(law)), "revision": law.revision, "version": package_version(), "draw": draw}
    return digest({**content, "parameters": key_parameters(law), "given": arrays})


def identity(law: type[Declaration]) -> str:
    """Return the class name of a built-in law, or module and class name of another law.

    A built-in law keeps its identity when it moves to another file.
    """
    return law.__qualname__ if is_builtin(law) else f"{law.__module__}:{law.__qualname__}"


def is_builtin(law: type[Declaration]) -> bool:
    """Return whether a class of laws is part of limitlab, not of a user's file or of another package.

    >>> from limitlab.laws import Ridge
    >>> is_builtin(Ridge), is_builtin(type("MyRidge", (Ridge,), {"__module__": "my_laws"}))
    (True, False)
    """
    return law.__module__.startswith("limitlab.")


def plain_parameters(law: Declaration, names: set[str] | None = None) -> dict[str, Any]:
    """Return the parameters of a law as JSON data, which are numbers, texts and lists."""
    return dict(json.loads(law.model_dump_json(include=names)))


def key_parameters(law: Declaration, names: set[str] | None = None) -> dict[str, Any]:
    """Return the parameters on which random streams and keys of stored results depend, as JSON data.

    A parameter that was added to the law later is left out at its default, so that streams and keys remain those of the earlier law.
    """
    later = {name: meta.default for name, meta in type(law).parameters().items() if meta.added}
    values = plain_parameters(law, names)
    return {name: value for name, value in values.items() if not (name in later and value == later[name])}


def digest(content: Any) -> str:
    """Return the SHA-256 of plain data in one canonical form."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def checked_size(size: Any) -> int:
    """Return the size of an experiment as an int; raise `Refused` if it is not a whole number of at least 2."""
    return whole("size", size, least=2)


def checked_seed(seed: Any) -> int:
    """Return a seed as an int; raise `Refused` if it is not a whole number of at least 0."""
    return whole("seed", seed, least=0)


def checked_sizes(sizes: Any) -> list[int]:
    """Return one or several different sizes of experiments as a list."""
    numbers = [checked_size(size) for size in _listed("sizes", sizes)]
    if not numbers or len(set(numbers)) < len(numbers):
        raise refusal_of("sizes", sizes, "give at least one size, each of them once")
    return numbers


def checked_seeds(seeds: Any, least: int = 1) -> list[int]:
    """Return the seeds of draws as a list.

    A number n stands for the seeds 0, ..., n - 1. The seeds of a list must be different.

    >>> checked_seeds(3), checked_seeds([7, 9])
    ([0, 1, 2], [7, 9])
    """
    if np.ndim(seeds) == 0:
        if not is_whole(seeds) or seeds < least:
            raise refusal_of("seeds", seeds, f"give a number of draws of at least {least}, or a list of seeds")
        check_listing(seeds, f"seeds = {seeds!r}")
        return list(range(int(seeds)))
    numbers = [checked_seed(seed) for seed in _listed("seeds", seeds)]
    if len(numbers) < least or len(set(numbers)) < len(numbers):
        raise refusal_of("seeds", seeds, f"the number of seeds must be at least {least}, and all seeds must be different")
    return numbers


@explained
def mean_and_error(draws: ArrayLike, axis: int = 0) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the mean over draws and its standard error.

    Parameters
    ----------
    draws
        The measured values, at least two along the axis.
    axis
        The axis of the draws.

    Returns
    -------
    tuple of arrays
        The mean, and the standard deviation over the draws (with the divisor "number of draws minus 1") divided by the square root
        of their number.

    Examples
    --------
    >>> [float(value) for value in mean_and_error([1.0, 3.0])]
    [2.0, 1.0]
    """
    table = np.asarray(draws, dtype=float)
    return table.mean(axis=axis), table.std(axis=axis, ddof=1) / np.sqrt(table.shape[axis])


def _listed(name: str, values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return values.ravel().tolist()
    if isinstance(values, (str, bytes, Mapping)) or (np.ndim(values) == 0 and not isinstance(values, Iterable)):
        values = [values]
    listed = list(values)
    if not all(isinstance(item, Real) and not isinstance(item, bool) for item in listed):
        raise refusal_of(name, values, "must be whole numbers")
    return listed
