"""A run and its state."""
