"""The parameter `spectrum` of laws whose inputs have a population covariance.

A law reads its covariance from groups of eigenvalues (its own parameters) or from a `Spectrum`. Both become a `Population`, with arrays of
eigenvalues, shares and energies. A prediction with a spectrum that is not exact is repeated with the variants of the spectrum, and its
change enters the stated accuracy.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.declaration import parameter
from limitlab._core.law import Law
from limitlab._core.results import absolute_errors, scale_of
from limitlab.errors import Refused
from limitlab.numerics.spectra import Spectrum

Array = NDArray[np.float64]


ROUNDING = 1e-13  # changes below this share of the largest observable are rounding errors


class Population(NamedTuple):
    """Eigenvalue, share of the directions and squared norm of the target's coefficients of every group of directions."""

    eigenvalues: Array
    shares: Array
    energy: Array
    test: Array | None = None

    def counts(self, size: int) -> list[int]:
        """Return the number of directions of each group, for a population of `size` directions."""
        return [int(count) for count in np.round(self.shares * size)]


class HasSpectrum(Law):
    """Base class of laws with the parameter `spectrum`."""

    spectrum: Spectrum | None = parameter(
        None,
        "population spectrum of the inputs",
        symbol="H",
        note="a list, 'power:EXPONENT:MODES', a file .csv, or an object Spectrum; not given: the groups of the law",
        added=True,
    )

    @model_validator(mode="after")
    def _spectrum_instead_of_groups(self) -> Self:
        if self.spectrum is None:
            return self
        fields = type(self).parameters()
        for name in self.replaced_by_spectrum():
            if getattr(self, name) != fields[name].default:
                raise Refused(
                    f"{name} = {getattr(self, name)!r} is not allowed together with spectrum, which has eigenvalues, weights and energies; "
                    f"leave {name} out (Spectrum.groups makes a spectrum from groups)"
                )
        energy = self.spectrum.energy
        if energy is not None and not (energy * self.spectrum.eigenvalues).any():
            raise Refused(
                f"spectrum = {self.spectrum!r} is not allowed: its energy must be above 0 in a direction that varies"
            )
        if self.spectrum.test is not None and not self.reads_test_variance():
            raise Refused(
                f"spectrum = {self.spectrum!r} is not allowed: {type(self).__name__} has test inputs with the covariance of the training "
                "inputs; leave `test` out (Ridge accepts it)"
            )
        return self

    @classmethod
    def replaced_by_spectrum(cls) -> tuple[str, ...]:
        """Return the parameters that must have their defaults if a spectrum is given."""
        return ("eigenvalues",)

    @classmethod
    def reads_test_variance(cls) -> bool:
        """Return whether the law accepts test inputs with another covariance."""
        return False

    def realised(self, size: int) -> Self:
        """Return the law with the counts of an experiment of this size, and with the eigenvalues of its directions."""
        whole = super().realised(size)
        return whole if self.spectrum is None else whole.replace(spectrum=self.spectrum.at(size))

    def _evaluated(self, grid: Mapping[str, ArrayLike]) -> dict[str, Any]:
        values = super()._evaluated(grid)
        if self.spectrum is None or not self.spectrum.smooth:
            return values
        observables = {name: np.asarray(values[name], dtype=float) for name in type(self).all_outputs() if name in values}
        errors = absolute_errors(observables, values.get("accuracy"))
        changes: dict[str, list[float]] = {name: [] for name in observables}
        rounding = ROUNDING * max(map(scale_of, observables.values()), default=0.0)  # an observable may be 0 up to rounding
        for part in self.spectrum.variants:
            try:
                other = self.replace(spectrum=part)._evaluated(grid)
            except ValueError as error:
                raise Refused(
                    f"spectrum = {self.spectrum!r} is not allowed at these parameters: its accuracy is {self.spectrum.accuracy:.1e}, and a "
                    f"variant within this accuracy has no prediction ({error}); move the parameters away from their bounds"
                ) from error
            for name, value in observables.items():
                with np.errstate(invalid="ignore"):
                    change = np.abs(np.asarray(other[name], dtype=float) - value)
                largest = float(np.max(np.nan_to_num(change, nan=0.0), initial=0.0))
                changes[name].append(largest if largest > rounding else 0.0)
        own = self.spectrum.accuracy if not self.spectrum.variants else 0.0
        for name, value in observables.items():
            finite = np.abs(value[np.isfinite(value)])
            total = errors.get(name, 0.0) + own * float(finite.max(initial=0.0))
            if changes[name]:
                total += 2 * float(np.sqrt(np.mean(np.square(changes[name]))))
            errors[name] = total
        return {**values, "accuracy": errors}
