"""Mean field of wide networks.

The neurons of a wide two-layer network move like particles in a potential that all neurons create together. The laws predict one-pass
SGD, noisy SGD and its free energy, the effect of the output scale (lazy or feature learning), and flows that stop above the minimum.
"""
