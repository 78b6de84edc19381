"""
Own loss: hinge descent at finite time
======================================

A perceptron minimises the hinge loss of noisy labels by full-batch gradient descent and is stopped early. The gradient of the hinge loss
jumps, so that its derivative contains a delta function. How do overlap and norm depend on the margin of the loss? The margin is a
parameter of a loss of our own.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The loss is a function of the prediction r, the score w of the truth, and the label noise e. It is written with NumPy. limitlab computes
# its gradient by differences, locates the jumps, and computes the responses without derivatives.


def hinge(margin):
    """Return the hinge loss with this margin and labels sign(w + e)."""

    def loss(r, w, e):
        return np.maximum(margin - np.where(w + e >= 0, 1.0, -1.0) * r, 0.0)

    return loss


margins = (0.3, 0.6, 1.0, 1.5, 2.0)
laws = [
    ll.laws.FirstOrderDynamics(
        loss=hinge(margin), noise=0.5, sample_ratio=2, step=0.4, steps=8, signal_energy=1.0, paths=8000
    )
    for margin in margins
]
theory = [law.theory().isel(time=8) for law in laws]

# %%
# Twenty runs in 300 dimensions for each margin, against the prediction.

draws = [law.simulate_batch(300, range(20)).isel(time=8) for law in laws]
means, errors, worst = {}, {}, 0.0
for name in ("overlap", "norm", "test_loss"):
    means[name] = np.array([float(run[name].mean()) for run in draws])
    errors[name] = np.array([float(run[name].std(ddof=1)) / np.sqrt(20) for run in draws])
    limits = np.array([float(limit[name]) for limit in theory])
    accuracy = np.array([limit[name].attrs["numerical_error"] for limit in theory])
    worst = max(worst, float((np.abs(means[name] - limits) / (errors[name] + accuracy)).max()))
    print(
        f"{name}: predicted {limits.round(3)}, measured {means[name].round(3)} +- {errors[name].round(3)}"
    )
print("largest difference in units of both errors:", round(worst, 2))
assert worst < 3

# %%
# A larger margin gives a longer vector, because samples stop to pull only beyond the margin. The direction hardly depends on the margin.

cosine = [float(limit.overlap / np.sqrt(limit.norm)) for limit in theory]
print("cosine with the truth:", np.round(cosine, 3))
figure, (axes,) = new_figure()
for index, (name, label) in enumerate({"overlap": "overlap", "norm": "squared norm"}.items()):
    theory_line(axes, margins, [float(limit[name]) for limit in theory], index, f"{label}, limit")
    simulation_points(axes, margins, means[name], errors[name], index, "gradient descent, $d = 300$")
finish(axes, "margin of the hinge loss", "after 8 steps")
