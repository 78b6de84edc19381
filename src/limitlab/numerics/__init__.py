"""Mathematics that knows nothing of learning: Gaussian expectations, spectra, deterministic equivalents, roots."""
