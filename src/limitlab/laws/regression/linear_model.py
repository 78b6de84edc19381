"""Linear model with a grouped spectrum, the common base of the laws of ridge regression, early stopping and SGD.

Setting.  n rows x = Sigma^{1/2} z with independent entries z of mean 0 and variance 1; labels y = <x, beta> + noise.
          Sigma has eigenvalue s_k in a share w_k of the p directions. The part of beta in these directions has squared norm b_k
          and is spread over many of them.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`).
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.declaration import apportion
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Law, parameter
from limitlab.laws._population import HasSpectrum, Population
from limitlab.laws.classification.beside_best import Best, HasBayesError, best_linear
from limitlab.models.designs import Design, Entries, draw_design
from limitlab.numerics.equivalents import gaps
from limitlab.numerics.spectra import Spectrum

__all__ = ["gaps"]

Array = NDArray[np.float64]


class GroupedSignal(HasSpectrum):
    """Parameters of a population spectrum, a dense linear signal in it, and label noise."""

    noise: float = parameter(0.5, least=0)
    eigenvalues: tuple[float, ...] = parameter((1.0,), least=0)
    weights: tuple[float, ...] = parameter(
        (1.0,), note="of the dimensions, rescaled to add up to 1", above=0, count="shares of size"
    )
    signal_energy: tuple[float, ...] = parameter((1.0,), note="one number per group", least=0)
    entries: Entries = parameter("gaussian", kind="experiment")

    @model_validator(mode="after")
    def _one_entry_per_group(self) -> Self:
        if self.spectrum is not None:
            if self.spectrum.energy is not None and self.signal_energy != (1.0,):
                raise Refused(
                    f"signal_energy = {self.signal_energy} is not allowed together with a spectrum that has energies: leave it out"
                )
            if len(self.signal_energy) != 1:
                raise Refused(
                    f"signal_energy = {self.signal_energy} is not allowed together with spectrum: must be one number, the energy of all "
                    "directions (Spectrum.with_energy takes one per direction)"
                )
            return self
        for name in ("weights", "signal_energy"):
            if len(getattr(self, name)) != len(self.eigenvalues):
                raise Refused(
                    f"{name} = {getattr(self, name)} is not allowed: must have one entry for each of the "
                    f"{len(self.eigenvalues)} eigenvalues"
                )
        if not any(value > 0 for value in self.eigenvalues):
            raise Refused(f"eigenvalues = {self.eigenvalues} is not allowed: must have one entry above 0")
        return self

    @property
    def shares(self) -> Array:
        """Weights, rescaled to add up to one."""
        return np.asarray(self.weights) / math.fsum(self.weights)

    @property
    def population(self) -> Population:
        """Eigenvalues, shares and energies of the groups, or of the atoms of the spectrum."""
        if self.spectrum is None:
            return Population(
                np.asarray(self.eigenvalues, dtype=float), self.shares, np.asarray(self.signal_energy, dtype=float)
            )
        return self._population_of(self.spectrum)

    def _population_of(self, atoms: Spectrum) -> Population:
        energy = self.signal_energy[0] * atoms.weights if atoms.energy is None else atoms.energy
        return Population(atoms.eigenvalues, atoms.weights, energy, atoms.test)

    def population_at(self, size: int) -> tuple[Population, list[int]]:
        """Return the population of an experiment in `size` dimensions, and the number of directions of each group."""
        if self.spectrum is None:
            return self.population, [int(count) for count in apportion(size, self.weights)]
        whole = self._population_of(self.spectrum.at(size))
        return whole, whole.counts(size)

    def null_error(self) -> float:
        """Return the test error of predicting zero, which is the variance of the signal plus the variance of the noise."""
        return float(np.dot(self.population.eigenvalues, self.population.energy)) + self.noise**2


class Proportional(Law):
    """Base class with the parameter `ratio`, the number of features per sample. `ratio` comes first in every law that has it."""

    ratio: float = parameter(2.0, above=0, scale="log", infinite=True, count="size / value")


class LinearModel(GroupedSignal, Proportional, HasBayesError):
    """Linear model with random inputs, a discrete population spectrum, a dense signal, and noise."""

    assumptions = (
        "rows x = Sigma^{1/2} z with independent entries z of mean 0, variance 1 and more than four moments",
        "the signal is spread over many directions of each group (or the inputs are Gaussian)",
        "labels are linear in x plus independent noise of constant variance",
    )
    simulation = Experiment("number of features p", draws=30)

    def design(self, draw: Draw) -> Design:
        """Draw the inputs of one experiment."""
        population, counts = self.population_at(draw.size)
        return draw_design(draw.rng, draw.count("ratio"), population.eigenvalues, counts, self.entries)

    def best_possible(self) -> Best:
        """Return the best method on the same samples, the posterior mean for Gaussian coefficients."""
        return self._best_with(self.ratio, "test_error")

    def _best_with(self, ratio: float, observable: str) -> Best:
        s, shares, energy, _ = self.population
        return best_linear(self, ratio, s * energy, shares, self.noise, observable)


def spectrum(
    ratio: ArrayLike, eigenvalues: ArrayLike, weights: ArrayLike, signal_energy: ArrayLike
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Return eigenvalues, loads of shape (*ratio.shape, K), energies, and a mask of infinite ratios. At these the load is 1."""
    gamma = np.asarray(ratio, dtype=float)
    s, w, b2 = (np.atleast_1d(np.asarray(argument, dtype=float)) for argument in (eigenvalues, weights, signal_energy))
    if not (gamma > 0).all():
        raise Refused(f"ratio = {gamma[~(gamma > 0)].flat[0]:g} is not allowed: must be above 0")
    if not len(s) == len(w) == len(b2):
        raise Refused(
            f"eigenvalues, weights and signal_energy must have one entry per group, got {len(s)}, {len(w)} and {len(b2)}"
        )
    wide = np.isinf(gamma)
    return s, np.where(wide, 1.0, gamma)[..., None] * (w / w.sum()), b2, wide
