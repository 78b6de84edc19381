"""
Step, batch and momentum of SGD
===============================

Least squares is trained by one-pass SGD, in which every step uses fresh samples. With a large step the risk falls quickly to a high
final value. A larger batch lowers the final value and uses more samples. Above a largest stable step the loss diverges.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The left panel shows the excess risk over time for three steps, with runs in dimension 100.

figure, (left, right) = new_figure(columns=2)
few, fine = np.linspace(0, 12, 9), np.linspace(0, 12, 100)
for index, step in enumerate((0.2, 0.6, 1.2)):
    law = ll.laws.StreamingLeastSquares(step=step, noise=0.5, times=tuple(few))
    theory_line(left, fine, law.replace(times=tuple(fine)).theory().excess_risk, index, f"step {step}")
    runs = law.simulate_batch(100, range(3)).excess_risk
    simulation_points(left, few, runs.mean("seed"), runs.std("seed", ddof=1) / 3**0.5, index)
finish(left, "time, steps over dimension", "excess risk", "batch of one sample", yscale="log")

# %%
# The largest stable step grows with the batch up to a critical size of the batch. Larger batches do not allow larger steps.

batches = np.unique(np.round(np.geomspace(1, 3000, 40))).astype(int)
for index, variances in enumerate(((1.0, 1.0), (1.0, 10.0))):
    law = ll.laws.StreamingLeastSquares(
        eigenvalues=variances, weights=(1.0, 1.0), signal_energy=(1.0, 1.0), dimension=100, step=0.01
    )
    name = f"variances {variances[0]:g} and {variances[1]:g}"
    theory_line(right, batches, [law.replace(batch=int(b)).largest_step() for b in batches], index, name)
finish(right, "batch", "largest stable step", "100 dimensions", xscale="log", yscale="log")
