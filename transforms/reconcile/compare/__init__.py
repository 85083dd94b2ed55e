"""What differs between the two sides, and why."""
