"""Regression.

Ridge regression, early stopping, random features, nearest neighbours and kernel smoothers: bias, variance, train and test
error in the limit of many samples. Two further laws describe learning from the labels of another model.
"""
