"""Interface between a channel and its sync protocol, for authors of plugins.

`SdsProtocol` is the built-in sync protocol. `ReliableChannel(…, sync="name")` uses the core that a
plugin registered (`hooks.register_sync_cores`). A core does no I/O. A core reads no clock, takes
random numbers only from the given function, and never waits.

A call of a core returns only the result that its caller needs at once. The core adds all other
results to its lists and to its agenda. After each call the owner of the core writes `changes()`.
Then the owner takes all items out of `events`, `outgoing` and `wanted`.
"""

from collections.abc import Callable, Collection, Sequence, Sized
from dataclasses import dataclass, field
from typing import Protocol, SupportsBytes, runtime_checkable

from .._contracts.repair_policies import RepairPolicy, both
from .._contracts.signing import Signing
from ..options import ChannelOptions
from ..sds.agenda import Agenda, Slot
from ..sds.changes import CHANNEL, NO_RECORDER, Changes, Recorder, Row, Table, Tables, Value
from ..sds.events import Outgoing, OutgoingKind, SdsEvent
from ..sds.ids import IdFunction
from ..sds.log.archive import LogArchive
from ..sds.log.log import MessageLog
from ..sds.message import LogEntry
from ..sds.outgoing import RetryPolicy, fixed
from ..sds.receiving import Arrival, Outcome
from ..sds.references.incoming import MissingEntry
from ..sds.statistics import Progress, SdsCounters, SdsStatistics

__all__ = [
    "CHANNEL",
    "NO_RECORDER",
    "Agenda",
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
    "Slot",
    "SyncCore",
    "Table",
    "Tables",
    "Value",
    "Withdrawing",
]


@dataclass(frozen=True, slots=True)
class Policies:
    """Policies of one channel, each of which is a pure function."""

    retry: RetryPolicy = fixed
    repair: RepairPolicy = both
    id_function: IdFunction | None = None
    """Function that makes message ids, or None for the function of the wire profile."""


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
    """Recorder of the changes that a restart needs. In a channel without saved state, the recorder
    ignores all changes."""
    archive: LogArchive
    """Source of saved log entries, for `MessageLog`."""
    signing: Signing | None = None
    require_signatures: bool = False
    policies: Policies = field(default_factory=Policies)
    repair_on_demand: bool = False
    """True if repair requests wait until the channel calls `SyncCore.ask_participants`."""
    has_store: bool = True
    """True if there is a Store that the channel queries. Without a Store, only other participants
    can repair a missing message."""


@runtime_checkable
class Withdrawing(Protocol):
    """Sync core that can withdraw a message that it has just accepted.

    If the state cannot be written, `ReliableChannel.send` raises, and the message must not be sent.
    If a core has no `withdraw`, the message that could not be saved stays accepted in memory. After
    such a failure, the channel refuses later messages before it passes them to the core. If a
    segment of a payload is refused, the channel withdraws the segments before it. Without
    `withdraw`, the channel calls `SyncCore.abandon` for these segments.
    """

    def withdraw(self, message_id: str) -> None:
        """Withdraw an own message that was not sent. No participant knows the message, because no
        reference to it was sent either."""
        ...


@runtime_checkable
class Acknowledging(Protocol):
    """Sync core whose messages acknowledge other messages by a bloom filter."""

    bloom_filter: SupportsBytes


@runtime_checkable
class SyncCore(Protocol):
    """Sync core of one participant of a channel, as the runtime uses it."""

    log: MessageLog
    """Log of own and delivered messages, which the channel only reads."""
    agenda: Agenda
    """Agenda whose `next_ms` is the time for the next call of `on_deadline`, always the same
    object. Each input method plans the deadlines of the core. `Slot.SEGMENTS` and `Slot.RECOVERY`
    are planned by the channel."""
    events: list[SdsEvent]
    """New events, in order. Each message is delivered in one event."""
    outgoing: list[Outgoing]
    """Messages to broadcast, in order."""
    wanted: list[MissingEntry]
    """Missing messages for which repair requests may now be useful. The core asks participants only
    after `ask_participants` is called. Without `repair_on_demand` the list stays empty, and the
    core asks without permission."""
    missing_tables: Sequence[Sized]
    """Tables of missing messages. `missing()` returns no message while all tables are empty."""

    @property
    def unacknowledged(self) -> Collection[str]:
        """Ids of own messages that no other participant is known to have received."""
        ...

    @property
    def capacity_left(self) -> int:
        """Return how many more own messages the core accepts before an acknowledgement."""
        ...

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        """Accept a message for all participants, and return its id, which must be unique.

        Raises:
            SdsError: it is refused; the text says why.
        """
        ...

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        """Broadcast a message once, without repair, and return its id. The call adds only the
        bytes of the message to `outgoing`.

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
        """Receive the bytes of a message from the transport or from Store. `retrieval_hint` is the
        Waku message hash of the bytes, and `sent_at_ns` their Waku timestamp. Invalid bytes raise
        no error."""
        ...

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        """Note that the transport sent an own message."""
        ...

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        """Broadcast an own message again before its retry is due. Return False if the message is
        acknowledged, or was sent too often already."""
        ...

    def abandon(self, message_id: str) -> None:
        """Stop sending an own message that the transport refuses permanently."""
        ...

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        """Join a conversation, in which messages before `wanted_from` (ms) are not wanted."""
        ...

    def missing(self) -> Sequence[MissingEntry]:
        """Return the messages that are known only by reference, for a search in Store."""
        ...

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        """Permit repair requests for a missing message, at the times that the protocol chooses. If
        requests are already permitted, or the message is not missing, the call changes nothing."""
        ...

    def is_awaited(self, message_id: str) -> bool:
        """Return True if other messages wait for this missing message."""
        ...

    def on_deadline(self, now_ms: int) -> None:
        """Do all work that is due by time."""
        ...

    def changes(self) -> Changes:
        """Return the changes to the saved state since the last call of `changes`."""
        ...

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        """Restore the saved state, before any other call. Own messages that were never sent are in
        `outgoing` again."""
        ...

    def progress(self) -> Progress:
        """Return how complete the log is, compared with all known messages."""
        ...

    def statistics(self) -> SdsStatistics:
        """Return the current counters and the sizes of the buffers. Counters that the core does not
        use are 0."""
        ...
