"""
To which perfect fit does descent converge?
===========================================

Many weights fit the training data perfectly. Gradient descent on least squares from zero converges to the fit of least
norm, exponentially fast. On separable classification its direction converges to the largest margin, but the distance
falls only like one over the logarithm of time. Much longer training therefore changes almost nothing.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The left panel is least squares with four unknowns per sample. It shows the relative distance to the least-norm solution after
# :math:`k` steps of the best size.

steps = np.arange(0, 21, 2)
law = ll.laws.LeastSquaresDescent(ratio=4.0)
theory = [float(law.replace(steps=int(k)).theory().distance) for k in steps]
runs = [law.replace(steps=int(k)).simulate_batch(200, range(4)).distance for k in steps]

figure, (left, right) = new_figure(columns=2)
theory_line(left, steps, theory, 0, "limit")
simulation_points(
    left, steps, [run.mean() for run in runs], [run.std(ddof=1) / 2 for run in runs], 0, "200 unknowns"
)
finish(left, "steps $k$", "distance to the solution of least norm", "least squares", yscale="log")

# %%
# A law can also describe classification of a data set of your own, here 40 random points in 20 dimensions. The angle to the largest
# margin falls like :math:`1/\log t`.

rng = np.random.default_rng(1)
inputs = rng.standard_normal((40, 20))
targets = np.sign(inputs[:, 0] + 0.1 * rng.standard_normal(40))
descent = ll.laws.LogisticDescent.from_data(inputs, targets)
log_time = np.geomspace(10, 1e5, 30)
gaps = descent.direction_gap(log_time)
theory_line(right, log_time, gaps, 1, "direction of $w(t)$")
theory_line(right, log_time, gaps[-1] * log_time[-1] / log_time, 6, r"$\propto 1/\log t$", linestyle=":")
finish(
    right,
    r"$\log t$",
    "distance to the largest margin",
    "logistic regression",
    xscale="log",
    yscale="log",
)
