"""Kafka itself as the oracle: random requests to one real controller, and each answer beside the project's prediction.

`python -m tests.live.fire --release 4.4.0 --seed 7 --requests 20000`. There are no brokers: the harness plays them over the
wire. What it knows of the controller's state it reads from the metadata log on disk, with the project's own decoder.

    servers   one controller of a release, its properties and level by the seed
    wire      a connection; AlterPartition of every version
    log       the log on disk, followed record by record
    world     the state that the log tells of
    play      the brokers that are played
    steps     random requests, made from the state
    predict   what the project says of them
    session   request, answer, records: do they agree, from one of the states that it can have met
    evidence  what is known against either side: explained faults of Kafka, mutants of the prediction
    audit     the log that is left beside the controller's own snapshots, and the checks of the ISR on it
    shrink    the shortest sequence that still shows a disagreement
"""
