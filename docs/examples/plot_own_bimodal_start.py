"""
Own start: mean field from a bimodal start
==========================================

A wide network of one-weight neurons starts with two populations: half of the weights are near :math:`-1.2` and half are near
:math:`0.8`. The target is a smoothed step of our own. The mean-field limit starts from any distribution, and predicts the risk and the
fluctuations of a network of finite width.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The start is a mixture of two Gaussians, as triples (share, mean, standard deviation), and the target a function of arrays. A density or a
# sampler would work too.

times = (0.2, 0.5, 1.0, 2.0, 3.0)
law = ll.laws.MeanFieldParticles(
    start_distribution=[(0.5, -1.2, 0.3), (0.5, 0.8, 0.3)],
    target_function=lambda z: np.tanh(3 * z) + 0.2 * z,
    teacher_weight=1.5,
    times=times,
)
single = law.replace(start_distribution=[(1.0, -0.2, np.hypot(0.3, 1.0))])  # the same mean and variance
theory, unimodal = law.theory(), single.theory()

# %%
# Networks of 32 neurons: their mean risk exceeds the limit by the bias over N.

runs = law.replace(replicas=60).simulate_batch(32, range(20))
corrected = theory.risk + theory.risk_bias / 32
mean, error = runs.risk.mean("seed").values, runs.risk.std("seed", ddof=1).values / np.sqrt(20)
z = (mean - corrected.values) / (error + theory.risk.attrs["numerical_error"] + 3 / 32**2)
print("risk, limit:            ", theory.risk.values.round(4))
print("risk, limit with bias/N:", corrected.values.round(4))
print("risk of 32 neurons:     ", mean.round(4), "+-", error.round(4))
print("largest z:", round(float(np.abs(z).max()), 2))
assert np.abs(z).max() < 3

# %%
# A Gaussian start with the same mean and variance has another risk at all times, so the shape of the start matters.

figure, (axes,) = new_figure()
theory_line(axes, times, theory.risk.values, 0, "two populations, limit")
simulation_points(axes, times, mean, error, 0, "two populations, 32 neurons")
theory_line(axes, times, unimodal.risk.values, 1, "one population, limit")
finish(axes, "time $t$", "risk", yscale="log")
