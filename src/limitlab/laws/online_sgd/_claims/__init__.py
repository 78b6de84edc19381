"""Claims about online SGD (J15 to J21, J32 to J34, J36, J40 to J42, S1, S2, S6)."""
