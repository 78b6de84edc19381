"""
A scaling law, and exponents that the runs do not determine
===========================================================

The data are forty-eight training runs of different size :math:`N` and data :math:`D`. The script computes the fit
:math:`L = E + A N^{-a} + B D^{-b}`, its intervals, and the best size for a larger budget. In a second set of 48
runs the ratio of data to size is always the same, and these runs cannot determine the two exponents.
"""

import numpy as np

from limitlab.applied import scaling_fit, scaling_fit_figure

rng = np.random.default_rng(0)
N, D = (grid.ravel() for grid in np.meshgrid(np.geomspace(5e7, 1e10, 8), np.geomspace(1e9, 3e11, 6)))
loss = (1.82 + 482 * N**-0.348 + 2085 * D**-0.366) * np.exp(0.01 * rng.standard_normal(N.size))

# %%
# Every number has an interval. A 95 % interval sometimes misses the true value. In this draw the intervals of E, B and b miss it
# together. The runs were made with E = 1.82, A = 482, B = 2085, a = 0.348 and b = 0.366.

fit = scaling_fit(N, D, loss)
print(fit)

# %%
# The script prints the best size for a budget larger than that of the runs, with its interval and the degree of extrapolation.

best, (low, high) = fit.optimum(1e24), fit.interval("N", compute=1e24)
print(f"{best.N:.3g} parameters ({low:.3g} to {high:.3g}) on {best.D:.3g} tokens: {fit.trust(1e24)}")

# %%
# The figure shows the runs with the fit, and the best size with its band.

figure = scaling_fit_figure(fit, "48 runs")

# %%
# With twenty tokens for every parameter, the same number of runs does not determine the exponents.

ray = np.geomspace(5e7, 1e10, 48)
noise = np.exp(0.01 * rng.standard_normal(48))
print(scaling_fit(ray, 20 * ray, (1.82 + 482 * ray**-0.348 + 2085 * (20 * ray) ** -0.366) * noise))
