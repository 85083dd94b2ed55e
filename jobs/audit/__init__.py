"""What a run is and knows."""
