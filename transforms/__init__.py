"""Pure functions: bytes or DataFrames in, DataFrames or Arrow out. No I/O, no clock, no environment, no session."""
