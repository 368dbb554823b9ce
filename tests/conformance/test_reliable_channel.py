"""The end-to-end suite of logos-delivery, in its dialect, each participant with a node of its own.

Where theirs returns an error, this API raises, or does nothing where asking twice is no mistake.
"""

from pathlib import Path

import anyio
import pytest

from reliable_channel import ChannelOptions, MessageReceived, MessageSent
from reliable_channel.diagnostics import RepairRequested, RepairSent
from reliable_channel.errors import ChannelClosed, EmptyContent
from tests.channel.world import CHANNEL_ID, listening

from .world import (
    ALONE,
    DELIVERY_S,
    LATE_JOIN_S,
    NOTHING_MAY_COME_S,
    OTHER_TOPIC,
    REPAIR_S,
    REPAIRING,
    mesh,
    participant,
    transport,
)

pytestmark = pytest.mark.anyio


# -- lifecycle -------------------------------------------------------------------------------------


@pytest.mark.conformance("RC01")
async def test_opening_an_open_channel_makes_no_second_one(virtual_time: None) -> None:
    async with mesh("alice") as (line,):
        channel = participant(line, "alice")
        async with listening(channel) as told:
            assert channel.channel_id == CHANNEL_ID
            await channel.open()
            assert line.asked("POST", "/subscriptions") == 1
            await anyio.sleep(NOTHING_MAY_COME_S)
            assert told.events == []


@pytest.mark.conformance("RC02")
async def test_sending_on_a_channel_that_was_never_opened_is_refused() -> None:
    async with mesh("alice") as (line,):
        channel = participant(line, "alice")
        with pytest.raises(ChannelClosed, match=f"'{CHANNEL_ID}'"):
            await channel.send(b"hello")
        assert line.requests == []


@pytest.mark.conformance("RC03")
async def test_a_channel_closes_once(virtual_time: None) -> None:
    async with mesh("alice") as (line,):
        channel, never_opened = participant(line, "alice"), participant(line, "nobody")
        async with listening(channel) as told:
            await channel.aclose()
            await channel.aclose()
            await never_opened.aclose()
            await anyio.sleep(NOTHING_MAY_COME_S)
        assert told.events == []
        assert line.asked("DELETE", "/subscriptions") == 1
        for closed in (channel, never_opened):
            with pytest.raises(ChannelClosed):
                await closed.send(b"hello")


@pytest.mark.conformance("RC03b")
async def test_closing_one_channel_leaves_another_open() -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        alice, bob = participant(alices, "alice"), participant(bobs, "bob")
        other = participant(bobs, "bob", content_topic=OTHER_TOPIC)
        async with alice, listening(bob) as told, other:
            await other.aclose()
            await alice.send(b"hello")
            await told.first(MessageReceived)


# -- sending ---------------------------------------------------------------------------------------


@pytest.mark.conformance("RC04")
async def test_a_request_id_is_given_at_once() -> None:
    async with mesh("alice") as (line,), participant(line, "alice") as channel:
        with pytest.raises(EmptyContent):
            await channel.send(b"")
        node = line.node
        line.connect(None)
        request = await channel.send(b"hello")
        assert request.request_id and request.message_id
        line.connect(node)


@pytest.mark.conformance("RC04b")
async def test_an_ephemeral_message_is_accepted_or_refused_as_any_other() -> None:
    async with mesh("alice") as (line,):
        # nim-sds has no ephemeral messages.
        async with participant(line, "alice", options=ChannelOptions()) as channel:
            assert await channel.send_ephemeral(b"typing")
            with pytest.raises(EmptyContent):
                await channel.send_ephemeral(b"")


@pytest.mark.conformance("RC04c")
async def test_two_sends_have_two_request_ids() -> None:
    async with mesh("alice") as (line,), participant(line, "alice") as channel:
        requests = [await channel.send(b"the same") for _ in range(2)]
        assert len({request.request_id for request in requests}) == 2


# -- delivery --------------------------------------------------------------------------------------


@pytest.mark.conformance("RC05")
async def test_what_one_sends_the_other_receives() -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        alice, bob = participant(alices, "alice"), participant(bobs, "bob")
        async with alice, listening(bob) as told:
            await alice.send(b"\x00hello\xff")
            received = await told.first(MessageReceived, within_s=DELIVERY_S)
            assert (received.content, received.sender_id) == (b"\x00hello\xff", "alice")


@pytest.mark.conformance("RC06")
async def test_a_message_without_the_marker_does_not_reach_the_channel(virtual_time: None) -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        bare, bob = participant(alices, "alice", marker=b""), participant(bobs, "bob")
        async with listening(bare) as said, listening(bob) as told:
            await bare.send(b"unmarked")
            await said.first(MessageSent)
            await anyio.sleep(NOTHING_MAY_COME_S)
            assert told.events == []
            assert bob.statistics().transport.foreign


@pytest.mark.conformance("RC07")
async def test_another_content_topic_does_not_reach_the_channel(virtual_time: None) -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        elsewhere = participant(alices, "alice", content_topic=OTHER_TOPIC)
        async with listening(elsewhere) as said, listening(participant(bobs, "bob")) as told:
            await elsewhere.send(b"hello")
            sent = await said.first(MessageSent)
            await anyio.sleep(NOTHING_MAY_COME_S)
            assert told.events == []
            asking = transport(bobs, OTHER_TOPIC)
            assert len(await asking.by_hash([sent.message_hash])) == 1
            await asking.aclose()


@pytest.mark.conformance("RC08")
async def test_an_exchange_keeps_its_order() -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        alice, bob = participant(alices, "alice"), participant(bobs, "bob")
        async with listening(alice) as to_alice, listening(bob) as to_bob:
            await alice.send(b"m1")
            await to_bob.until(lambda: to_bob.contents == [b"m1"])
            await bob.send(b"m2")
            await to_alice.until(lambda: to_alice.contents == [b"m2"])
            await alice.send(b"m3")
            await to_bob.until(lambda: to_bob.contents == [b"m1", b"m3"])
            assert [entry.content for entry in alice.log()] == [b"m1", b"m2", b"m3"]
            assert alice.log_digest() == bob.log_digest()


@pytest.mark.conformance("RC09")
async def test_who_comes_late_gets_what_was_sent_again(virtual_time: None) -> None:
    options = ChannelOptions(wire_profile="nim")
    async with mesh("alice", "bob") as (alices, bobs):
        alice = participant(alices, "alice", options=options)
        late = participant(bobs, "bob", options=options, retrieval_strategy="none")
        async with listening(alice) as said:
            await alice.send(b"m1")
            await said.first(MessageSent)
            async with listening(late) as told:
                await alice.send(b"m2")
                await told.until(lambda: len(told.contents) == 2, within_s=LATE_JOIN_S)
                assert told.contents == [b"m1", b"m2"]


@pytest.mark.conformance("RC10")
async def test_a_message_whose_predecessor_is_missing_waits(virtual_time: None) -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        alice = participant(alices, "alice", options=ALONE)
        bob = participant(bobs, "bob", options=ALONE, drop_incoming=0)
        async with alice, listening(bob) as told:
            bob.cut_off(True)
            await alice.send(b"m1")
            await anyio.sleep(1)
            bob.cut_off(False)
            await alice.send(b"m2")
            await anyio.sleep(NOTHING_MAY_COME_S)
            assert told.contents == []
            assert bob.statistics().sds.incoming == 1


@pytest.mark.conformance("RC10r")
async def test_a_missing_message_is_repaired(virtual_time: None) -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        alice = participant(alices, "alice", options=REPAIRING)
        bob = participant(bobs, "bob", options=REPAIRING, drop_incoming=0)
        async with listening(alice) as said, listening(bob) as told:
            bob.cut_off(True)
            await alice.send(b"m1")
            await anyio.sleep(1)
            bob.cut_off(False)
            await alice.send(b"m2")
            with anyio.fail_after(REPAIR_S):
                while told.contents != [b"m1", b"m2"]:
                    await bob.send(b"still here")
                    await anyio.sleep(10)
            assert told.of(RepairRequested)
            assert said.of(RepairSent)
            assert bob.statistics().transport.repaired == 1


@pytest.mark.conformance("RC12")
async def test_each_of_three_receives_it_once(virtual_time: None) -> None:
    async with mesh("alice", "bob", "carol") as (alices, bobs, carols):
        alice, bob = participant(alices, "alice"), participant(bobs, "bob")
        async with alice, listening(bob) as one, listening(participant(carols, "carol")) as other:
            await alice.send(b"hello")
            await anyio.sleep(DELIVERY_S)
            for told in (one, other):
                (received,) = told.of(MessageReceived)
                assert (received.content, received.sender_id) == (b"hello", "alice")


@pytest.mark.conformance("RC13")
async def test_who_closes_and_comes_back_goes_on(virtual_time: None) -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        async with listening(participant(bobs, "bob")) as told:
            async with participant(alices, "alice") as alice:
                await alice.send(b"m1")
                await told.first(MessageReceived)
            async with participant(alices, "alice") as again:
                await again.send(b"m2")
                await told.until(lambda: len(told.contents) == 2)
                await anyio.sleep(NOTHING_MAY_COME_S)
            assert told.contents == [b"m1", b"m2"]


@pytest.mark.conformance("RCx", "LD-INGRESS-3")
async def test_a_closed_channel_is_silent(virtual_time: None) -> None:
    async with mesh("alice", "bob") as (alices, bobs):
        alice, bob = participant(alices, "alice"), participant(bobs, "bob")
        async with listening(alice) as said, listening(bob) as told:
            await bob.aclose()
            await alice.send(b"hello")
            sent = await said.first(MessageSent)
            await anyio.sleep(NOTHING_MAY_COME_S)
            assert told.events == []
            asking = transport(bobs)
            assert len(await asking.by_hash([sent.message_hash])) == 1
            await asking.aclose()


@pytest.mark.conformance("RCp")
async def test_a_channel_id_is_used_in_one_run_after_the_other(tmp_path: Path) -> None:
    for run in range(3):
        async with mesh("alice", "bob", stores=tmp_path) as (alices, bobs):
            alice, bob = participant(alices, "alice"), participant(bobs, "bob")
            async with listening(alice) as to_alice, listening(bob) as to_bob:
                await alice.send(b"ping %d" % run)
                await to_bob.until(lambda: b"ping %d" % run in to_bob.contents)  # noqa: B023
                await bob.send(b"pong %d" % run)
                await to_alice.until(lambda: b"pong %d" % run in to_alice.contents)  # noqa: B023
                for channel, told in ((alice, to_alice), (bob, to_bob)):
                    await told.until(lambda: len(channel.log()) == 2 * (run + 1))  # noqa: B023
                assert alice.log_digest() == bob.log_digest()
