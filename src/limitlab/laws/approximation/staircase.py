"""The staircase: how many random features, tangent features or samples it takes to learn polynomials of each degree.

Setting.  x uniform on the sphere of radius sqrt(d); a random target of pure degree k. It is fitted by N random features s(<w_i, x>), by
          their tangent features s'(<w_i, x>) x, with unlimited data, or by kernel ridge regression on n samples with the kernel
          E_w s(<w, x>) s(<w, x'>), scaled to 1 on the diagonal.
Limit.    Finite d, N, n: the law is an equivalent whose error falls as d grows with N/d^l (n/d^l) fixed, l a whole number.
Result.   docs/theory/approximation.md, (7) and (8) for random features, (10)-(12) for tangent features, (14)-(17) for kernel ridge.
          Degree k is learned when N passes B_k ~ d^k/k!; tangent features, d per neuron, are one degree ahead.
Status.   Derived. Exact sum rule: sum_k B_k (1 - r_k) is the number of features. Around the steps of tangent features the shares r_k stay
          too low as d grows, by up to 0.014 (ReLU); `degree_two_step` has the limit at the second step, and `degree_two()` corrects for it.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Law, Values, observable, parameter, shared
from limitlab.laws.approximation._equivalents import (
    Levels,
    effective_ridge,
    learning_curve,
    tangent_unexplained,
    unexplained_share,
)
from limitlab.laws.approximation.exact import LARGEST, spanned
from limitlab.laws.approximation.harmonics import Harmonics, gegenbauer_coefficients
from limitlab.laws.approximation.step import decoupled_step, degree_two_step, step_strength
from limitlab.models.activations import Activation
from limitlab.models.data import sphere

__all__ = ["Staircase"]

Array = NDArray[np.float64]
Model = Literal["rf", "nt", "kernel_ridge"]

BIG_TAIL = 0.05
"""Share of the energy in degrees that are not followed from which a prediction says so."""


class Staircase(Law):
    """How many neurons or samples does it take to learn a polynomial of each degree without training the features?

    Examples
    --------
    >>> law = Staircase(model="rf", dimension=40, width=800, activation="relu", degrees=(0, 1, 2, 4))
    >>> law.theory().unexplained.values.round(4).tolist()
    [0.0003, 0.0076, 0.3344, 0.9989]
    >>> import limitlab as ll
    >>> answer = ll.plan(Staircase(dimension=40, degrees=2), {"unexplained": 0.1}, solve_for="width")
    >>> int(answer.width)
    1745
    """

    status = "derived"
    regime = "finite d and N (or n); exact as d -> infinity with N/d^l fixed, but for the steps of tangent features"
    assumptions = (
        "inputs and neurons uniform on spheres",
        "random target of each degree, unlimited data for 'rf' and 'nt'",
        "degrees above `highest_degree` act as white noise",
    )
    references = ("ghorbani2021linearized", "mei2022generalization", "canatar2021spectral")
    page = "approximation"
    observables = {
        "unexplained": observable("unexplained share of a target of this degree", r"r_k"),
        **shared("effective_ridge", "excess_risk", scalar=True),
        "second_degrees_of_freedom": observable("second degrees of freedom per sample", r"\mathrm{df}_2/n", scalar=True),
    }
    simulation = Experiment(
        "dimension d; width and samples grow like the whole power of d that is nearest to theirs",
        sizes=(8, 12, 16),
        draws=40,
        rate=2.0,
    )
    # Each model between two steps; all coefficients of the targets, a ridge and noise are there
    points = (
        dict(model="rf", dimension=16, width=32, degrees=(0, 1, 2, 4)),
        dict(model="nt", dimension=16, width=60, degrees=(0, 1, 2, 4)),
        dict(
            model="kernel_ridge",
            dimension=16,
            samples=160,
            activation="softplus",
            degrees=(0, 1, 2),
            ridge=0.02,
            noise=0.5,
            signal_energy=(0.3, 0.5, 0.4),
        ),
    )

    model: Model = parameter("rf", note="random features, tangent features or kernel ridge")
    dimension: int = parameter(20, note="of the inputs", least=3, most=100_000, scale="log")
    width: int = parameter(60, note="rf and nt", least=1, scale="log")
    samples: int = parameter(100, note="kernel ridge", least=1, scale="log")
    activation: Activation = parameter("relu")
    degrees: int | tuple[int, ...] = parameter(
        (1, 2, 3), "degrees of the targets", symbol="k", kind="coordinate", least=0, most=200
    )
    ridge: float = parameter(1e-3, note="added to the kernel matrix", least=0, scale="log")
    noise: float = parameter(0.3, note="kernel ridge", least=0)
    signal_energy: float | tuple[float, ...] = parameter(
        1.0,
        note="kernel ridge: of each of the `degrees`, or one number for all; degrees beyond the last one have none",
        symbol="F_k^2",
        least=0,
    )
    highest_degree: int = parameter(
        30, "degrees that are followed one by one", symbol="K", kind="solver", least=2, most=2000, finer=2
    )

    @model_validator(mode="after")
    def _energies_have_degrees(self) -> Self:
        given, wanted = np.size(self.signal_energy), np.size(self.degrees)
        if given > wanted:
            raise Refused(
                f"signal_energy = {self.signal_energy!r} is not allowed: it has {given} entries for {wanted} degrees; "
                "give one for each of `degrees`, or a single number"
            )
        return self

    def draw_cost(self, size: int) -> Cost:
        """A kernel matrix of all features, or of all samples."""
        law = self.realised(size)
        features = float(
            law.samples if law.model == "kernel_ridge" else law.width * (law.dimension if law.model == "nt" else 1)
        )
        return Cost(1e5 + 8.0 * features**2, 1e7 + 0.1 * features**3)

    def observed(self) -> tuple[str, ...]:
        """Kernel ridge has a learning curve beside its shares, tangent features have two unknowns and no effective ridge."""
        if self.model == "kernel_ridge":
            return ("unexplained", "effective_ridge", "excess_risk", "second_degrees_of_freedom")
        return ("unexplained", "effective_ridge") if self.model == "rf" else ("unexplained",)

    def caveat(self) -> str:
        """Degrees that the activation does not have, a large tail, and the steps at which tangent features are off."""
        known = self.harmonics(max(self.highest_degree, int(np.max(self.degrees))))
        said = [self.never_learned()] if self.never_learned() else []
        if known.tail > BIG_TAIL * known.energy:
            share = known.tail / known.energy
            said.append(f"{share:.0%} of the activation is in degrees above {self.highest_degree}: raise highest_degree")
        if self.model == "nt" and 0.1 < self.width / self.dimension < 3 and 2 in np.atleast_1d(self.degrees):
            said.append("r_2 is low by up to 0.014 where N is of the order of d: degree_two() corrects it")
        return "; ".join(said)

    def never_learned(self) -> str:
        """What to say about degrees that are asked for and that the activation does not have; nothing where it has them all.

        >>> Staircase(degrees=(2, 3)).never_learned()
        'relu has no part of degree 3: no number of neurons learns it; a bias would'
        """
        known = self.harmonics(int(np.max(self.degrees)))
        seen = known.levels + (known.radial_levels if self.model == "nt" else 0.0)
        absent = [str(k) for k in np.atleast_1d(self.degrees).tolist() if seen[k] == 0]
        what = "samples" if self.model == "kernel_ridge" else "neurons"
        if not absent:
            return ""
        return (
            f"{self.activation.name} has no part of degree {', '.join(absent)}: no number of {what} learns it; a bias would"
        )

    # -- the prediction ------------------------------------------------------------------------------------------------

    def harmonics(self, highest: int) -> Harmonics:
        """The activation, degree by degree."""
        found = gegenbauer_coefficients(self.activation, self.dimension, range(highest + 1))
        if found.energy == 0:
            raise Refused(f"activation = {self.activation.name!r} is not allowed: it is zero on the sphere")
        return found

    def predicted(self, degrees: Array, width: Array, samples: Array, ridge: Array, noise: Array) -> Values:
        """The equivalent with all the degrees that are followed, and with half of them, which shows the error of the cut."""
        k = degrees.astype(int)
        if self.never_learned():
            warnings.warn(self.never_learned(), UserWarning, stacklevel=4)  # where theory() or evaluate() is called
        numbers = width[..., 0], samples[..., 0], ridge[..., 0], noise[..., 0]
        top = max(self.highest_degree, int(k.max()))
        fine, coarse = (self.solved(k, highest, *numbers) for highest in (top, max(top // 2, int(k.max()))))
        accuracy = {name: np.abs(fine[name] - coarse[name]).max() + 1e-12 * np.abs(fine[name]).max() for name in fine}
        values = {name: fine[name] if name == "unexplained" else fine[name][..., None] for name in fine}
        return {**values, "accuracy": accuracy}

    def solved(
        self, degrees: NDArray[np.int64], highest: int, width: Array, samples: Array, ridge: Array, noise: Array
    ) -> dict[str, Array]:
        """The observables with the degrees up to `highest` followed one by one."""
        known = self.harmonics(highest)
        if self.model == "nt":
            return dict(unexplained=tangent_unexplained(width, known)[..., degrees])
        if self.model == "rf":
            levels = Levels(known.levels, known.multiplicities, known.tail)
            kappa = effective_ridge(width, levels)
            shares = unexplained_share(kappa, levels.eigenvalues())
            return dict(unexplained=shares[..., degrees], effective_ridge=kappa)
        levels = Levels(known.levels / known.energy, known.multiplicities, known.tail / known.energy)
        signal = np.zeros(highest + 1)
        signal[degrees] = self.energies()
        curve = learning_curve(samples, ridge, noise, levels, signal)
        return {**curve, "unexplained": curve["unexplained"][..., degrees]}

    def energies(self) -> Array:
        """F_k^2, one for each of the `degrees`."""
        wanted = np.size(self.degrees)
        if isinstance(self.signal_energy, float | int):
            return np.full(wanted, float(self.signal_energy))
        return np.array([*self.signal_energy, *(0.0,) * (wanted - len(self.signal_energy))])

    def degree_two(self) -> float:
        """r_2 of tangent features around N ~ d: the equivalent at this d, moved by the error that it keeps in the limit (13), (13').

        Against exact values of ReLU neurons at d = 40 it is off by at most 0.003; the equivalent alone by 0.011.

        >>> round(Staircase(model="nt", dimension=40, width=20).degree_two(), 4)
        0.5506
        """
        if self.model != "nt":
            raise Refused(f"degree_two of model = {self.model!r} is not allowed: it belongs to tangent features, model 'nt'")
        psi, gamma = self.width / self.dimension, step_strength(self.activation)
        share = float(self.replace(degrees=2, signal_energy=1.0).theory().unexplained)
        return min(max(share + degree_two_step(psi, gamma) - decoupled_step(psi, gamma), 0.0), 1.0)

    def lower_bound(self) -> Array:
        """What no choice of the second layer can beat as d grows with log N / log d fixed: 1 for degrees beyond the step, else 0.

        With N below d^(l+1), random features learn nothing of degree l + 1 and above, tangent features nothing of l + 2 and above.

        >>> Staircase(dimension=40, width=800, degrees=(0, 1, 2)).lower_bound().tolist()
        [0.0, 0.0, 1.0]
        """
        count = self.samples if self.model == "kernel_ridge" else self.width
        level = math.floor(math.log(count) / math.log(self.dimension) + 1e-12) + (self.model == "nt")
        return np.where(np.atleast_1d(self.degrees) > level, 1.0, 0.0)

    # -- the experiment ------------------------------------------------------------------------------------------------

    def realised(self, size: int) -> Self:
        """The law in dimension `size`, with width and samples in the same proportion to the nearest whole power of d."""

        def scaled(count: int) -> int:
            power = round(math.log(count) / math.log(self.dimension))
            return max(1, round(count * (size / self.dimension) ** power))

        return self.replace(dimension=size, width=scaled(self.width), samples=scaled(self.samples))

    def measured(self, draw: Draw, degrees: Array) -> Values:
        """Neurons or inputs are drawn; the best fit over all inputs is exact, with no sampling of x."""
        law, k = self.realised(draw.size), degrees.astype(int)
        if law.model == "kernel_ridge":
            from limitlab.laws.approximation._kernel_ridge import fit_on_sphere

            if law.samples > LARGEST:
                raise Refused(f"samples = {law.samples} are not allowed in a simulation: at most {LARGEST}")
            x = sphere(draw.rng, law.samples, law.dimension)
            return fit_on_sphere(x, law.activation, law.ridge, law.noise, k, law.energies())
        span = spanned(sphere(draw.rng, law.width, law.dimension), law.activation, law.model, None, int(k.max()))
        shares = dict(unexplained=span.unexplained(k))
        return shares if law.model == "nt" else {**shares, "effective_ridge": 1 / float(np.trace(span.inverse))}
