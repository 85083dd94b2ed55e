"""What happened to one row: its metadata records and ZooKeeper's transactions on it, in order."""
