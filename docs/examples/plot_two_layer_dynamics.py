"""
Learning, then overfitting
==========================

A two-layer network trained on noisy data learns its target in a time of order one and fits the noise in a time of order
:math:`m`, its number of neurons. Dynamical mean-field theory predicts both times, for :math:`n` samples in :math:`d` dimensions at fixed
:math:`n/d`.
"""

import numpy as np

import limitlab as ll
from limitlab.applied import plan_stopping
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The network has eight tanh neurons, four samples per dimension, and labels with noise. The law predicts the trajectory to :math:`t = 10m`:

times = np.geomspace(0.1, 80, 60)
network = ll.laws.TwoLayerDynamics(
    width=8,
    sample_ratio=4.0,
    noise=0.8,
    activation="tanh",
    target_function="tanh",
    start_overlap=0.2,
    times=tuple(times),
)
theory = network.theory()

# %%
# The experiment is a network of this kind in 100 dimensions, trained by gradient flow on six draws of the data. The equations replace the
# responses of its neurons by Gaussian processes. With eight neurons this changes the errors very little, and the overlap by a few per cent.

few = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 80.0)
runs = network.replace(times=few, experiment_model="network").simulate_batch(100, range(6))

figure, (left, right) = new_figure(columns=2)
for index, name in enumerate(("train_error", "test_error")):
    theory_line(left, times, theory[name], index, name.replace("_", " "))
    error = runs[name].std("seed", ddof=1) / np.sqrt(runs.sizes["seed"])
    simulation_points(left, few, runs[name].mean("seed"), error, index)
theory_line(right, times, theory.overlap, 2, "overlap with the target $v$")
simulation_points(right, few, runs.overlap.mean("seed"), runs.overlap.std("seed", ddof=1) / np.sqrt(6), 2)
plan = plan_stopping(network, end=80.0)
left.axvspan(plan.learned, plan.overfit, alpha=0.1, color="grey", label="within 5 % of the best")
finish(left, "time $t$", "error", xscale="log")
finish(right, "time $t$", "overlap", "learned, then unlearned", xscale="log")

# %%
# When should the training stop? The grey window in the left panel contains the best times.

print(f"stop between t = {plan.learned:.2g} and {plan.overfit:.2g}: test error {plan.test_error:.3f}")
print(f"at t = 80 the test error is {100 * (plan.final_test_error / plan.test_error - 1):.0f} % larger")
