"""Claims about the dynamics of two-layer networks (D1 to D11, D13 to D19)."""
