"""Readers: ZooKeeper live, dumps and folders; KRaft log folders."""
