"""
Own matrices: where a transformer block sends its tokens
========================================================

A transformer block has two attention heads with matrices of our own and a feed-forward layer. Do its tokens collapse, as with identity
matrices, or does a value matrix that rotates keep them apart? The continuous flow predicts the result of many layers, and the experiment
runs a transformer with stochastic depth.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The first head has identity matrices and attracts. The second head attends with a random query matrix and has a value matrix that turns
# the tokens in a plane. The feed-forward layer pushes along one axis.

rng = np.random.default_rng(1)
turn = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, -0.5]])
query = rng.standard_normal((3, 3)) / np.sqrt(3)
layer = (0.4 * rng.standard_normal((3, 4)), rng.standard_normal((4, 3)), np.zeros(4))
times = (0.5, 1.0, 2.0, 4.0, 6.0, 8.0)
common = dict(beta=3.0, tokens=12, dimension=3, times=times)
laws = {
    "identity": ll.laws.TokenFlow(**common),
    "two heads": ll.laws.TokenFlow(heads=[(None, None, None), (query, None, turn)], **common),
    "two heads and layer": ll.laws.TokenFlow(
        heads=[(None, None, None), (query, None, turn)], feed_forward=layer, **common
    ),
}

# %%
# The lines are flows, and the points are 20 transformers with 60 layers per unit of time, of which every fifth is skipped at random.

figure, (axes,) = new_figure()
for index, (label, law) in enumerate(laws.items()):
    limit = law.theory().mean_overlap
    runs = law.simulate_batch(60, range(20)).mean_overlap
    mean, error = runs.mean("seed").values, runs.std("seed", ddof=1).values / np.sqrt(20)
    theory_line(axes, times, limit.values, index, f"{label}, flow")
    simulation_points(axes, times, mean, error, index)
    print(f"{label}: flow {limit.values.round(3)}, 60 layers {mean.round(3)} +- {error.round(3)}")
finish(axes, "time (60 layers per unit)", "mean overlap of two tokens")

# %%
# The comparison takes growing numbers of layers and gives a verdict.

result = ll.compare(
    laws["two heads and layer"].replace(times=(0.5, 1.0, 2.0, 4.0)), sizes=[80, 160, 320], seeds=30
)
print(result)
assert result.verdict == "agree"
