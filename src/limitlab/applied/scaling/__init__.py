"""Fits of L = E + A N^-a + B D^-b to a table of training runs, with tests of which parameters the table determines."""
