"""Free energy of noisy erf neurons of one weight, its gradient flow by finite volumes, and its minimiser.

With Psi(.; rho) = 2 int U(., s) rho(ds) - 2 U(., theta*) + lambda theta^2 the flow is d_t rho = (rho Psi')' + rho'' / beta. The free energy

    F = R + lambda int theta^2 rho + (1/beta) int rho log rho

decreases along the flow to its unique minimum, where rho is proportional to exp(-beta Psi(.; rho)) (docs/theory/mean_field.md, eqs. 11-13).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.cost import Pace
from limitlab._core.files import checkpoint_of
from limitlab.errors import ConvergenceError, NotComputable, Refused
from limitlab.laws.mean_field.potentials import neuron_interaction

Array = NDArray[np.float64]


WALLS = 40.0  # beta lambda L^2, so that the share of mass beyond the walls at -L and L is below e^-40
STEP = 0.02  # time step on the coarsest grid; each halving of the cells makes it four times shorter
DAMPING = 0.3  # of the iteration for the minimiser; without it the iteration may cycle
LARGEST = 20_000  # largest number of cells of the coarsest grid
RESIDUAL = 1e-13  # relative change at which the iteration for the minimiser stops
REST_CHECK = 16  # steps between two tests of whether the masses still change
AT_REST = 2e-15  # largest change of a mass in a step, relative to the largest mass, that counts as rounding
MOST = 20_000  # largest number of iterations
RANK = 1e-15  # relative size of the rest of the matrix of U at which its factor is cut off


@dataclass(frozen=True)
class ErfNeurons:
    """Erf neurons of one weight with an erf teacher, on equal cells of [-reach, reach].

    >>> system = ErfNeurons(beta=5.0, penalty=0.05, teacher=2.0, reach=12.7, cells=800)
    >>> rest = system.rest()
    >>> round(system.free_energy(rest), 9), round(system.risk(rest), 9)
    (-0.092086105, 0.051124576)
    """

    beta: float
    penalty: float
    teacher: float
    reach: float
    cells: int

    @cached_property
    def centres(self) -> Array:
        """Centres of the cells."""
        return np.asarray((np.arange(self.cells) + 0.5) * self.width - self.reach)

    @property
    def width(self) -> float:
        """Width of a cell."""
        return 2 * self.reach / self.cells

    @cached_property
    def factor(self) -> Array:
        """The thin factor A with U = A A^T between all cells.

        U has an effective rank of a few tens, so that a product with U costs two products with thin matrices.
        """
        weights = self.centres[:, None]
        return pivoted_cholesky(
            neuron_interaction(weights, weights), lambda j: neuron_interaction(weights, weights[j]), RANK
        )

    @cached_property
    def to_teacher(self) -> Array:
        """The mean products of a neuron at every centre with the teacher."""
        return np.asarray(neuron_interaction(self.centres[:, None], np.array([self.teacher])))

    def potential(self, masses: Array) -> Array:
        """Return Psi at the centres, eq. (11)."""
        return np.asarray(
            2 * (self.factor @ (self.factor.T @ masses)) - 2 * self.to_teacher + self.penalty * self.centres**2
        )

    def risk(self, masses: Array) -> float:
        """Return the risk, eq. (1)."""
        teacher_square = float(neuron_interaction(self.teacher, self.teacher))
        return float(teacher_square - 2 * self.to_teacher @ masses + np.sum((self.factor.T @ masses) ** 2))

    def free_energy(self, masses: Array) -> float:
        """Return the free energy, eq. (12)."""
        from scipy.special import xlogy

        entropy = -float(xlogy(masses, masses / self.width).sum())
        return self.risk(masses) + self.penalty * float(self.centres**2 @ masses) - entropy / self.beta

    def observed(self, masses: Array) -> Array:
        """Return risk, free energy, mean and second moment."""
        return np.array([self.risk(masses), self.free_energy(masses), self.centres @ masses, self.centres**2 @ masses])

    def gaussian(self, mean: float, std: float) -> Array:
        """Return the masses of a Gaussian distribution in the cells."""
        from scipy.special import ndtr

        edges = (np.arange(self.cells + 1) * self.width - self.reach - mean) / std
        masses = np.abs(
            np.diff(ndtr(-np.abs(edges)) * np.where(edges > 0, -1.0, 1.0))
        )  # the tail function avoids cancellation
        middle = np.searchsorted(edges, 0.0)
        if 0 < middle < edges.size:  # the cell that contains the mean
            masses[middle - 1] = ndtr(edges[middle]) - ndtr(edges[middle - 1])
        return np.asarray(masses / masses.sum())

    def advance(self, masses: Array, time: float) -> Array:
        """Return the masses after one step, implicit in the masses, with the potential of the masses at its beginning."""
        return diffusion_step(masses, self.potential(masses), self.width, self.beta, time)

    def rest(self) -> Array:
        """Return the density of least free energy, the solution of eq. (13), by damped iteration."""
        masses = _gibbs(self.beta * self.penalty * self.centres**2)
        for _ in range(MOST):
            image = _gibbs(self.beta * self.potential(masses))
            gap = float(np.abs(image - masses).max() / image.max())
            masses = (1 - DAMPING) * masses + DAMPING * image
            if gap < RESIDUAL:
                return masses
        raise ConvergenceError(
            f"the iteration for the density at rest did not converge at beta = {self.beta:g}", masses, gap
        )


def _gibbs(energy: Array) -> Array:
    weights = np.exp(energy.min() - energy)
    return np.asarray(weights / weights.sum())


def erf_path(
    beta: float, penalty: float, teacher: float, mean: float, std: float, times: ArrayLike, cells: int
) -> tuple[Array, Array]:
    """Return the observables over time, shape (times, 4), and their errors, shape (4,).

    The observables are risk, free energy, mean and second moment; the time `inf` means at rest. The grids have `cells` cells, twice and
    four times as many, and their time steps are in proportion to the squares of their cells. All errors are then a series in these
    squares. Two rounds of Richardson's extrapolation remove the first two terms, and the change in the second round is the error.

    >>> values, errors = erf_path(20.0, 0.1, 2.0, -1.0, 0.6, [0.5], 100)
    >>> values[0].round(3).tolist()
    [1.005, 1.033, -0.347, 0.854]
    """
    grid, (reach, finest) = np.atleast_1d(np.asarray(times, dtype=float)), _grid(beta, penalty, teacher, mean, std, cells)
    finite, values, errors = grid[np.isfinite(grid)], np.empty((grid.size, 4)), np.zeros(4)
    if finite.size:
        paths = [
            _followed(ErfNeurons(beta, penalty, teacher, reach, finest * 2**level), mean, std, finite, 4**level)
            for level in range(3)
        ]
        once = [(4 * fine - coarse) / 3 for coarse, fine in itertools.pairwise(paths)]
        values[np.isfinite(grid)] = (16 * once[1] - once[0]) / 15
        errors = np.abs(once[1] - once[0]).max(axis=0) / 5
    if not np.isfinite(grid).all():
        system = ErfNeurons(beta, penalty, teacher, reach, 4 * finest)
        values[~np.isfinite(grid)] = system.observed(system.rest())
    return values, np.maximum(errors, 1e-12)


def erf_density(
    beta: float, penalty: float, teacher: float, mean: float, std: float, time: float, theta: ArrayLike, cells: int = 400
) -> Array:
    """Return the density at one time, interpolated between the centres of cells. The time `inf` means at rest.

    >>> bool(abs(erf_density(20.0, 0.1, 2.0, -1.0, 0.6, 0.0, -1.0) * 0.6 * math.sqrt(2 * math.pi) - 1) < 1e-3)
    True
    """
    reach, finest = _grid(beta, penalty, teacher, mean, std, cells)
    system = ErfNeurons(beta, penalty, teacher, reach, finest)
    if math.isinf(time):
        masses = system.rest()
    else:
        masses = system.gaussian(mean, std)
        steps = math.ceil(time / (STEP / 4))
        for _ in range(steps):
            masses = system.advance(masses, time / steps)
    return np.interp(np.asarray(theta, dtype=float), system.centres, masses / system.width, left=0.0, right=0.0)


def _grid(beta: float, penalty: float, teacher: float, mean: float, std: float, cells: int) -> tuple[float, int]:
    """Return the distance of the walls from 0, and a number of cells, at least `cells`, that resolves the start and the state at rest."""
    reach = max(math.sqrt(WALLS / (beta * penalty)), abs(mean) + 9 * std, abs(teacher) + 1.0)
    needed = max(cells, math.ceil(cells * reach * math.sqrt(beta) / 30), math.ceil(4 * reach / std))
    if needed > LARGEST:
        raise Refused(
            f"inverse_temperature = {beta:g} with penalty = {penalty:g} is not allowed: the density would need {needed} cells, more than "
            f"{LARGEST}; raise the penalty or start_std, or use fewer solver_steps"
        )
    return reach, needed


def _followed(system: ErfNeurons, mean: float, std: float, times: Array, refined: int) -> Array:
    """Return the observables along the flow, with `refined` times as many steps per interval as on the coarsest grid."""
    saved = checkpoint_of("erf neurons", system, mean, std, times.tobytes(), refined)
    masses, now, observed, done = system.gaussian(mean, std), 0.0, [], 0
    if (state := saved.load()) is not None:
        masses, observed, done = state["masses"], list(state["found"]), int(state["done"])
        now = float(times[len(observed) - 1]) if observed else 0.0
    pace, resting = Pace("times", float(times[-1])), False
    for target in times[len(observed) :]:
        steps = refined * math.ceil((target - now) / STEP - 1e-9)
        for step in range(done, steps if not resting else done):
            before, masses = masses, system.advance(masses, (target - now) / steps)
            pace.at(now + step * ((target - now) / steps))
            if step % REST_CHECK == 0 and np.abs(masses - before).max() <= AT_REST * masses.max():  # the masses are at rest
                resting = True
                break
            saved.offer(functools.partial(_state, masses, observed, step + 1))
        now, done = float(target), 0
        observed.append(system.observed(masses))
    saved.finish()
    return np.stack(observed)


def _state(masses: Array, observed: list[Array], done: int) -> dict[str, Array]:
    """Return the saved state of a flow.

    It contains the cell masses, the observables at earlier times, and the number of steps since the last of these times.
    """
    return {"masses": masses, "found": np.array(observed).reshape(-1, 4), "done": np.array(done)}


# -- Fokker-Planck equations in one dimension by Scharfetter and Gummel's finite volumes -----------------------------


def bernoulli(z: ArrayLike) -> Array:
    """Return z / (e^z - 1), with its limit 1 at z = 0.

    >>> bernoulli([-1.0, 0.0, 1e-9, 800.0]).round(9).tolist()
    [1.581976707, 1.0, 1.0, 0.0]
    """
    x = np.asarray(z, dtype=float)
    small = np.abs(x) < 1e-5
    safe = np.where(small, 1.0, np.clip(x, -700, 700))
    return np.where(small, 1 - x / 2 + x * x / 12, np.where(np.abs(x) > 700, np.maximum(-x, 0.0), safe / np.expm1(safe)))


def diffusion_step(masses: ArrayLike, psi: ArrayLike, width: float, beta: float, time: float) -> Array:
    """Return the cell masses after one implicit step of length `time` in the potential `psi`, on equal cells.

    Parameters
    ----------
    masses
        Mass of every cell, not negative.
    psi
        Potential at the centres.
    width
        Width of a cell.
    beta
        Inverse temperature. The diffusion constant is 1 / beta.
    time
        Length of the step.

    Examples
    --------
    >>> centres = np.linspace(-3.95, 3.95, 80)
    >>> masses = np.full(80, 1 / 80)
    >>> for _ in range(100):
    ...     masses = diffusion_step(masses, centres**2, 0.1, 2.0, 0.2)
    >>> gibbs = np.exp(-2 * centres**2)
    >>> bool(abs(masses.sum() - 1) < 1e-13 and np.abs(masses - gibbs / gibbs.sum()).max() < 1e-12)
    True
    """
    from scipy.linalg.lapack import dgtsv

    start, values = np.asarray(masses, dtype=float), np.asarray(psi, dtype=float)
    up = beta * np.diff(values)
    rate = time / (beta * width**2)
    out, back = rate * bernoulli(up), rate * bernoulli(-up)  # mass per unit mass that moves to the right, and to the left
    diagonal = np.ones(start.size)
    diagonal[:-1] += out
    diagonal[1:] += back
    *_, moved, status = dgtsv(-out, diagonal, -back, start)
    if status:
        raise NotComputable(f"a time step of length {time:g} leads to a singular linear system: use more solver_steps")
    return np.asarray(moved)


# -- Thin factors of large positive semidefinite matrices, from a few of their columns -------------------------------


def pivoted_cholesky(diagonal: ArrayLike, column: Callable[[int], Array], tolerance: float = 1e-15) -> Array:
    """Return A, shape (n, rank), with A A^T equal to a positive semidefinite matrix up to `tolerance` times its largest entry.

    In every round the column with the largest diagonal entry of the rest is added. Only these columns are computed, so that the matrix
    may be too large to store.

    Parameters
    ----------
    diagonal
        Diagonal of the matrix.
    column
        Function that returns column j of the matrix.
    tolerance
        Largest entry of the diagonal of the rest, as a share of the largest of the matrix.

    Examples
    --------
    >>> x = np.linspace(-1, 1, 300)
    >>> thin = pivoted_cholesky(np.ones(300), lambda j: np.exp(-((x - x[j]) ** 2)))
    >>> thin.shape[1] < 20, bool(np.abs(thin @ thin.T - np.exp(-((x[:, None] - x) ** 2))).max() < 1e-7)
    (True, True)
    """
    rest = np.array(diagonal, dtype=float)
    smallest, parts = tolerance * float(rest.max(initial=0.0)), np.empty((0, rest.size))
    while parts.shape[0] < rest.size:
        pivot = int(np.argmax(rest))
        if rest[pivot] <= smallest:
            break
        new = (np.asarray(column(pivot), dtype=float) - parts[:, pivot] @ parts) / np.sqrt(rest[pivot])
        parts = np.vstack([parts, new])
        rest = np.maximum(rest - new**2, 0.0)
    return np.ascontiguousarray(parts.T)
