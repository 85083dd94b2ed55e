"""Compare the two sides, classify what differs, judge the gates."""
