"""Online stochastic gradient descent in high dimension: one fresh sample per step, followed through its overlaps."""
