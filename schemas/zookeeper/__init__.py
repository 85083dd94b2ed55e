"""Declarations of the ZooKeeper side."""
