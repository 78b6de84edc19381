"""
A hidden direction in a matrix, and in a tensor
===============================================

Every sample is a noisy matrix (or tensor) with the same hidden direction, which SGD at its critical step estimates. For a
matrix there is a critical strength above which SGD finds the direction from any start. For a tensor of order three, SGD does not
find it from a weak start at any strength.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The figure shows the overlap with the hidden direction over time, from three starts. Lines are the limit, and points are runs in
# dimension 3000.

figure, panels = new_figure(columns=2)
for axes, order, snr in zip(panels, (2, 3), (2.0, 4.0), strict=True):
    for index, start in enumerate((0.2, 0.5, 1.0)):
        times = np.linspace(0, 0.8, 9)
        law = ll.laws.SpikedTensor(
            order=order, snr=snr, step=1.0, start_overlap=start, times=tuple(times)
        )
        fine = law.replace(times=tuple(np.linspace(0, 0.8, 100)))
        theory_line(axes, fine.times, fine.theory().overlap, index, f"start at {start}")
        runs = law.simulate_batch(3000, range(5)).overlap
        simulation_points(axes, times, runs.mean("seed"), runs.std("seed", ddof=1) / 5**0.5, index)
    critical = float(law.critical_snr())
    name = "matrix" if order == 2 else "tensor of order 3"
    finish(
        axes,
        r"time, step $\times$ samples $/N$",
        "overlap $m$",
        rf"{name}: strength {snr:g}, critical {critical:.2f}",
    )
