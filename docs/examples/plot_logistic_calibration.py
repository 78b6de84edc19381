"""
Are the risks of a logistic regression calibrated?
==================================================

With many predictors per patient the odds ratios of a logistic regression are too large and its risks are too extreme. With
too few patients no fit exists. How many patients are enough?
"""

import numpy as np

import limitlab as ll
from limitlab.applied import sample_size
from limitlab.plotting import finish, new_figure, readable_ticks, simulation_points, theory_line

# %%
# The left panel shows the inflation of the coefficients and the calibration slope (1 is perfect) as functions of the predictors per
# patient. Points are simulated studies with 20 predictors.

law = ll.laws.LogisticCalibration(signal=1.5, prevalence=0.3)
limit = float(law.existence_threshold())
ratios, few = np.linspace(0.01, 0.9 * limit, 20), np.array([0.05, 0.1])
theory = ll.sweep(law, over={"ratio": ratios})
runs = ll.sweep(law, over={"ratio": few}, sizes=[20], seeds=20).squeeze("size")

figure, (left, right) = new_figure(columns=2)
for index, (name, label) in enumerate(
    {"bias_factor": "inflation of coefficients", "calibration_slope": "slope"}.items()
):
    theory_line(left, ratios, theory[name], index, label)
    drawn = runs[name]
    simulation_points(left, few, drawn.mean("seed"), drawn.std("seed", ddof=1) / 20**0.5, index)
left.axvline(limit, color="grey", linestyle=":")
left.annotate("no fit beyond", (limit, 1.0), ha="right", rotation=90, va="center", color="grey")
finish(left, "predictors per patient $p/n$", "factor")

# %%
# The right panel shows the expected slope for 20 candidate predictors, and the number of patients for a slope of 0.9.

plan = sample_size(20, auc=0.8, prevalence=0.2)
patients = np.unique(np.round(np.geomspace(300, 3000, 40))).astype(int)
curve = plan.curve(patients)
theory_line(right, patients, curve.calibration_slope, 2)
right.axvline(plan.samples, color="grey", linestyle=":")
right.axhline(0.9, color="grey", linestyle=":")
finish(
    right,
    "patients $n$",
    "expected calibration slope",
    f"{plan.samples} patients for a slope of 0.9",
    xscale="log",
)
readable_ticks(right)
