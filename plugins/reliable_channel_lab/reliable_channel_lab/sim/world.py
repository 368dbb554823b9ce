"""Resources that simulated participants share, with the maker of their cores and their observer."""

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
    """Function that makes a participant's core at each start of the participant's process."""

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
    """Observer of a participant's actions. The methods of the base class do nothing."""

    reads_log = False
    """True if `emitted` gets a `Logged` for each message that enters the log."""

    def started(self, core: C) -> None:
        """Note that the participant begins with an empty log."""

    def restarted(self, core: C) -> None:
        """Note that the participant begins again from its disk."""

    def rolled_back(self, core: C) -> None:
        """Note that the participant begins again from an older state."""

    def lost_disk(self) -> None:
        """Note that the participant's state is unreadable, so it begins with an empty log."""

    def left(self) -> None:
        """Note that the participant left the group permanently."""

    def repeated(self) -> None:
        """Note that all events that were unconfirmed before a restart were emitted again."""

    def sent(self, core: C, payload: bytes, accepted: Accepted) -> None:
        """Note that the engine accepted a message of the application."""

    def answered(self, accepted: Accepted) -> None:
        """Note that the application learned that the engine accepted its message."""

    def confirmed(self, event: AnyEvent) -> None:
        """Note that the application's confirmation of an event is on disk."""

    def received(self, core: C, data: bytes, arrival: Arrival) -> None:
        """Note that the core received a message."""

    def took(self, data: bytes, arrival: Arrival) -> None:
        """Note that a received message and its result are on disk."""

    def emitted(self, core: C, event: AnyEvent | Logged) -> str | None:
        """Note an event that the engine emitted. `emitted` returns a line for the trace, or
        None."""
        return None

    def stepped(self, core: C, now_ms: int, is_waiting: Callable[[str], bool]) -> None:
        """Note that a step of the engine ended. `is_waiting` returns True if an own message still
        waits for the transport."""

    def published(self, core: C, outgoing: Outgoing, message_hash: bytes, now_ms: int) -> None:
        """Note that the participant published a message, at a time of the participant's clock."""


class JournalKeeper(Protocol):
    """Writer of the events and wire messages of one process, like a channel's journal."""

    def opened(self, core: SyncCore, wanted_from_ms: int | None, now_ms: int) -> None:
        """Note that the process begins. If the process continues after a restart, `wanted_from_ms`
        is None."""

    def came(self, arrived: Packet, outcome: Outcome, now_ms: int, *, from_store: bool) -> None:
        """Note that a message arrived, with the result of receiving it."""

    def went(self, outgoing: Outgoing, sent: Packet, now_ms: int) -> None:
        """Note that the participant's own node accepted a message."""

    def emitted(self, event: AnyEvent | Logged, now_ms: int) -> None:
        """Note that the engine emitted an event."""

    def ended(self, now_ms: int | None = None) -> None:
        """Note that the process ended. A call without a time means that the process was killed."""


@dataclass(slots=True)
class Node:
    """Own Waku node of a participant, which survives the participant's processes."""

    number: int
    is_away: bool = False
    spent: Spent | None = None
    """Spent budget of the rate limit, which is stored outside the process."""


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
    """Time that each participant's own node needs to accept a message."""
    payload_bytes: int = 0
    """Length to which applications pad their messages."""
    habits: Habits = field(default_factory=Habits)
    """Behaviour of all applications in the world."""
    policy: RepairPolicy = both
    options: ChannelOptions = field(default_factory=ChannelOptions)
    """Options of the participants' engines. `make_core` knows the options of the core."""
    journals: Callable[[str], JournalKeeper] | None = None
    """Function that opens a participant's journal at each start of the participant's process."""
