"""Margins and classification.

Linear and random-features classifiers with as many parameters as samples: the largest margin, convex losses, logistic regression and its
calibration, the perceptron. `BayesOptimal` gives the least error that any method can reach with the same data.
"""
