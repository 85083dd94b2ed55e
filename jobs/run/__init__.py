"""A run in progress: its clusters, its steps, and what it leaves to the next one."""
