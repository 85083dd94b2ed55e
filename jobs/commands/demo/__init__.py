"""The demonstration: two real captures, a real ZooKeeper server, two audits."""
