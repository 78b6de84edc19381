"""Mean field of wide networks."""
