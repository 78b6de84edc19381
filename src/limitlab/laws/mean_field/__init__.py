"""Mean field of wide networks.

The neurons of a wide two-layer network move like particles in a potential that they create together. The laws give the limit of one-pass
SGD, of noisy SGD and its free energy, of the output scale between lazy and feature learning, and of flows that stop at saddles.
"""
