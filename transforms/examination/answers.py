"""The names by which a run stores what its rows have answered (silver `examined`)."""

FIRST, SECOND, COMPARED, DELTAS, KEEPING, RECORDED = "first", "second", "compared", "deltas", "keeping", "recorded"
# The chain that the run's rows follow, without them; empty where they are a base.
CHAIN = "chain"
