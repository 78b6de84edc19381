"""Laws of binary classification: the largest margin, convex losses."""
