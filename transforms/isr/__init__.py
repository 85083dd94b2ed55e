"""AlterIsr and AlterPartition (KIP-497): what a controller answers, how partitions change, what must hold of their state."""
