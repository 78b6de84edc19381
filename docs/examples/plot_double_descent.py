"""
Double descent
==============

The test error of least squares rises as the number of features approaches the number of samples, is infinite where they
are equal, and falls for more features. A ridge penalty lowers the peak, and the best penalty removes it.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# One vectorised call computes the prediction for three penalties on a fine grid of features per sample.

law = ll.laws.Ridge(noise=0.5)
ridges = [0.0, 0.01, 0.1]
theory = ll.sweep(law, over={"ratio": np.geomspace(0.1, 10, 401), "ridge": ridges})
print(dict(theory.sizes), *theory.data_vars, sep="\n")

# %%
# The experiments have 100 features and a number of samples that depends on the ratio, with 20 draws each.

ratios = np.array([0.15, 0.3, 0.6, 0.8, 1.25, 1.7, 3.0, 6.0])
runs = {
    ridge: [
        law.replace(ratio=ratio, ridge=ridge).simulate_batch(100, range(20)).test_error
        for ratio in ratios
    ]
    for ridge in ridges
}

# %%
# Lines are theory, and points are experiments with one standard error.

figure, (axes,) = new_figure()
for index, ridge in enumerate(ridges):
    curve = theory.test_error.sel(ridge=ridge)
    theory_line(axes, curve.ratio, curve.where(np.isfinite(curve)), index, rf"$\lambda = {ridge:g}$")
    mean = [float(run.mean()) for run in runs[ridge]]
    error = [float(run.std(ddof=1)) / len(run) ** 0.5 for run in runs[ridge]]
    simulation_points(axes, ratios, mean, error, index)
finish(axes, r"features per sample $p/n$", "test error", xscale="log", ylim=(0, 4))

# %%
# With the best penalty at every ratio there is no peak. More data (fewer features per sample) then never increase the error.

tuned = [
    float(ll.optimal(law.replace(ratio=ratio), over="ridge", minimise="test_error").test_error)
    for ratio in ratios
]
for ratio, error in zip(ratios, tuned, strict=True):
    print(f"p/n = {ratio:4g}   test error at the best penalty {error:.4f}")
