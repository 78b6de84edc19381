"""
Does a narrow network solve XOR?
================================

The data are four clusters at the corners of a square, where opposite corners have the same label. A ReLU network finds all four
clusters only if its random start has a neuron for each of them. With four neurons this is rare. Every additional neuron removes a
quarter of the failures.
"""

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The left panel shows the probability that :math:`K` neurons find all clusters. Points are networks trained by SGD in dimension 50.

law = ll.laws.XorMixture(regularizer=0.05)
widths, few = range(4, 25), [4, 6, 8, 12, 20]
theory = [float(law.replace(width=k).theory().success_probability) for k in widths]
runs = [law.replace(width=k).simulate_batch(50, range(16)).success_probability for k in few]

figure, (left, right) = new_figure(columns=2)
theory_line(left, widths, theory, 0, "limit")
simulation_points(
    left, few, [run.mean() for run in runs], [run.std(ddof=1) / 4 for run in runs], 0, "SGD, $N = 50$"
)
finish(
    left,
    "neurons $K$",
    "probability of finding all four clusters",
    ylim=(0, 1.02),
    xticks=(4, 8, 12, 16, 20, 24),
)

# %%
# How many clusters does a network find? The dots in the right panel are the limit, connected by lines.

for index, width in enumerate((4, 8, 16)):
    shares = law.replace(width=width).captured_distribution()
    theory_line(right, range(len(shares)), shares, index, f"{width} neurons", marker="o")
finish(right, "clusters found", "probability", xticks=range(5))
