"""
A wide network is a kernel machine
==================================

As a network gets wider, its outputs during training approach those of gradient flow with a fixed kernel, which have a closed formula.
This example shows the limit for a few points and labels, and then uses the kernel to classify images.
"""

import numpy as np

import limitlab as ll
from limitlab.applied import NetworkKernel
from limitlab.laws import KernelGradientFlow
from limitlab.models.datasets import digits
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The figure shows the mean train error over random starts. The line is the limit of infinite width, and points are networks of two widths.

law = KernelGradientFlow(step=0.5, times=tuple(0.5 * np.arange(0, 41)), networks=20)
few = law.replace(times=(0.0, 1.0, 2.5, 5.0, 10.0, 20.0))
figure, (axes,) = new_figure()
theory_line(axes, law.times, law.theory().train_error, 6, r"$m\to\infty$")
for index, width in enumerate((8, 128)):
    runs = few.simulate_batch(width, range(8)).train_error
    simulation_points(
        axes, few.times, runs.mean("seed"), runs.std("seed", ddof=1) / np.sqrt(8), index, f"width {width}"
    )
finish(axes, "time $t$", "train error", yscale="log")

# %%
# How wide must the network be? A comparison extrapolates to infinite width and checks the law.

comparison = ll.compare(law.replace(times=(1.0, 5.0)), sizes=[16, 32, 64], seeds=80)
print(comparison.verdict)
print(comparison.table()[["theory", "simulation", "gap", "half_width"]].round(4))

# %%
# The tangent kernel of a network with two hidden layers can be used in scikit-learn's kernel ridge regression, here on 500 images of
# digits:

from sklearn.kernel_ridge import KernelRidge

inputs, labels = digits()
order = np.random.default_rng(0).permutation(len(inputs))
train, test = order[:500], order[500:]
model = KernelRidge(alpha=1e-3, kernel=NetworkKernel(layers=3)).fit(
    inputs[train] / 16, np.eye(10)[labels[train]]
)
predicted = model.predict(inputs[test] / 16).argmax(axis=1)
print(f"{100 * np.mean(predicted == labels[test]):.1f} % of {len(test)} digits are classified correctly")
