"""Versioned features (KIP-584): levels and their names, who supports what, and what an update would be answered."""
