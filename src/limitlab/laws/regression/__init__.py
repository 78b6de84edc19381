"""Laws of regression: least squares, ridge, local averages."""
