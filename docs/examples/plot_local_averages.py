"""
Interpolation with a small error
================================

The estimator is the mean of the :math:`k` nearest labels. With one neighbour the fit interpolates, and its error contains the noise
variance twice. With many neighbours the bias is large. A smoother whose weights are infinite at distance zero also passes
through every noisy label, and its error still falls with more samples, at the best possible rate.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The left panel is nearest neighbours on a cusp :math:`|x|` in two dimensions. Each simulation has 400 training sets.

figure, (left, right) = new_figure(columns=2)
few = [1, 2, 4, 8, 16, 40]
for index, samples in enumerate((50, 200)):
    law = ll.laws.NearestNeighbours(samples=samples, dimension=2, smoothness=1.0, noise=0.5)
    counts = np.unique(np.round(np.geomspace(1, samples, 40))).astype(int)
    theory_line(
        left,
        counts,
        [law.replace(neighbours=int(k)).theory().test_error for k in counts],
        index,
        f"$n = {samples}$",
    )
    runs = [law.replace(neighbours=k).simulate(400, seed=0).test_error for k in few]
    simulation_points(left, few, runs, index=index)
left.axhline(2 * law.noise**2, color="grey", linestyle=":", label="twice the noise variance")
finish(left, "neighbours $k$", "test error", "one neighbour: twice the noise variance", xscale="log")

# %%
# The right panel is the smoother that interpolates, at the bandwidth that theory recommends.

sizes = np.unique(np.round(np.geomspace(20, 20_000, 25))).astype(int)
for index, singularity in enumerate((0.3, 0.9), start=2):
    risks = []
    for n in sizes:
        law = ll.laws.SingularKernelSmoother(
            samples=int(n), singularity=singularity, bandwidth=min(1.0, 1.5 * n**-0.25)
        )
        risks.append(float(law.theory().excess_risk))
    theory_line(right, sizes, risks, index, f"singularity {singularity}")
theory_line(
    right,
    sizes,
    risks[-1] * (sizes / sizes[-1]) ** -0.5,
    6,
    "best possible rate $n^{-1/2}$",
    linestyle=":",
)
finish(
    right,
    "samples $n$",
    "excess risk at the cusp",
    "a fit through every noisy label",
    xscale="log",
    yscale="log",
)
