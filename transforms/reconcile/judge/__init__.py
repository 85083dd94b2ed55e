"""Whether the gates are open: facts, checks, verdicts."""
