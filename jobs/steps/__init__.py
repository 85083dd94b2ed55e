"""What a run does, in order."""
