"""Znodes to state."""
