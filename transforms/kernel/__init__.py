"""The one pass over a cluster's shard: records in the order of the log to state, history and findings.

`replay` is the entry point: it decides which records take effect, where the pass stops, and what it returns. `fold` is the state of a
shard. Topics and partitions are arrays, as described in `layout`; all other entities are rows by the rules of
`transforms.kraft.replay.entities`. Compiled code is in `steps`, whose parts are `slots`, `lists`, `rules` and `changes`, and in
`entries`, `states` and `texts`.
"""
