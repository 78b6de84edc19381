"""Loss against width, steps and compute for power-law features (docs/theory/power_law_scaling.md).

Setting.  x_j = j^{-alpha} z_j, y = <x, b> + noise with b_j = j^{-beta}, j <= V. The features are f = W'x, where the V x d matrix W has
          entries N(0, 1/d). A model learns d weights by one-pass SGD (`StreamingLeastSquares`) from 0, with step eta and batches of B.
Limit.    d and V large. The matrix K = D^{1/2} W W' D^{1/2}, D = diag(j^{-2 alpha}), is replaced by its deterministic equivalent, with
          the effective ridge kappa(z) (1 - df1(kappa)/d) = -z.
Result.   The loss P_k after k steps solves (docs/theory/power_law_scaling.md)

              P_k = F_k + sum_{j<k} K_{k-1-j} (P_j + tau^2),   F_k = <rho(K)^k>,   K_m = (eta^2/B) tr K^2 rho(K)^m,            (1)

          with rho(z) = 1 - 2 eta z + eta^2 (1 + 1/B) z^2. Here <.> is the quadratic form in D^{1/2} b. F is called forcing and K_m kernel.
          P_k is computed from generating functions, at a cost that does not depend on the number of steps.
Status.   The recursion is an identity given W. The equivalent is derived (Paquette, Paquette, Xiao and Pennington 2024). A second method
          and simulations agree with it. The phase table follows from a balance of terms, and numerical results confirm it.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import model_validator

from limitlab._core.cost import Cost, latest
from limitlab.errors import Refused
from limitlab.laws import Draw, Experiment, Headline, Values, observable, parameter, shared
from limitlab.laws.online_sgd.second_moments import largest_step
from limitlab.laws.scaling import _spectrum as generating
from limitlab.laws.scaling._spectrum import ModesLaw
from limitlab.models.streams import least_squares_runs

__all__ = ["PowerLawScaling"]

Array = NDArray[np.float64]

COARSE = 15  # number of trial widths in the first step of the search for the best width
LOWEST_WIDTH = 2.0
SPECTRUM_ERROR = 1e-11  # relative error of sums over grouped spectra
SHRINKING = (2.0, 4.0)  # rates of the gaps of observables that decrease with the width, which exceed their exponents by one
IV_FROM = 1 - math.sqrt(0.5)  # alpha from which phase IVa begins


class Exponents(NamedTuple):
    """Exponents of the compute C in the compute-optimal width ~ C^width and the loss ~ C^-loss."""

    width: float
    loss: float


class Frontier(NamedTuple):
    """Best width, number of steps and loss at each compute. They are numbers if the compute is a number, and otherwise arrays."""

    width: Any
    steps: Any
    loss: Any


class PowerLawScaling(ModesLaw):
    """How does the loss decrease with width, steps and compute for power-law features, and which width is best?

    Examples
    --------
    >>> law = PowerLawScaling(spectrum_exponent=1.0, target_exponent=0.2, latent_dimension=1e7, width=500, step=0.3, steps=(1e2, 1e8))
    >>> law.theory().excess_risk.values.round(6).tolist()
    [0.057058, 0.000871]
    >>> law.phase(), round(law.exponents().width, 4), round(law.exponents().loss, 4)
    ('Ia', 0.3333, 0.4667)
    >>> best = law.frontier(1e7)
    >>> round(best.width), round(float(best.loss), 6)
    (501, 0.002238)
    """

    status = "derived"
    regime = "width and latent dimension large; any number of steps; step below the threshold of stability"
    assumptions = (
        "Gaussian inputs with independent coordinates of variance j^(-2 alpha), target coefficients j^(-beta)",
        "Gaussian random features, one pass over fresh data",
    )
    references = ("paquette2024phases", "bordelon2024dynamical", "weideman2007parabolic")
    page = "power_law_scaling"
    observables = {
        **shared("excess_risk", "test_error"),
        "forcing": observable("mean loss of gradient descent with the noise of batches left out", r"F_k", least=0),
        "kernel": observable("response of the loss to earlier noise of batches", r"K_k"),
        "floor": observable(
            "loss that no training of this width removes", r"P_\infty", scalar=True, rate=SHRINKING, least=0
        ),
        "effective_ridge": observable(scalar=True, rate=SHRINKING),
    }
    simulation = Experiment("width d", sizes=(25, 50, 100), draws=100)
    # Phases Ia and III with noise and batches, so that no term vanishes
    points = (
        dict(
            spectrum_exponent=0.75,
            target_exponent=0.2,
            latent_dimension=150,
            step=0.2,
            batch=2,
            noise=0.6,
            steps=(16, 60, 200),
        ),
        dict(
            spectrum_exponent=0.8,
            target_exponent=1.0,
            latent_dimension=300,
            step=0.3,
            batch=6,
            noise=0.4,
            steps=(16, 40, 100),
        ),
    )
    headline = Headline(
        "Each width has its floor",
        x="steps",
        over=(1.0, 100000.0, 61),
        scale="log",
        y_scale="log",
        whole=True,
        show=("excess_risk",),
        curves=("width", (10, 30, 100)),
        size=30,
        draws=20,
        places=(1.0, 10.0, 100.0, 1000.0),
        sliders=("spectrum_exponent", "target_exponent"),
    )

    target_exponent: float = parameter(0.7, note="coefficients j^(-beta)", least=0, most=6)
    width: float = parameter(
        100.0, note="random features; an experiment's size", symbol="d", least=1, scale="log", infinite=True
    )
    step: float = parameter(0.2, note="of one update, not multiplied by the width", symbol=r"\eta", above=0, scale="log")
    batch: int = parameter(1, least=1, scale="log")
    noise: float = parameter(0.0, least=0)
    steps: float | tuple[float, ...] = parameter(
        (1.0, 10.0, 100.0),
        note="whole numbers below 16; larger values need not be whole",
        kind="coordinate",
        least=0,
        scale="log",
    )
    replicas: int = parameter(5, kind="experiment", least=1)
    refinement: int = parameter(1, kind="solver", least=1, most=4, finer=2)

    def draw_cost(self, size: int) -> Cost:
        """Return the cost of the features of all modes and of a batch per step in all replicas."""
        modes = (
            self.latent_dimension if math.isfinite(self.latent_dimension) else 0.0
        )  # the experiment raises a specific error
        batch = float(self.replicas * self.batch * size)
        return Cost(
            5.0 * size * modes + 3.0 * batch,
            1e7 + 1e2 * size * modes + size**2 * modes + 15.0 * batch * max(latest(self, "steps"), 1.0),
        )

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        counts = np.atleast_1d(self.steps)
        broken = counts[(counts < generating.FEW) & (counts != np.round(counts))]
        if broken.size:
            raise Refused(f"steps = {broken[0]:g} is not allowed: must be a whole number if it is below {generating.FEW}")
        most = min(self.largest_step(), generating.equivalent_threshold(self.modes, self.width, self.batch))
        if not self.step < most:
            raise Refused(
                f"step = {self.step:g} is not allowed: must be below {most:.6g}, because larger steps diverge (or use a larger batch)"
            )
        return self

    def realised(self, size: int) -> Self:
        """Return the law at the width of an experiment of this size."""
        return self.whole_modes().replace(width=float(size))

    def caveat(self) -> str:
        """Return a warning about fits E + A N^-a + B D^-b in phases II and III, and an empty text otherwise."""
        if self.spectrum is None and self.phase() in ("II", "III"):
            return (
                f"phase {self.phase()}: the term width^-1 steps^-{1 - 1 / (2 * self.spectrum_exponent):.3g} limits the best width. "
                "The best width of a fit E + A N^-a + B D^-b is wrong, by factors up to 2 (II) and 8 (III) at compute 1e10"
            )
        return ""

    # -- the prediction -------------------------------------------------------------------------------------------------

    def predicted(self, steps: Array, noise: Array) -> Values:
        """Evaluate the deterministic equivalent at every number of steps."""
        fine, coarse = (
            self._losses(np.ravel(steps), nodes) for nodes in (generating.NODES * self.refinement, generating.COARSER)
        )
        excess = fine.signal + noise**2 * fine.noise
        floor, kappa = generating.projection_floor(self.modes, self.width)
        gap = float(np.max(np.abs(fine.signal - coarse.signal), initial=0.0))
        gap += float(np.max(noise**2)) * float(np.max(np.abs(fine.noise - coarse.noise), initial=0.0))
        error = gap + SPECTRUM_ERROR * self.modes.variance
        kernel_error = float(np.max(np.abs(fine.kernel - coarse.kernel), initial=0.0)) + SPECTRUM_ERROR
        return dict(
            excess_risk=excess,
            test_error=excess + noise**2,
            forcing=fine.forcing,
            kernel=fine.kernel,
            floor=floor,
            effective_ridge=kappa,
            accuracy=dict(
                excess_risk=error,
                test_error=error,
                forcing=error,
                kernel=kernel_error,
                floor=SPECTRUM_ERROR * self.modes.variance,
                effective_ridge=SPECTRUM_ERROR,
            ),
        )

    def _losses(self, steps: Array, nodes: int) -> generating.Losses:
        return generating.losses(self.modes, self.width, self.step, self.batch, steps, nodes)

    # -- the experiment -------------------------------------------------------------------------------------------------

    def measured(self, draw: Draw, steps: Array) -> Values:
        """Draw W once and run SGD `replicas` times. Given W, the misfit of the best weights is noise independent of the features."""
        _, variances, target = self.drawn_modes()
        modes, d = variances.size, draw.size
        W = draw.rng.standard_normal((modes, d)) / math.sqrt(d)
        values, basis = np.linalg.eigh(W.T @ (variances[:, None] * W))
        nonzero = values > 1e-12 * values[-1]
        values, basis = values[nonzero], basis[:, nonzero]
        best = (basis.T @ (W.T @ (variances * target))) / values
        floor = max(float(variances @ target**2 - values @ best**2), 0.0)
        marks = np.round(np.ravel(steps)).astype(np.int64)
        pace = np.full(int(marks[-1]), self.step)
        spread = math.hypot(self.noise, math.sqrt(floor))
        last, _ = least_squares_runs(draw.rng, values, -best, spread, pace, self.batch, 0.0, 0.0, self.replicas, None, marks)
        decay = (1 - self.step * values) ** 2 + (self.step * values) ** 2 / self.batch
        powers = decay ** marks[:, None]
        return dict(
            excess_risk=last + floor,
            test_error=last + floor + self.noise**2,
            forcing=powers @ (values * best**2) + floor,
            kernel=self.step**2 / self.batch * (powers @ values**2),
            floor=floor,
            effective_ridge=d / float(np.sum(1 / values)) if values.size == d else 0.0,
        )

    # -- thresholds, phases, the frontier -----------------------------------------------------------------------------------

    def largest_step(self) -> float:
        """Return the step from which the mean square of infinitely wide models diverges. Use half of this step at finite width.

        >>> round(PowerLawScaling(latent_dimension=1e6).largest_step(), 3)
        0.611
        """
        return largest_step(self.modes.eigenvalues, self.modes.counts, self.batch, 0.0, 0.0)

    def phase(self) -> str:
        """Return the phase, Ia, II or III for alpha > 1/2 and Ib or IVa for alpha < 1/2.

        The result is "boundary" between two phases, and "other" outside the table of docs/theory/power_law_scaling.md.

        >>> [PowerLawScaling(spectrum_exponent=a, target_exponent=b).phase() for a, b in ((1, 0.2), (1, 0.7), (1, 1.3), (1, 1))]
        ['Ia', 'II', 'III', 'boundary']
        """
        self.require_power_laws("phases")
        alpha, beta = self.spectrum_exponent, self.target_exponent
        if alpha == 0.5 or beta == 0.5 or (alpha > 0.5 and alpha == beta):
            return "boundary"
        if alpha > 0.5:
            return "Ia" if beta < 0.5 else "II" if beta < alpha else "III"
        if beta < 0.5:
            return "Ib" if alpha + beta > 0.5 else "other"
        return "IVa" if alpha > IV_FROM else "other"

    def exponents(self) -> Exponents:
        """Return exponents of the compute-optimal width and loss in the compute C = width * batch * steps.

        Slopes at finite compute (`local_exponents`) converge slowly to these exponents.
        """
        alpha, beta, phase = self.spectrum_exponent, self.target_exponent, self.phase()
        table = {
            "Ia": (1 / (2 * alpha + 1), (2 * alpha + 2 * beta - 1) / (2 * alpha + 1)),
            "II": (beta / (alpha + beta), (2 * alpha + 2 * beta - 1) / (2 * (alpha + beta)))
            if alpha + beta > 0
            else (0.0, 0.0),
            "III": (0.5, 1 - 1 / (4 * alpha)),
            "Ib": (0.5, alpha + beta - 0.5),
            "IVa": (0.5, alpha),
        }
        if phase not in table:
            raise Refused(
                f"spectrum_exponent = {alpha:g} and target_exponent = {beta:g} have no exponents here (phase: {phase}); "
                "choose exponents inside a phase of the table, because logarithms appear on a boundary"
            )
        return Exponents(*table[phase])

    def frontier(self, compute: ArrayLike) -> Frontier:
        """Return the width and steps with the least loss, and this loss, for compute = width * batch * steps.

        Width and steps need not be whole. The latent dimension, the step and the batch are those of the law. The law's width and steps are
        not used.
        """
        totals = np.asarray(compute, dtype=float)
        if not (np.isfinite(totals).all() and (totals >= 4 * generating.FEW * self.batch * LOWEST_WIDTH).all()):
            raise Refused(
                f"compute = {compute!r} is not allowed: must be at least {4 * generating.FEW * self.batch * LOWEST_WIDTH:g}"
            )
        best = [self._best_width(float(total)) for total in totals.ravel()]
        width, loss = (np.reshape(column, totals.shape)[()] for column in zip(*best, strict=True))
        return Frontier(width, totals[()] / (self.batch * width), loss)

    def _best_width(self, compute: float) -> tuple[float, float]:
        from scipy.optimize import minimize_scalar

        def loss(log_width: float) -> float:
            width = math.exp(log_width)
            parts = generating.losses(self.modes, width, self.step, self.batch, np.array([compute / (self.batch * width)]))
            return math.log(float(parts.signal[0] + self.noise**2 * parts.noise[0]))

        most = min(compute / (self.batch * generating.FEW), 0.99 * self.latent_dimension)
        grid = np.linspace(math.log(LOWEST_WIDTH), math.log(most), COARSE)
        i = int(np.argmin([loss(float(x)) for x in grid]))
        ends = float(grid[max(i - 1, 0)]), float(grid[min(i + 1, COARSE - 1)])
        best = minimize_scalar(loss, bounds=ends, method="bounded", options={"xatol": 1e-5})
        return math.exp(best.x), math.exp(best.fun)

    def local_exponents(self, compute: float) -> Exponents:
        """Return the slopes of the computed frontier at a compute, which converge slowly to `exponents`."""
        ends = self.frontier([compute / 2, compute * 2])
        slopes = np.log([ends.width[1] / ends.width[0], ends.loss[0] / ends.loss[1]]) / math.log(4)
        return Exponents(float(slopes[0]), float(slopes[1]))
