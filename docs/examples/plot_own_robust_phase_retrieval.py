"""
Own statistics: robust phase retrieval
======================================

A sensor measures only the size :math:`|\\langle x_*, a\\rangle|` of a projection. Online SGD fits it with the absolute loss, which is
robust against outliers. The loss is smoothed near zero,
:math:`L(x, a) = \\sqrt{(|\\langle x, a\\rangle| - |\\langle x_*, a\\rangle|)^2 + \\epsilon^2}`. No theory of this loss is built in.
We give limitlab the loss and two summary statistics, and compare the predicted path with SGD.
"""

import jax
import jax.numpy as jnp
import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points

# %%
# The statistics are the overlap with the truth and the squared norm of the rest. `place` returns a point with given statistics. The rest is
# spread over all coordinates, which is arbitrary if the statistics close.


def loss(x, a):
    """Return the smoothed absolute error of the size of a projection."""
    return jnp.sqrt((jnp.abs(a @ x) - jnp.abs(a[0])) ** 2 + 0.3**2)


def statistics(x):
    """Return the overlap with the truth and the squared norm of the rest."""
    return jnp.array([x[0], jnp.sum(x[1:] ** 2)])


def sampler(key, count, dimension):
    """Return standard Gaussian inputs."""
    return jax.random.normal(key, (count, dimension))


def place(u, dimension):
    """Return a point with these statistics."""
    return np.concatenate([u[:1], np.full(dimension - 1, np.sqrt(max(u[1], 0) / (dimension - 1)))])


problem = ll.laws.OnlineProblem(loss=loss, statistics=statistics, sampler=sampler, place=place)
times = (0.5, 1.0, 1.5, 2.0)
law = ll.laws.EffectiveFlow(
    problem=problem, step=0.3, start_statistics=(0.3, 0.5), times=times, samples=2000
)

# %%
# The prediction has error bars, and the simulation has the spread of its runs.

theory = law.theory().statistics
runs = law.simulate_batch(200, range(20)).statistics
error = theory.attrs["numerical_error"]
mean, spread = runs.mean("seed").values, runs.std("seed", ddof=1).values / np.sqrt(20)
print("overlap: predicted", theory.values[:, 0].round(3), "+-", round(error, 3))
print("overlap: SGD      ", mean[:, 0].round(3), "+-", spread[:, 0].round(3))
gaps = np.abs(mean - theory.values) / (spread + error)
print("largest difference in units of both errors:", round(float(gaps.max()), 2))
assert gaps.max() < 3

# %%
# The lines are predictions, with bands of their accuracy, and the points are 20 runs in 200 dimensions.

figure, (axes,) = new_figure()
for index, label in enumerate(("overlap", "squared norm of the rest")):
    (line,) = axes.plot(times, theory.values[:, index], color=f"C{index}", label=f"{label}, predicted")
    axes.fill_between(
        times,
        theory.values[:, index] - error,
        theory.values[:, index] + error,
        color=line.get_color(),
        alpha=0.2,
        linewidth=0,
    )
    simulation_points(axes, times, mean[:, index], spread[:, index], index, "SGD, $N = 200$")
finish(axes, "time $t$", "statistics", title="robust phase retrieval, $c = 0.3$")
