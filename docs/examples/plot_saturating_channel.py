"""
The best possible error for labels that saturate
================================================

A sensor returns ``tanh(z)`` plus noise, where ``z`` is a linear function of the inputs with unknown coefficients. This channel is in no
paper. How small can the error of any method be, and how much does the saturation cost?
"""

import numpy as np

import limitlab as ll
from limitlab.laws import BayesOptimal, OutputChannel
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# A channel is made from the function and the noise. The gain of the sensor decides how strongly it saturates.


def sensor(gain):
    """Return the channel y = tanh(gain z) + noise."""
    return OutputChannel.from_link(lambda z: np.tanh(gain * z), noise=0.2)


# %%
# The line is the error of the best method, which message passing attains here, and the points are runs of message passing.

figure, (axes,) = new_figure()
ratios, few = 1 / np.linspace(0.5, 5.0, 8), (0.25, 0.5, 1.0)
for index, gain in enumerate((1.0, 3.0)):
    law = BayesOptimal(channel=sensor(gain))
    curve = [float(law.replace(ratio=float(r)).theory().estimation_error) for r in ratios]
    theory_line(axes, 1 / ratios, np.array(curve), index, f"gain {gain:g}")
    runs = [law.replace(ratio=r).simulate_batch(150, range(5)).estimation_error_gamp.values for r in few]
    mean = np.array([run.mean() for run in runs])
    error = np.array([run.std(ddof=1) / np.sqrt(run.size) for run in runs])
    simulation_points(axes, 1 / np.array(few), mean, error, index, f"message passing, gain {gain:g}")
finish(axes, "samples per coefficient $n/p$", "error of the coefficients")

# %%
# The prediction states its accuracy, and the comparison decides whether theory and experiment agree.

law = BayesOptimal(ratio=0.5, channel=sensor(1.0))
print("accuracy:", law.theory().accuracy)
comparison = ll.compare(law, sizes=(60, 120), seeds=8)
print(comparison.verdict, {row.observable: round(row.z, 1) for row in comparison.rows})
