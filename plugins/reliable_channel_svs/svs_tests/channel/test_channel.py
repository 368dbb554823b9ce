"""`sync="svs"`: participants over a lossy network in virtual time, and whole channels."""

import random
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from heapq import heappop, heappush
from pathlib import Path

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageReceived, ReliableChannel
from reliable_channel._plugins.loading import process_registry
from reliable_channel.diagnostics import MessageRejected, RejectionReason, RepairRequested
from reliable_channel.engine.outbox import Outbox
from reliable_channel.errors import ContentTooLong, EmptyContent, OutgoingBufferFull
from reliable_channel.events import (
    DeliveryFailed,
    EphemeralReceived,
    MessageAcknowledged,
    MessageLost,
)
from reliable_channel.options import Limits
from reliable_channel.sds.changes import NO_RECORDER
from reliable_channel.sds.log.archive import NO_ARCHIVE
from reliable_channel.spi import (
    Changes,
    CoreContext,
    Outcome,
    OutgoingKind,
    Recorder,
    Row,
    SdsEvent,
    SyncCore,
)
from reliable_channel.transport import MemoryNetwork
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption
from reliable_channel_svs import PublicationName, StateVector, plugin
from reliable_channel_svs.channel import SvsCore
from reliable_channel_svs.channel.streams import WINDOW
from reliable_channel_svs.channel.wire import ChannelWire, node_name
from tests.channel.world import Told, listening
from tests.sds.world import taken
from tests.slow import slow

START = 1_736_266_473_000


def setting(
    name: str, seed: int = 0, options: ChannelOptions | None = None, now_ms: int = START
) -> CoreContext:
    return CoreContext(
        "general",
        name,
        options or ChannelOptions(),
        now_ms,
        random.Random(f"{name} {seed}").random,
        NO_RECORDER,
        NO_ARCHIVE,
    )


@dataclass
class World:
    """Participants, and packets on their way in virtual time."""

    loss: float = 0.0
    seed: int = 0
    options: ChannelOptions | None = None
    now_ms: int = START
    cores: dict[str, SyncCore] = field(default_factory=dict)
    told: dict[str, list[SdsEvent]] = field(default_factory=dict)
    sent: list[tuple[str, OutgoingKind]] = field(default_factory=list)
    away: set[str] = field(default_factory=set)
    _wire: list[tuple[int, int, str, bytes]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def add(self, *names: str) -> None:
        for name in names:
            self.cores[name] = SvsCore(setting(name, self.seed, self.options, self.now_ms))
            self.told[name] = []

    def send(self, name: str, content: bytes) -> str:
        message_id = self.cores[name].send(content, self.now_ms)
        self.settle(name)
        return message_id

    def settle(self, name: str) -> None:
        core = self.cores[name]
        for outgoing in taken(core.outgoing):
            self.sent.append((name, outgoing.kind))
            if outgoing.kind in (OutgoingKind.CONTENT, OutgoingKind.RETRY):
                core.dispatched(outgoing.message_id, self.now_ms)
            for other in self.cores:
                if other == name or {name, other} & self.away or self._random.random() < self.loss:
                    continue
                at_ms = self.now_ms + self._random.randrange(5, 300)
                heappush(self._wire, (at_ms, len(self.sent), other, outgoing.data))
        self.told[name] += taken(core.events)

    def run(self, duration_ms: int) -> None:
        end_ms = self.now_ms + duration_ms
        while True:
            due = {name: core.agenda.next_ms or end_ms for name, core in self.cores.items()}
            name = min(due, key=lambda each: due[each])
            arrival_ms = self._wire[0][0] if self._wire else end_ms
            if min(due[name], arrival_ms) >= end_ms:
                break
            if arrival_ms <= due[name]:
                self.now_ms, _, name, data = heappop(self._wire)
                self.cores[name].receive(data, self.now_ms)
            else:
                self.now_ms = max(self.now_ms, due[name])
                self.cores[name].on_deadline(self.now_ms)
            self.settle(name)
        self.now_ms = end_ms

    def delivered(self, name: str) -> list[bytes]:
        return [event.content for event in self.told[name] if isinstance(event, MessageReceived)]


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.3, 0.5])
@pytest.mark.parametrize("seed", [0, *slow(1, 2)])
def test_all_end_with_the_same_log(loss: float, seed: int) -> None:
    world = World(loss=loss, seed=seed)
    names = [f"node-{n}" for n in range(6)]
    world.add(*names)
    ids = []
    for number in range(60):
        ids.append(world.send(names[number % 6], b"%d" % number))
        world.run(150)
    world.run(240_000)
    assert len({core.log.digest() for core in world.cores.values()}) == 1
    for name in names:
        delivered = world.delivered(name)
        assert len(delivered) == 50 and len(set(delivered)) == 50
        for other in range(6):  # those of one sender in order
            own = [int(content) for content in delivered if int(content) % 6 == other]
            assert own == sorted(own)
        acknowledged = [e for e in world.told[name] if isinstance(e, MessageAcknowledged)]
        assert len(acknowledged) == 10
        assert not world.cores[name].unacknowledged and not world.cores[name].missing()
        assert not any(isinstance(event, DeliveryFailed) for event in world.told[name])


def test_a_quiet_group_costs_one_vector_an_interval() -> None:
    world = World()
    world.add(*(f"node-{n}" for n in range(20)))
    world.send("node-0", b"hello")
    world.run(60_000)
    world.sent.clear()
    world.run(600_000)
    assert {kind for _, kind in world.sent} == {OutgoingKind.SYNC}
    assert len(world.sent) <= 2 * 600_000 // 30_000


def test_who_was_away_catches_up() -> None:
    world = World(loss=0.1)
    world.add("a", "b", "c")
    world.away = {"c"}
    for number in range(300):
        world.send("ab"[number % 2], b"%d" % number)
        world.run(20)
    world.away = set()
    world.run(400_000)
    assert len(world.delivered("c")) == 300
    assert len({core.log.digest() for core in world.cores.values()}) == 1


def test_a_sender_who_left_is_answered_for() -> None:
    world = World()
    world.add("a", "b", "c")
    world.away = {"c"}
    world.send("a", b"from one who leaves")
    world.run(5_000)
    world.away = {"a"}
    world.run(120_000)
    assert world.delivered("c") == [b"from one who leaves"]


def test_what_nobody_has_is_lost_and_what_waited_is_delivered() -> None:
    options = ChannelOptions(timeout_for_lost_messages_ms=60_000)
    world = World(options=options)
    world.add("a", "b")
    world.away = {"a"}
    lost = world.send("a", b"unheard")
    world.away = set()
    liar = world.cores.pop("a")
    late = liar.send(b"heard", world.now_ms)
    [data] = [o.data for o in taken(liar.outgoing) if o.message_id == late]
    assert world.cores["b"].receive(data, world.now_ms).outcome is Outcome.PARKED
    assert world.cores["b"].is_awaited(lost) and not world.cores["b"].is_awaited(late)
    world.run(70_000)
    assert [e.message_id for e in world.told["b"] if isinstance(e, MessageLost)] == [lost]
    assert world.delivered("b") == [b"heard"]
    again = liar.resend_early(lost, world.now_ms)
    [data] = [o.data for o in taken(liar.outgoing) if o.message_id == lost]
    assert again and world.cores["b"].receive(data, world.now_ms).outcome is Outcome.DELIVERED


def test_nobody_there_is_a_failure_that_is_told() -> None:
    world = World(options=ChannelOptions(retry_interval_ms=1_000, max_retry_attempts=3))
    world.add("a")
    message_id = world.send("a", b"anybody?")
    world.run(60_000)
    [failed] = [event for event in world.told["a"] if isinstance(event, DeliveryFailed)]
    assert (failed.message_id, failed.attempts) == (message_id, 4)


def test_what_cannot_be_sent_is_refused() -> None:
    core = SvsCore(setting("a", options=ChannelOptions(limits=Limits(outgoing_messages=1))))
    with pytest.raises(EmptyContent):
        core.send(b"", START)
    with pytest.raises(ContentTooLong):
        core.send(b"x" * 200_000, START)
    core.send(b"one", START)
    with pytest.raises(OutgoingBufferFull):
        core.send(b"two", START)


@pytest.mark.parametrize("data", [b"", b"\x05\x00", b"\x06\x00", b"hello", b"\xff" * 50])
def test_what_is_no_packet_is_rejected(data: bytes) -> None:
    core = SvsCore(setting("a"))
    assert core.receive(data, START).outcome is Outcome.REJECTED
    assert any(isinstance(event, MessageRejected) for event in taken(core.events))
    assert taken(core.outgoing) == []


def test_every_truncation_and_changed_byte_is_rejected() -> None:
    sender, receiver = SvsCore(setting("a")), SvsCore(setting("b"))
    sender.send(b"hello", START)
    sender.on_deadline(START + 60_000)
    for outgoing in taken(sender.outgoing):
        for at in range(len(outgoing.data)):
            cut, changed = outgoing.data[:at], bytearray(outgoing.data)
            changed[at] ^= 1
            for data in (cut, bytes(changed)):
                arrival = receiver.receive(data, START)
                assert arrival.outcome in (Outcome.REJECTED, Outcome.SYNC)
    assert len(receiver.log) == 0


def test_a_claim_of_messages_that_nobody_has_ends() -> None:
    world = World(options=ChannelOptions(timeout_for_lost_messages_ms=10_000))
    world.add("a", "b")
    first = world.send("a", b"true")
    world.run(5_000)
    wire = ChannelWire("general", lambda: 0.5)
    place = wire.place(first)
    assert place is not None
    claim = StateVector({place.node: {place.bootstrap_time: 2**64 - 1}})
    forged = wire.sync(claim.encode(), node_name("mallory"), StateVector(), ())
    for core in world.cores.values():
        core.receive(forged, world.now_ms)
    world.run(60_000)
    lost = [event for event in world.told["b"] if isinstance(event, MessageLost)]
    assert len(lost) == WINDOW and not world.cores["b"].missing()
    second = world.send("a", b"still heard")
    world.run(5_000)
    assert world.delivered("b") == [b"true", b"still heard"]
    assert second.rsplit("/", 2)[1] != first.rsplit("/", 2)[1]  # another bootstrap time


def test_names_without_end_are_left_out() -> None:
    core = SvsCore(setting("a"))
    wire = ChannelWire("general", lambda: 0.5)
    boot = START // 1000 + 100_000
    for number in range(50):
        ahead = PublicationName(node_name(f"liar {number}"), boot, 1)
        arrival = core.receive(wire.message(ahead, START, b"x"), START)
        assert arrival.outcome is Outcome.REJECTED
    assert core.statistics().log_length == 0 and not core.missing()


def test_statistics_are_a_copy() -> None:
    core = SvsCore(setting("a"))
    core.statistics().counters.own_echoes += 1
    assert core.statistics().counters.own_echoes == 0


def test_a_newcomer_without_history_waits_for_nothing() -> None:
    world = World()
    world.add("a", "b")
    for number in range(20):
        world.send("a", b"old %d" % number)
        world.run(100)
    world.add("c")
    world.cores["c"].join(world.now_ms, wanted_from=world.now_ms, presume_ms=60_000)
    world.run(5_000)
    world.send("a", b"new")
    world.send("b", b"new too")
    world.run(60_000)
    assert sorted(world.delivered("c")) == [b"new", b"new too"]
    assert not any(isinstance(event, MessageLost) for event in world.told["c"])
    assert not world.cores["c"].missing()


def test_a_restart_asks_again_for_what_was_missing() -> None:
    def recorded(recorder: Recorder, now_ms: int = START) -> SvsCore:
        return SvsCore(replace(setting("b", now_ms=now_ms), recorder=recorder))

    def tables(changes: Changes) -> dict[str, list[Row]]:
        rows: dict[str, list[Row]] = {}
        for (table, _), row in changes.rows.items():
            if row is not None:
                rows.setdefault(table.name, []).append(row)
        return rows

    sender, kept = SvsCore(setting("a")), Recorder()
    receiver = recorded(kept)
    sender.send(b"missed", START)
    missed, _ = taken(sender.outgoing), sender.send(b"heard", START)
    for outgoing in taken(sender.outgoing):
        receiver.receive(outgoing.data, START)
    unsent = receiver.send(b"not out yet", START)
    again = recorded(Recorder(), START + 9_000)
    own = receiver.log.last(1)
    again.restore(tables(receiver.changes()), own, START + 9_000)
    assert [o.message_id for o in taken(again.outgoing) if o.kind is OutgoingKind.CONTENT] == [
        unsent
    ]
    assert [entry.entry.sender_id for entry in again.missing()] == ["a", "a"]
    assert list(again.unacknowledged) == [unsent]
    assert again.receive(missed[0].data, START + 9_000).outcome is Outcome.DELIVERED
    following = again.send(b"next", START + 9_000)
    assert following.rsplit("/", 1)[0] == unsent.rsplit("/", 1)[0]
    assert following.endswith("seq=2")


def outbox_keeps(core: SvsCore, now_ms: int) -> tuple[int, int]:
    """How many a core broadcasts at a time, and how many of them an outbox lets out."""
    core.on_deadline(now_ms)
    outbox, outgoing = Outbox(), taken(core.outgoing)
    for each in outgoing:
        outbox.put(each)
    return len(outgoing), len(outbox)


def test_the_outbox_takes_no_request_for_another() -> None:
    """Requests once were syncs without an id, of which the outbox keeps one."""
    sender, receiver = SvsCore(setting("a")), SvsCore(setting("b"))
    for number in range(20):
        sender.send(b"%d" % number, START)
    *_, last = taken(sender.outgoing)
    receiver.receive(last.data, START)
    receiver.outgoing.clear()
    assert outbox_keeps(receiver, START + 1_500) == (19, 19)


def test_the_outbox_takes_no_part_of_a_vector_for_another() -> None:
    core, boot = SvsCore(setting("a")), START // 1000
    names = [node_name(f"somebody with a long name: {'x' * 60} {number}") for number in range(600)]
    wire = ChannelWire("general", lambda: 0.5)
    vector = StateVector({name: {boot: 1} for name in names}).encode()
    core.receive(wire.sync(vector, node_name("b"), StateVector(), ()), START)
    made, kept = outbox_keeps(core, START + 60_000)
    assert made == kept == 600 + 3  # a request for each, and the vector in three parts


# -- whole channels --------------------------------------------------------------------------------


@pytest.fixture
def registered() -> Iterator[None]:
    registry = process_registry()
    if plugin in registry.plugins.values():  # found by its entry point
        yield
        return
    registry.add(plugin, "svs")
    yield
    process_registry.cache_clear()


async def heard(told: Told, wanted: set[bytes]) -> None:
    await told.until(lambda: set(told.contents) == wanted)


def make(
    at: MemoryNetwork | str,
    name: str,
    state: Path | None = None,
    encryption: SymmetricEncryption | None = None,
) -> ReliableChannel:
    """A participant in a network, or at a node's URL."""
    return ReliableChannel(
        at if isinstance(at, str) else None,
        transport=None if isinstance(at, str) else at.transport(),
        channel_id="general",
        sender_id=name,
        sync="svs",
        encryption=encryption,
        state=None if state is None else f"sqlite:///{state}",
    )


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
@pytest.mark.usefixtures("registered")
def test_channels_talk_and_go_on_after_a_restart(backend: str, tmp_path: Path) -> None:
    async def main() -> None:
        network = MemoryNetwork()
        state = tmp_path / "alice.sqlite"
        async with listening(make(network, "bob")) as bob:
            async with listening(make(network, "alice", state)):
                pass
            for life in range(3):
                alice = make(network, "alice", state)
                async with listening(alice):
                    await alice.send(b"life %d" % life)
                    await heard(bob, {b"life %d" % n for n in range(life + 1)})
            ids = [entry.message_id for entry in alice.log()]
            assert len({name.rsplit("/", 1)[0] for name in ids}) == 1  # one bootstrap time
            assert [name.rsplit("=", 1)[1] for name in ids] == ["1", "2", "3"]
        assert bob.contents == [b"life 0", b"life 1", b"life 2"]

    anyio.run(main, backend=backend)


@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
@pytest.mark.usefixtures("registered")
async def test_channels_talk_over_real_sockets(real_node: str) -> None:
    alice, bob = make(real_node, "alice"), make(real_node, "bob")
    async with listening(alice), listening(bob) as told:
        for number in range(5):
            await alice.send(b"%d" % number)
        await heard(told, {b"%d" % number for number in range(5)})
        assert alice.log_digest() == bob.log_digest()


@pytest.mark.usefixtures("registered")
def test_an_encrypted_channel_talks() -> None:
    async def main() -> None:
        network, key = MemoryNetwork(), Secret(bytes(32))
        alice, bob = (
            make(network, name, encryption=SymmetricEncryption(Keyring(key), context=b"general"))
            for name in ("alice", "bob")
        )
        async with listening(bob) as told, listening(alice):
            await alice.send(b"sealed")
            await heard(told, {b"sealed"})

    anyio.run(main)


def test_signed_senders_are_refused() -> None:
    with pytest.raises(ValueError, match="no signed senders"):
        SvsCore(replace(setting("a"), require_signatures=True))


def test_a_channel_without_syncs_is_refused_by_the_name_of_the_option() -> None:
    """The dialect of nim-sds has none."""
    context = setting("a")
    silent = replace(context.options, sync_min_interval_ms=0)
    with pytest.raises(ValueError, match=r"^`sync_min_interval_ms` must be .* \(got 0\)"):
        SvsCore(replace(context, options=silent))


def test_ephemeral_messages_are_told_and_leave_no_trace() -> None:
    sender, receiver = SvsCore(setting("a")), SvsCore(setting("b"))
    message_id = sender.send_ephemeral(b"once", START)
    [outgoing] = taken(sender.outgoing)
    assert receiver.receive(outgoing.data, START).outcome is Outcome.EPHEMERAL
    assert sender.receive(outgoing.data, START).outcome is Outcome.OWN
    assert taken(receiver.events) == [EphemeralReceived(message_id, "a", b"once")]
    assert len(receiver.log) == 0 and taken(receiver.outgoing) == []


def test_what_is_said_in_another_channel_is_not_ours() -> None:
    elsewhere = SvsCore(replace(setting("a"), channel_id="elsewhere"))
    core = SvsCore(setting("b"))
    elsewhere.send(b"hello", START)
    elsewhere.send_ephemeral(b"hello", START)
    elsewhere.on_deadline(START + 60_000)
    said = [outgoing.data for outgoing in taken(elsewhere.outgoing)]
    assert len(said) == 3
    for data in said:
        assert core.receive(data, START).reason is RejectionReason.WRONG_CHANNEL
    assert len(core.log) == 0 and not core.missing()


# -- repair policies -------------------------------------------------------------------------------


def test_others_are_asked_when_the_channel_says() -> None:
    alice = SvsCore(setting("alice"))
    bob = SvsCore(replace(setting("bob"), repair_on_demand=True))
    alice.send(b"missed", START)
    alice.outgoing.clear()
    alice.send(b"of which a later one tells", START)
    for outgoing in taken(alice.outgoing):
        bob.receive(outgoing.data, START)
    (wanted,) = taken(bob.wanted)
    assert [missing.entry for missing in bob.missing()] == [wanted.entry]
    assert taken(bob.wanted) == []

    def questions(until_ms: int) -> list[RepairRequested]:
        bob.on_deadline(until_ms)
        return [event for event in taken(bob.events) if isinstance(event, RepairRequested)]

    assert questions(START + 60_000) == []
    bob.ask_participants(wanted, START + 60_000)
    (request,) = questions(START + 62_000)
    assert request.message_ids == (wanted.entry.message_id,)
