"""
Ridge regression with a spectrum estimated from images
======================================================

A few hundred images of digits are given, and the label is the parity of the digit. How large is the test error of ridge regression with
more images? The sample spectrum gives a wrong answer, because sample eigenvalues are spread out. ``Spectrum.from_rows`` removes this bias,
and it estimates the energy of the target in every direction and the label noise.
"""

import numpy as np

import limitlab as ll
from limitlab.laws.regression._label_chains import TablePopulation, shipped_images
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The 8,000 shipped images are the whole population. A pilot of 600 rows is drawn from them.

X, y = shipped_images()
table = TablePopulation.of(X, y)
rng = np.random.default_rng(0)
rows, labels = table.draw(rng, 600)
spectrum = ll.Spectrum.from_rows(rows, labels)
print(spectrum)
print(f"trace {spectrum.trace:.5f} (of all images {table.eigenvalues.mean():.5f})")
print(f"label noise {spectrum.label_noise:.3f} (of all images {table.noise:.3f})")

# %%
# The naive way takes the eigenvalues and the least-squares coefficients of the pilot.

centred = rows - rows.mean(axis=0)
values, basis = np.linalg.eigh(centred.T @ centred / len(rows))
coefficients = (labels - labels.mean()) @ (centred @ basis) / len(rows) / values
residual = float(np.std(labels - labels.mean() - centred @ basis @ coefficients))
naive = ll.Spectrum.from_list(np.maximum(values, 0.0), energy=coefficients**2)

# %%
# The lines are the predicted test errors at a fixed ridge, and the points are fits to new rows with their errors on the whole population.

sizes, ridge, p = (100, 200, 400, 800, 1600), 2e-4, table.eigenvalues.size
grid = np.geomspace(80, 2000, 30)
figure, (axes,) = new_figure()
for index, (name, atoms, noise) in enumerate(
    (("estimated spectrum", spectrum, spectrum.label_noise), ("sample spectrum", naive, residual))
):
    law = ll.laws.Ridge(ridge=ridge, spectrum=atoms, noise=noise)
    errors = law.evaluate(ratio=p / grid)["test_error"]
    theory_line(axes, grid, errors, index, name)

means, spreads = [], []
for n in sizes:
    runs = []
    for _ in range(20):
        A, b = table.draw(rng, n)
        fit = np.linalg.solve(A.T @ A / n + ridge * np.eye(p), A.T @ b / n)
        runs.append(table.excess(fit) + table.noise**2)
    means.append(np.mean(runs))
    spreads.append(np.std(runs, ddof=1) / np.sqrt(len(runs)))
simulation_points(axes, sizes, np.array(means), np.array(spreads), 2, "fits to images")
axes.set_xscale("log")
finish(axes, "number of images $n$", "test error")

# %%
# The stated numerical error contains the statistical error of the estimate.

law = ll.laws.Ridge(ridge=ridge, spectrum=spectrum, noise=spectrum.label_noise, ratio=p / 800)
theory = law.theory()
print(
    f"at n = 800: {float(theory.test_error):.3f} +- {theory.test_error.attrs['numerical_error']:.3f}, fits {means[3]:.3f}"
)
