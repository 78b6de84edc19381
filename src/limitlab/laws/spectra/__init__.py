"""Laws of eigenvalues."""
