"""A wide network at its start, which is a Gaussian process with a tangent kernel that does not depend on the draw.

Setting.  The network of `limitlab.laws.kernels.deep` at two inputs x, x' with fixed |x|, |x'| (over sqrt(d)) and fixed cosine between them.
Limit.    Width m -> infinity (the size) at a fixed number of layers.
Result.   f(x), f(x') are Gaussian with covariance Sigma^L and the inner product of their derivatives is Theta^L
          (docs/theory/tangent_kernels.md, eqs. 1-2), so that
          E cos((f(x) + f(x'))/2) -> exp(-(Sigma(x,x) + 2 Sigma(x,x') + Sigma(x',x'))/8), eq. (10).
Status.   Theorem (Neal 1996; Jacot, Gabriel and Hongler 2018). Means differ by order 1/m, single networks by order 1/sqrt(m).
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.kernels._wide_networks import DeepNetworks
from limitlab.laws.kernels.deep import nngp, ntk
from limitlab.models.activations import Activation

__all__ = ["WideNetwork"]

Array = NDArray[Any]

OUTPUTS = 64  # outputs of every network; each is a draw of the last layer over the same hidden layers


class WideNetwork(Law):
    """What are the covariance of the outputs and the tangent kernel of a wide network at its start?

    Examples
    --------
    >>> law = WideNetwork(layers=3, activation="relu", bias_std=0.3)
    >>> theory = law.theory()
    >>> round(float(theory.output_covariance), 6), round(float(theory.tangent_pair), 6)
    (0.378132, 0.604055)
    """

    status = "theorem"
    regime = "width -> infinity with the number of layers fixed"
    assumptions = (
        "independent Gaussian weights and biases, weights divided by the square root of their number of inputs",
        "an activation that grows at most polynomially, with a derivative almost everywhere",
    )
    references = ("neal1996bayesian", "jacot2018neural", "lee2018deep")
    page = "tangent_kernels"
    observables = {
        "output_variance": observable("variance of the output at the first input", r"\Sigma^{L}(x,x)", least=0),
        "output_covariance": observable("covariance of the outputs at two inputs", r"\Sigma^{L}(x,x')"),
        "characteristic": observable(
            "mean cosine of the mean of the outputs at two inputs", r"\mathbb{E}\cos\frac{f+f'}2", least=-1, most=1
        ),
        "tangent_own": observable("tangent kernel of the first input with itself", r"\Theta^{L}(x,x)", least=0),
        "tangent_pair": observable("tangent kernel of two inputs", r"\Theta^{L}(x,x')"),
    }
    simulation = Experiment("width m of every hidden layer", sizes=(32, 64, 128), draws=60)
    # Biases, weights that are not 1, unequal norms; a kinked activation at depth and a smooth one
    points = (
        dict(layers=3, activation="relu", weight_std=1.2, bias_std=0.4, networks=60),
        dict(layers=4, activation="erf", weight_std=1.3, bias_std=0.3, norms=(0.7, 1.2), cosine=0.6, networks=60),
    )
    headline = Headline(
        "Depth makes all inputs look alike",
        x="cosine",
        over=(-1.0, 1.0, 81),
        show=("output_covariance",),
        curves=("layers", (2, 4, 8)),
        at=dict(norms=(1.0, 1.0), weight_std=1.4142135623730951),
        size=256,
        draws=6,
        places=(-1.0, -0.6, -0.2, 0.2, 0.6, 1.0),
        sliders=("activation", "bias_std"),
    )

    layers: int = parameter(3, least=2, most=20)
    activation: Activation = parameter("relu")
    weight_std: float = parameter(1.0, note="divided by the root of the number of inputs", above=0)
    bias_std: float = parameter(0.0, least=0)
    norms: tuple[float, float] = parameter((1.0, 1.5), "norms of two inputs", note="over sqrt(d)", symbol="|x|", above=0)
    cosine: float = parameter(0.3, "cosine of the angle between two inputs", symbol=r"\cos\angle(x,x')", least=-1, most=1)
    networks: int = parameter(20, note="drawn without training", kind="experiment", least=1)

    @model_validator(mode="after")
    def _continuous(self) -> Self:
        self.activation.check_derivatives()
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of networks of `layers` weight matrices."""
        return Cost(
            self.networks * size * (100.0 + 1.1 * (self.layers - 2) * size),
            30.0 * self.networks * size * (1e3 + (self.layers - 2) * size),
        )

    def inputs(self) -> Array:
        """Return two inputs in the plane. Their norms divided by sqrt(2) and their angle are the parameters of the law."""
        first, second = self.norms
        turned = (self.cosine, math.sqrt((1 - self.cosine) * (1 + self.cosine)))
        return math.sqrt(2) * np.array([[first, 0.0], [second * turned[0], second * turned[1]]])

    def predicted(self) -> Values:
        """Return the values of the recursions (1) and (2)."""
        options = (None, self.layers, self.activation, self.weight_std, self.bias_std)
        sigma, theta = nngp(self.inputs(), *options), ntk(self.inputs(), *options)
        return dict(
            output_variance=sigma[0, 0],
            output_covariance=sigma[0, 1],
            characteristic=np.exp(-sigma.sum() / 8),
            tangent_own=theta[0, 0],
            tangent_pair=theta[0, 1],
            accuracy=5e-10 if self.activation.name not in ("relu", "erf") else 1e-13,
        )

    def measured(self, draw: Draw) -> Values:
        """Return means over networks of the output covariance given the hidden layers, of the cosine, and of the tangent kernel."""
        X = self.inputs()
        widths = (2, *(draw.size,) * (self.layers - 1), OUTPUTS)
        nets = DeepNetworks.start(draw.rng, self.networks, widths, self.activation, self.weight_std, self.bias_std)
        hidden, kernel = nets.last_hidden(X), nets.tangent_kernel(X).mean(axis=0)
        covariance = self.weight_std**2 * (hidden @ hidden.swapaxes(1, 2)).mean(axis=0) + self.bias_std**2
        return dict(
            output_variance=covariance[0, 0],
            output_covariance=covariance[0, 1],
            characteristic=np.cos(nets.outputs(X).mean(axis=1)).mean(),
            tangent_own=kernel[0, 0],
            tangent_pair=kernel[0, 1],
        )
