"""Claims about online SGD (J15 to J21, J32 to J34, S1, S2, S6)."""
