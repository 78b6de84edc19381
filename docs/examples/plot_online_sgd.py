"""
How many samples does SGD need to find a direction?
===================================================

One neuron learns the direction of its teacher from fresh samples, one at a time. The first Hermite coefficient that
teacher and student share (the information exponent) determines how flat the loss is at the start, and therefore how long
the search takes.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# There are three pairs of teacher and student, with information exponents 1, 2 and 3. All start from the same overlap.

pairs = {"relu": 0.3, "square": 0.02, "h3": 0.005}
figure, (left, right) = new_figure(columns=2)
overlap = np.linspace(-1, 1, 201)
for index, (neuron, step) in enumerate(pairs.items()):
    times = np.linspace(0, 2, 9)
    law = ll.laws.OnlineSingleIndex(
        teacher=neuron, student=neuron, step=step, start_overlap=0.3, times=tuple(times)
    )
    order = law.information_exponent().order
    theory_line(
        left,
        overlap,
        law.population_loss(overlap) / law.population_loss(0.0),
        index,
        f"{neuron}: exponent {order}",
    )
    fine = law.replace(times=tuple(np.linspace(0, 2, 100)))
    theory_line(right, fine.times, fine.theory().overlap, index)
    runs = law.simulate_batch(800, range(16)).overlap
    simulation_points(right, times, runs.mean("seed"), runs.std("seed", ddof=1) / 4, index)
finish(left, "overlap with the teacher", "loss, relative to the start", "the landscape")
finish(right, r"time, step $\times$ samples $/N$", "overlap with the teacher", "the descent ($N = 800$)")

# %%
# How many samples are needed until the overlap is one half, from a random start? A separate law answers this question.

for neuron, step in (("relu", 0.3), ("square", 0.02)):
    search = ll.laws.OnlineSingleIndex(teacher=neuron, student=neuron, step=step).recovery(0.5)
    counts = ", ".join(f"{search.mean(n) * n / step:,.0f} (N = {n})" for n in (100, 1000, 10_000))
    print(f"{neuron}: {counts} samples")
