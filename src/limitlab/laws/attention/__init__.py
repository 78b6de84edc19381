"""Laws of self-attention: tokens as particles on a sphere."""
