"""Two-layer networks trained by gradient flow: dynamical mean-field theory and its limits."""
