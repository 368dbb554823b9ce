"""World that simulated participants share, with the maker of their cores and their observer."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

from reliable_channel._contracts.repair_policies import RepairPolicy, both
from reliable_channel.engine.logged import Logged
from reliable_channel.engine.rate_limit import Spent
from reliable_channel.engine.requests import Accepted
from reliable_channel.engine.sync_core import SyncCore
from reliable_channel.events import AnyEvent
from reliable_channel.options import ChannelOptions
from reliable_channel.sds.changes import Recorder
from reliable_channel.sds.events import Outgoing
from reliable_channel.sds.log.archive import LogArchive
from reliable_channel.sds.receiving import Arrival, Outcome

from .network import Network, Packet
from .scenario import Habits
from .store import Store
from .timeline import Timeline
from .trace import Trace

CHANNEL: Final = "simulated"

C = TypeVar("C", bound=SyncCore)
C_co = TypeVar("C_co", bound=SyncCore, covariant=True)


class MakeCore(Protocol[C_co]):
    """Function that makes the core of a participant, at each start of its process."""

    def __call__(
        self,
        sender_id: str,
        *,
        now_ms: int,
        random: Callable[[], float],
        recorder: Recorder,
        archive: LogArchive,
    ) -> C_co:
        """Make one, as `CoreContext` describes it."""
        ...


class Observer(Generic[C]):
    """Observer of a participant's actions. By default it does nothing."""

    reads_log = False
    """True if `told` gets a `Logged` for each message that enters the log."""

    def started(self, core: C) -> None:
        """Note that it begins with an empty log."""

    def restarted(self, core: C) -> None:
        """Note that it begins again from its disk."""

    def rolled_back(self, core: C) -> None:
        """Note that it begins again from an older state."""

    def lost_disk(self) -> None:
        """Note that its state is unreadable, so it begins with an empty log."""

    def left(self) -> None:
        """Note that it is gone permanently."""

    def repeated(self) -> None:
        """Note that all events unconfirmed before a restart were emitted again."""

    def sent(self, core: C, payload: bytes, accepted: Accepted) -> None:
        """Note that a message of its application was accepted."""

    def answered(self, accepted: Accepted) -> None:
        """Note that the application learned that it is accepted."""

    def confirmed(self, event: AnyEvent) -> None:
        """Note that a confirmation of its application is on disk."""

    def received(self, core: C, data: bytes, arrival: Arrival) -> None:
        """Note that the core received a message."""

    def took(self, data: bytes, arrival: Arrival) -> None:
        """Note that the result of that message is on disk."""

    def emitted(self, core: C, event: AnyEvent | Logged) -> str | None:
        """Note an emitted event. Return a line for the trace, or None."""
        return None

    def stepped(self, core: C, now_ms: int, is_waiting: Callable[[str], bool]) -> None:
        """Note the end of a step. `is_waiting` tells if an own message waits for the transport."""

    def published(self, core: C, outgoing: Outgoing, message_hash: bytes, now_ms: int) -> None:
        """Note that a message was sent, at this time of the participant's clock."""


class JournalKeeper(Protocol):
    """Writer of one process's events and wire messages, as a channel's journal."""

    def opened(self, core: SyncCore, wanted_from_ms: int | None, now_ms: int) -> None:
        """Note that the process begins. The time is None if it continues as before a restart."""

    def came(self, arrived: Packet, outcome: Outcome, now_ms: int, *, from_store: bool) -> None:
        """Note that a message arrived, with its result."""

    def went(self, outgoing: Outgoing, sent: Packet, now_ms: int) -> None:
        """Note that the own node accepted a message."""

    def emitted(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """Note that an event was emitted."""

    def ended(self, now_ms: int | None = None) -> None:
        """Note that the process ended. Without a time it was killed."""


@dataclass(slots=True)
class Node:
    """Own node of a participant, which survives its processes."""

    number: int
    is_away: bool = False
    spent: Spent | None = None
    """Spent budget of the rate limit, in a file beside the process."""


@dataclass(slots=True)
class World(Generic[C]):
    timeline: Timeline
    network: Network
    store: Store | None
    trace: Trace
    make_core: MakeCore[C]
    dialect: str
    commit_ms: int
    publish_ms: int
    """Time of each own node to accept a message."""
    payload_bytes: int = 0
    """Length to which messages of applications are padded."""
    habits: Habits = field(default_factory=Habits)
    """Options of the applications."""
    policy: RepairPolicy = both
    options: ChannelOptions = field(default_factory=ChannelOptions)
    """Options of the engines. `make_core` knows those of the core."""
    journals: Callable[[str], JournalKeeper] | None = None
    """Function that makes the journal of a participant, at each start of its process."""
