"""
Early stopping and ridge
========================

Gradient flow on least squares, stopped at time :math:`t`, behaves much like ridge regression with penalty
:math:`\\lambda = 1/t`, because early stopping also shrinks the coefficients. The two are not the same, and both can be predicted.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# There are 0.8 features per sample, and the fully trained solution overfits. The two predictions, for all times and all penalties, are:

times = np.geomspace(0.05, 200, 121)
flow = ll.laws.EarlyStopping(ratio=0.8, noise=1.0, times=tuple(times))
ridge = ll.laws.Ridge(ratio=0.8, noise=1.0)
stopped = flow.theory().excess_risk
penalised = ll.sweep(ridge, over={"ridge": 1 / times}).excess_risk

# %%
# The experiments have 100 features. One draw is used for all times.

few = np.array([0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0])
runs = flow.replace(times=tuple(few)).simulate_batch(100, range(40)).excess_risk

# %%
# The curves nearly coincide at early times, and their minima are close to each other.

figure, (axes,) = new_figure()
theory_line(axes, times, stopped, 0, "gradient flow stopped at $t$")
theory_line(axes, times, penalised, 1, r"ridge with $\lambda = 1/t$", linestyle="--")
simulation_points(
    axes,
    few,
    runs.mean("seed"),
    runs.std("seed", ddof=1) / np.sqrt(runs.sizes["seed"]),
    0,
    "experiment, $p = 100$",
)
finish(axes, r"time $t$, or $1/\lambda$", "excess risk $R$", xscale="log")

# %%
# How much better is the best penalty than the best stopping time?

best_ridge = float(ll.optimal(ridge, over="ridge", minimise="excess_risk").excess_risk)
print(f"best stopping time {float(stopped.idxmin('time')):.3g}: excess risk {float(stopped.min()):.4f}")
print(
    f"best penalty: excess risk {best_ridge:.4f}, {100 * (float(stopped.min()) / best_ridge - 1):.2f} % below it"
)
