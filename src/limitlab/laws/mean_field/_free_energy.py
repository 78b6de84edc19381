"""Noisy erf neurons of one weight: the free energy, its gradient flow by finite volumes, and its minimiser.

With Psi(.; rho) = 2 int U(., s) rho(ds) - 2 U(., theta*) + lambda theta^2 the flow is d_t rho = (rho Psi')' + rho'' / beta, and

    F = R + lambda int theta^2 rho + (1/beta) int rho log rho

falls along it to its only minimum, where rho is proportional to exp(-beta Psi(.; rho)) (docs/theory/mean_field.md, eqs. 11-13).
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from limitlab._core.checkpoints import checkpoint_of
from limitlab._core.cost import Pace
from limitlab.errors import ConvergenceError, Refused
from limitlab.laws.mean_field._fokker_planck import diffusion_step
from limitlab.laws.mean_field._low_rank import pivoted_cholesky
from limitlab.laws.mean_field.potentials import neuron_interaction

Array = NDArray[np.float64]

WALLS = 40.0  # beta lambda L^2: the share of mass beyond the walls is below e^-40
STEP = 0.02  # in time, on the coarsest grid; four times shorter when the cells are halved
DAMPING = 0.3  # of the iteration for the minimiser; without it the iteration may cycle
LARGEST = 20_000  # cells of the coarsest grid
RESIDUAL = 1e-13
LOOK = 16  # steps between two looks at whether anything moves
AT_REST = 2e-15  # change of a mass in a step, relative to the largest, that is rounding
MOST = 20_000  # iterations
RANK = 1e-15  # what is left of the matrix of U when its factor is cut off


@dataclass(frozen=True)
class ErfNeurons:
    """Erf neurons of one weight and a teacher among them, on even cells of [-reach, reach].

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
        """A with U = A A^T between all cells: U has an effective rank of a few tens, and a product with it is two thin ones."""
        weights = self.centres[:, None]
        return pivoted_cholesky(
            neuron_interaction(weights, weights), lambda j: neuron_interaction(weights, weights[j]), RANK
        )

    @cached_property
    def to_teacher(self) -> Array:
        """U(theta, theta*) at the centres."""
        return np.asarray(neuron_interaction(self.centres[:, None], np.array([self.teacher])))

    def potential(self, masses: Array) -> Array:
        """Psi at the centres, eq. (11)."""
        return np.asarray(
            2 * (self.factor @ (self.factor.T @ masses)) - 2 * self.to_teacher + self.penalty * self.centres**2
        )

    def risk(self, masses: Array) -> float:
        """R = |y - f|^2, eq. (1)."""
        own = float(neuron_interaction(self.teacher, self.teacher))
        return float(own - 2 * self.to_teacher @ masses + np.sum((self.factor.T @ masses) ** 2))

    def free_energy(self, masses: Array) -> float:
        """F, eq. (12)."""
        from scipy.special import xlogy

        entropy = -float(xlogy(masses, masses / self.width).sum())
        return self.risk(masses) + self.penalty * float(self.centres**2 @ masses) - entropy / self.beta

    def observed(self, masses: Array) -> Array:
        """Risk, free energy, mean and second moment."""
        return np.array([self.risk(masses), self.free_energy(masses), self.centres @ masses, self.centres**2 @ masses])

    def gaussian(self, mean: float, std: float) -> Array:
        """Masses of a Gaussian law."""
        from scipy.special import ndtr

        edges = (np.arange(self.cells + 1) * self.width - self.reach - mean) / std
        masses = np.abs(np.diff(ndtr(-np.abs(edges)) * np.where(edges > 0, -1.0, 1.0)))  # small tails, without cancellation
        middle = np.searchsorted(edges, 0.0)
        if 0 < middle < edges.size:  # the cell in which the tail changes sides
            masses[middle - 1] = ndtr(edges[middle]) - ndtr(edges[middle - 1])
        return np.asarray(masses / masses.sum())

    def advance(self, masses: Array, time: float) -> Array:
        """One step: implicit in the masses, with the potential that they make at its beginning."""
        return diffusion_step(masses, self.potential(masses), self.width, self.beta, time)

    def rest(self) -> Array:
        """The minimiser of F: the fixed point of rho -> exp(-beta Psi(.; rho)) / Z, by damped iteration, eq. (13)."""
        masses = _gibbs(self.beta * self.penalty * self.centres**2)
        for _ in range(MOST):
            image = _gibbs(self.beta * self.potential(masses))
            gap = float(np.abs(image - masses).max() / image.max())
            masses = (1 - DAMPING) * masses + DAMPING * image
            if gap < RESIDUAL:
                return masses
        raise ConvergenceError(f"the Boltzmann fixed point at beta = {self.beta:g} was not reached", masses, gap)


def _gibbs(energy: Array) -> Array:
    weights = np.exp(energy.min() - energy)
    return np.asarray(weights / weights.sum())


def erf_path(
    beta: float, penalty: float, teacher: float, mean: float, std: float, times: ArrayLike, cells: int
) -> tuple[Array, Array]:
    """Risk, free energy, mean and second moment over time (`inf`: at rest), shape (times, 4), and their errors, shape (4,).

    On grids of `cells`, twice and four times as many, with time steps in proportion to the squares of their cells, all errors are
    a series in these squares: two rounds of Richardson's extrapolation remove its first two terms, and the second one's
    change is the error.

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
    """The density at one time (`inf`: at rest), interpolated between the centres of cells.

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
    """Distance of the walls, and a number of cells of at least `cells` that resolves the start and the state of rest."""
    reach = max(math.sqrt(WALLS / (beta * penalty)), abs(mean) + 9 * std, abs(teacher) + 1.0)
    needed = max(cells, math.ceil(cells * reach * math.sqrt(beta) / 30), math.ceil(4 * reach / std))
    if needed > LARGEST:
        raise Refused(
            f"inverse_temperature = {beta:g} with penalty = {penalty:g} is not allowed: the density would need {needed} cells, more than "
            f"{LARGEST}; raise the penalty or start_std, or use fewer solver_steps"
        )
    return reach, needed


def _followed(system: ErfNeurons, mean: float, std: float, times: Array, refined: int) -> Array:
    """What is observed along the flow, with `refined` times as many steps in every interval as on the coarsest grid."""
    kept = checkpoint_of("erf neurons", system, mean, std, times.tobytes(), refined)
    masses, now, found, done = system.gaussian(mean, std), 0.0, [], 0
    if (state := kept.load()) is not None:
        masses, found, done = state["masses"], list(state["found"]), int(state["done"])
        now = float(times[len(found) - 1]) if found else 0.0
    pace, resting = Pace("times", float(times[-1])), False
    for target in times[len(found) :]:
        steps = refined * math.ceil((target - now) / STEP - 1e-9)
        for step in range(done, steps if not resting else done):
            before, masses = masses, system.advance(masses, (target - now) / steps)
            pace.at(now + step * ((target - now) / steps))
            if step % LOOK == 0 and np.abs(masses - before).max() <= AT_REST * masses.max():  # nothing moves any more
                resting = True
                break
            kept.offer(functools.partial(_state, masses, found, step + 1))
        now, done = float(target), 0
        found.append(system.observed(masses))
    kept.finish()
    return np.stack(found)


def _state(masses: Array, found: list[Array], done: int) -> dict[str, Array]:
    """Where a flow is: cell masses, what was observed at earlier times, steps since the last of them."""
    return {"masses": masses, "found": np.array(found).reshape(-1, 4), "done": np.array(done)}
