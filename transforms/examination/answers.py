"""The names under which a run stores its answers (silver `examined`)."""

FIRST, SECOND, COMPARED, DELTAS, KEEPING, RECORDED = "first", "second", "compared", "deltas", "keeping", "recorded"
# The chain that the run's rows follow, without them; empty where they are a base.
CHAIN = "chain"
# The offset (inclusive) from which this run has stored changes of partitions, in gold isr_history; null without a log.
CHANGES_SINCE = "changes_since"
