"""Networks made of layers, where a layer maps a pair of kernels (infinite width) and a table of signals (finite width)."""
