"""Margins and classification.

The laws describe linear and random-features classifiers whose numbers of parameters and samples are comparable. The subjects are the
largest margin, convex losses, logistic regression and its calibration, and the perceptron. `BayesOptimal` gives the least error that any
method can have with the same data.
"""
