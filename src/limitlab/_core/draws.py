"""One draw of a finite experiment: its size, its seed, its counts, and the one rule for its randomness.

The stream of a draw is decided by the law, by its physics and experiment parameters, by the size and by the seed. A parameter that
`measured` names is left out, because one draw serves all its values. Solver options and coordinates do not enter. So the same law,
size and seed give the same numbers alone, in a sweep, in a comparison, and on every engine.
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

from limitlab._core.checks import is_whole, refusal_of, whole
from limitlab._core.cost import check_listing
from limitlab._core.results import package_version

if TYPE_CHECKING:
    from limitlab._core.declaration import Declaration


@dataclass(frozen=True)
class Draw:
    """What `Law.measured` gets: everything that tells one experiment from another.

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
        """The only source of randomness of the draw."""
        return np.random.default_rng(np.random.SeedSequence([self.seed, self.size, *stream_words(self.law)]))

    def count(self, parameter: str) -> int:
        """The whole number that a ratio becomes at this size."""
        return self.law.count(parameter, self.size)


def stream_words(law: Declaration) -> list[int]:
    """The law's part of the seed: a hash of what is drawn."""
    kind = type(law)
    drawn = {name for name, meta in kind.parameters().items() if meta.kind in ("physics", "experiment")}
    drawn.difference_update(kind.path_parameters())
    content = digest({"law": identity(type(law)), "parameters": plain_parameters(law, drawn)})
    return [int(content[i : i + 8], 16) for i in range(0, len(content), 8)]


def computation(law: Declaration, given: Mapping[str, Any], *draw: int) -> str:
    """A hash of all that a prediction, or a draw of this size and seed, is computed from: what its checkpoints are known by."""
    arrays = {name: np.asarray(values).tolist() for name, values in given.items()}
    content = {"law": identity(type(law)), "revision": law.revision, "version": package_version(), "draw": draw}
    return digest({**content, "parameters": plain_parameters(law), "given": arrays})


def identity(law: type[Declaration]) -> str:
    """The name of a law's class; with its module unless it is one of limitlab's own, which may move between files."""
    return law.__qualname__ if is_builtin(law) else f"{law.__module__}:{law.__qualname__}"


def is_builtin(law: type[Declaration]) -> bool:
    """Whether a class of laws is part of limitlab, rather than of a user's file or of another package.

    >>> from limitlab.laws import Ridge
    >>> is_builtin(Ridge), is_builtin(type("MyRidge", (Ridge,), {"__module__": "my_laws"}))
    (True, False)
    """
    return law.__module__.startswith("limitlab.")


def plain_parameters(law: Declaration, names: set[str] | None = None) -> dict[str, Any]:
    """The parameters of a law as JSON gives them back: numbers, texts, lists."""
    return dict(json.loads(law.model_dump_json(include=names)))


def digest(content: Any) -> str:
    """SHA-256 of plain data, written in one canonical way."""
    return hashlib.sha256(json.dumps(content, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def checked_size(size: Any) -> int:
    """Return a size that an experiment can have."""
    return whole("size", size, least=2)


def checked_seed(seed: Any) -> int:
    """Return a seed that `numpy.random.SeedSequence` takes."""
    return whole("seed", seed, least=0)


def checked_sizes(sizes: Any) -> list[int]:
    """Return one or several different sizes of experiments as a list."""
    numbers = [checked_size(size) for size in _listed("sizes", sizes)]
    if not numbers or len(set(numbers)) < len(numbers):
        raise refusal_of("sizes", sizes, "give at least one size, each of them once")
    return numbers


def checked_seeds(seeds: Any, least: int = 1) -> list[int]:
    """Return the seeds of draws: a number n stands for the seeds 0, ..., n - 1; a list must hold different seeds.

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
        raise refusal_of("seeds", seeds, f"give at least {least} of them, each once")
    return numbers


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
        The mean, and the standard deviation over the draws (with the divisor "number of draws minus 1") divided by the square root of
        their number.

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
