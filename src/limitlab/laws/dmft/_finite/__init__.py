"""Two-layer networks with exchangeable neurons, their kernels, their Gaussian model, and their training on Gaussian inputs."""
