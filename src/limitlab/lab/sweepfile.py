"""A sweep written down: a TOML file that says which law, over which grid, in which sizes, where to keep it.

    law = "Ridge"
    sizes = [100, 200]
    seeds = 20
    engine = "processes"
    store = "ridge.nc"

    [parameters]
    noise = 0.5

    [over]
    ratio = "0.1:10:30log"
    ridge = [0.01, 0.1, 1.0]

Only `law` and `[over]` are needed; without `sizes` the limit itself is swept. Paths are relative to where the command runs.
"""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, field_validator
from pydantic_core import ValidationError

from limitlab._core.law import Law
from limitlab._core.registry import find_law
from limitlab.errors import did_you_mean
from limitlab.lab._sweep import sweep
from limitlab.lab.engines import Engine, check_engine
from limitlab.lab.grid import one_line, read_grid
from limitlab.lab.progress import ProgressOption

__all__ = ["SweepSpec", "load_sweep", "read_sweep", "run_sweep"]

_UNSET: Any = object()


class SweepSpec(BaseModel):
    """What a sweep file says, checked. `over` holds lists and ranges as they were written."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    law: str = Field(description="name of the law, or module:Class for one of your own whose file is given by --laws")
    parameters: dict[str, Any] = Field(default_factory=dict, description="parameters that are not swept")
    over: dict[str, list[Any] | str] = Field(min_length=1, description="values or ranges of every swept parameter")
    sizes: StrictInt | list[StrictInt] | None = Field(default=None, description="sizes of the experiments")
    seeds: StrictInt | list[StrictInt] | None = Field(
        default=None, description="number of draws of each experiment, or their seeds"
    )
    engine: StrictInt | str | None = Field(
        default=None, description="serial, threads, processes, a number of workers, or a cluster"
    )
    store: str | None = Field(default=None, min_length=1, description="where to keep finished tasks and the result")
    with_theory: StrictBool = Field(default=False, description="put the limit beside the draws")

    @field_validator("engine")
    @classmethod
    def _known_engine(cls, engine: int | str | None) -> int | str | None:
        check_engine(engine)
        return engine

    def make_law(self) -> Law:
        """The law with the parameters of the file."""
        kind = find_law(self.law)
        try:
            return kind(**self.parameters)
        except ValidationError as error:
            raise ValueError(one_line(error)) from None


def load_sweep(path: str | os.PathLike[str]) -> SweepSpec:
    """Read a sweep file; what is wrong with it is said in one line.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "ridge.toml"
    >>> _ = file.write_text('law = "Ridge"\\n[over]\\nratio = "0.5:2:3"\\n')
    >>> load_sweep(file).over
    {'ratio': '0.5:2:3'}
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ValueError(f"sweep file {str(path)!r} is not a text file") from None
    except OSError as error:
        raise ValueError(f"sweep file {str(path)!r} cannot be read: {error.strerror or error}") from None
    try:
        return read_sweep(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"sweep file {str(path)!r} is not valid TOML: {error}") from None
    except ValueError as error:
        raise ValueError(f"sweep file {str(path)!r}: {error}") from None


def read_sweep(content: Mapping[str, Any]) -> SweepSpec:
    """The same from a mapping; the law and the grid are checked too, so that a mistake shows before anything runs.

    >>> read_sweep({"law": "Ridge", "over": {"ratio": [0.5]}, "seed": 3})
    Traceback (most recent call last):
        ...
    ValueError: there is no entry 'seed': did you mean 'seeds'?
    """
    known = SweepSpec.model_fields
    for name in content:
        if name not in known:
            raise ValueError(f"there is no entry {name!r}: {did_you_mean(name, known)}")
    try:
        spec = SweepSpec.model_validate(dict(content))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        entry = str(first["loc"][0]) if first["loc"] else "the file"
        if first["type"] == "missing":
            raise ValueError(f"the entry {entry!r} is missing ({known[entry].description})") from None
        message = one_line(error)
        reason = (
            message if first["type"] == "value_error" else f"{entry} = {content[entry]!r} is not allowed: {message.lower()}"
        )
        raise ValueError(f"{reason} ({known[entry].description})") from None
    read_grid(spec.make_law(), spec.over, ())
    return spec


def run_sweep(
    spec: SweepSpec | str | os.PathLike[str],
    *,
    engine: Engine = _UNSET,
    store: str | os.PathLike[str] | None = _UNSET,
    progress: ProgressOption = None,
) -> xr.Dataset:
    """Run a sweep that is written down.

    Parameters
    ----------
    spec
        What `load_sweep` gave, or the path of a sweep file.
    engine, store
        In place of those in the file.
    progress
        As in `limitlab.sweep`.

    Examples
    --------
    >>> spec = read_sweep({"law": "Ridge", "over": {"ratio": [0.5, 2.0]}})
    >>> run_sweep(spec).test_error.dims
    ('ratio',)
    """
    if not isinstance(spec, SweepSpec):
        spec = load_sweep(spec)
    return sweep(
        spec.make_law(),
        spec.over,
        sizes=spec.sizes,
        seeds=spec.seeds,
        engine=spec.engine if engine is _UNSET else engine,
        store=spec.store if store is _UNSET else store,
        progress=progress,
        with_theory=spec.with_theory,
    )
