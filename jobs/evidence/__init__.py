"""What the tables have of this run and of finished ones."""
