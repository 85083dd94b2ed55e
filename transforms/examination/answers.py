"""The names under which a run stores its answers (silver `examined`)."""

FIRST, SECOND, COMPARED, DELTAS, KEEPING, RECORDED = "first", "second", "compared", "deltas", "keeping", "recorded"
# The chain that the run's rows follow, without them; empty where they are a base.
CHAIN = "chain"
