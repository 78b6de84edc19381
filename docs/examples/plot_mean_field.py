"""
When does a wide network learn features?
========================================

The output of a two-layer network is multiplied by a factor :math:`\\alpha`. At :math:`\\alpha` of order one its neurons move and
its tangent kernel changes. For large :math:`\\alpha` the network behaves like its linearisation. The rate depends on a symmetry
of the start.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# Lines are the mean-field limit (infinitely many neurons) at fixed :math:`\alpha`, and points are networks of 400 neurons. A start is
# *generic* if all second layers are near 1. It is *paired* if for every neuron there is a neuron with the opposite second layer.

scales, few = np.geomspace(0.5, 100, 8), [0.5, 4.0, 32.0]
figure, (axes,) = new_figure()
for index, start in enumerate(("generic", "paired")):
    law = ll.laws.OutputScale(initialisation=start, times=2.0)
    theory = [float(law.replace(scale=float(scale)).theory().kernel_change) for scale in scales]
    theory_line(axes, scales, theory, index, f"{start}: slope {law.lazy_limit().slope}")
    runs = [law.replace(scale=scale).simulate_batch(400, range(4)).kernel_change for scale in few]
    simulation_points(
        axes, few, [run.mean() for run in runs], [run.std(ddof=1) / 2 for run in runs], index
    )
finish(axes, r"output scale $\alpha$", "relative change of the kernel", xscale="log", yscale="log")
