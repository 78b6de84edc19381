"""Interpolating networks and landscapes.

Networks with more weights than samples can fit any labels. This subject asks when they do and what they then predict on new inputs.
It also asks what the risk looks like as a function of the weights: the double descent in the width, the index of saddles of linear
networks, the signs of Hessian eigenvalues, and how far apart the test errors of two global minima can be.
"""
