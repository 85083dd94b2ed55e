"""Downgrade readiness (KIP-384): which persistent formats a cluster has, who can read them, and what going back would mean."""
