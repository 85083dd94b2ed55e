"""The metadata log, from controllers' folders."""
