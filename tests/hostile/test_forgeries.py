"""Attack: messages under stolen ids and names."""

from dataclasses import replace

import anyio
import pytest

from reliable_channel.events import MessageForged, MessageReceived, MessageSent
from reliable_channel.sds import HistoryEntry, Outcome, SdsProtocol
from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.events import MessageRejected, Outgoing, RejectionReason, RepairSent
from reliable_channel.sds.ids import is_proven, js_waku_id, reliable_channel_id
from reliable_channel.transport import MemoryNetwork
from tests.channel.world import listening, make_channel, now_ns
from tests.sds.world import NOW_MS, events, forge, give, only, participant, send, taken

SENT_NS = NOW_MS * 1_000_000


def true_message(content: bytes = b"true") -> Outgoing:
    return send(participant("alice"), content)


def stolen(true: Outgoing, content: bytes = b"forged", sender: str = "alice") -> bytes:
    """Another content under the id of a message."""
    return forge(true.message_id, sender=sender, content=content, lamport=NOW_MS + 5)


def take(core: SdsProtocol, true: Outgoing) -> Outcome:
    """Receive a message as it was first sent."""
    assert true.timestamp_ns is not None
    return core.receive(true.data, NOW_MS, sent_at_ns=true.timestamp_ns).outcome


@pytest.mark.parametrize("sender", ["alice", "mallory", "bob"])
def test_the_true_message_replaces_one_that_stole_its_id_and_came_first(sender: str) -> None:
    bob, true = participant("bob"), true_message()
    bob.receive(stolen(true, sender=sender), NOW_MS, sent_at_ns=SENT_NS + 1)
    bob.receive(forge("after", after=[true.message_id], lamport=NOW_MS + 9), NOW_MS)
    assert take(bob, true) is Outcome.DELIVERED
    told = [e for e in taken(bob.events) if isinstance(e, MessageReceived | MessageForged)]
    assert [type(e) for e in told] == [
        MessageReceived,
        MessageReceived,
        MessageForged,
        MessageReceived,
    ]
    assert told[2] == MessageForged(true.message_id, sender, b"forged")
    assert (told[3].sender_id, told[3].content) == ("alice", b"true")
    assert [entry.content for entry in bob.log] == [b"true", b"content"]
    assert take(bob, true) is Outcome.DUPLICATE


def test_it_replaces_one_that_waits() -> None:
    bob, true = participant("bob"), true_message()
    waits = forge(true.message_id, sender="alice", content=b"forged", after=["u"])
    assert bob.receive(waits, NOW_MS).outcome is Outcome.PARKED
    assert take(bob, true) is Outcome.DELIVERED
    told = taken(bob.events)
    assert only(e for e in told if isinstance(e, MessageRejected)).reason is (
        RejectionReason.FORGED_ID
    )
    assert only(e.content for e in told if isinstance(e, MessageReceived)) == b"true"
    assert bob.incoming_buffer.size_bytes == 0


def test_what_is_passed_on_is_the_true_message() -> None:
    bob, true = participant("bob"), true_message()
    bob.receive(stolen(true), NOW_MS)
    request = forge("r", content=None, requests=[HistoryEntry(true.message_id, None, "alice")])
    bob.receive(request, NOW_MS)
    take(bob, true)
    again = forge("r2", content=None, requests=[HistoryEntry(true.message_id, None, "alice")])
    bob.receive(again, NOW_MS)
    bob.on_deadline(NOW_MS + 300_000)
    assert only(events(bob, RepairSent)).message_id == true.message_id
    assert true.data in [outgoing.data for outgoing in taken(bob.outgoing)]


@pytest.mark.parametrize("sent_at_ns", [None, 0, SENT_NS + 1, 2**63])
def test_a_forged_copy_that_comes_second_is_refused(sent_at_ns: int | None) -> None:
    bob, true = participant("bob"), true_message()
    take(bob, true)
    arrival = bob.receive(stolen(true), NOW_MS, sent_at_ns=sent_at_ns)
    assert arrival.reason is RejectionReason.ID_ALREADY_USED
    assert [entry.content for entry in bob.log] == [b"true"]


def test_a_repetition_proves_nothing_so_that_who_came_first_stays() -> None:
    """Retries and repairs have other stamps. Only a signature could tell here."""
    bob, true = participant("bob"), true_message()
    bob.receive(stolen(true), NOW_MS)
    arrival = bob.receive(true.data, NOW_MS, sent_at_ns=SENT_NS + 1_000)
    assert arrival.reason is RejectionReason.ID_ALREADY_USED
    assert take(bob, true) is Outcome.DELIVERED  # as Store has it


def test_ids_of_js_waku_prove_themselves() -> None:
    bob = participant("bob")
    message_id = js_waku_id("", 0, b"true")
    bob.receive(forge(message_id, sender="alice", content=b"forged"), NOW_MS)
    true = forge(message_id, sender="alice", content=b"true")
    assert bob.receive(true, NOW_MS).outcome is Outcome.DELIVERED
    assert bob.receive(forge(message_id, sender="carol", content=b"true"), NOW_MS).outcome is (
        Outcome.DUPLICATE
    )
    assert [entry.content for entry in bob.log] == [b"true"]


@pytest.mark.parametrize("sender", ["alice", "mallory"])
def test_a_forged_copy_of_an_own_message_is_refused(sender: str) -> None:
    alice = participant("alice")
    mine = send(alice, b"mine")
    arrival = alice.receive(stolen(mine, sender=sender), NOW_MS, sent_at_ns=mine.timestamp_ns)
    assert arrival.reason is RejectionReason.ID_ALREADY_USED
    assert only(events(alice, MessageRejected)).message_id == mine.message_id
    assert alice.receive(mine.data, NOW_MS).outcome is Outcome.OWN
    assert [entry.content for entry in alice.log] == [b"mine"]


def test_a_new_message_in_an_honest_name_is_not_noticed() -> None:
    """Not defended: who may speak as alice is decided by signed senders alone."""
    bob, alice = participant("bob"), participant("alice")
    assert bob.receive(forge("m", sender="alice"), NOW_MS).outcome is Outcome.DELIVERED
    give(bob, send(alice, b"honest"))
    assert [e.content for e in events(bob, MessageReceived)] == [b"content", b"honest"]


def test_an_id_that_runs_its_parts_together_is_not_read_in_another_way() -> None:
    """`bot1` at 17… saying `763 people` is, read otherwise, somebody else at another time."""

    def proven(sender: str, digits: str, content: bytes) -> bool:
        assert reliable_channel_id(sender, int(digits), content) == message_id
        return is_proven(message_id, sender, content, int(digits), NOW_MS)

    stamp = str(SENT_NS)
    message_id = reliable_channel_id("bot1", SENT_NS, b"763 people")
    assert proven("bot1", stamp, b"763 people")
    assert not proven("bot", "1" + stamp, b"763 people")
    assert not proven("bot", "1" + stamp[:-1], stamp[-1:].encode() + b"763 people")
    assert not proven("bot1" + stamp[:1], stamp[1:] + "7", b"63 people")
    assert not proven("bot1", stamp + "7", b"63 people")


@pytest.mark.anyio
async def test_through_whole_channels_the_true_message_wins() -> None:
    """Mallory reads what alice sends, and bob gets mallory's copy before alice's."""
    network, seen_by_mallory = MemoryNetwork(), MemoryNetwork()
    to_bob = network.transport()
    alice = make_channel(seen_by_mallory.transport(), "alice")
    async with (
        listening(alice) as told,
        listening(make_channel(network.transport(), "bob")) as bob,
    ):
        request = await alice.send(b"true")
        true = seen_by_mallory.store[(await told.first(MessageSent)).message_hash]
        message = SpecCodec().decode(true.payload)
        assert message.message_id == request.message_id
        copy = SpecCodec().encode(replace(message, content=b"forged"))
        for payload, stamp, content in (
            (copy, true.timestamp_ns + 1, b"forged"),
            (true.payload, true.timestamp_ns, b"true"),
        ):
            envelope = to_bob.envelope(payload, timestamp_ns=stamp, ephemeral=False)
            await to_bob.publish(envelope)
            await bob.until(lambda: content in bob.contents)  # noqa: B023 (awaited in its turn)
        forged = await bob.first(MessageForged)
        assert (forged.content, bob.contents) == (b"forged", [b"forged", b"true"])


@pytest.mark.anyio
async def test_a_message_that_waited_for_its_node_is_stamped_anew(virtual_time: None) -> None:
    """Networks refuse old stamps, so that this one proves nothing."""
    network = MemoryNetwork()
    async with listening(alice := make_channel(network.transport(), "alice")) as told:
        network.away = True
        request = await alice.send(b"late")
        accepted_ns = now_ns()
        await anyio.sleep(20)
        network.away = False
        sent = network.store[(await told.first(MessageSent)).message_hash]
        assert sent.timestamp_ns - accepted_ns > 10 * 1_000_000_000
        stamp = sent.timestamp_ns
        assert not is_proven(request.message_id, "alice", b"late", stamp, stamp // 1_000_000)
