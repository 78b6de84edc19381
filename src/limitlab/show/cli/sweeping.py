"""`sweep`: a grid of predictions or experiments, described by a TOML file."""
