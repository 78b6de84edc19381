"""
From separable data to the largest margin
=========================================

A plane can separate :math:`n` labelled points in :math:`p` dimensions if :math:`p/n` exceeds a threshold. The threshold is one half for
random labels, and smaller for labels that depend on the side of a plane. Above it the classifier of largest margin exists. More features
give a larger margin and, here, more errors.
"""

import numpy as np

import limitlab as ll
from limitlab.plotting import finish, new_figure, simulation_points, theory_line

# %%
# The labels are right with probability :math:`\Phi(b|t|)` at a score :math:`t`. A smaller slope :math:`b` means more noise. Lines are the
# limit, and points are 24 draws with 100 features. The colours are the same in both panels.

slopes, ratios, few = [1.0, 3.0], np.linspace(0.05, 2.0, 40), np.array([0.6, 1.0, 1.5, 2.0])
figure, (left, right) = new_figure(columns=2)
for index, slope in enumerate(slopes):
    law = ll.laws.MaxMargin(link="probit", link_strength=slope)
    threshold = float(law.separability_ratio())
    grid = ratios[ratios > threshold + 0.01]
    theory = ll.sweep(law, over={"ratio": grid})
    runs = ll.sweep(law, over={"ratio": few}, sizes=[100], seeds=24).squeeze("size")
    for axes, name in ((left, "margin"), (right, "classification_error")):
        theory_line(axes, grid, theory[name], index, f"slope {slope:g}, threshold {threshold:.2f}")
        drawn = runs[name]
        simulation_points(
            axes, few, drawn.mean("seed"), drawn.std("seed", ddof=1) / drawn.sizes["seed"] ** 0.5, index
        )
finish(left, "features per sample $p/n$", r"margin $\kappa$", "largest margin")
finish(right, "features per sample $p/n$", "share of wrong labels", "errors on new points", legend=False)
