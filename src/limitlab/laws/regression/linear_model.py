"""The linear model that ridge regression and early stopping share: its parameters, their checks, and how it is drawn.

Setting.  n rows x = Sigma^{1/2} z with independent entries z of mean 0 and variance 1; labels y = <x, beta> + noise.
          Sigma has eigenvalue s_k in a share w_k of the p directions, and beta has squared norm b_k there, spread over many
          directions.
Limit.    n, p -> infinity with p/n -> gamma (`ratio`).
"""

from __future__ import annotations

import math
from typing import ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab.laws.base import Law
from limitlab.laws.parameters import parameter
from limitlab.models.designs import Design, Entries, apportion, draw_design

Array = NDArray[np.float64]

REFERENCES = (
    """@article{hastie2022surprises,
  title={Surprises in high-dimensional ridgeless least squares interpolation},
  author={Hastie, Trevor and Montanari, Andrea and Rosset, Saharon and Tibshirani, Ryan J.},
  journal={Annals of Statistics}, volume={50}, number={2}, pages={949--986}, year={2022}
}""",
    """@article{rubio2011spectral,
  title={Spectral convergence for a general class of random matrices},
  author={Rubio, Francisco and Mestre, Xavier},
  journal={Statistics \\& Probability Letters}, volume={81}, number={5}, pages={592--602}, year={2011}
}""",
    """@article{dobriban2018high,
  title={High-dimensional asymptotics of prediction: Ridge regression and classification},
  author={Dobriban, Edgar and Wager, Stefan},
  journal={Annals of Statistics}, volume={46}, number={1}, pages={247--279}, year={2018}
}""",
)


class LinearModel(Law):
    """Random inputs with a discrete population spectrum, a dense linear signal, and noise."""

    assumptions: ClassVar[tuple[str, ...]] = (
        "rows x = Sigma^{1/2} z with independent entries z of mean 0, variance 1 and more than four moments",
        "the signal is spread over many directions of each group (or the inputs are Gaussian)",
        "labels are linear in x plus independent noise of constant variance",
    )
    references: ClassVar[tuple[str, ...]] = REFERENCES
    size_meaning: ClassVar[str] = "number of features p"
    finite_size_rate: ClassVar[float] = 1.0
    default_sizes: ClassVar[tuple[int, ...]] = (50, 100, 200)
    default_seeds: ClassVar[int] = 30

    ratio: float = parameter(2.0, "features per sample", symbol=r"\gamma = p/n", above=0, scale="log", infinite=True)
    noise: float = parameter(0.5, "standard deviation of the label noise", symbol=r"\tau", least=0)
    eigenvalues: tuple[float, ...] = parameter((1.0,), "population eigenvalue of each group", symbol="s_k", least=0)
    weights: tuple[float, ...] = parameter(
        (1.0,), "share of the dimensions in each group (rescaled to add up to 1)", symbol="w_k", above=0
    )
    signal: tuple[float, ...] = parameter((1.0,), "squared norm of the coefficients in each group", symbol="b_k", least=0)
    entries: Entries = parameter("gaussian", "law of the white inputs in a simulation: gaussian or sign", symbol="z")

    @model_validator(mode="after")
    def _one_entry_per_group(self) -> Self:
        for name in ("weights", "signal"):
            if len(getattr(self, name)) != len(self.eigenvalues):
                raise ValueError(
                    f"{name} = {getattr(self, name)} is not allowed: must have one entry for each of the "
                    f"{len(self.eigenvalues)} eigenvalues"
                )
        if not any(value > 0 for value in self.eigenvalues):
            raise ValueError(f"eigenvalues = {self.eigenvalues} is not allowed: must have one entry above 0")
        return self

    @property
    def shares(self) -> Array:
        """The weights, scaled to add up to one."""
        return np.asarray(self.weights) / math.fsum(self.weights)

    def null_error(self) -> float:
        """Test error of predicting zero: the signal's variance plus the noise's."""
        return float(np.dot(self.eigenvalues, self.signal)) + self.noise**2

    def realised(self, size: int) -> Self:
        """The law with the ratio and the weights that `size` features give."""
        counts = apportion(size, self.shares)
        return self.replace(ratio=size / self.samples(size), weights=tuple(float(count) for count in counts))

    def samples(self, size: int) -> int:
        """Number of samples that go with `size` features."""
        if math.isinf(self.ratio):
            raise ValueError("ratio = inf is not allowed in a simulation: choose a finite number of features per sample")
        return max(1, round(size / self.ratio))

    def draw(self, size: int, seed: int) -> Design:
        """The inputs of one experiment."""
        counts = [int(count) for count in apportion(size, self.shares)]
        return draw_design(self.rng(size, seed), self.samples(size), self.eigenvalues, counts, self.entries)


def spectrum(
    ratio: ArrayLike, eigenvalues: ArrayLike, weights: ArrayLike, signal: ArrayLike
) -> tuple[Array, Array, Array, NDArray[np.bool_]]:
    """Eigenvalues, load per sample of shape (*ratio.shape, K), signal, and where the ratio is infinite (load 1 there)."""
    gamma = np.asarray(ratio, dtype=float)
    s, w, b2 = (np.atleast_1d(np.asarray(given, dtype=float)) for given in (eigenvalues, weights, signal))
    if not (gamma > 0).all():
        raise ValueError(f"ratio = {gamma[~(gamma > 0)].flat[0]:g} is not allowed: must be above 0")
    if not len(s) == len(w) == len(b2):
        raise ValueError(
            f"eigenvalues, weights and signal must have one entry per group, got {len(s)}, {len(w)} and {len(b2)}"
        )
    wide = np.isinf(gamma)
    return s, np.where(wide, 1.0, gamma)[..., None] * (w / w.sum()), b2, wide
