"""Versioned features (KIP-584): levels and their names, who supports what, and how a controller would answer an update."""
