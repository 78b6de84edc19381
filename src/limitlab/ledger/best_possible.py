"""Claims about the best possible error of generalised linear models (B3)."""

from __future__ import annotations

import numpy as np

from limitlab.lab.claims import Outcome, claim
from limitlab.lab.compare import compare
from limitlab.lab.criteria import above, agrees, below, equal, near
from limitlab.lab.measures import effort, largest, smallest
from limitlab.laws.classification.bayes_optimal import BayesOptimal
from limitlab.laws.classification.logistic_calibration import LogisticCalibration
from limitlab.laws.classification.max_margin import MaxMargin
from limitlab.laws.regression.ridge import Ridge


@claim(
    "B3",
    "The best possible error",
    "No method beats the Bayes error of a generalised linear model; message passing reaches it outside a hard phase, ridge regression at "
    "its best penalty for Gaussian labels, and logistic regression at its best penalty nearly, where maximum margin does not.",
    laws=("BayesOptimal",),
    figure="best-possible",
)
def best_possible(quick: bool) -> Outcome:
    """Message passing against the law; gaps of ridge, logistic regression and maximum margin; thresholds of phase retrieval."""
    points = BayesOptimal.check_points()[: 2 if quick else 3]
    names = ["overlap_gamp", "precision_gamp"]
    comparisons = [
        compare(point, (100, 200, 400) if quick else None, 60, observables=names, **effort(quick)) for point in points
    ]
    ratios = (0.3, 1.0, 3.0)
    ridges, margins, logistic = [], [], []
    for ratio in ratios:
        linear = Ridge(ratio=ratio, noise=0.5)
        tuned = linear.replace(ridge=linear.optimal_ridge()).gap_to_best()
        ridges.append(float(tuned.gap_to_best / (tuned.best_error - linear.noise**2)))
        margin = MaxMargin(ratio=ratio).gap_to_best()
        margins.append(float(margin.gap_to_best / margin.best_error))
        law = LogisticCalibration(ratio=ratio, signal=3.0, ridge=0.1, fit_intercept=False)
        logistic.append(float(law.gap_to_best(ridge=np.geomspace(0.01, 2, 16)).gap_to_best.min()))
    found = BayesOptimal(channel="abs").thresholds()
    phase = BayesOptimal(ratio=1 / 1.05, channel="abs").theory().attrs["phase"]
    return Outcome(
        (
            *(agrees(f"message passing at check point {i + 1}", one) for i, one in enumerate(comparisons)),
            below("largest relative gap of the best ridge to Bayes", largest(np.abs(ridges)), 1e-9),
            above("smallest gap of logistic regression at its best penalty", smallest(logistic), 0),
            below("largest gap of logistic regression at its best penalty", largest(logistic), 2e-4),
            above("smallest relative gap of maximum margin", smallest(margins), 0.01),
            near("message passing threshold of phase retrieval", found["algorithmic_samples"], 1.128471, 1e-5),
            near("information threshold of phase retrieval", found["information_samples"], 1.0, 1e-5),
            equal("phase between them", phase, "hard"),
        ),
        {f"relative gap of maximum margin at p/n = {r:g}": gap for r, gap in zip(ratios, margins, strict=True)},
    )
