"""Mean-field particles for wide two-layer networks that learn a target of several directions.

Setting.  f(x) = (1/m) sum_i a_i sigma(<w_i, x>), unit w_i in R^d, x ~ N(0, I_d), y = phi(<u_1, x>, ..., <u_k, x>) + tau * noise,
          unlimited samples.
Limit.    m, d -> infinity in population time; v_i in R^k are the overlaps of w_i with the k directions.
Result.   Particles (a_i, v_i) (docs/theory/two_layer_dynamics.md, eq. 12): with sigma = sum c_l h_l, h(q) = sum c_l^2 q^l and
          phihat(v) = E sigma phi,

              a_i' = phihat(v_i) - (1/m) sum_j a_j h(<v_i, v_j>),
              v_i' = a_i (I - v_i v_i')(grad phihat(v_i) - (1/m) sum_j a_j h'(<v_i, v_j>) v_j),

          where <v_i, v_i> is |v_i|^2, not 1, because a neuron has no interaction with itself in the limit. The error for m neurons is
          about 1/m.
Status.   Theorem for the mean-field limit on bounded times (Mei, Montanari, Nguyen 2018); the rate is measured.
"""

from __future__ import annotations

import math
from typing import Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter
from limitlab.laws.dmft._finite.kernels import Kernels
from limitlab.laws.dmft.population import particle_states
from limitlab.models.index_functions import IndexFunction, hermite_terms, sampled_terms

__all__ = ["MultiIndexFlow"]

Floats = NDArray[np.float64]
Target = tuple[tuple[tuple[int, ...], float], ...]

COARSE = 0.8
"""Share of the nodes of a second quadrature, whose difference is the error of the coefficients of a target function."""
RESOLVED = 3e-3
"""Largest relative error of the coefficients of a target function."""
LABELLED = 200_000
"""Random inputs from which an experiment estimates the coefficients of a target function."""


class MultiIndexFlow(Law):
    """How do the neurons of a wide two-layer network find the directions that a target depends on?

    Examples
    --------
    >>> law = MultiIndexFlow(hermite=(0, 0.7, 0.5), target=(((1, 0), 1.0), ((1, 1), 1.0)), second_layer=(1.0,), overlaps=((0.3, 0.0),),
    ...                      times=(0.0, 1.0, 4.0))
    >>> law.theory().overlap.values[:, 0].round(3).tolist()  # the network learns the second direction after the first
    [[0.3, 0.0], [0.637, 0.246], [0.771, 0.42]]
    """

    status = "theorem"
    regime = "m, d -> infinity on bounded population times"
    assumptions = (
        "Gaussian inputs, unit first-layer weights",
        "unlimited samples",
        "neurons that are random outside the directions of the target",
    )
    references = ("mei2018mean", "montanari2025dynamical")
    page = "two_layer_dynamics"
    observables = {
        "test_error": observable(dims=("time",)),
        "second_layer": observable(dims=("time", "particle")),
        "overlap": observable(dims=("time", "particle", "index")),
    }
    simulation = Experiment(
        "number of neurons m and dimension d = m, with equally many neurons per particle",
        sizes=(24, 48, 96),
        draws=12,
        rate=(0.8, 1.2),  # 1/m and the next orders, which are visible because draws have no sampling noise
    )
    # Three particles that differ, terms of degree one to three, noise
    points = (
        dict(
            hermite=(0.2, 0.7, 0.5, 0.3),
            target=(((1, 0), 0.9), ((1, 1), 0.8), ((2, 1), 0.5)),
            noise=0.4,
            times=(0.5, 1.5, 3.0),
        ),
    )
    headline = Headline(
        "One direction is found, then the next",
        x="times",
        over=(0.0, 10.0, 101),
        show=("overlap",),
        at=dict(second_layer=1.0, overlaps=((0.05, 0.0),)),
        size=48,
        draws=4,
        places=(0.5, 1.0, 2.0, 4.0, 7.0, 10.0),
        sliders=("second_layer", "overlaps"),
    )

    hermite: tuple[float, ...] = parameter(
        (0.0, 0.7, 0.5, 0.3),
        "coefficients of the activation in orthonormal Hermite polynomials",
        note="from degree 0",
        symbol="c_l",
    )
    target: Target = parameter(
        (((1, 0), 1.0), ((1, 1), 1.0)),
        note="pairs ((degree per index), coefficient) of products of orthonormal Hermite polynomials",
        symbol=r"\varphi",
    )
    second_layer: float | tuple[float, ...] = parameter(
        (1.0, 0.8, 1.2), note="of every particle at the start", symbol="a_i(0)"
    )
    overlaps: tuple[tuple[float, ...], ...] = parameter(
        ((0.3, 0.0), (0.2, 0.1), (0.4, -0.1)),
        "overlaps with the directions of the target at the start",
        note="one row per particle, inside the unit ball",
        symbol="v_i(0)",
        least=-1,
        most=1,
    )
    noise: float = parameter(0.0, least=0)
    times: float | tuple[float, ...] = parameter(
        (0.5, 1.0, 2.0, 4.0), note="of the population", symbol=r"\hat t", kind="coordinate", least=0
    )
    target_function: IndexFunction | None = parameter(
        None,
        note="of the indices in place of target; one argument per index",
        added=True,
    )
    tolerance: float = parameter(1e-10, kind="solver", above=0, most=1e-3, scale="log", finer=0.1)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        widths = {len(row) for row in self.overlaps}
        if not self.overlaps or len(widths) != 1 or max(float(np.sum(np.square(row))) for row in self.overlaps) > 1:
            raise Refused(f"overlaps = {self.overlaps} is not allowed: must be rows of equal length inside the unit ball")
        if isinstance(self.second_layer, tuple) and len(self.second_layer) != len(self.overlaps):
            raise Refused(
                f"second_layer = {self.second_layer} is not allowed: must be one number, or one per row of overlaps"
            )
        index = widths.pop()
        if self.target_function is not None:
            self._check_target(index)
        elif not self.target or any(len(degrees) != index or min(degrees) < 0 for degrees, _ in self.target):
            raise Refused(f"target = {self.target} is not allowed: every term must have {index} degrees of at least 0")
        return self

    def _check_target(self, index: int) -> None:
        """Raise `Refused` if the target function has the wrong number of arguments, or if quadrature does not resolve it."""
        assert self.target_function is not None
        if self.target_function.index != index:
            raise Refused(
                f"target_function has {self.target_function.index} arguments and is not allowed: must have one per column of overlaps, "
                f"which has {index}"
            )
        if self.target != type(self).model_fields["target"].default:
            raise Refused("target is not allowed together with target_function: omit one of them")
        (terms, norm), (others, other) = (self.target_terms(share) for share in (1.0, COARSE))
        error = max(abs(norm - other), *(abs(a - b) for (_, a), (_, b) in zip(terms, others, strict=True)))
        if error > RESOLVED * max(norm, 1e-300):
            raise Refused(
                f"target_function is not allowed: quadrature gives its coefficients with a relative error of {error / norm:.1g}, and at "
                "most "
                f"{RESOLVED:g} is allowed; use a function without jumps, or fewer indices"
            )

    def target_terms(self, share: float = 1.0) -> tuple[Target, float]:
        """Return the Hermite coefficients of the target up to the degree of the activation, and its mean square.

        Terms of a higher degree have no correlation with a neuron and enter the mean square only. `share` is the number of nodes per
        index of the quadrature, relative to the default.

        >>> law = MultiIndexFlow(hermite=(0.0, 1.0), target_function=lambda u, v: np.tanh(u) * (1 + v))
        >>> terms, norm = law.target_terms()
        >>> round(dict(terms)[1, 0], 6), round(norm, 6)
        (0.605706, 0.788589)
        """
        if self.target_function is None:
            return self.target, sum(weight**2 for _, weight in self.target)
        return hermite_terms(self.target_function, len(self.hermite) - 1, share)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a draw with `size` neurons in `size` dimensions."""
        points = 0 if self.target_function is None else LABELLED * self.target_function.index * (len(self.hermite) + 3)
        return Cost(1e5 + 14.0 * size**2 + 8.0 * points, 20.0 * points + 3e3 * size**2 * max(latest(self), 1.0))

    def kernels(self) -> Kernels:
        """Return the kernel of two neurons as a polynomial, and the squared norm of the target."""
        return Kernels(tuple(c * c for c in self.hermite), (), self.target_terms()[1])

    def start(self) -> tuple[Floats, Floats]:
        """Return the second-layer weights and the overlaps of the particles at the start."""
        return np.broadcast_to(np.asarray(self.second_layer, dtype=float), len(self.overlaps)), np.array(self.overlaps)

    def phihat(self, v: Floats) -> Floats:
        """Return the mean product of a neuron sigma(<w, x>) and the target phi(x), for rows v of overlaps.

        Every term of total degree l contributes c_l sqrt(l! / prod l_j!) prod v_j^{l_j} times its coefficient.

        >>> MultiIndexFlow().phihat(np.array([[0.4, 0.2]])).round(6).tolist()
        [0.336569]
        """
        terms = [scale * np.prod(v**degrees, axis=1) for scale, degrees in self._terms()]
        return np.asarray(np.sum(terms, axis=0))

    def phihat_gradient(self, v: Floats) -> Floats:
        """Return the gradient of `phihat` in the overlaps, from the derivatives of its monomials."""
        total = np.zeros_like(v)
        for scale, degrees in self._terms():
            for j in np.flatnonzero(degrees):
                powers = degrees - (np.arange(degrees.size) == j)
                total[:, j] += scale * degrees[j] * np.prod(v**powers, axis=1)
        return total

    def _terms(self) -> list[tuple[float, NDArray[np.int64]]]:
        terms = []
        for degrees, weight in self.target_terms()[0]:
            order = sum(degrees)
            c = self.hermite[order] if order < len(self.hermite) else 0.0
            scale = c * weight * math.sqrt(math.factorial(order) / math.prod(map(math.factorial, degrees)))
            terms.append((scale, np.array(degrees)))
        return terms

    def predicted(self, times: Floats) -> Values:
        """Integrate the particles.

        The accuracy of the test error is its change when the state moves by its own numerical error.
        """
        if self.target_function is not None:
            return self._predicted_with_quadrature(times)
        kernels, (a, v) = self.kernels(), self.start()
        path = particle_states(kernels, self.phihat, self.phihat_gradient, a, v, times, self.tolerance)
        errors = [self._test_error(kernels, path.states + side * path.errors) for side in (-1, 0, 1)]
        m = a.size
        return {
            "test_error": errors[1],
            "second_layer": path.states[:, :m],
            "overlap": path.states[:, m:].reshape(-1, *v.shape),
            "accuracy": {
                "test_error": float(np.abs(errors[2] - errors[0]).max()),
                "second_layer": float(path.errors[:m].max()),
                "overlap": float(path.errors[m:].max()),
            },
        }

    def _predicted_with_quadrature(self, times: Floats) -> Values:
        """Return the prediction for a target function. The accuracy includes the change of the result with fewer nodes."""
        fine, coarse = (
            dict(self.replace(target_function=None, target=tuple(terms)).predicted(times))
            for terms, _ in (self.target_terms(share) for share in (1.0, COARSE))
        )
        norms = [self.target_terms(share)[1] for share in (1.0, COARSE)]
        for values, norm, share in ((fine, norms[0], 1.0), (coarse, norms[1], COARSE)):
            within = sum(weight**2 for _, weight in self.target_terms(share)[0])
            values["test_error"] = values["test_error"] + norm - within
        accuracy = {name: error + float(np.abs(fine[name] - coarse[name]).max()) for name, error in fine["accuracy"].items()}
        return {**fine, "accuracy": accuracy}

    def _test_error(self, kernels: Kernels, states: Floats) -> Floats:
        m = len(self.overlaps)
        values = []
        for state in states:
            a, v = state[:m], state[m:].reshape(m, -1)
            square = a @ kernels.h(v @ v.T) @ a / m**2
            values.append(self.noise**2 + kernels.target_norm - 2 * np.mean(a * self.phihat(v)) + square)
        return np.array(values)

    def measured(self, draw: Draw, times: Floats) -> Values:
        """Integrate the exact population flow of m neurons in m dimensions, with several neurons for every particle.

        For a target function its coefficients are estimated from random inputs, without the quadrature of the prediction.
        """
        from limitlab.laws.dmft._finite.multi_index import network_risk, population_flow, random_weights

        (a, v), groups = self.start(), len(self.overlaps)
        copies = max(1, round(draw.size / groups))
        width = copies * groups
        w = random_weights(draw.rng, np.repeat(v, copies, axis=0), max(width, v.shape[1] + 1))
        target, beyond = self.target, 0.0
        if self.target_function is not None:
            points = draw.rng.standard_normal((v.shape[1], LABELLED))
            target, norm = sampled_terms(self.target_function, len(self.hermite) - 1, points)
            beyond = norm - sum(weight**2 for _, weight in target)
        track = population_flow(self.hermite, target, np.repeat(a, copies), w, times)
        return {
            "test_error": np.array([self.noise**2 + beyond + network_risk(self.hermite, target, *state) for state in track]),
            "second_layer": np.array([state[0].reshape(groups, copies).mean(axis=1) for state in track]),
            "overlap": np.array([state[1][:, : v.shape[1]].reshape(groups, copies, -1).mean(axis=1) for state in track]),
        }
