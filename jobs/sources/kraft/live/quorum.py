"""A quorum to read from: finds the leader, follows it when it changes, and paces the requests.

If a controller freezes, is killed or loses an election, a call of this client still ends: with a response of the
leader or, if there was none for `patience_seconds`, with one line about the state of each controller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from jobs.sources.kraft.live import messages
from jobs.sources.kraft.live.connection import LEAST_BYTES_A_SECOND, Connection, Endpoint, Security
from jobs.sources.kraft.live.errors import ConnectionLostError, NoLeaderError, QuorumError, RefusedError
from jobs.sources.kraft.live.messages import FetchAnswer, LeaderHint, OffsetAndEpoch, QuorumAnswer, SnapshotAnswer

# What a controller that does not lead this epoch (any more) answers, and what FetchSnapshot's refusals arrive as.
_LOOK_AGAIN = frozenset(
    {
        messages.NOT_LEADER,
        messages.FENCED_LEADER_EPOCH,
        messages.UNKNOWN_LEADER_EPOCH,
        messages.INVALID_REQUEST,
        messages.UNKNOWN_SERVER_ERROR,
        7,
        8,
    }
)
_PAUSE_SECONDS = 0.2
_BEYOND_ANY_END = 1 << 60


@dataclass(frozen=True)
class QuorumSettings:
    """Where the controllers are and how gently they are read. `cluster_id` is sent with every request."""

    controllers: tuple[Endpoint, ...]
    cluster_id: str | None
    security: Security = field(default_factory=Security)
    request_seconds: float = 10.0
    patience_seconds: float = 60.0
    answer_seconds: float = 300.0
    bytes_per_second: float | None = None
    fetch_bytes: int = 8 * 1024 * 1024
    snapshot_bytes: int = 4 * 1024 * 1024


@dataclass(frozen=True)
class Leader:
    """Who leads, in which epoch, and where it was found."""

    node_id: int
    epoch: int
    endpoint: Endpoint

    def __str__(self) -> str:
        return f"controller {self.node_id} ({self.endpoint}, epoch {self.epoch})"


@dataclass
class _Round:
    """The answer of each controller in one search for the leader."""

    reasons: dict[Endpoint, str] = field(default_factory=dict)
    refusal: RefusedError | None = None
    followers: int = 0
    hints: list[LeaderHint] = field(default_factory=list)


class QuorumClient:
    """A client of a quorum. Used by one thread; `close` ends its connections."""

    def __init__(self, settings: QuorumSettings) -> None:
        self._settings = settings
        self._connections: dict[Endpoint, Connection] = {}
        self._leader: Leader | None = None
        self._lost: Endpoint | None = None
        self._reasons: dict[Endpoint, str] = {}
        # Whether any controller has answered, though none led.
        self._answered = False
        self._next_at = 0.0
        self.bytes_received = 0

    def __enter__(self) -> QuorumClient:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def patience_seconds(self) -> float:
        """How long nothing may come before that is an error."""
        return self._settings.patience_seconds

    @property
    def least_bytes_a_second(self) -> float:
        """The average rate that a copy needs to continue: half of a low rate limit."""
        rate = self._settings.bytes_per_second
        return LEAST_BYTES_A_SECOND if rate is None else min(LEAST_BYTES_A_SECOND, rate / 2)

    def close(self) -> None:
        """Close every connection."""
        for connection in self._connections.values():
            connection.close()
        self._connections.clear()

    @property
    def leader(self) -> Leader:
        """The leader, which is searched for if none is known.

        Raises RefusedError when controllers refuse for good, QuorumError when there is no leader for too long.
        """
        deadline = time.monotonic() + self._settings.patience_seconds
        while True:
            answers = self._look_for_leader() if self._leader is None else _Round()
            if self._leader is not None:
                return self._leader
            if answers.refusal is not None and not answers.followers:
                raise answers.refusal
            self._reasons |= answers.reasons
            if time.monotonic() > deadline:
                raise self._no_leader()
            time.sleep(_PAUSE_SECONDS)

    def fetch(self, offset: int, last_epoch: int | None) -> tuple[Leader, FetchAnswer]:
        """The log from `offset` on, after a record of `last_epoch` (None: the leader's own), and who answered.

        Raises QuorumError, RefusedError.
        """

        def ask(leader: Leader, connection: Connection) -> FetchAnswer:
            epoch = leader.epoch if last_epoch is None else last_epoch
            return self._fetch(connection, leader.epoch, offset, epoch)

        return self._of_leader(ask)

    def snapshot(self, snapshot: OffsetAndEpoch, position: int) -> tuple[Leader, SnapshotAnswer]:
        """A piece of a snapshot from byte `position` on; an answer with an error when the leader refused.

        Every refusal arrives as UNKNOWN_SERVER_ERROR (Kafka cannot encode it): the caller repeats the request at long
        intervals.
        """
        leader, connection = self._connected()
        try:
            request = messages.fetch_snapshot(
                connection.version(messages.FETCH_SNAPSHOT, 0, 1),
                self._settings.cluster_id,
                leader.epoch,
                snapshot,
                position,
                self._settings.snapshot_bytes,
            )
            answer = messages.snapshot_answer(connection.ask(request))
        except ConnectionLostError as error:
            self._lose(leader.endpoint, str(error))
            return leader, SnapshotAnswer(messages.UNKNOWN_SERVER_ERROR, -1, -1, b"")
        self._refuse(answer.error, leader.endpoint)
        if answer.error != messages.NONE:
            self._lose(leader.endpoint, f"{leader.endpoint} answered {messages.error_name(answer.error)}", close=False)
        self._pace(len(answer.data))
        return leader, answer

    def epoch_of_snapshot(self, offset: int) -> int | None:
        """Epoch of the oldest snapshot, which ends at the log's start `offset`; None when it can't be found out.

        Nothing names it. But a fetch from beyond the end after a record of an older epoch is answered with a snapshot,
        and after one of its epoch or a newer one with where the logs part (`ReplicatedLog.validateOffsetAndEpoch`).
        """
        low, high = 0, self.leader.epoch
        while low < high:
            middle = (low + high) // 2
            _, answer = self.fetch(_BEYOND_ANY_END, middle)
            if answer.snapshot is not None:
                low = middle + 1
            elif answer.diverging is not None:
                high = middle
            else:
                return None
        _, answer = self.fetch(offset, low)
        return low if answer.snapshot is None and answer.diverging is None else None

    def describe(self) -> QuorumAnswer:
        """Leader, high watermark, voters and observers, from the leader; with its error when it refuses.

        Needs only DESCRIBE on the cluster, so it has its own search for the leader. Raises QuorumError.
        """
        deadline = time.monotonic() + self._settings.patience_seconds
        while True:
            reasons, refusal = {}, None
            known = [] if self._leader is None else [self._leader.endpoint]
            for endpoint in dict.fromkeys([*known, *self._candidates(())]):
                try:
                    connection = self._connection(endpoint)
                    version = connection.version(messages.DESCRIBE_QUORUM, 0, 2)
                    answer = messages.quorum_answer(connection.ask(messages.describe_quorum(version)))
                except RefusedError as error:
                    refusal = error
                    continue
                except ConnectionLostError as error:
                    self._drop(endpoint)
                    reasons[endpoint] = str(error)
                    continue
                if answer.error in (messages.NONE, messages.CLUSTER_AUTHORIZATION_FAILED):
                    return answer
                self._answered = True
                reasons[endpoint] = f"{endpoint} answered {messages.error_name(answer.error)}"
            if refusal is not None and not reasons:
                raise refusal
            self._reasons |= reasons
            if time.monotonic() > deadline:
                raise self._no_leader()
            time.sleep(_PAUSE_SECONDS)

    def _of_leader(self, ask: Callable[[Leader, Connection], FetchAnswer]) -> tuple[Leader, FetchAnswer]:
        deadline = time.monotonic() + self._settings.patience_seconds
        while True:
            leader, connection = self._connected()
            try:
                answer = ask(leader, connection)
            except ConnectionLostError as error:
                self._lose(leader.endpoint, str(error))
            else:
                self._refuse(answer.error, leader.endpoint)
                if answer.error == messages.NONE:
                    self._pace(len(answer.records))
                    return leader, answer
                reason = f"{leader.endpoint} answered {messages.error_name(answer.error)}"
                if answer.error not in _LOOK_AGAIN:
                    raise QuorumError(reason)
                self._lose(leader.endpoint, reason, close=False)
            if time.monotonic() > deadline:
                raise self._no_leader()

    def _connected(self) -> tuple[Leader, Connection]:
        while True:
            leader = self.leader
            try:
                return leader, self._connection(leader.endpoint)
            except ConnectionLostError as error:
                self._lose(leader.endpoint, str(error))

    def _look_for_leader(self) -> _Round:
        answers = _Round()
        tried: set[Endpoint] = set()
        while True:
            waiting = [endpoint for endpoint in self._candidates(answers.hints) if endpoint not in tried]
            if not waiting:
                return answers
            tried.add(waiting[0])
            self._ask_who_leads(waiting[0], answers)
            if self._leader is not None:
                self._lost = None
                return answers

    def _ask_who_leads(self, endpoint: Endpoint, answers: _Round) -> None:
        """Fetch with epoch 0, which is always too old: every controller answers with epoch and leader. Then fetch as from the leader.

        Since 4.0 followers, too, answer the first question with FENCED_LEADER_EPOCH. The second is for an offset beyond
        any end, so that no answer brings records.
        """
        try:
            connection = self._connection(endpoint)
            answer = self._fetch(connection, 0, _BEYOND_ANY_END, 0)
            self._refuse(answer.error, endpoint)
            epoch = answer.leader.epoch
            if answer.error == messages.FENCED_LEADER_EPOCH and epoch > 0:
                answer = self._fetch(connection, epoch, _BEYOND_ANY_END, epoch)
                self._refuse(answer.error, endpoint)
            # Of the last answer: a candidate may have won the election since the first.
            hint = answer.leader
        except RefusedError as error:
            answers.refusal = answers.refusal or error
            answers.reasons[endpoint] = str(error)
            return
        except ConnectionLostError as error:
            self._drop(endpoint)
            answers.reasons[endpoint] = str(error)
            return
        if answer.error == messages.NONE and hint.leader_id >= 0:
            self._leader = Leader(hint.leader_id, hint.epoch, endpoint)
            return
        self._answered = True
        answers.followers += 1
        answers.hints.append(hint)
        if answer.error in (messages.NONE, messages.NOT_LEADER):
            follows = f"follows {hint.leader_id}" if hint.leader_id >= 0 else "has no leader"
            answers.reasons[endpoint] = f"{endpoint} {follows}"
        else:
            answers.reasons[endpoint] = f"{endpoint} answered {messages.error_name(answer.error)}"

    def _candidates(self, hints: Sequence[LeaderHint]) -> list[Endpoint]:
        """The next controllers to try: the one named as the leader, the configured ones, and last the one that was lost."""
        newest = max(hints, key=lambda hint: hint.epoch, default=None)
        named = [Endpoint(newest.host, newest.port)] if newest is not None and newest.host and newest.port else []
        endpoints = list(dict.fromkeys([*named, *self._settings.controllers]))
        return sorted(endpoints, key=lambda endpoint: endpoint == self._lost)

    def _connection(self, endpoint: Endpoint) -> Connection:
        if endpoint not in self._connections:
            self._connections[endpoint] = Connection.open(
                endpoint, self._settings.security, self._settings.request_seconds, self._settings.answer_seconds
            )
        return self._connections[endpoint]

    def _drop(self, endpoint: Endpoint) -> None:
        connection = self._connections.pop(endpoint, None)
        if connection is not None:
            connection.close()

    def _lose(self, endpoint: Endpoint, reason: str, *, close: bool = True) -> None:
        """Forget the leader, and remember why."""
        self._reasons[endpoint] = reason
        self._leader, self._lost = None, endpoint
        if close:
            self._drop(endpoint)

    def _fetch(self, connection: Connection, epoch: int, offset: int, last_epoch: int) -> FetchAnswer:
        # A server that does not offer FetchSnapshot is not a controller.
        connection.version(messages.FETCH_SNAPSHOT, 0, 1)
        request = messages.fetch(
            connection.version(messages.FETCH, *messages.FETCH_VERSIONS),
            self._settings.cluster_id,
            epoch,
            offset,
            last_epoch,
            self._settings.fetch_bytes,
        )
        return messages.fetch_answer(connection.ask(request))

    def _refuse(self, error: int, endpoint: Endpoint) -> None:
        """Raise RefusedError for what no other attempt would change."""
        if error == messages.CLUSTER_AUTHORIZATION_FAILED:
            raise RefusedError(
                f"{endpoint} does not let {self._who} fetch the metadata log: it needs CLUSTER_ACTION on the cluster"
            )
        if error == messages.INCONSISTENT_CLUSTER_ID:
            raise RefusedError(f"{endpoint} is a controller of another cluster than {self._settings.cluster_id}")
        if error == messages.UNKNOWN_TOPIC_ID:
            raise RefusedError(f"{endpoint} is a broker's listener; name the controllers' own")

    @property
    def _who(self) -> str:
        name = self._settings.security.username
        return f"user {name!r}" if name else "this client"

    def _pace(self, size: int) -> None:
        """Wait until the bytes received so far may have been."""
        self.bytes_received += size
        rate = self._settings.bytes_per_second
        if rate is None:
            return
        now = time.monotonic()
        self._next_at = max(self._next_at, now) + size / rate
        time.sleep(max(0.0, self._next_at - now))

    def _no_leader(self) -> QuorumError:
        known = "; ".join(self._reasons.get(each, f"{each}: not asked") for each in self._settings.controllers)
        why = f"no leader was found among the controllers within {self._settings.patience_seconds:g} s: {known}"
        return NoLeaderError(why) if self._answered else QuorumError(why)
