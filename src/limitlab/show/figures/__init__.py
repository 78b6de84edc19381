"""TODO docstring set by its owner."""
