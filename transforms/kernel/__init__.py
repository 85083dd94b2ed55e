"""The one pass over a cluster's shard: records in the order of the log to state, history and findings.

`transforms.kernel.replay` is the way in. The room's modules, from the outside in:

    replay      which records take effect, where the pass stops, what comes out
    fold        the state of one shard: batches in; tables, findings and the kept form out
    cold        all records but those of partitions, by the row rules of `transforms.kraft.replay.entities`
    brokers     registrations, which are few and judged all together
    topics      lives of topics, and what is wrong with them
    partitions  the state of partitions, and the step from batch to batch
    history     changes of partitions as Arrow batches
    checkpoint  a state held against Kafka's own checkpoint
    kept        a state as bytes, to go on from
    layout      what stands where in the arrays, of which partitions, records and changes are made
    steps, rules, lists, texts   the compiled part
"""
