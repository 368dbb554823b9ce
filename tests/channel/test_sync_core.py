"""A channel over a sync protocol of a plugin."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial
from itertools import count

import pytest

from reliable_channel import MessageReceived
from reliable_channel._plugins.hooks import Register, hookimpl
from reliable_channel._plugins.loading import process_registry
from reliable_channel.engine.sync_core import (
    Agenda,
    Arrival,
    Changes,
    CoreContext,
    LogEntry,
    MessageLog,
    MissingEntry,
    Outcome,
    Outgoing,
    OutgoingKind,
    Progress,
    SdsCounters,
    SdsEvent,
    SdsStatistics,
    Tables,
)
from reliable_channel.errors import EmptyContent
from reliable_channel.state import MemoryStateStore
from reliable_channel.transport import MemoryNetwork

from .world import Told, listening, make_channel

pytestmark = pytest.mark.anyio


class Shouting:
    """The least that a sync protocol can be: say it once, and believe what is heard."""

    def __init__(self, context: CoreContext) -> None:
        self.log = MessageLog(100, recorder=context.recorder, archive=context.archive)
        self._context = context
        self._numbers = count(context.now_ms)
        self.agenda = Agenda()
        self.events: list[SdsEvent] = []
        self.outgoing: list[Outgoing] = []
        self.wanted: list[MissingEntry] = []
        self._received = 0

    unacknowledged: Collection[str] = ()
    missing_tables = ()
    capacity_left = 100

    def send(self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None) -> str:
        if not content:
            raise EmptyContent("nothing to shout")
        number = next(self._numbers)
        message_id = f"{self._context.sender_id} {number}"
        self.log.insert(LogEntry(message_id, self._context.sender_id, number, content))
        data = f"{message_id}\n".encode() + content
        self.outgoing.append(Outgoing(OutgoingKind.CONTENT, message_id, data))
        return message_id

    def send_ephemeral(
        self, content: bytes, now_ms: int, *, timestamp_ns: int | None = None
    ) -> str:
        raise NotImplementedError

    def receive(
        self,
        data: bytes,
        now_ms: int,
        *,
        retrieval_hint: bytes | None = None,
        sent_at_ns: int | None = None,
    ) -> Arrival:
        head, content = data.split(b"\n", 1)
        message_id = head.decode()
        if message_id in self.log:
            return Arrival(Outcome.DUPLICATE, message_id)
        sender_id, number = message_id.split()
        entry = LogEntry(message_id, sender_id, int(number), content, retrieval_hint)
        position = self.log.insert(entry)
        self._received += 1
        self.events.append(MessageReceived(message_id, sender_id, content, int(number), position))
        return Arrival(Outcome.DELIVERED, message_id)

    def dispatched(self, message_id: str, now_ms: int, retrieval_hint: bytes | None = None) -> None:
        pass

    def resend_early(self, message_id: str, now_ms: int) -> bool:
        return False

    def abandon(self, message_id: str) -> None:
        pass

    def join(self, now_ms: int, *, wanted_from: int = 0, presume_ms: int) -> None:
        pass

    def missing(self) -> Sequence[MissingEntry]:
        return ()

    def ask_participants(self, missing: MissingEntry, now_ms: int) -> None:
        pass

    def is_awaited(self, message_id: str) -> bool:
        return False

    def on_deadline(self, now_ms: int) -> None:
        pass

    def changes(self) -> Changes:
        return self._context.recorder.take()

    def restore(self, tables: Tables, newest: Sequence[LogEntry], now_ms: int) -> None:
        self.log.restore_from(tables, newest)
        if newest:
            self._numbers = count(max(now_ms, newest[-1].lamport_timestamp + 1))

    def progress(self) -> Progress:
        return Progress(self._received, 0, 0)

    def statistics(self) -> SdsStatistics:
        return SdsStatistics(SdsCounters(), 0, len(self.log), *[0] * 11)


class Plugin:
    @hookimpl
    def register_sync_cores(self, register: Register) -> None:
        register("shouting", Shouting)


@pytest.fixture(autouse=True)
def plugin() -> Iterator[None]:
    process_registry().add(Plugin(), "shouting")
    yield
    process_registry.cache_clear()


def heard(told: Told, count: int) -> bool:
    return len(told.contents) == count


async def test_a_channel_runs_on_the_protocol_of_a_plugin() -> None:
    network = MemoryNetwork()
    state = MemoryStateStore()
    async with listening(make_channel(network.transport(), "bob", sync="shouting")) as bob:
        for number, content in enumerate((b"first", b"second"), start=1):
            alice = make_channel(network.transport(), "alice", sync="shouting", state=state)
            async with alice:
                await alice.send(content)
                await bob.until(partial(heard, bob, number))
    assert [entry.content for entry in alice.log()] == [b"first", b"second"]
    assert bob.contents == [b"first", b"second"]


async def test_an_unknown_protocol_is_named() -> None:
    with pytest.raises(
        ValueError, match=r"^`sync` must be one of sds, shouting \(got 'whispering'"
    ):
        async with make_channel(MemoryNetwork().transport(), "alice", sync="whispering"):
            pass
