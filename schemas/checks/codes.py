"""Codes of rows that are not violations on their own: a check decides with other facts."""

from __future__ import annotations

# A broker's registration took the place of one that was not fenced (DUR-12).
BROKER_REPLACED = "BROKER-REPLACED"
# A broker configuration in ZooKeeper that is encrypted there and that the load decodes (START-15).
TO_DECODE = "TO-DECODE"
# A topic in the log before the load: an earlier leader's load, which was no transaction, ended halfway (START-06).
HALF_LOADED = "HALF-LOADED"
# A topic that a load made again after an earlier one had broken off, before any load had ended (DUR-08, LOG-02).
LOADED_AGAIN = "LOADED-AGAIN"
# How the finding of a topic that is made more than once under its id ends.
MADE_AGAIN = "with the same id"
# A quota or credential whose name a load stored as ZooKeeper encodes it, or a default as an empty name (CFG-05).
ENCODED_NAME = "ENCODED-NAME"
# Partitions by the broker they miss: the checks of leaders and in-sync replicas report their counts (START-16, START-21).
OFFLINE_BY_BROKER = "OFFLINE-BY-BROKER"
UNDER_REPLICATED = "UNDER-REPLICATED"
# Rows of KRaft's own health. A partition that no replica may lead any more.
NO_LEADER_FOR_GOOD = "NO-LEADER-FOR-GOOD"
# The same members of an ISR in another order on the two sides (ISR-10).
ISR_ORDER = "ISR-ORDER"
# A replica in a directory that is lost, or that does not belong to its broker (DIR-02).
DIRECTORY_LOST = "DIRECTORY-LOST"
# A partition without a leader though unclean elections are allowed (CFG-02).
UNCLEAN_LEADERLESS = "UNCLEAN-LEADERLESS"
# Brokers that left ISRs and came back in the log's last hour (ISR-08): by partition, a broker that is out again, and past ones.
FLAPPING = "FLAPPING"
CHURN = "CHURN"
CHURN_PAST = "CHURN-PAST"
# A broker left an ISR, and the leader epoch did not rise though it had to (ISR-07).
QUIET_SHRINK = "QUIET-SHRINK"
# Elections that may have lost data and are not healed, and those that are (ISR-12).
LOSSY_ELECTION = "LOSSY-ELECTION"
HEALED_ELECTION = "HEALED-ELECTION"
# A partition that is still RECOVERING after a while (ISR-11).
RECOVERING_LONG = "RECOVERING-LONG"
# A last known leader that leads and is not running (ELR-02).
LAST_KNOWN_FENCED = "LAST-KNOWN-FENCED"
# Records on which Kafka's replay throws (LOG-02): a partition of a topic that is not there, a ClearElr of one.
TOPIC_UNKNOWN = "TOPIC-UNKNOWN"
CLEAR_UNKNOWN = "CLEAR-UNKNOWN"
# A ClearElr of all topics after one was made and removed since the newest snapshot: 4.0.1 to 4.1.2 throw on it.
CLEAR_REMOVED = "CLEAR-REMOVED"
# A configuration that Kafka skips on replay from 4.3 on, and so leaves out of its checkpoints (CAP-08 before 4.3).
CONFIG_SKIPPED = "CONFIG-SKIPPED"
# A configuration that a removed topic left in the checkpoint of a node (CFG-03).
CONFIG_LEFT = "CONFIG-LEFT"
# The same in the state: the log begins with such a checkpoint.
CONFIG_ALONE = "CONFIG-ALONE"
# A SCRAM credential that a node lost when it started, and left out of its checkpoint (SEC-12).
SCRAM_LEFT_OUT = "SCRAM-LEFT-OUT"
# What a rolling restart does to a partition: of an internal topic, of another; offline, or without acks=all (UPG-04).
RESTART_INTERNAL = "RESTART-INTERNAL"
RESTART_OFFLINE = "RESTART-OFFLINE"
RESTART_REFUSED = "RESTART-REFUSED"
# Replicas that a current reassignment adds to a partition, reported besides those out of sync (UPG-02).
REASSIGNING = "REASSIGNING"
REASSIGNING_LONG = "REASSIGNING-LONG"
THROTTLE_LEFT = "THROTTLE-LEFT"
ONE_RACK = "ONE-RACK"
ELR_WAITING = "ELR-WAITING"
ELR_NO_REPLICA = "ELR-NO-REPLICA"
SHARE_STATE = "SHARE-STATE"
DEAD_LETTERS = "DEAD-LETTERS"
DEAD_LETTER_PREFIX = "DEAD-LETTER-PREFIX"
DEAD_LETTER_MISSING = "DEAD-LETTER-MISSING"
DIRECTORY_UNKNOWN = "DIRECTORY-UNKNOWN"
CORDONED = "CORDONED"
CIDR_DENY = "CIDR-DENY"
ACL_TWICE = "ACL-TWICE"
ACL_PRINCIPAL = "ACL-PRINCIPAL"
FEW_ITERATIONS = "FEW-ITERATIONS"
TOKEN_EXPIRED = "TOKEN-EXPIRED"  # noqa: S105 - a code
# Findings of replay on which Kafka's own replay throws in every release (`transforms.kernel`).
POISON = ("PARTITION-UNKNOWN", "DIRECTORIES", "BROKER-CHANGE", "REMOVAL-UNKNOWN", TOPIC_UNKNOWN, CLEAR_UNKNOWN)
