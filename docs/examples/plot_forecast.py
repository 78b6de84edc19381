"""
A learning curve without training
=================================

How does the test error of kernel ridge regression fall with the number of examples? One decomposition of the Gram matrix replaces a hundred
fits. Lines are forecasts and points are real fits on random subsets. Dashed lines are extrapolations to more examples than the data have.
"""

import numpy as np

from limitlab import Forecast
from limitlab.applied import draw_curve
from limitlab.models.datasets import mnist, prepared
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The diabetes data have 442 patients and ten measurements. All kernels have similar errors, and the curves are flat, so that more patients
# would not help.

figure, (axes,) = new_figure()
X, y = prepared("diabetes")
for index, kernel in enumerate(("linear", "rbf", "relu-nngp")):
    forecast = Forecast(kernel, ridge=0.01, intercept=0.3).fit(X, y)
    draw_curve(
        axes,
        forecast.learning_curve(np.geomspace(15, 1500, 40), baselines=False),
        forecast.measure([30, 100, 300], splits=10),
        index,
        kernel,
    )
    print(f"{kernel}: {forecast.advice()}")
finish(axes, "number of points $n$", "test error", "diabetes", xscale="log")

# %%
# The second data set is images of digits, classified as even or odd. Here the error depends on the kernel and on the number of examples.

figure, (axes,) = new_figure()
X, y = prepared("digits")
X, y = X[:1000], y[:1000]
for index, kernel in enumerate(("linear", "rbf", "relu-nngp")):
    forecast = Forecast(kernel, ridge=0.001, intercept=0.3).fit(X, y)
    draw_curve(
        axes,
        forecast.learning_curve(np.geomspace(30, 4000, 40), baselines=False),
        forecast.measure([50, 150, 500], splits=5),
        index,
        kernel,
    )
    print(f"{kernel}: {forecast.advice()}")
finish(axes, "number of points $n$", "test error", "digits, even or odd", xscale="log", yscale="log")

# %%
# For MNIST with ten classes, the script prints the forecast and the measured shares of wrong labels.

images, labels = mnist("train")
images, labels = images[:1000] - images.mean(axis=0), labels[:1000]
forecast = Forecast("rbf", ridge=0.001, task="classification").fit(
    images / np.sqrt((images**2).sum(axis=1).mean()), labels
)
measured = forecast.measure([200, 400, 700], splits=3)
predicted = forecast.learning_curve([200, 400, 700], metric="error")
for i, n in enumerate(measured.n.values):
    wrong, real = predicted.value.values[i], measured.classification_error.values[i, 0]
    print(f"n = {n}: forecast {wrong:.1%} wrong, measured {real:.1%}")

# %%
# The same decomposition gives the error for every number of points and every ridge.

ridges = np.geomspace(1e-3, 1, 60)
figure, (axes,) = new_figure()
for index, n in enumerate((50, 200, 800)):
    curve = forecast.predict_error([n], ridges, corrected=True).corrected_test_error[0]
    theory_line(axes, ridges, curve, index, f"$n = {n}$")
    few = np.geomspace(1e-3, 1, 5)
    simulation_points(axes, few, forecast.measure([n], few, splits=3).test_error[0], index=index)
finish(axes, r"ridge $\lambda$", "test error", "MNIST, ten classes, 1000 images", xscale="log")
