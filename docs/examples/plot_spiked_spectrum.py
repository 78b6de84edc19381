"""
A spike leaves the bulk
=======================

The eigenvalues of a sample covariance fill an interval (the bulk) even if the true eigenvalues are all equal. One larger true
eigenvalue (a spike) causes a sample eigenvalue outside the bulk only if it is above a threshold.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import COLOURS, finish, new_figure, simulation_points, theory_line

# %%
# The law describes the bulk for half as many dimensions as samples, with all true eigenvalues 1.

law = ll.laws.SampleCovariance(ratio=0.5, eigenvalues=(1.0,), weights=(1.0,))
((low, high),) = law.support()
print(f"the bulk fills [{low:.4f}, {high:.4f}]")

# %%
# The script prints the predicted sample eigenvalue (the outlier) of a spike of size 3, and the squared overlap of its eigenvector with
# the true direction. A spike of size 1.5 is below the threshold and has no outlier.

position, squared_overlap = law.outlier(3.0)
print(f"spike 3.0: outlier at {position:.4f}, squared overlap {squared_overlap:.4f}")
print(f"spike 1.5: {law.outlier(1.5)}")

# %%
# The figure shows one draw of 800 samples in dimension 400 with a spike of size 3 in the first direction.


def sample_eigenvalues(spike, dimension=400, ratio=0.5, seed=0):
    """Return the eigenvalues of a sample covariance, and the squared overlap of its first eigenvector with the spike."""
    rng = np.random.default_rng([seed, dimension])
    samples = round(dimension / ratio)
    data = rng.standard_normal((samples, dimension))
    data[:, 0] *= np.sqrt(spike)
    values, vectors = np.linalg.eigh(data.T @ data / samples)
    return values, vectors[0, -1] ** 2


eigenvalues, _ = sample_eigenvalues(3.0)
x = (
    low + (high - low) * np.sin(np.linspace(0, np.pi / 2, 400)) ** 2
)  # dense near the edges, where the density is steep

figure, (axes,) = new_figure()
axes.hist(eigenvalues, bins=60, density=True, color="0.8", label="one draw, $p = 400$")
theory_line(axes, x, law.density(x), 0, "limit")
axes.axvline(position, color=COLOURS[1], linestyle="--", label="predicted outlier")
finish(axes, r"eigenvalue $x$", r"density $\rho(x)$")

# %%
# The overlap of the first eigenvector with the spike is zero up to the threshold :math:`1 + \sqrt{\gamma}`, and grows above it.

spikes = np.linspace(1.05, 5, 80)
overlaps = [outlier[1] if (outlier := law.outlier(spike)) is not None else 0.0 for spike in spikes]
tried = np.array([1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0])
measured = np.array(
    [[sample_eigenvalues(spike, dimension=200, seed=seed)[1] for seed in range(10)] for spike in tried]
)

transition, (axes,) = new_figure()
theory_line(axes, spikes, overlaps, 0, "limit")
simulation_points(
    axes, tried, measured.mean(1), measured.std(1, ddof=1) / np.sqrt(10), 1, "experiment, $p = 200$"
)
axes.axvline(1 + np.sqrt(law.ratio), color="0.6", linestyle=":", label="threshold")
finish(axes, "true eigenvalue of the spike", "squared overlap")
