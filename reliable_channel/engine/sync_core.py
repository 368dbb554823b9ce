"""Interface between a channel and its sync protocol, for authors of plugins.

`SdsProtocol` is built in. `ReliableChannel(…, sync="name")` uses the core that a plugin registered
(`hooks.register_sync_cores`). A core has no I/O. It reads no clock, takes random numbers only from
the given function, and never waits. After each call its owner writes `changes()`, then emits
`events()` to the application and broadcasts `outgoing()`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, SupportsBytes, runtime_checkable

from .._contracts.repair_policies import RepairPolicy, both
from .._contracts.signing import Signing
from ..options import ChannelOptions
from ..sds.changes import CHANNEL, NO_RECORDER, Changes, Recorder, Row, Table, Tables, Value
from ..sds.events import Outgoing, OutgoingKind, SdsEvent
from ..sds.ids import IdFunction
from ..sds.log.archive import LogArchive
from ..sds.log.entry import LogEntry
from ..sds.log.log import MessageLog
from ..sds.outgoing import RetryPolicy, fixed
from ..sds.receiving import Arrival, Outcome
from ..sds.references.incoming import MissingEntry
from ..sds.statistics import Progress, SdsCounters, SdsStatistics

__all__ = [
    "CHANNEL",
    "NO_RECORDER",
    "Arrival",
    "Changes",
    "CoreContext",
    "LogArchive",
    "LogEntry",
    "MessageLog",
    "MissingEntry",
    "Outcome",
    "Outgoing",
    "OutgoingKind",
    "Progress",
    "Recorder",
    "Row",
    "SdsCounters",
    "SdsEvent",
    "SdsStatistics",
    "SyncCore",
    "Table",
    "Tables",
    "Value",
    "Withdrawing",
]


@dataclass(frozen=True, slots=True)
class Policies:
    """Policies of one channel, which are pure functions."""

    retry: RetryPolicy = fixed
    repair: RepairPolicy = both
    id_function: IdFunction | None = None
    """Function for message ids. None means the function of the wire profile."""


@dataclass(frozen=True, slots=True)
class CoreContext:
    """Arguments that a channel passes to a new core."""

    channel_id: str
    sender_id: str
    options: ChannelOptions
    now_ms: int
    random: Callable[[], float]
    """Function that returns a uniform random number in [0, 1)."""
    recorder: Recorder
    """Recorder of the data that a restart needs. It ignores everything if there is no state."""
    archive: LogArchive
    """Source of recorded log entries, for `MessageLog`."""
    signing: Signing | None = None
    require_signatures: bool = False
    policies: Policies = field(default_factory=Policies)
    repair_on_demand: bool = False
    """True if repair requests wait until the channel calls `SyncCore.ask_participants`."""
    has_store: bool = True
    """True if there is a Store and the channel queries it. Otherwise only other participants can
    repair."""


@runtime_checkable
class Withdrawing(Protocol):
    """Core that can withdraw a message that it has just accepted.

    If the state cannot be written, `ReliableChannel.send` raises, and the message must not be sent.
    A core without this method accepts the message that met the failure in memory. Later messages
    are refused before the core gets them.
    """

    def withdraw(self, message_id: str) -> None:
        """Withdraw an own message. No participant has seen it, because neither the message nor any
        reference to it was sent."""
        ...


@runtime_checkable
class Acknowledging(Protocol):
    """Core whose messages acknowledge others by a bloom filter."""

    bloom_filter: SupportsBytes


@runtime_checkable
class SyncCore(Protocol):
    """Participant of one channel, as the runtime sees it."""

    log: MessageLog
    """Log of own and delivered messages, for reading."""

    @property
    def unacknowledged(self) -> Collection[str]:
        """Ids of own messages that no other participant is known to have."""
        ...

    @property
    def capacity_left(self) -> int:
        """Return how many more own messages may wait for an acknowledgement."""
        ...

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for all participants. Return its id, which is unique in the channel.

        Raises:
            SdsError: it is refused; the text says why.
        """
        ...

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message without any promise. Return its id. `outgoing()` then returns only
        its bytes.

        Raises:
            SdsError: it is refused; the text says why.
        """
        ...

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        retrieval_hint: bytes | None = None,
        sent_at_ns: int | None = None,
    ) -> Arrival:
        """Receive bytes of the transport or of Store. `retrieval_hint` is their Waku message hash,
        and `sent_at_ns` their timestamp there. Invalid bytes do not raise."""
        ...

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Note that an own message was sent."""
        ...

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again ahead of time. Return False if it is acknowledged, or was
        sent too often already."""
        ...

    def abandon(self, message_id: str) -> None:
        """Stop sending an own message that the transport refuses permanently."""
        ...

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a running conversation whose messages before `wanted_from` (ms) are not wanted."""
        ...

    def missing(self) -> Sequence[MissingEntry]:
        """Return the messages that are known only by reference, to search for them in Store."""
        ...

    def wanted(self) -> Sequence[MissingEntry]:
        """Return messages that participants might be asked for: newly missing ones, and each again
        when it becomes relevant. They are not asked before `ask_participants` is called. Without
        `repair_on_demand` the list is empty, and the core asks them itself."""
        ...

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        """Permit repair requests for a missing message, by the protocol's rules and times. Nothing
        changes if they are already permitted, or the message is not missing any more."""
        ...

    @property
    def is_missing_something(self) -> bool:
        """True if `missing()` names a message."""
        ...

    def is_awaited(self, message_id: str) -> bool:
        """Return True if other messages wait for a missing one."""
        ...

    def next_deadline_ms(self) -> int | None:
        """Return the time of the next call of `on_deadline`, or None if nothing is planned."""
        ...

    def on_deadline(self, now_ms: int) -> None:
        """Do everything that is due."""
        ...

    def events(self) -> Sequence[SdsEvent]:
        """Return all events since the last call. Each message is delivered once."""
        ...

    def outgoing(self) -> Sequence[Outgoing]:
        """Return all messages to broadcast, in order."""
        ...

    def changes(self) -> Changes:
        """Return the changes of the data that a restart needs."""
        ...

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Restore the state from before a restart, before any other call. Own messages that were
        never sent wait in `outgoing()` again."""
        ...

    def progress(self) -> Progress:
        """Return how complete the log is, compared with the known messages."""
        ...

    def statistics(self) -> SdsStatistics:
        """Return a snapshot of counters and buffers. Unused counters are zero."""
        ...
