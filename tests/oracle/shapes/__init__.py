"""What the shape rules refuse and what they accept, drawn by chance, with the same asked of real XLA."""
