"""What can go wrong between a client and the controllers: each is one line for a person, without any credential."""

from __future__ import annotations


class QuorumError(Exception):
    """The quorum can't be read. Base of the others."""


class ConnectionLostError(QuorumError):
    """A connection could not be made, was closed, or answered too late: another attempt may succeed."""


class NoLeaderError(QuorumError):
    """Controllers answer, and none leads: a state of the cluster, not of what was asked."""


class RefusedError(QuorumError):
    """A controller refused for a reason that another attempt does not change: credentials, ACLs, TLS, cluster."""


class MovedError(QuorumError):
    """What was being copied is not there any more, or not the same: begin the copy again."""


class DamagedReplyError(QuorumError):
    """What a controller sent is damaged, again and again."""
