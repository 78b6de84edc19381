"""Online SGD."""
