"""Error of a network of N neurons that are drawn independently from a measure over neurons.

Setting.  f = int s_theta d rho(theta) is a mixture of neurons with probabilities rho_i (`weights`). Each row of `neurons` holds the values
          s_i of a neuron on the inputs, including its second-layer weight. |.|^2 is the mean square over the inputs. N neurons are drawn
          independently from rho, and f_N is their mean.
Result.   E|f_N - f|^2 = (int |s|^2 d rho - |f|^2)/N, exactly (docs/theory/finite_width.md, equation (2)). Some choice of N neurons is at
          least as good.
Status.   Identity (Maurey; Barron 1993).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import CLOSED_FORM, Draw, Experiment, Headline, Law, Values, observable, parameter

__all__ = ["SampledMeasure"]

Array = NDArray[Any]
Table = tuple[tuple[float, ...], ...]


def ring_neurons(second_layer: tuple[float, ...], inputs: int) -> Table:
    """Return a_i relu(<w_i, x>) with w_i at the angles 0, 1.1, 2.2, ... on equally spaced inputs of the circle, one row per neuron.

    >>> [[round(value, 6) for value in row] for row in ring_neurons((2.0,), 4)]
    [[2.0, 0.0, 0.0, 0.0]]
    """
    angles = 2 * np.pi * np.arange(inputs) / inputs
    neurons = np.maximum(np.cos(angles - 1.1 * np.arange(len(second_layer))[:, None]), 0.0)
    return tuple(map(tuple, (np.array(second_layer)[:, None] * neurons).tolist()))


class SampledMeasure(Law):
    """How well do N neurons, drawn from a measure over neurons, approximate the mean network of the measure?

    Examples
    --------
    >>> law = SampledMeasure(neurons=((1.0, 0.0), (0.0, 1.0)), weights=(0.5, 0.5))
    >>> float(law.theory().squared_error)
    0.25
    """

    status = "theorem"
    regime = "every N"
    assumptions = ("neurons drawn independently from the measure",)
    references = ("barron1993universal",)
    page = "finite_width"
    observables = {
        "squared_error": observable(
            "N times the mean squared error of N sampled neurons", r"N\,\mathbb{E}|f_N-f|^2", least=0
        )
    }
    simulation = Experiment("number of neurons N", sizes=(5, 20, 80), draws=60, rate=float("inf"))
    # Neurons of both signs and unequal shares, then more neurons, whose contributions cancel in part
    points = (
        {},
        dict(neurons=ring_neurons((1.0, -2.0, 0.5, 1.5, -0.7), 18), weights=(0.1, 0.3, 0.2, 0.15, 0.25)),
    )
    headline = Headline(
        "Twice the neurons, half the squared error",
        x="size",
        over=(2.0, 300.0, 60),
        scale="log",
        y_scale="log",
        show=("squared_error_of_the_network",),
        draws=4,
        places=(2.0, 5.0, 10.0, 30.0, 100.0, 300.0),
        sliders=("weights", "neurons"),
    )

    neurons: Table = parameter(
        ring_neurons((2.0, -1.0, 1.5), 24), "values of the neurons on the inputs, a row each", symbol=r"\sigma_i(x_j)"
    )
    weights: tuple[float, ...] = parameter((0.5, 0.3, 0.2), note="a group is a neuron", symbol=r"\rho_i", least=0)

    networks: int = parameter(100, note="here drawn, not trained", kind="experiment", least=1)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of drawing all networks at once."""
        return Cost(1e5 + 25.0 * self.networks * size, 1e7 + 100.0 * self.networks * size)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if not self.neurons or len({len(row) for row in self.neurons}) != 1 or not self.neurons[0]:
            raise Refused("neurons are not allowed: must be at least one row, all of the same length of at least 1")
        if len(self.weights) != len(self.neurons):
            raise Refused(
                f"weights of length {len(self.weights)} are not allowed: must be as many as the {len(self.neurons)} neurons"
            )
        if abs(sum(self.weights) - 1) > 1e-9:
            raise Refused(f"weights = {self.weights!r} are not allowed: must add up to 1")
        return self

    def headline_line(self, values: Array) -> dict[str, Array]:
        """Return the squared error itself at numbers of neurons, for the headline view."""
        return {"squared_error_of_the_network": float(self.evaluate()["squared_error"]) / values}

    def headline_points(self, size: None, seeds: Sequence[int], places: Array) -> dict[str, Array]:
        """Return the squared error of drawn networks at numbers of neurons, for the headline view."""
        runs = [[float(self.experiment(int(place), seed)["squared_error"]) / place for place in places] for seed in seeds]
        return {"squared_error_of_the_network": np.array(runs)}

    def predicted(self) -> Values:
        """Return the mean square of the neurons minus the mean square of their mixture."""
        values, rho = np.asarray(self.neurons), np.asarray(self.weights)
        mixture = rho @ values
        error = rho @ np.mean(values**2, axis=1) - np.mean(mixture**2)
        return dict(squared_error=error, accuracy=CLOSED_FORM)

    def measured(self, draw: Draw) -> Values:
        """Return N times the mean squared error of networks of N neurons that are drawn from the measure."""
        values, rho = np.asarray(self.neurons), np.asarray(self.weights)
        indices = draw.rng.choice(len(rho), (self.networks, draw.size), p=rho / rho.sum())
        gap = values[indices].mean(axis=1) - (rho[:, None] * values).sum(axis=0)
        return dict(squared_error=draw.size * np.mean(gap**2))
