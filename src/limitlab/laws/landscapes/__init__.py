"""Interpolating networks and landscapes.

Networks with more weights than samples can fit any labels. The laws and functions of this subject give the conditions for this fit and the
predictions on new inputs. They also describe the risk as a function of the weights: the double descent in the width, the index of saddles
of linear networks, the signs of Hessian eigenvalues, and the difference between the test errors of two global minima.
"""
