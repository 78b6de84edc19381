"""
One mode after the other
========================

A linear network of two layers has no bad minima, but many saddles. From a small start, its training error falls in steps.
Each mode of the labels is learned within a short time after a long plateau, the strongest mode first.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The left panel shows the strength of three modes over time, from a start of strength 0.001. Points are networks trained on 200 samples.

values = (3.0, 2.0, 1.0)
times = np.linspace(0, 5, 11)
law = ll.laws.LinearNetwork(singular_values=values, start=0.001, times=tuple(times))
fine = law.replace(times=tuple(np.linspace(0, 5, 200)))
theory, runs = fine.theory().modes, law.simulate_batch(200, range(5)).modes

figure, (left, right) = new_figure(columns=2)
mode = next(name for name in theory.dims if name != "time")
for index, value in enumerate(values):
    theory_line(left, fine.times, theory.isel({mode: index}), index, f"singular value {value:g}")
    drawn = runs.isel({mode: index})
    simulation_points(left, times, drawn.mean("seed"), drawn.std("seed", ddof=1) / 5**0.5, index)
finish(left, "time", "strength of the mode in the network")

# %%
# The smaller the start, the longer the plateau. The time at which half of a mode is learned grows with minus the logarithm of the
# start.

starts = np.geomspace(1e-8, 0.1, 20)
half = np.array([law.replace(start=float(start)).theory().half_time.values for start in starts])
for index, value in enumerate(values):
    theory_line(right, starts, half[:, index], index, f"singular value {value:g}")
finish(right, "strength of every mode at the start", "time at which half of it is learned", xscale="log")
