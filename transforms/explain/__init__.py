"""One row's story: what the log and ZooKeeper's transactions made of it, in the order it happened."""
