"""Records to state."""
