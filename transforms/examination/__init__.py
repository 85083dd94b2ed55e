"""The one pass over a cluster: it turns its sources into tables, differences and the answers that checks judge.

`examine` is the entry point. It is pure: `asked` has the task, `transforms.units.Feed` the rows, `made` the results, and `memory` the
data that a run leaves to the next one.
"""
