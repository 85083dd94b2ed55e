"""Declarations of the KRaft side."""
