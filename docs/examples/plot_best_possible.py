"""
How far from the best possible?
===============================

The Bayes-optimal method has the smallest error of all methods on the same data. A formula gives this error, so that any method
can be compared with the best possible error instead of with other methods.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, readable_ticks, simulation_points, theory_line

# %%
# The labels are the sides of a plane. The left panel shows the best possible error and the error of the largest-margin classifier
# as functions of the samples per feature. The points are runs of approximate message passing, which attains the best error here.

samples, few = np.geomspace(0.3, 10, 40), np.array([0.5, 1.0, 2.0, 5.0])
figure, (left, right) = new_figure(columns=2)
best = ll.laws.BayesOptimal(channel="sign")
theory_line(
    left, samples, ll.sweep(best, over={"ratio": 1 / samples}).classification_error, 0, "best possible"
)
runs = ll.sweep(best, over={"ratio": 1 / few}, sizes=[150], seeds=8).classification_error_gamp.squeeze(
    "size"
)
error = runs.std("seed", ddof=1) / runs.sizes["seed"] ** 0.5
simulation_points(left, few, runs.mean("seed"), error, 0, "message passing, $p = 150$")
margin = ll.sweep(ll.laws.MaxMargin(link="sign"), over={"ratio": 1 / samples}).classification_error
theory_line(left, samples, margin, 1, "largest margin")
finish(left, "samples per feature $n/p$", "share of wrong labels", xscale="log", yscale="log")
readable_ticks(left)

# %%
# If most coefficients are zero and the method uses this fact, the best possible error is far below the error of every ridge.

for index, density in enumerate((1.0, 0.5, 0.1)):
    prior = {"prior": "gaussian"} if density == 1.0 else {"prior": "sparse", "density": density}
    law = ll.laws.BayesOptimal(channel="gaussian", noise=0.3, **prior)
    curve = [float(law.replace(ratio=float(1 / n)).theory().excess_risk) for n in samples[::3]]
    theory_line(right, samples[::3], curve, index, f"{density:.0%} not zero")
finish(
    right, "samples per feature $n/p$", "least excess risk", "known sparsity", xscale="log", yscale="log"
)
