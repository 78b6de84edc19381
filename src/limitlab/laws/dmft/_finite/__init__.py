"""Two-layer networks with exchangeable neurons: kernels, the Gaussian model, networks on Gaussian inputs, and how they are trained."""
