"""The one pass over a cluster: what its sources hold becomes its tables, its differences and the answers that checks judge.

`examine` is the way in. It is pure: `asked` says what is known before, `transforms.units.Feed` brings the rows, `made` is what comes out,
`memory` what a run remembers for the next one.
"""
