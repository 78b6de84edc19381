"""
How many layers until the tokens collapse?
==========================================

A transformer without feed-forward layers moves its tokens towards each other on a sphere. In high dimension random
tokens start orthogonal. All pairs then have the same overlap at all times, which obeys one equation. The number of
layers before the collapse grows exponentially with the inverse temperature.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The figure shows the common overlap of 16 tokens over the layers. Lines are the closed equation, and points are tokens in dimension 256.

figure, (left, right) = new_figure(columns=2)
times = np.linspace(0, 12, 13)
for index, beta in enumerate((0.0, 2.0, 4.0)):
    law = ll.laws.EquiangularTokens(tokens=16, beta=beta, times=tuple(times))
    fine = law.replace(times=tuple(np.linspace(0, 12, 200)))
    theory_line(left, fine.times, fine.theory().overlap, index, rf"$\beta = {beta:g}$")
    runs = law.simulate_batch(256, range(3)).overlap
    simulation_points(left, times, runs.mean("seed"), runs.std("seed", ddof=1) / 3**0.5, index)
finish(left, "layers $t$", "common overlap of the tokens")

# %%
# The right panel shows the number of layers until the overlap exceeds 0.99, for several numbers of tokens.

betas = np.linspace(0, 8, 50)
for index, tokens in enumerate((4, 16, 64, 256)):
    law = ll.laws.EquiangularTokens(tokens=tokens)
    layers = [law.replace(beta=float(beta)).collapse_time(0.01) for beta in betas]
    theory_line(right, betas, layers, index, f"{tokens} tokens")
finish(right, r"inverse temperature $\beta$", "layers until collapse", yscale="log")
