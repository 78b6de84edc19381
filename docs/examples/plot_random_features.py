"""
Random features: wider is better above the peak
===============================================

The first layer of a network is random and fixed, and the second layer is fitted by ridge regression. The test error as a function
of the number of neurons has a peak where the numbers of neurons and samples are equal. Whether a penalty removes the peak, and
whether the widest network is the best, depends on the noise.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The network has ReLU neurons, three samples per input dimension, and a linear target. Change `noise`, `activation` or `sample_ratio`
# to see other cases.

law = ll.laws.RandomFeaturesRidge(sample_ratio=3.0, activation="relu", noise=0.5)
ridges, widths, few = (
    [1e-6, 1e-2, 0.1],
    np.geomspace(0.1, 100, 300),
    np.array([0.3, 1.0, 2.0, 4.5, 10.0, 30.0]),
)
theory = ll.sweep(law, over={"ridge": ridges, "width_ratio": widths})

# %%
# The experiments have 60 input dimensions, 180 samples, and a number of neurons that depends on the width ratio.

runs = ll.sweep(law, over={"ridge": ridges, "width_ratio": few}, sizes=[60], seeds=6).excess_risk.squeeze(
    "size"
)

figure, (axes,) = new_figure()
for index, (ridge, name) in enumerate(zip(ridges, ("10^{-6}", "0.01", "0.1"), strict=True)):
    theory_line(axes, widths, theory.excess_risk.sel(ridge=ridge), index, rf"$\lambda = {name}$")
    drawn = runs.sel(ridge=ridge)
    simulation_points(
        axes, few, drawn.mean("seed"), drawn.std("seed", ddof=1) / drawn.sizes["seed"] ** 0.5, index
    )
axes.axvline(law.sample_ratio, color="grey", linestyle=":")
finish(axes, "neurons per dimension $N/d$", "excess risk", xscale="log", yscale="log", ylim=(0.05, 20))

# %%
# The script prints the best penalty of an infinitely wide network, and the risk with this penalty:

wide = law.replace(width_ratio=np.inf)
best = ll.optimal(wide, over="ridge", minimise="excess_risk")
print(f"best penalty {float(best.ridge):.3g}: excess risk {float(best.excess_risk):.4f}")
