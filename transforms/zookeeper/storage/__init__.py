"""ZooKeeper's own formats: wire, snapshots, transaction logs."""
