"""
Own loss: hinge descent at finite time
======================================

A perceptron minimises the hinge loss of noisy labels by full-batch gradient descent and is stopped early. The gradient of the hinge loss
jumps, so that its derivative contains a delta function. How do test loss and overlap depend on the width of the margin that the loss asks
for? The margin is a parameter of a loss of our own.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The loss is a function of the prediction r, the score w of the truth, and the label noise e. It is written with NumPy, so limitlab computes
# the gradient by differences, locates its jumps, and computes the responses without derivatives.


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
cosine = np.array([float(t.overlap / np.sqrt(t.norm)) for t in theory])

# %%
# Twenty runs in 300 dimensions for each margin, against the prediction.

worst = 0.0
means, errors = [], []
for law, limit in zip(laws, theory, strict=True):
    runs = law.simulate_batch(300, range(20)).isel(time=8)
    run = (runs.overlap / np.sqrt(runs.norm)).values
    means.append(run.mean())
    errors.append(run.std(ddof=1) / np.sqrt(20))
    for name in ("overlap", "norm", "test_loss"):
        spread = float(runs[name].std(ddof=1)) / np.sqrt(20)
        gap = abs(float(runs[name].mean() - limit[name]))
        worst = max(worst, gap / (spread + limit[name].attrs["numerical_error"]))
print("cosine with the truth, predicted:", cosine.round(3))
print("cosine with the truth, measured: ", np.round(means, 3), "+-", np.round(errors, 3))
print("largest difference in units of both errors:", round(worst, 2))
assert worst < 3

# %%
# After eight steps a small margin gives a better direction here, because correctly classified samples stop to pull.

figure, (axes,) = new_figure()
theory_line(axes, margins, cosine, 0, "limit")
simulation_points(axes, margins, means, errors, 0, "gradient descent, $d = 300$")
finish(axes, "margin of the hinge loss", "cosine with the truth after 8 steps")
