"""
Ridge regression with a spectrum estimated from images
======================================================

A few hundred images of digits are given, and the label is the parity of the digit. How large is the test error of ridge regression with
more images? The sample spectrum gives a wrong answer, because sample eigenvalues are spread out. ``Spectrum.from_rows`` removes this bias,
and it estimates the energy of the target in every direction and the label noise.
"""

import numpy as np

import limitlab as ll
from limitlab.models.datasets import mnist
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The 8,000 shipped images, averaged to 14 x 14 pixels, are the whole population. A pilot of 600 rows is drawn from them.

images, digit = mnist("all")
X = images.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4)).reshape(len(images), -1)
X, y = X - X.mean(axis=0), 1.0 - 2.0 * (digit % 2)
X, y = X / np.sqrt((X**2).sum(axis=1).mean()), y - y.mean()
covariance = X.T @ X / len(X)
best = np.linalg.pinv(covariance, hermitian=True) @ (X.T @ y) / len(X)
noise = float(np.std(y - X @ best))

rng = np.random.default_rng(0)
pilot = rng.integers(len(X), size=600)
rows, labels = X[pilot], y[pilot]
spectrum = ll.Spectrum.from_rows(rows, labels)
print(spectrum)
print(f"trace {spectrum.trace:.5f} (of all images {np.trace(covariance) / X.shape[1]:.5f})")
print(f"label noise {spectrum.label_noise:.3f} (of all images {noise:.3f})")

# %%
# The naive way takes the eigenvalues and the least-squares coefficients of the pilot.

centred = rows - rows.mean(axis=0)
values, basis = np.linalg.eigh(centred.T @ centred / len(rows))
values = np.where(values > 1e-10 * values[-1], values, np.inf)
coefficients = (labels - labels.mean()) @ (centred @ basis) / len(rows) / values
values = np.where(np.isinf(values), 0.0, values)
residual = float(np.std(labels - labels.mean() - centred @ basis @ coefficients))
naive = ll.Spectrum.from_list(values, energy=coefficients**2)

# %%
# The lines are the predicted test errors at a fixed ridge, and the points are fits to new rows with their errors on the whole population.

sizes, ridge, p = (100, 200, 400, 800, 1600), 2e-4, X.shape[1]
grid = np.geomspace(80, 2000, 30)
figure, (axes,) = new_figure()
for index, (name, atoms, tau) in enumerate(
    (("estimated spectrum", spectrum, spectrum.label_noise), ("sample spectrum", naive, residual))
):
    law = ll.laws.Ridge(ridge=ridge, spectrum=atoms, noise=tau)
    errors = law.evaluate(ratio=p / grid)["test_error"]
    theory_line(axes, grid, errors, index, name)

means, spreads = [], []
for n in sizes:
    runs = []
    for _ in range(20):
        drawn = rng.integers(len(X), size=n)
        A, b = X[drawn], y[drawn]
        fit = np.linalg.solve(A.T @ A / n + ridge * np.eye(p), A.T @ b / n)
        runs.append((fit - best) @ covariance @ (fit - best) + noise**2)
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
