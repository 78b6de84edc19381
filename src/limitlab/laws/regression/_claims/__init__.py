"""Claims about regression (C1 to C3, D12, J3, J4, J8, L10, T4 to T7, T9)."""
