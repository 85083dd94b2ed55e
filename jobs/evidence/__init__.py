"""Rows and results of this run and of finished ones, read from the tables."""
