"""The one pass over a cluster's shard: records in the order of the log to state, history and findings.

`replay` is the way in: which records take effect, where the pass stops, what comes out. `fold` is the state of a shard. Topics and
partitions are arrays, whose layout `layout` tells; all else is rows by the rules of `transforms.kraft.replay.entities`. What is
compiled is in `steps`, whose parts are `slots`, `lists`, `rules` and `changes`, and in `entries`, `states` and `texts`.
"""
