"""The numbers of random features, tangent features or samples that are needed to learn polynomials of each degree.

Setting.  x uniform on the sphere of radius sqrt(d); a random target of pure degree k. It is fitted by N random features s(<w_i, x>), by
          their tangent features s'(<w_i, x>) x, with unlimited data, or by kernel ridge regression on n samples with the kernel
          E_w s(<w, x>) s(<w, x'>), scaled to 1 on the diagonal.
Limit.    d, N and n are finite. The law is a deterministic equivalent. Its error falls as d grows with N/d^l (n/d^l) fixed, l a whole
          number.
Result.   docs/theory/approximation.md, (7) and (8) for random features, (10)-(12) for tangent features, (14)-(17) for kernel ridge.
          Degree k is learned when N exceeds B_k ~ d^k/k!. Tangent features, d per neuron, learn one degree more at the same N.
Status.   Derived. By an exact sum rule sum_k B_k (1 - r_k) is the number of features. A step is a width at which a
          further degree is learned. Around the steps of tangent features the predicted shares r_k are too low, also as d grows, by up to
          0.014 (ReLU). `degree_two_step` is the limit of r_2 at the second step, and `degree_two()` uses this limit to correct r_2.
"""

from __future__ import annotations

import math
import warnings
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws import Draw, Experiment, Headline, Law, Values, observable, parameter, shared
from limitlab.laws.approximation.exact import LARGEST, fit_on_sphere, spanned
from limitlab.laws.approximation.harmonics import Harmonics, gegenbauer_coefficients
from limitlab.laws.approximation.step import decoupled_step, degree_two_step, step_strength
from limitlab.models.activations import Activation
from limitlab.models.data import sphere
from limitlab.numerics.roots import increasing_root_log

__all__ = ["Staircase"]

Array = NDArray[np.float64]


Model = Literal["rf", "nt", "kernel_ridge"]

BIG_TAIL = 0.05
"""A prediction has a warning if degrees above `highest_degree` have more than this share of the energy."""


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
    regime = "finite d and N (or n); exact as d -> infinity with N/d^l fixed, except at the steps of tangent features"
    assumptions = (
        "inputs and neurons uniform on spheres",
        "random target of each degree, unlimited data for 'rf' and 'nt'",
        "degrees above `highest_degree` act as white noise",
    )
    references = ("ghorbani2021linearized", "mei2022generalization", "canatar2021spectral")
    page = "approximation"
    observables = {
        "unexplained": observable("unexplained share of a target of this degree", r"r_k", least=0),
        **shared("effective_ridge", "excess_risk", scalar=True),
        "second_degrees_of_freedom": observable(
            "second degrees of freedom per sample", r"\mathrm{df}_2/n", scalar=True, least=0
        ),
    }
    simulation = Experiment(
        "dimension d; width and samples grow like the whole power of d that is nearest to theirs",
        sizes=(8, 12, 16),
        draws=40,
        rate=2.0,
    )
    # The width or the number of samples of every point lies between two steps. Ridge, noise and all energies of the target are positive
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
    headline = Headline(
        "Each degree waits for its power of d",
        x="samples",
        over=(2.0, 10000.0, 61),
        scale="log",
        show=("unexplained",),
        at=dict(degrees=(1, 2, 4), model="kernel_ridge", dimension=10, noise=0.0, ridge=0.0001),
        size=10,
        draws=3,
        places=(5.0, 15.0, 50.0, 150.0, 500.0),
        sliders=("dimension", "ridge"),
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
        note="kernel ridge: one number for each of the `degrees`, or one number for all; degrees without a number have energy 0",
        symbol="F_k^2",
        least=0,
    )
    highest_degree: int = parameter(
        30, "largest degree that is computed one by one", symbol="K", kind="solver", least=2, most=2000, finer=2
    )

    @model_validator(mode="after")
    def _energies_have_degrees(self) -> Self:
        if self.model == "nt":
            self.activation.check_derivatives()
        count, degree_count = np.size(self.signal_energy), np.size(self.degrees)
        if count > degree_count:
            raise Refused(
                f"signal_energy = {self.signal_energy!r} is not allowed: it has {count} entries for {degree_count} degrees; "
                "give one for each of `degrees`, or a single number"
            )
        return self

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of a kernel matrix of all features or of all samples."""
        law = self.realised(size)
        features = float(
            law.samples if law.model == "kernel_ridge" else law.width * (law.dimension if law.model == "nt" else 1)
        )
        return Cost(1e5 + 8.0 * features**2, 1e7 + 0.1 * features**3)

    def observed(self) -> tuple[str, ...]:
        """Return the observables of the model.

        Kernel ridge also has a learning curve. Tangent features have two unknowns and therefore no effective ridge.
        """
        if self.model == "kernel_ridge":
            return ("unexplained", "effective_ridge", "excess_risk", "second_degrees_of_freedom")
        return ("unexplained", "effective_ridge") if self.model == "rf" else ("unexplained",)

    def caveat(self) -> str:
        """Return warnings about absent degrees of the activation, a large tail, and the steps of tangent features."""
        coefficients = self.harmonics(max(self.highest_degree, int(np.max(self.degrees))))
        messages = [self.never_learned()] if self.never_learned() else []
        if coefficients.tail > BIG_TAIL * coefficients.energy:
            share = coefficients.tail / coefficients.energy
            messages.append(f"{share:.0%} of the activation is in degrees above {self.highest_degree}: raise highest_degree")
        if self.model == "nt" and 0.1 < self.width / self.dimension < 3 and 2 in np.atleast_1d(self.degrees):
            messages.append(
                "r_2 is too low by up to 0.014 if N is of the order of d: degree_two() returns the corrected value"
            )
        return "; ".join(messages)

    def never_learned(self) -> str:
        """Return a message about requested degrees that are absent in the activation, or "" if all are present.

        >>> Staircase(degrees=(2, 3)).never_learned()
        'relu has no part of degree 3: no number of neurons learns it; an activation with a bias does'
        """
        coefficients = self.harmonics(int(np.max(self.degrees)))
        energy = coefficients.levels + (coefficients.radial_levels if self.model == "nt" else 0.0)
        absent = [str(k) for k in np.atleast_1d(self.degrees).tolist() if energy[k] == 0]
        what = "samples" if self.model == "kernel_ridge" else "neurons"
        if not absent:
            return ""
        return (
            f"{self.activation.name} has no part of degree {', '.join(absent)}: no number of {what} learns it; "
            "an activation with a bias does"
        )

    # -- the prediction ------------------------------------------------------------------------------------------------

    def harmonics(self, highest: int) -> Harmonics:
        """Return the coefficients of the activation up to degree `highest`."""
        coefficients = gegenbauer_coefficients(self.activation, self.dimension, range(highest + 1))
        if coefficients.energy == 0:
            raise Refused(f"activation = {self.activation.name!r} is not allowed: it is zero on the sphere")
        return coefficients

    def predicted(self, degrees: Array, width: Array, samples: Array, ridge: Array, noise: Array) -> Values:
        """Return the observables of the equivalent, with degrees up to `highest_degree` computed one by one.

        The accuracy is the difference from the result with half as many degrees.
        """
        k = degrees.astype(int)
        if self.never_learned():
            warnings.warn(
                self.never_learned(), UserWarning, stacklevel=4
            )  # the warning points to the caller of theory() or evaluate()
        numbers = width[..., 0], samples[..., 0], ridge[..., 0], noise[..., 0]
        top = max(self.highest_degree, int(k.max()))
        fine, coarse = (self.solved(k, highest, *numbers) for highest in (top, max(top // 2, int(k.max()))))
        accuracy = {name: np.abs(fine[name] - coarse[name]).max() + 1e-12 * np.abs(fine[name]).max() for name in fine}
        values = {name: fine[name] if name == "unexplained" else fine[name][..., None] for name in fine}
        return {**values, "accuracy": accuracy}

    def solved(
        self, degrees: NDArray[np.int64], highest: int, width: Array, samples: Array, ridge: Array, noise: Array
    ) -> dict[str, Array]:
        """Return the observables with the degrees up to `highest` computed one by one."""
        coefficients = self.harmonics(highest)
        if self.model == "nt":
            return dict(unexplained=tangent_unexplained(width, coefficients)[..., degrees])
        if self.model == "rf":
            levels = Levels(coefficients.levels, coefficients.multiplicities, coefficients.tail)
            kappa = effective_ridge(width, levels)
            shares = unexplained_share(kappa, levels.eigenvalues())
            return dict(unexplained=shares[..., degrees], effective_ridge=kappa)
        levels = Levels(
            coefficients.levels / coefficients.energy, coefficients.multiplicities, coefficients.tail / coefficients.energy
        )
        signal = np.zeros(highest + 1)
        signal[degrees] = self.energies()
        curve = learning_curve(samples, ridge, noise, levels, signal)
        return {**curve, "unexplained": curve["unexplained"][..., degrees]}

    def energies(self) -> Array:
        """Return the energy of the target in each of the `degrees`."""
        degree_count = np.size(self.degrees)
        if isinstance(self.signal_energy, float | int):
            return np.full(degree_count, float(self.signal_energy))
        return np.array([*self.signal_energy, *(0.0,) * (degree_count - len(self.signal_energy))])

    def degree_two(self) -> float:
        """Return the unexplained share of degree 2 for tangent features around N ~ d, corrected by (13) minus (13').

        The equations are those of docs/theory/approximation.md. For ReLU neurons at d = 40 the error against exact values is at most 0.003.
        Without the correction it is 0.011.

        >>> round(Staircase(model="nt", dimension=40, width=20).degree_two(), 4)
        0.5506
        """
        if self.model != "nt":
            raise Refused(f"degree_two of model = {self.model!r} is not allowed: it is for tangent features, model 'nt'")
        psi, gamma = self.width / self.dimension, step_strength(self.activation)
        share = float(self.replace(degrees=2, signal_energy=1.0).theory().unexplained)
        return min(max(share + degree_two_step(psi, gamma) - decoupled_step(psi, gamma), 0.0), 1.0)

    def lower_bound(self) -> Array:
        """Return a lower bound of the unexplained share as d grows with log N / log d fixed, for any second layer.

        The bound is 1 for degrees beyond the step and 0 otherwise. With N below d^(l+1), random features learn nothing of degree l + 1 and
        above, and tangent features learn nothing of degree l + 2 and above.

        >>> Staircase(dimension=40, width=800, degrees=(0, 1, 2)).lower_bound().tolist()
        [0.0, 0.0, 1.0]
        """
        count = self.samples if self.model == "kernel_ridge" else self.width
        level = math.floor(math.log(count) / math.log(self.dimension) + 1e-12) + (self.model == "nt")
        return np.where(np.atleast_1d(self.degrees) > level, 1.0, 0.0)

    # -- the experiment ------------------------------------------------------------------------------------------------

    def realised(self, size: int) -> Self:
        """Return the law in dimension `size`, with width and samples in the same proportion to the nearest whole power of d."""

        def scaled(count: int) -> int:
            power = round(math.log(count) / math.log(self.dimension))
            return max(1, round(count * (size / self.dimension) ** power))

        return self.replace(dimension=size, width=scaled(self.width), samples=scaled(self.samples))

    def measured(self, draw: Draw, degrees: Array) -> Values:
        """Draw neurons or inputs and return the exact best fit over all inputs, without sampling of x."""
        law, k = self.realised(draw.size), degrees.astype(int)
        if law.model == "kernel_ridge":
            if law.samples > LARGEST:
                raise Refused(f"samples = {law.samples} are not allowed in a simulation: at most {LARGEST}")
            x = sphere(draw.rng, law.samples, law.dimension)
            return fit_on_sphere(x, law.activation, law.ridge, law.noise, k, law.energies())
        span = spanned(sphere(draw.rng, law.width, law.dimension), law.activation, law.model, None, int(k.max()))
        shares = dict(unexplained=span.unexplained(k))
        return shares if law.model == "nt" else {**shares, "effective_ridge": 1 / float(np.trace(span.inverse))}


# -- Deterministic equivalents of random features, tangent features and kernel ridge regression --------------------------

MOST_STEPS = 200_000
CONVERGED = 4e-16


class Levels(NamedTuple):
    """Energies of a kernel on the sphere for each degree; all harmonics of a degree have an equal share of `energy`."""

    energy: Array
    multiplicity: Array
    tail: float

    def eigenvalues(self) -> Array:
        """Return the eigenvalue of every harmonic, which is energy over multiplicity."""
        return np.asarray(self.energy / self.multiplicity)

    def rank(self) -> float:
        """Return the number of harmonics with a positive eigenvalue."""
        return np.inf if self.tail > 0 else float(self.multiplicity[self.energy > 0].sum())


def effective_ridge(count: ArrayLike, levels: Levels, ridge: ArrayLike = 0.0) -> Array:
    """Return the unknown kappa of (7) or (14), which increases with the ridge and decreases with the number of features or samples.

    It is 0 if there is no ridge and there are at least as many features or samples as harmonics with a positive eigenvalue.

    >>> levels = Levels(np.array([1.0, 2.0]), np.array([1.0, 4.0]), 0.5)
    >>> kappa = effective_ridge(3.0, levels)
    >>> bool(abs(1 / (1 + kappa) + 2 / (0.5 + kappa) + 0.5 / kappa - 3) < 1e-13)
    True
    """
    n, lam = np.broadcast_arrays(np.asarray(count, dtype=float), np.asarray(ridge, dtype=float))
    energy, size = levels.energy, levels.eigenvalues()
    rest = levels.tail + lam
    solvable = (rest > 0) | (n < levels.rank())

    def excess(kappa: Array) -> Array:
        used = (energy / (size + kappa[..., None])).sum(axis=-1) + rest / kappa
        return np.where(solvable, 1 - used / n, kappa - 1.0)

    return np.where(solvable, increasing_root_log(excess, np.ones(n.shape)), 0.0)


def unexplained_share(kappa: ArrayLike, eigenvalues: Array) -> Array:
    """Return r_k = kappa / (s_k + kappa), eq. (8); it is 1 for a degree with eigenvalue 0.

    >>> unexplained_share(0.0, np.array([0.0, 1.0])).tolist()
    [1.0, 0.0]
    """
    k = np.asarray(kappa, dtype=float)[..., None]
    whole = eigenvalues + k
    return np.asarray(np.where(whole > 0, k / np.where(whole > 0, whole, 1.0), 1.0))


def learning_curve(
    samples: ArrayLike, ridge: ArrayLike, noise: ArrayLike, levels: Levels, signal: Array
) -> dict[str, Array]:
    """Return kappa, the shares u_k, g and the excess risk of kernel ridge regression, eqs. (14)-(17).

    The first three arguments broadcast.

    >>> levels = Levels(np.array([0.5, 0.5]), np.array([1.0, 9.0]), 0.0)
    >>> curve = learning_curve(5.0, 0.1, 0.0, levels, np.array([0.0, 1.0]))
    >>> bool(0 < curve["excess_risk"] < 1)
    True
    """
    n, lam, tau = np.broadcast_arrays(*(np.asarray(part, dtype=float) for part in (samples, ridge, noise)))
    kappa = effective_ridge(n, levels, lam)
    left = unexplained_share(kappa, levels.eigenvalues())
    learned = np.where(levels.energy > 0, 1 - left, 0.0)
    with np.errstate(invalid="ignore"):  # infinitely many harmonics times 0
        squares = np.where(learned > 0, levels.multiplicity * learned**2, 0.0)
    g = squares.sum(axis=-1) / n  # (16)
    if (g >= 1).any():
        raise Refused(
            "ridge = 0 is not allowed with at least as many samples as the kernel has positive eigenvalues: "
            "use a positive ridge or fewer samples"
        )
    risk = ((signal * left**2).sum(axis=-1) + tau**2 * g) / (1 - g)  # (17)
    return dict(effective_ridge=kappa, unexplained=left, second_degrees_of_freedom=g, excess_risk=risk)


def tangent_unexplained(width: ArrayLike, harmonics: Harmonics) -> Array:
    """Return r_k of N tangent features, eqs. (10)-(12).

    An iteration from c = 0 computes the two unknowns, which decrease in every step.

    >>> from limitlab.laws.approximation.harmonics import gegenbauer_coefficients
    >>> tangent_unexplained(24, gegenbauer_coefficients("relu", 24, range(31)))[:4].round(6).tolist()
    [0.010292, 0.021075, 0.30746, 1.0]
    """
    n = np.asarray(width, dtype=float)[..., None]
    d, many = harmonics.dimension, harmonics.multiplicities
    radial, tangential = harmonics.radial_levels, harmonics.tangential_levels
    tails = harmonics.radial_tail, harmonics.tangential_tail
    present = radial + tangential > 0
    full = (n * d >= many[present].sum()) & (
        max(tails) == 0
    )  # every present degree is explained if there are at least as many features as harmonics
    share = np.ones(np.broadcast_shapes(n.shape, many.shape))
    for _ in range(MOST_STEPS):
        along = (radial * share).sum(axis=-1, keepdims=True) + tails[0]  # (11)
        across = ((tangential * share).sum(axis=-1, keepdims=True) + tails[1]) / (d - 1)
        along, across = (np.where(full | (part == 0), 1.0, part) for part in (along, across))
        new = 1 / (1 + n * (radial / along + tangential / across) / many)  # (10), (12)
        step = np.abs(new / share - 1).max(initial=0.0)
        share = new
        if step <= CONVERGED * many.size:
            return np.where(full, np.where(present, 0.0, 1.0), share)
    raise ConvergenceError(
        f"the equations of tangent features did not converge after {MOST_STEPS} steps", share, float(step)
    )
