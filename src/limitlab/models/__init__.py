"""What is drawn and trained: activations, data distributions and data sets, networks, optimisers."""
