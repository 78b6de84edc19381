"""Claims about kernels of wide networks and lazy training (J9 to J14, J45, M8, M14)."""
