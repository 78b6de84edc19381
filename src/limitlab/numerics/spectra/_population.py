"""The population spectrum of a covariance, for every law that has one.

A `Spectrum` holds atoms, which are eigenvalues with the share of the directions that have them. Each kind of spectrum (groups, a list, a
density, a quantile function, a power law, spikes, an estimate from rows) is reduced to atoms when it is made. A spectrum therefore
consists of numbers only. It can be written to JSON, sent to another process, and compared with another spectrum.

Atoms that stand for a continuous distribution have an error. Such a spectrum holds a second set of atoms in `variants`, which has less
accuracy. An estimate from rows holds estimates from random halves of the rows. A law predicts with the variants too, and the change of
its prediction enters the stated accuracy.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic_core import PydanticCustomError, core_schema

from limitlab._core.checks import array, number, refuse, whole
from limitlab._core.declaration import apportion
from limitlab.errors import Refused
from limitlab.numerics.spectra._from_rows import LEAST_ROWS, WORST_ERROR, estimate, halves_of
from limitlab.numerics.spectra.power_law import ALL, power_law_modes

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

Array = NDArray[np.float64]
Function = Callable[[Array], Any]
Energy = float | Sequence[float] | NDArray[np.float64] | Function | None

SUM_ERROR = 1e-9  # allowed deviation of the sum of weights from 1
MASS_ERROR = 1e-6  # allowed deviation of the integral of a density from 1
FINE, COARSE = 12, 8  # Gauss nodes per panel of length 1 in the logarithm of the eigenvalue
LEVELS = 12.0  # eigenvalues below 10^-12 of the largest are summed up in one panel
PROBES = 25  # number of effective ridges at which an integral over a spectrum is checked
INTEGRAL_ERROR = 1e-11
MOST_PANELS = 400
GROUPED_ERROR = 2e-11  # relative error of sums over a power law of more than 512 modes; measured, it is at most 5e-12
CSV_COLUMNS = ("eigenvalue", "weight", "energy", "test")
DEFAULT_MODES = 1000

FORMS = (
    "a list of eigenvalues, 'power:EXPONENT' or 'power:EXPONENT:MODES', a file .csv with columns eigenvalue, weight, energy, "
    "or one of Spectrum.groups, from_list, power_law, from_density, from_quantiles, from_rows"
)


class Atoms(NamedTuple):
    """Eigenvalues in increasing order, shares of the directions, and energy and test variance of each atom."""

    eigenvalues: Array
    weights: Array
    energy: Array | None
    test: Array | None


class Spectrum:
    """The population spectrum of a covariance, accepted by the parameter `spectrum` of a law.

    Parameters
    ----------
    given
        A spectrum, a list of eigenvalues (one per direction), a text such as "power:1.2" or the name of a .csv file, or the record of a
        spectrum in JSON. The class methods make the other kinds.

    Attributes
    ----------
    eigenvalues, weights
        The atoms. A weight is the share of the directions that have the eigenvalue. A spike has the weight 0.
    energy
        Squared norm of the target's coefficients in the directions of each atom, or None if the target is spread evenly.
    test
        Variance of the test inputs in the directions of each atom, or None if it is the eigenvalue.
    variants
        Less accurate versions of the spectrum. There are none if the atoms are exact.
    label_noise
        Standard deviation of the label noise that `from_rows` estimates from labels, or None.

    Examples
    --------
    >>> spectrum = Spectrum.groups([4.0, 1.0], [0.25, 0.75])
    >>> spectrum.trace, spectrum.at(8).weights.tolist()
    (1.75, [0.75, 0.25])
    >>> Spectrum([2.0, 1.0, 1.0]).eigenvalues.tolist()
    [1.0, 2.0]
    """

    ALLOWED: ClassVar[str] = "a list, power:EXPONENT[:MODES], or a file .csv"
    eigenvalues: Array
    weights: Array
    energy: Array | None
    test: Array | None
    variants: tuple[Spectrum, ...]
    label_noise: float | None
    name: str
    _error: float

    def __init__(self, given: Any):
        if isinstance(given, Spectrum):
            self.__dict__.update(given.__dict__)
        elif isinstance(given, (str, os.PathLike)):
            self.__dict__.update(_from_text(os.fspath(given)).__dict__)
        elif isinstance(given, Mapping):
            self.__dict__.update(_from_record(given).__dict__)
        elif callable(given):
            raise Refused(
                f"spectrum = {given!r} is not allowed: a function is a density or a quantile function; use Spectrum.from_density or "
                "Spectrum.from_quantiles"
            )
        else:
            self.__dict__.update(Spectrum.from_list(given).__dict__)

    # -- the kinds ------------------------------------------------------------------------------------------------------

    @classmethod
    def groups(cls, eigenvalues: ArrayLike, weights: ArrayLike, *, energy: Energy = None, test: Energy = None) -> Spectrum:
        """Return a spectrum with a few eigenvalues and the share of the directions of each. The shares must add up to 1.

        `energy` is the squared norm of the target's coefficients, one number per eigenvalue, or one number for all directions together,
        or a function of the eigenvalue that gives the energy per share. `test` is the variance of the test inputs in these directions,
        one number per eigenvalue or a function of the eigenvalue.

        >>> Spectrum.groups([4.0, 1.0], [0.2, 0.8], energy=[0.5, 0.5]).energy.tolist()
        [0.5, 0.5]
        """
        s, w = _numbers("eigenvalues", eigenvalues), _numbers("weights", weights)
        refuse(
            len(s) != len(w),
            f"weights has {len(w)} entries, which is not allowed: must have one for each of {len(s)} eigenvalues",
        )
        refuse(
            (w <= 0).any(),
            f"weights = {w.min():g} is not allowed: must be above 0 (with_spikes adds directions of weight 0)",
        )
        refuse(
            abs(w.sum() - 1) > SUM_ERROR,
            f"weights = {_brief(w)} is not allowed: they add up to {w.sum():.10g} and must add up to 1; divide them by their sum",
        )
        return _made(s, w / w.sum(), energy, test)

    @classmethod
    def from_list(cls, eigenvalues: ArrayLike, *, energy: Energy = None, test: Energy = None) -> Spectrum:
        """Return the spectrum of a covariance matrix with these eigenvalues, one per direction.

        `energy` and `test` are those of `groups`.

        >>> Spectrum.from_list([3.0, 1.0, 1.0, 1.0]).weights.tolist()
        [0.75, 0.25]
        """
        s = _numbers("eigenvalues", eigenvalues)
        return _made(s, np.full(len(s), 1 / len(s)), energy, test)

    @classmethod
    def power_law(
        cls, exponent: float, modes: int = DEFAULT_MODES, *, target_exponent: float | None = None, energy: Energy = None
    ) -> Spectrum:
        """Return the eigenvalues j^-exponent for j = 1, ..., modes, each with the same share of the directions.

        With `target_exponent` the target has the coefficients j^-target_exponent.

        >>> power = Spectrum.power_law(1.2, 100)
        >>> round(power.trace * 100, 6) == round(sum(j**-1.2 for j in range(1, 101)), 6)
        True
        """
        exponent, modes = number("exponent", exponent, least=0, most=12), whole("modes", modes, least=2, most=10**12)
        b = 0.0 if target_exponent is None else number("target_exponent", target_exponent, least=0, most=6)
        refuse(
            target_exponent is not None and energy is not None,
            "energy is not allowed together with target_exponent: give one of them",
        )
        part = power_law_modes(exponent / 2, b, float(modes))
        given: Energy = energy if target_exponent is None else part.energy
        made = _made(part.eigenvalues, part.counts / part.counts.sum(), given, None)
        made._error = GROUPED_ERROR if modes > ALL else 0.0
        if energy is None:
            made.name = f"power:{exponent:.17g}:{modes}" + ("" if target_exponent is None else f":{b:.17g}")
        return made

    @classmethod
    def from_density(
        cls,
        density: Function,
        low: float,
        high: float,
        *,
        atoms: Sequence[tuple[float, float]] = (),
        energy: Energy = None,
        test: Energy = None,
    ) -> Spectrum:
        """Return the spectrum with a density between `low` and `high`, and with atoms (eigenvalue, weight).

        The density is a function of an array of eigenvalues. Its integral and the weights of the atoms must add up to 1. `energy` and
        `test` are None, a number or a function of the eigenvalue.

        >>> uniform = Spectrum.from_density(lambda s: 0 * s + 0.5, 1.0, 3.0)
        >>> round(uniform.trace, 9), uniform.accuracy < 1e-9
        (2.0, True)
        """
        a = number("low", low, least=0)
        b = number("high", high, above=a, remedy="cut an unbounded density where its share of the trace is negligible")
        points = np.array([point for point, _ in atoms], dtype=float)
        shares = np.array([share for _, share in atoms], dtype=float)
        refuse(
            (points < 0).any() or (shares <= 0).any(), "atoms is not allowed: must hold pairs (eigenvalue >= 0, weight > 0)"
        )

        def mass(s: Array) -> Array:
            return _values(density, s, "density")

        nodes, coarse = _panels_of(mass, lambda s: s, a, b, "the density")
        total = float(mass(nodes[0]) @ nodes[1]) + float(shares.sum())
        refuse(
            abs(total - 1) > MASS_ERROR,
            f"density is not allowed: its integral and the weights of the atoms add up to {total:.8g} and must add up to 1; divide the "
            "density by its integral",
        )
        fine_, coarse_ = ((s, w * mass(s)) for s, w in (nodes, coarse))
        return _reduced(fine_, coarse_, points, shares, energy, test)

    @classmethod
    def from_quantiles(cls, quantiles: Function, *, energy: Energy = None, test: Energy = None) -> Spectrum:
        """Return the spectrum with a quantile function, a function of an array of levels u in (0, 1).

        Every function of u is allowed whose values at uniform u are distributed like the eigenvalues. It need not increase.

        >>> spectrum = Spectrum.from_quantiles(lambda u: 1 + 2 * u)
        >>> round(spectrum.trace, 9)
        2.0
        """

        def eigenvalue(u: Array) -> Array:
            return _values(quantiles, u, "quantiles")

        fine, coarse = _panels_of(np.ones_like, eigenvalue, 0.0, 1.0, "the quantile function")
        fine_, coarse_ = ((eigenvalue(u), w) for u, w in (fine, coarse))
        return _reduced(fine_, coarse_, np.zeros(0), np.zeros(0), energy, test)

    @classmethod
    def from_rows(cls, rows: ArrayLike, labels: ArrayLike | None = None, *, seed: int = 0) -> Spectrum:
        """Return an estimate of the population spectrum of rows, with the bias of the sample spectrum removed.

        With labels the energy of the target per direction and the label noise are estimated too. The estimate is refused if estimates
        from halves of the rows differ too much. The notes of `limitlab.numerics.spectra` explain the method.

        Parameters
        ----------
        rows
            Table of n independent rows with p columns. The mean of each column is subtracted.
        labels
            One number per row, which depends linearly on the row up to noise.
        seed
            Seed of the random halves.

        Examples
        --------
        >>> rng = np.random.default_rng(0)
        >>> rows = rng.standard_normal((300, 150)) * np.repeat([1.0, 2.0], 75)
        >>> spectrum = Spectrum.from_rows(rows)
        >>> bool(abs(spectrum.trace - 2.5) < 0.05), bool(spectrum.accuracy < 0.1)
        (True, True)
        """
        X = array("rows", rows, shape=("n", "p"))
        y = None if labels is None else array("labels", labels, shape=(len(X),), remedy="give one label for each row")
        refuse(len(X) < LEAST_ROWS, f"rows of shape {X.shape} is not allowed: must have at least {LEAST_ROWS} rows")
        refuse(not (np.ptp(X, axis=0) > 0).any(), "rows is not allowed: must have a column that varies")
        parts = [estimate(X, y)]
        for half in halves_of(len(X), np.random.default_rng([whole("seed", seed, least=0), *X.shape])):
            parts.append(estimate(X[half], None if y is None else y[half]))
        made, *variants = (_made(part.eigenvalues, part.weights, part.energy, None) for part in parts)
        made.label_noise, made.variants, made.name = parts[0].label_noise, tuple(variants), "estimated"
        error = disagreement(made, max(part.least for part in parts[1:]))
        if not error <= WORST_ERROR:
            raise Refused(
                f"rows of shape {X.shape} is not allowed: estimates from random halves of the rows differ by {error:.0%} of an integral "
                f"over the spectrum, and at most {WORST_ERROR:.0%} is accepted; use more rows, or remove rows of extreme norm"
            )
        return made

    # -- changes --------------------------------------------------------------------------------------------------------

    def with_energy(self, energy: Energy) -> Spectrum:
        """Return the spectrum with another energy of the target, in the forms of `groups`.

        >>> Spectrum.groups([4.0, 1.0], [0.5, 0.5]).with_energy(lambda s: s).energy.tolist()
        [0.5, 2.0]
        """
        return self._changed("energy", energy)

    def with_test(self, test: Energy) -> Spectrum:
        """Return the spectrum with variances of the test inputs along the same directions.

        >>> Spectrum.groups([4.0, 1.0], [0.5, 0.5]).with_test(lambda s: 0 * s + 1.0).test.tolist()
        [1.0, 1.0]
        """
        return self._changed("test", test)

    def _changed(self, name: str, value: Any) -> Spectrum:
        """Return the spectrum, and its variants, with another energy or other variances of the test inputs."""
        if self.variants and np.ndim(value) > 0:
            raise Refused(
                f"{name} is not allowed as a list for this spectrum, whose atoms are nodes of an integral; give a number or a "
                "function of the eigenvalue"
            )

        def changed(part: Spectrum) -> Spectrum:
            given = dict(energy=part.energy, test=part.test) | {name: value}
            made = _made(part.eigenvalues, part.weights, given["energy"], given["test"], merge=False)
            made._error, made.label_noise = part._error, part.label_noise
            made.variants = tuple(changed(variant) for variant in part.variants)
            return made

        return changed(self)

    def with_spikes(self, eigenvalues: ArrayLike, *, energy: ArrayLike = 0.0, test: ArrayLike | None = None) -> Spectrum:
        """Return the spectrum with further single directions, whose share of all directions tends to 0.

        `energy` is the squared coefficient of the target in each of these directions.

        >>> spiked = Spectrum.groups([1.0], [1.0], energy=1.0).with_spikes([9.0], energy=[2.0])
        >>> spiked.eigenvalues.tolist(), spiked.weights.tolist(), spiked.at(10).weights.tolist()
        ([1.0, 9.0], [1.0, 0.0], [0.9, 0.1])
        """
        spikes = _numbers("eigenvalues", eigenvalues)
        refuse((spikes <= 0).any(), f"eigenvalues = {spikes.min():g} is not allowed for a spike: must be above 0")
        own = np.broadcast_to(np.asarray(energy, dtype=float), spikes.shape)
        refuse(not (np.isfinite(own) & (own >= 0)).all(), "energy is not allowed: must be finite and at least 0")
        base = self if self.energy is not None or not own.any() else self.with_energy(1.0)

        def extended(part: Spectrum) -> Spectrum:
            total = None if part.energy is None else np.concatenate([part.energy, own])
            tested = None if test is None and part.test is None else np.concatenate(
                [
                    part.eigenvalues if part.test is None else part.test,
                    spikes if test is None else np.broadcast_to(np.asarray(test, dtype=float), spikes.shape),
                ]
            )  # fmt: skip
            made = _made(
                np.concatenate([part.eigenvalues, spikes]),
                np.concatenate([part.weights, 0 * spikes]),
                total,
                tested,
                merge=False,
            )
            made._error, made.label_noise = part._error, part.label_noise
            return made

        made = extended(base)
        made.variants = tuple(extended(part) for part in base.variants)
        return made

    # -- facts ----------------------------------------------------------------------------------------------------------

    @property
    def trace(self) -> float:
        """The mean eigenvalue, which is the trace of the covariance per dimension."""
        return float(self.weights @ self.eigenvalues)

    @property
    def smooth(self) -> bool:
        """Whether the atoms stand for a continuous distribution, or for many modes."""
        return bool(self.variants) or self._error > 0

    @property
    def accuracy(self) -> float:
        """Estimated relative error of integrals over the spectrum, the largest over many effective ridges."""
        rounding = 2 * float(np.finfo(float).eps)
        if not self.variants:
            return self._error or rounding
        return max(disagreement(self, 1e-3 * self.trace), rounding)

    def at(self, size: int) -> Spectrum:
        """Return the spectrum of an experiment in `size` dimensions, which has one eigenvalue per direction.

        Exact atoms receive whole numbers of directions in proportion to their weights. Other spectra are divided into parts of equal
        weight, and every direction has the mean eigenvalue of its part. This preserves the trace and the energy.

        >>> Spectrum.from_quantiles(lambda u: 2 * u).at(4).eigenvalues.round(2).tolist()
        [0.25, 0.75, 1.25, 1.75]
        """
        size = whole("size", size, least=2)
        spikes = self.weights == 0
        rest = size - int(spikes.sum())
        if rest < 1:
            raise Refused(f"size = {size} is not allowed: must be above the number of spikes, {int(spikes.sum())}")
        bulk = ~spikes
        weights = self.weights[bulk]
        if not self.smooth and weights.size <= rest:
            counts = apportion(rest, weights)
            parts = Atoms(self.eigenvalues[bulk], counts / size, *(_part(a, bulk) for a in (self.energy, self.test)))
        else:
            parts = _binned(self, bulk, rest, size)
        columns = [
            None if a is None or b is None else np.concatenate([a, b])
            for a, b in zip(parts, (self.eigenvalues[spikes], np.full(spikes.sum(), 1 / size),
                                    _part(self.energy, spikes), _part(self.test, spikes)), strict=True)
        ]  # fmt: skip
        made = _made(columns[0], columns[1], columns[2], columns[3])
        made.weights = np.round(made.weights * size) / size  # whole numbers of directions
        return made

    def counts(self, size: int) -> NDArray[np.int64]:
        """Return the number of directions of each atom in `size` dimensions, for a spectrum that `at(size)` returned.

        >>> Spectrum([1.0, 1.0, 3.0]).at(6).counts(6).tolist()
        [4, 2]
        """
        return np.round(self.weights * size).astype(np.int64)

    # -- identity and records -------------------------------------------------------------------------------------------

    @property
    def _key(self) -> tuple[Any, ...]:
        arrays = (self.eigenvalues, self.weights, self.energy, self.test)
        own = tuple(None if a is None else a.tobytes() for a in arrays)
        return (*own, self._error, tuple(part._key for part in self.variants))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spectrum) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        if self.name not in ("custom", "estimated"):
            return f"Spectrum({self.name!r})"
        count, s = self.weights.size, self.eigenvalues
        return f"Spectrum({count} eigenvalue{'s' * (count > 1)} from {s[0]:.4g} to {s[-1]:.4g})"

    def record(self) -> Any:
        """Return the spectrum as JSON data, which the constructor accepts.

        >>> Spectrum("power:1.2").record(), Spectrum([1.0]).record()
        ('power:1.2:1000', {'eigenvalues': [1.0], 'weights': [1.0]})
        """
        if self.name not in ("custom", "estimated"):
            return self.name
        arrays = dict(eigenvalues=self.eigenvalues, weights=self.weights, energy=self.energy, test=self.test)
        content: dict[str, Any] = {name: values.tolist() for name, values in arrays.items() if values is not None}
        if self.variants:
            content["variants"] = [part.record() for part in self.variants]
        for name, value in (("error", self._error), ("label_noise", self.label_noise)):
            if value:
                content[name] = value
        return content

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        return core_schema.no_info_plain_validator_function(
            cls._validated,
            serialization=core_schema.plain_serializer_function_ser_schema(cls._serialised, info_arg=True),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [{"type": "string"}, {"type": "array"}, {"type": "object"}]}

    @classmethod
    def _validated(cls, given: Any) -> Self:
        try:
            return cls(given)
        except Refused as error:
            reason = re.sub(r"^spectrum = .* is not allowed: ", "", str(error))
            raise PydanticCustomError("spectrum", "{reason}", {"reason": reason}) from None

    def _serialised(self, info: core_schema.SerializationInfo) -> Any:
        return self.record() if info.mode == "json" else self


# -- construction -------------------------------------------------------------------------------------------------------


def _numbers(name: str, values: ArrayLike) -> Array:
    """Return eigenvalues or weights as a line of finite numbers of at least 0."""
    try:
        line = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise Refused(f"{name} = {_brief(values)} is not allowed: must be {FORMS}") from None
    if line.ndim != 1 or not line.size:
        raise Refused(f"{name} of shape {line.shape} is not allowed: must be a line of at least one number")
    bad = ~(np.isfinite(line) & (line >= 0))
    if bad.any():
        remedy = "; a covariance has none below 0, so replace rounding errors by 0" if name == "eigenvalues" else ""
        raise Refused(f"{name} = {line[bad][0]:g} is not allowed: must be finite and at least 0{remedy}")
    return line


def _brief(values: Any) -> str:
    text = ", ".join(f"{value:g}" for value in values) if isinstance(values, np.ndarray) else repr(values)
    return text if len(text) < 80 else text[:77] + "..."


def _values(function: Function, points: Array, name: str) -> Array:
    """Return the values of a function of arrays, which must be finite and at least 0."""
    try:
        values = np.asarray(function(points), dtype=float)
        values = np.broadcast_to(values, points.shape)
    except Exception as error:
        raise Refused(
            f"{name} = {function!r} is not allowed: it failed on an array ({error}); try numpy.vectorize"
        ) from error
    if not np.isfinite(values).all() or (values < 0).any():
        first = int(np.argmax(~(np.isfinite(values) & (values >= 0))))
        raise Refused(
            f"{name} = {function!r} is not allowed: its value at {points[first]:.6g} is {values[first]:.6g} and must be finite "
            "and at least 0"
        )
    return values


def _per_atom(name: str, given: Any, s: Array, w: Array) -> Array | None:
    """Return the energy or the test variance of each atom."""
    if given is None:
        return None
    if callable(given):
        values = _values(given, s, name)
        return np.array(values * w if name == "energy" else values, dtype=float)
    values = np.asarray(given, dtype=float)
    if values.ndim == 0:
        refuse(
            name == "test",
            f"test = {given!r} is not allowed: must be one number per eigenvalue or a function of the eigenvalue",
        )
        values = float(values) * w
    refuse(
        values.shape != s.shape,
        f"{name} of shape {values.shape} is not allowed: must have one entry for each of the {len(s)} eigenvalues",
    )
    refuse(
        not (np.isfinite(values) & (values >= 0)).all(),
        f"{name} = {_brief(values)} is not allowed: must be finite and at least 0",
    )
    return np.array(values, dtype=float)


def _made(s: Any, w: Any, energy: Any, test: Any, merge: bool = True) -> Spectrum:
    """Return the spectrum with these atoms, sorted, with equal eigenvalues merged."""
    s, w = np.asarray(s, dtype=float), np.asarray(w, dtype=float)
    refuse(not (s * (w > 0)).any(), f"eigenvalues = {_brief(s)} is not allowed: must have one entry above 0")
    atoms = Atoms(s, w, _per_atom("energy", energy, s, w), _per_atom("test", test, s, w))
    order = np.argsort(s, kind="stable")
    s, w, b, t = (None if a is None else a[order] for a in atoms)
    if merge:
        new = np.r_[True, (np.diff(s) != 0) | (w[1:] == 0) | (w[:-1] == 0)]
        if t is not None:
            new |= np.r_[True, np.diff(t) != 0]
        first = np.flatnonzero(new)
        if first.size < s.size:
            w = np.add.reduceat(w, first)
            b = None if b is None else np.add.reduceat(b, first)
            s, t = s[first], None if t is None else t[first]
    made = object.__new__(Spectrum)
    made.eigenvalues, made.weights, made.energy, made.test = s, w, b, t
    made.variants, made.label_noise, made.name, made._error = (), None, "custom", 0.0
    for values in (s, w, b, t):
        if values is not None:
            values.flags.writeable = False
    return made


def _from_text(text: str) -> Spectrum:
    head, *numbers = text.strip().split(":")
    if head == "power" and 1 <= len(numbers) <= 3:
        try:
            exponent, *rest = (float(part) for part in numbers)
        except ValueError:
            raise Refused(
                f"spectrum = {text!r} is not allowed: must be 'power:EXPONENT' or 'power:EXPONENT:MODES'"
            ) from None
        modes: Any = rest[0] if rest else DEFAULT_MODES
        return Spectrum.power_law(exponent, modes, target_exponent=rest[1] if len(rest) > 1 else None)
    if text.strip().lower().endswith(".csv"):
        return _from_file(Path(text.strip()))
    raise Refused(f"spectrum = {text!r} is not allowed: must be {FORMS}")


def _from_file(path: Path) -> Spectrum:
    """Return the spectrum in a file, whose columns are eigenvalue, weight, energy and test variance (the last three may be absent)."""
    try:
        rows = [row for row in csv.reader(path.read_text().splitlines()) if any(cell.strip() for cell in row)]
    except OSError as error:
        raise Refused(f"spectrum = {str(path)!r} is not allowed: the file cannot be read ({error.strerror})") from None
    try:
        float(rows[0][0])
        names: Sequence[str] = CSV_COLUMNS[: len(rows[0])]
    except (ValueError, IndexError):
        names = [cell.strip().lower() for cell in rows[0]] if rows else []
        rows = rows[1:]
    refuse(
        not rows or "eigenvalue" not in names or not set(names) <= set(CSV_COLUMNS),
        f"spectrum = {str(path)!r} is not allowed: the file must have a column eigenvalue, and may have columns weight, energy and test",
    )
    try:
        table = np.array([[float(cell) for cell in row] for row in rows], dtype=float)
    except ValueError:
        raise Refused(f"spectrum = {str(path)!r} is not allowed: every row must have {len(names)} numbers") from None
    columns: dict[str, Array] = dict(zip(names, table.T, strict=True))
    s, energy, test = columns["eigenvalue"], columns.get("energy"), columns.get("test")
    if "weight" in columns:
        return Spectrum.groups(s, columns["weight"], energy=energy, test=test)
    return Spectrum.from_list(s, energy=energy, test=test)


def _from_record(content: Mapping[str, Any]) -> Spectrum:
    known = {"eigenvalues", "weights", "energy", "test", "variants", "error", "label_noise"}
    refuse(
        not {"eigenvalues", "weights"} <= set(content) or not set(content) <= known,
        f"spectrum = {_brief(dict(content))} is not allowed: the record must have eigenvalues and weights, and may have energy and test",
    )
    s, w = _numbers("eigenvalues", content["eigenvalues"]), _numbers("weights", content["weights"])
    refuse(
        len(s) != len(w) or abs(w.sum() - 1) > SUM_ERROR,
        "weights is not allowed: must have one entry per eigenvalue and add up to 1",
    )
    made = _made(s, w, content.get("energy"), content.get("test"), merge=False)
    made.variants = tuple(Spectrum(part) for part in content.get("variants", ()))
    made._error = number("error", content.get("error", 0.0), least=0)
    noise = content.get("label_noise")
    made.label_noise = None if noise is None else number("label_noise", noise, least=0)
    return made


# -- continuous distributions -------------------------------------------------------------------------------------------


def _panels_of(
    mass: Function, eigenvalue: Function, low: float, high: float, what: str
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """Return nodes and weights of a fine and of a coarse rule for integrals over a spectrum, on panels that are refined adaptively."""
    from scipy.integrate import quad_vec

    middle = low + (high - low) * (np.arange(200) + 0.5) / 200
    probed, weight = eigenvalue(middle), mass(middle)
    share = weight.sum()
    scale = float(probed @ weight / share) if share > 0 else float(probed.mean())
    refuse(not scale > 0, f"{what} is not allowed: all of its eigenvalues are 0 and one must be above 0")
    kappa = scale * np.geomspace(1e-7, 1e3, PROBES)

    def integrand(x: float) -> Array:
        point = np.array([x])
        s, m = float(eigenvalue(point)[0]), float(mass(point)[0])
        return m * np.concatenate([[1.0, s / scale], s / (s + kappa)])

    steps = 0.5 ** np.arange(1, 46, 4)
    ends = [low + (high - low) * step for step in steps] + [high - (high - low) * step for step in steps]
    with np.errstate(all="ignore"):
        _, error, info = quad_vec(
            integrand, low, high, epsabs=INTEGRAL_ERROR, epsrel=INTEGRAL_ERROR, norm="max", limit=MOST_PANELS,
            points=sorted(set(ends)), full_output=True,
        )  # fmt: skip
    if not (info.success or error < 1e-8):
        raise Refused(
            f"{what} is not allowed: its integrals do not converge (the largest error is {error:.1e}), because the trace is infinite or "
            "the function varies too fast; cut off the largest eigenvalues, or give a list of eigenvalues"
        )
    edges = np.asarray(info.intervals)
    edges = edges[np.argsort(edges[:, 0])]
    return _on(edges, 16), _on(edges, 10)


def _on(intervals: Array, order: int) -> tuple[Array, Array]:
    points, weights = np.polynomial.legendre.leggauss(order)
    widths = np.diff(intervals, axis=1)
    return (intervals[:, :1] + widths * (points + 1) / 2).ravel(), (widths * weights / 2).ravel()


def _reduced(
    fine: tuple[Array, Array], coarse: tuple[Array, Array], points: Array, shares: Array, energy: Energy, test: Energy
) -> Spectrum:
    """Return few atoms with the integrals of many, and a less accurate variant."""
    for name, value in (("energy", energy), ("test", test)):
        refuse(
            value is not None and not callable(value) and np.ndim(value) > 0,
            f"{name} is not allowed as a list here: must be a number or a function of the eigenvalue",
        )

    def atoms(rule: tuple[Array, Array], order: int) -> Spectrum:
        s, w = _compressed(*rule, order)
        s, w = np.concatenate([s, points]), np.concatenate([w, shares])
        keep = w > 0
        return _made(s[keep], w[keep] / w.sum(), energy, test)

    made, other = atoms(fine, FINE), atoms(coarse, COARSE)
    if made.weights.size != other.weights.size or not np.allclose(made.weights, other.weights, rtol=1e-12, atol=1e-14):
        made.variants = (other,)  # a step function has few eigenvalues, which both rules reproduce
    return made


def _compressed(s: Array, w: Array, order: int) -> tuple[Array, Array]:
    """Return atoms with the same integrals, at most `order` per panel of length 1 in the logarithm of the eigenvalue."""
    s, index = np.unique(s, return_inverse=True)
    w = np.asarray(np.bincount(index, weights=w), dtype=np.float64)
    positive = s > 0
    x = np.log(np.where(positive, s, 1.0))
    panel = np.where(positive, np.floor(np.maximum(x, x.max() - LEVELS * np.log(10)) - x.max() - 1e-12), np.inf)
    nodes, weights = [s[~positive]], [w[~positive]]
    for level in np.unique(panel[positive]):
        inside = panel == level
        points, masses = x[inside], w[inside]
        if points.size > order and masses.sum() > 0:
            points, masses = _gauss(points, masses, order)
        nodes.append(np.exp(points))
        weights.append(masses)
    return np.concatenate(nodes), np.concatenate(weights)


def _gauss(x: Array, w: Array, order: int) -> tuple[Array, Array]:
    """Return the Gauss rule of a discrete measure, by Lanczos's method with orthogonalisation against all earlier vectors."""
    from scipy.linalg import eigh_tridiagonal

    total, middle, half = float(w.sum()), (x[0] + x[-1]) / 2, max(float(np.ptp(x)) / 2, 1e-300)
    y = (x - middle) / half
    basis = [np.sqrt(w / total)]
    diagonal, off = [], []
    for k in range(order):
        vector = y * basis[k]
        diagonal.append(float(vector @ basis[k]))
        for _ in range(2):
            for other in basis:
                vector = vector - (vector @ other) * other
        length = float(np.linalg.norm(vector))
        if k == order - 1 or length < 1e-10:
            break
        off.append(length)
        basis.append(vector / length)
    nodes, vectors = eigh_tridiagonal(np.array(diagonal), np.array(off))
    return middle + half * nodes, total * vectors[0] ** 2


def disagreement(spectrum: Spectrum, least: float) -> float:
    """Return twice the root mean square, over the variants, of the largest relative change of an integral.

    The integrals are the trace and the first and second degrees of freedom at effective ridges of at least `least`.
    """

    def integrals(part: Spectrum) -> Array:
        s, w = part.eigenvalues, part.weights
        share = s / (s + np.geomspace(least, 1e3 * spectrum.trace, PROBES)[:, None])
        return np.concatenate([[w @ s], share @ w, share**2 @ w])

    exact = integrals(spectrum)
    errors = [np.max(np.abs(integrals(part) - exact) / exact) for part in spectrum.variants]
    return float(2 * np.sqrt(np.mean(np.square(errors))))


# -- experiments --------------------------------------------------------------------------------------------------------


def _part(values: Array | None, mask: NDArray[np.bool_]) -> Array | None:
    return None if values is None else values[mask]


def _binned(spectrum: Spectrum, bulk: NDArray[np.bool_], parts: int, size: int) -> Atoms:
    """Return `parts` directions, each with the means over one part of the spectrum, from the smallest eigenvalue to the largest."""
    s, w = spectrum.eigenvalues[bulk], spectrum.weights[bulk]
    levels = np.r_[0.0, np.cumsum(w) / w.sum()]
    levels[-1] = 1.0
    edges = np.arange(parts + 1) / parts

    def means(values: Array) -> Array:
        cumulated = np.r_[0.0, np.cumsum(np.diff(levels) * values)]
        return np.diff(np.interp(edges, levels, cumulated)) * parts

    first = np.clip(np.searchsorted(levels, edges[:-1] * (1 + 1e-13), side="right") - 1, 0, s.size - 1)
    last = np.clip(np.searchsorted(levels, edges[1:] * (1 - 1e-13), side="left") - 1, 0, s.size - 1)
    inside = first == last

    def column(values: Array) -> Array:
        return np.where(inside, values[first], np.maximum(means(values), 0.0))

    energy, test = _part(spectrum.energy, bulk), _part(spectrum.test, bulk)
    return Atoms(
        column(s),
        np.full(parts, 1 / size),
        None if energy is None else column(energy / np.diff(levels)) / parts,
        None if test is None else column(test),
    )
