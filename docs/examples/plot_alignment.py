"""
SGD moves into the outliers of the Hessian
==========================================

Softmax regression is trained on a mixture of Gaussians by online SGD, and its Hessian is computed on test data. A few eigenvalues
of the Hessian (the outliers) are separated from the bulk, and the weights move into their eigenspaces. The separation depends on
the number of test samples per dimension.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# There are four classes in high dimension, and ten test samples per dimension. The law predicts the trajectory of SGD and, at every time,
# the edge of the bulk, the outliers, and the alignment of a weight vector with the top eigenvectors of its block.

times = (1.0, 2.0, 4.0, 7.0, 10.0, 15.0)
law = ll.laws.MixtureAlignment(classes=4, snr=20.0, regularizer=0.05, times=times, test_ratio=10.0)
theory = law.theory()
print("outliers of the Hessian at these times:", theory.hessian_outliers.values)
print("outliers of the gradients' matrix:     ", theory.gradient_outliers.values)

# %%
# The points are five runs in dimension 150.

fine = tuple(np.linspace(1.0, 15.0, 29))
curve = law.replace(times=fine).theory()
runs = law.simulate_batch(150, range(5))
figure, (axes,) = new_figure()
for index, (name, label) in enumerate(
    (("hessian_alignment", "Hessian"), ("gradient_alignment", "gradients"))
):
    theory_line(axes, fine, curve[name], index, f"{label}, limit")
    measured = runs[name].values
    simulation_points(
        axes,
        times,
        measured.mean(axis=0),
        measured.std(axis=0, ddof=1) / np.sqrt(5),
        index,
        f"{label}, $d = 150$",
    )
finish(axes, "time $t$", "alignment with the top four")

# %%
# How many test samples per dimension show all four outliers of each matrix?

for matrix in ("hessian", "gradient"):
    print(f"{matrix}: {law.required_test_ratio(10.0, matrix):.2f} test samples per dimension")

# %%
# `limitlab.applied.spectrum` computes the same quantities for a network of your own.


def loss(params, x, y):
    """Mean squared error of a linear model."""
    return ((x @ params["w"] - y) ** 2).mean()


rng = np.random.default_rng(0)
X = rng.standard_normal((300, 20)) * np.linspace(3, 0.5, 20)
print(ll.applied.spectrum(loss, {"w": np.ones(20)}, (X, X[:, 0]), count=3))
