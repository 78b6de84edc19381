"""Fits of L = E + A N^-a + B D^-b to a table of training runs, and what the table cannot decide."""
