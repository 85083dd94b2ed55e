"""ZooKeeper: znodes to state, snapshot and transaction-log files."""
