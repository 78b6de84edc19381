"""
How loose is a uniform bound?
=============================

A uniform bound holds for every predictor of a class at once. For linear predictors of bounded norm the largest gap
between train and test risk has an exact limit. This limit can be compared with the gap of the trained predictor.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The figure shows the largest gap over a ball of radius 1 (solid line and points), and the gap of ridge regression at its best penalty
# (dashed line).

samples, few = np.geomspace(0.3, 30, 40), np.array([0.5, 1.5, 5.0, 15.0])
law = ll.laws.UniformConvergence(radius=1.0, noise=0.5)
theory = ll.sweep(law, over={"ratio": 1 / samples}).sup_population_minus_empirical
runs = ll.sweep(
    law, over={"ratio": 1 / few}, sizes=[60], seeds=10
).sup_population_minus_empirical.squeeze("size")

figure, (axes,) = new_figure()
theory_line(axes, samples, theory, 0, "largest gap in the class")
simulation_points(
    axes, few, runs.mean("seed"), runs.std("seed", ddof=1) / 10**0.5, 0, "experiment, $p = 60$"
)
gaps = []
for n in samples[::2]:
    best = ll.optimal(ll.laws.Ridge(ratio=float(1 / n), noise=0.5), over="ridge", minimise="test_error")
    fitted = ll.laws.Ridge(ratio=float(1 / n), noise=0.5, ridge=float(best.ridge)).theory()
    gaps.append(float(fitted.test_error - fitted.train_error))
theory_line(axes, samples[::2], gaps, 1, "gap of ridge regression, tuned", linestyle="--")
finish(axes, "samples per dimension $n/p$", "test error minus train error", xscale="log", yscale="log")
