"""MVDS on the transport of a channel, in virtual time."""

import pytest

from mvds_tests.channel.channel_world import OPTIONS, ChannelWorld
from mvds_tests.world import START_MS
from reliable_channel import DeliveryFailed, MessageAcknowledged, MessageReceived
from reliable_channel.diagnostics import MessageRejected, RejectionReason
from reliable_channel.errors import ContentTooLong, EmptyContent, OutgoingBufferFull
from reliable_channel.events import EphemeralReceived
from reliable_channel.options import BloomParameters, ChannelOptions, Limits
from reliable_channel.spi import CoreContext, Outcome, OutgoingKind, Recorder
from reliable_channel_mvds import SEED, GroupId, Message, Payload
from reliable_channel_mvds.channel import MvdsCore
from reliable_channel_mvds.channel.wire import Content, Envelope
from tests.sds.world import taken

NAMES = ("alice", "bob", "carol", "dave", "erin")


def _converged(world: ChannelWorld, *names: str) -> None:
    cores = [world[name].core for name in names]
    assert len({core.log.digest() for core in cores}) == 1
    assert not any(core.unacknowledged for core in cores)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("count", [2, 5])
def test_all_have_the_same_log_in_the_end(count: int, seed: int) -> None:
    world = ChannelWorld(*NAMES[:count], seed=seed, loss=0.3)
    for number in range(30):
        for name in NAMES[:count]:
            world.send(name, f"{name} {number}".encode())
        world.run(limit_ms=700)
        world.open(world.random.choice(NAMES[:count]))  # killed, and begun again
    world.run()
    _converged(world, *NAMES[:count])
    for name in NAMES[:count]:
        participant = world[name]
        assert len(participant.core.log) == 30 * count
        assert len(set(participant.contents)) == len(participant.contents) == 30 * (count - 1)
        acknowledged = [e for e in participant.events if isinstance(e, MessageAcknowledged)]
        assert len({e.message_id for e in acknowledged}) == len(acknowledged) == 30
    assert world[NAMES[0]].core.agenda.next_ms is None


def test_without_loss_a_message_is_broadcast_once() -> None:
    world = ChannelWorld(*NAMES, delay_ms=(50, 50))
    world.run()
    before = len(world.sent)
    world.send("alice", b"hello")
    world.run()
    kinds = [kind for _, kind, _ in world.sent[before:]]
    assert kinds.count(OutgoingKind.CONTENT) == 1
    assert (
        len(kinds) == 1 + 4
    )  # and an acknowledgement from each: the others hear it, so that nobody passes it on


def test_what_was_sent_before_anybody_came_is_offered() -> None:
    world = ChannelWorld("alice")
    world.send("alice", b"is anybody there?")
    world.run(60_000)
    world.open("bob")
    world.run()
    assert world["bob"].contents == [b"is anybody there?"]
    _converged(world, "alice", "bob")


def test_the_author_may_be_gone() -> None:
    world = ChannelWorld("alice", "bob")
    world.run(60_000)
    world.send("alice", b"my last words")
    world.run(60_000)
    world["alice"].deaf = True
    world.open("carol")
    world.run()
    (received,) = [e for e in world["carol"].events if e.wire_name == "message_received"]
    assert received.sender_id == "alice"  # type: ignore[union-attr]
    assert world["carol"].core.log.digest() == world["bob"].core.log.digest()


def test_a_newcomer_may_want_nothing_from_before() -> None:
    world = ChannelWorld("alice", "bob")
    world.send("alice", b"old")
    world.run(60_000)
    world.open("carol", wanted_from=world.now_ms)
    world.run(60_000)
    world.send("alice", b"new")
    world.run(60_000)
    world.open("carol")  # that outlives a restart
    world.run()
    assert world["carol"].contents == [b"new"]


def test_who_answers_nothing_is_gone_and_may_come_back() -> None:
    world = ChannelWorld(
        "alice", "bob", options=ChannelOptions(retry_interval_ms=1_000, max_retry_attempts=3)
    )
    world.run(60_000)
    world["bob"].deaf = True
    message_id = world.send("alice", b"hello?")
    world.run(600_000)
    (failed,) = [e for e in world["alice"].events if isinstance(e, DeliveryFailed)]
    assert (failed.message_id, failed.attempts) == (message_id, 4)
    assert world["alice"].core.statistics().participants == 0
    world["bob"].deaf = False
    world.send("bob", b"back again")
    world.run()
    assert world["bob"].contents == [b"hello?"]
    assert world["alice"].contents == [b"back again"]


def test_payloads_do_not_pile_up_while_the_transport_is_away() -> None:
    world = ChannelWorld("alice", "bob")
    world.run(60_000)
    core = world["alice"].core
    core.send(b"hello", world.now_ms)
    (content,) = taken(core.outgoing)
    made = []
    for now_ms in range(world.now_ms, world.now_ms + 3_600_000, 1_000):
        core.on_deadline(now_ms)
        made += [outgoing.message_id for outgoing in taken(core.outgoing)]
    assert len(made) == 1
    assert core.agenda.next_ms is None
    core.dispatched(made[0], world.now_ms)
    core.dispatched(content.message_id, world.now_ms)
    assert core.agenda.next_ms is not None


def test_what_never_went_out_goes_after_a_restart() -> None:
    world = ChannelWorld("alice", "bob")
    world.run(60_000)
    alice = world["alice"]
    alice.core.send(b"hello", world.now_ms)
    alice.store.write(alice.core.changes())
    world.open("alice")
    world.run()
    assert world["bob"].contents == [b"hello"]
    _converged(world, "alice", "bob")


def test_sending_again_and_giving_up() -> None:
    world = ChannelWorld("alice", "bob")
    world.run(60_000)
    core = world["alice"].core
    message_id = core.send(b"hello", world.now_ms)
    assert not core.resend_early("00" * 32, world.now_ms)
    assert [core.resend_early(message_id, world.now_ms) for _ in range(21)] == [True] * 20 + [False]
    assert len(taken(core.outgoing)) == 21
    core.abandon(message_id)
    assert not core.unacknowledged
    assert core.agenda.next_ms is None
    assert message_id in core.log


def test_ephemeral_messages() -> None:
    world = ChannelWorld("alice", "bob")
    alice = world["alice"]
    first, second = (alice.core.send_ephemeral(b"typing", world.now_ms) for _ in range(2))
    assert first != second
    world.step(alice)
    world.run(60_000)
    heard = [e for e in world["bob"].events if isinstance(e, EphemeralReceived)]
    assert [(e.sender_id, e.content) for e in heard] == [("alice", b"typing")] * 2
    assert {e.message_id for e in heard} == {first, second}
    assert not len(world["bob"].core.log)


def test_refusals() -> None:
    options = ChannelOptions(
        max_message_bytes=4_096,
        bloom=BloomParameters(capacity=100),
        limits=Limits(outgoing_messages=2),
    )
    core = ChannelWorld("alice", options=options)["alice"].core
    for send in (core.send, core.send_ephemeral):
        with pytest.raises(EmptyContent):
            send(b"", START_MS)
        with pytest.raises(ContentTooLong):
            send(bytes(5_000), START_MS)
    core.send(b"1", START_MS)
    core.send(b"2", START_MS)
    assert core.capacity_left == 0
    with pytest.raises(OutgoingBufferFull, match="outgoing_messages"):
        core.send(b"3", START_MS)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"sender_id": "a" * 300}, "allows ids of at most"),
        (
            {
                "options": ChannelOptions(
                    max_message_bytes=1_500, bloom=BloomParameters(capacity=100)
                )
            },
            "at least 1824",
        ),
        ({"require_signatures": True}, "signing"),
    ],
    ids=["id", "size", "signatures"],
)
def test_settings_that_cannot_be(change: dict[str, object], why: str) -> None:
    store = ChannelWorld("x")["x"].store
    arguments: dict[str, object] = {
        "channel_id": "general",
        "sender_id": "alice",
        "options": OPTIONS,
        "now_ms": START_MS,
        "random": lambda: 0.5,
        "recorder": Recorder(),
        "archive": store.archive(),
    }
    with pytest.raises(ValueError, match=why):
        MvdsCore(CoreContext(**(arguments | change)))  # type: ignore[arg-type]


# -- bad input -------------------------------------------------------------------------------------


def _group(world: ChannelWorld) -> GroupId:
    """The group of the channel, as it is on the wire."""
    core = world["alice"].core
    core.send(b"x", world.now_ms)
    envelope = [Envelope.decode(o.data) for o in taken(core.outgoing)][-1]
    return SEED.decode(envelope.payload).messages[0].group_id


def _message(group: GroupId, body: bytes) -> bytes:
    payload = SEED.encode(Payload(messages=(Message(group, 1, body),)))
    return Envelope("general", "mallory", payload=payload).encode()


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", RejectionReason.MALFORMED),
        (b"\xff\xff", RejectionReason.MALFORMED),
        (Envelope("general", "m" * 300).encode(), RejectionReason.MALFORMED),
        (Envelope("other", "mallory").encode(), RejectionReason.WRONG_CHANNEL),
        (Envelope("general", "mallory", payload=b"\xff").encode(), RejectionReason.MALFORMED),
        (_message(GroupId(b"o" * 32), b"x"), RejectionReason.WRONG_CHANNEL),
        (_message(GroupId(b"o"), b"x"), RejectionReason.MALFORMED),
    ],
    ids=["empty", "noise", "long id", "channel", "payload", "group", "group id"],
)
def test_what_is_refused_is_named(data: bytes, reason: RejectionReason) -> None:
    world = ChannelWorld("alice")
    arrival = world["alice"].core.receive(data, world.now_ms)
    assert arrival.outcome is Outcome.REJECTED
    (event,) = [e for e in taken(world["alice"].core.events) if isinstance(e, MessageRejected)]
    assert event.reason is reason


def test_every_truncation_is_named_or_says_less_and_the_whole_is_taken() -> None:
    world = ChannelWorld("alice")
    core = world["alice"].core
    message = _message(_group(world), Content("mallory", 1, b"hello").encode())
    core.events.clear()
    for end in range(len(message)):
        refused = core.receive(message[:end], world.now_ms).outcome is Outcome.REJECTED
        events = taken(core.events)
        assert not [event for event in events if isinstance(event, MessageReceived)]
        assert [type(event) for event in events].count(MessageRejected) == refused
    core.receive(message, world.now_ms)
    [event] = [e for e in taken(core.events) if isinstance(e, MessageReceived)]
    assert event.content == b"hello"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\xff", RejectionReason.MALFORMED),
        (Content("", 1, b"x").encode(), RejectionReason.MALFORMED),
        (Content("mallory", -1, b"x").encode(), RejectionReason.MALFORMED),
        (Content("mallory", 1, b"").encode(), RejectionReason.MALFORMED),
        (Content("mallory", 2**62, b"x").encode(), RejectionReason.LAMPORT_TOO_FAR_AHEAD),
    ],
    ids=["noise", "nobody", "negative", "empty", "future"],
)
def test_contents_that_cannot_be(body: bytes, reason: RejectionReason) -> None:
    world = ChannelWorld("alice")
    core = world["alice"].core
    before = core.log.digest()
    group = _group(world)
    core.events.clear()
    core.receive(_message(group, body), world.now_ms)
    (event,) = [e for e in taken(core.events) if isinstance(e, MessageRejected)]
    assert event.reason is reason
    assert len(core.log) == 1 and core.log.digest() != before


def test_participants_have_a_limit() -> None:
    world = ChannelWorld("alice", options=ChannelOptions(limits=Limits(participants=2)))
    core = world["alice"].core
    outcomes = [
        core.receive(Envelope("general", f"m{n}").encode(), world.now_ms).outcome for n in range(3)
    ]
    assert outcomes == [Outcome.SYNC, Outcome.SYNC, Outcome.REJECTED]


def test_own_envelopes_and_old_greetings() -> None:
    world = ChannelWorld("alice")
    core = world["alice"].core
    assert core.receive(Envelope("general", "alice").encode(), START_MS).outcome is Outcome.OWN
    hello = Envelope("general", "bob").encode()
    core.receive(hello, START_MS, sent_at_ns=(START_MS - 100_000) * 1_000_000)
    assert not taken(core.outgoing)
    core.receive(hello, START_MS, sent_at_ns=START_MS * 1_000_000)
    core.receive(hello, START_MS, sent_at_ns=START_MS * 1_000_000)  # the answer is on its way
    (answer,) = [Envelope.decode(outgoing.data) for outgoing in taken(core.outgoing)]
    assert (answer.recipient_id, answer.payload) == ("bob", b"")
