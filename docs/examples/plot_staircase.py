"""
The staircase of random features
================================

How many neurons are needed to learn a polynomial if only the second layer is trained? Each degree requires another power of the
dimension. With as many neurons, tangent features, which also change the first layer slightly, learn one more degree.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line


def activation(u):
    """Return an activation with all degrees, while ReLU has no odd degrees from 3 on."""
    return np.tanh(u + 0.5)


# %%
# The script computes the unexplained share of targets of degree 1, 2 and 3 in 20 dimensions, for any number of neurons:

law = ll.laws.Staircase(dimension=20, activation=activation, degrees=(1, 2, 3))
width = np.unique(np.round(np.geomspace(1, 1e5, 100)))
random = law.evaluate(width=width)["unexplained"]
tangent = law.replace(model="nt").evaluate(width=width)["unexplained"]

# %%
# For a draw of neurons the best error can be computed exactly, without sampling inputs. Solid lines are random features, dashed lines are
# tangent features, and points are one draw of random neurons.

few = [2, 10, 40, 150, 500]
drawn = np.array([law.replace(width=n).simulate(20, seed=0).unexplained for n in few])

figure, (axes,) = new_figure()
for index, degree in enumerate((1, 2, 3)):
    theory_line(axes, width, random[:, index], index, f"degree {degree}, random features")
    simulation_points(axes, few, drawn[:, index], index=index)
for index, degree in enumerate((1, 2, 3)):
    theory_line(
        axes, width, tangent[:, index], index, f"degree {degree}, tangent features", linestyle="--"
    )
finish(
    axes,
    "neurons $N$",
    "unexplained share $r_k$",
    "$d = 20$",
    xscale="log",
    ylim=(-0.05, 1.5),
    legend=False,
)
axes.set_yticks([0, 0.2, 0.4, 0.6, 0.8, 1])
_ = axes.legend(loc="upper right", ncols=2, fontsize=10, frameon=False)

# %%
# How many neurons are needed to explain nine tenths of a quadratic target?

for model in ("rf", "nt"):
    answer = ll.plan(law.replace(model=model, degrees=2), {"unexplained": 0.1}, solve_for="width")
    print(f"{model}: {int(answer.width)} neurons")
