"""ZooKeeper's tree: live, a data folder, a dump."""
