"""
Features, tangent features, and a network that learns
=====================================================

The target is a quadratic function of :math:`d` inputs. With fewer than about :math:`d^2` neurons, random features learn only the part
that is a multiple of the squared length. Tangent features need :math:`d` neurons. A trained network learns the largest
eigenvalues first.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The target has a decreasing spectrum in ten dimensions. Change `spectrum` to compare the three models for another target. The points
# are draws of neurons in 80 dimensions, with target and width scaled accordingly, because the laws of random and tangent features are
# limits.

spectrum = tuple(2.0 * 0.7**k for k in range(10))
widths, few = np.arange(1, 21), (2, 5, 10, 15)
names = {"rf": "random features", "nt": "tangent features", "nn": "trained network"}
figure, (axes,) = new_figure()
for index, (model, name) in enumerate(names.items()):
    law = ll.laws.QuadraticTarget(model=model, eigenvalues=spectrum)
    theory = [float(law.replace(width=int(n)).theory().relative_risk) for n in widths]
    theory_line(axes, widths, theory, index, name)
    if model != "nn":  # training takes longer; `limitlab figure quadratic-targets` does it
        runs = [law.replace(width=n).simulate(80, seed=0).relative_risk for n in few]
        simulation_points(axes, few, runs, index=index)
finish(axes, "neurons $N$", "relative risk", "ten inputs", ylim=(-0.02, 1.02), xticks=(1, 5, 10, 15, 20))
