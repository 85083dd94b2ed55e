"""AlterIsr and AlterPartition (KIP-497): what a controller answers, how partitions change, and the rules for their state."""
