"""A run under way: its clusters, its steps, and what it leaves to the next one."""
