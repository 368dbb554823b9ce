"""Gaps, orphans, and senders that lag, fall silent or send too much, in real and crafted Stores."""

from random import Random

import pytest

from reliable_channel._topic_reader import sds_message
from reliable_channel.sds.bloom import RollingBloomFilter
from reliable_channel.spi import BloomParameters
from reliable_channel_audit.store_audit.tally import MAX_RECENT, StoreTally

from .stores import TOPIC, StoredMessage, crafted, real_store, sync, troubles, verdict_of


def ids(stored: list[StoredMessage]) -> list[str]:
    """The messages of the log, in order of time."""
    found = [sds_message(each.payload) for each in stored]
    return [each[0].message_id for each in found if each is not None and each[0].content]


@pytest.mark.parametrize("profile", ["spec", "nim"])
@pytest.mark.anyio
async def test_a_whole_store_shows_nothing(profile: str, virtual_time: None) -> None:
    stored = await real_store(profile)
    verdict = verdict_of(stored)
    assert troubles(verdict) == []
    channel = verdict.tally.channels["ops"]
    assert (channel.messages, channel.orphans, len(channel.gaps)) == (24, 0, 0)
    assert sorted(channel.senders) == ["alice", "bob", "carol"]
    assert all(each.contents == 8 for each in channel.senders.values())
    assert all(each.tested and not each.lacking for each in channel.senders.values())


@pytest.mark.parametrize("place", [1, 10, 20])
@pytest.mark.anyio
async def test_a_message_that_is_absent_is_a_gap_and_what_refers_to_it_an_orphan(
    place: int, virtual_time: None
) -> None:
    stored = await real_store()
    gone = ids(stored)[place]
    kept = [each for each in stored if gone not in _id(each)]
    verdict = verdict_of(kept)
    assert ("gap", gone) in [each[:2] for each in troubles(verdict)]
    assert [each.message_id for each in verdict.findings if each.trouble == "gap"] == [gone]
    assert verdict.tally.channels["ops"].orphans == 23 - place


@pytest.mark.anyio
async def test_what_is_older_than_the_store_is_no_gap(virtual_time: None) -> None:
    stored = await real_store()
    cut = len(stored) // 2
    verdict = verdict_of(stored[cut:])
    assert "gap" not in [each.trouble for each in verdict.findings]
    assert all(gap.may_be_older for gap in verdict.tally.channels["ops"].gaps.values())
    assert verdict.tally.channels["ops"].gaps


def test_a_message_that_comes_late_is_no_gap() -> None:
    messages = [
        crafted("a", "alice", 0),
        crafted("b", "bob", 1, refers_to=["a"]),
        crafted("d", "bob", 3, refers_to=["a", "b", "c"]),
        crafted("c", "alice", 30, lamport_ms=0, refers_to=["a"]),
        sync("alice", 60, refers_to=["d"]),
    ]
    assert troubles(verdict_of(messages)) == []
    late = [*messages[:3], messages[4]]
    assert troubles(verdict_of(late)) == [("gap", "c", None)]


def test_a_repair_request_names_who_sent_what_is_absent() -> None:
    messages = [
        crafted("a", "alice", 0),
        crafted("b", "bob", 1, refers_to=["a"]),
        crafted("d", "bob", 3, refers_to=["b", "c"]),
        sync("alice", 20, refers_to=["d"], asks_for=["c"]),
        sync("bob", 40, refers_to=["d"]),
    ]
    verdict = verdict_of(messages)
    assert troubles(verdict) == [("gap", "c", "zoe")]
    assert "asked for once" in verdict.findings[0].detail


def test_what_is_referred_to_at_the_very_end_may_be_on_its_way() -> None:
    messages = [
        crafted("a", "alice", 0),
        crafted("b", "bob", 1, refers_to=["a"]),
        crafted("d", "bob", 3, refers_to=["b", "c"]),
    ]
    assert troubles(verdict_of(messages)) == []
    assert troubles(verdict_of(messages, settle_ms=0)) == [("gap", "c", None)]


def test_two_contents_under_one_id() -> None:
    first, other = crafted("a", "alice", 0), crafted("a", "mallory", 1, content=b"forged")
    assert troubles(verdict_of([first, crafted("a", "alice", 1)])) == []
    assert troubles(verdict_of([first, other])) == [("altered", "a", "mallory")]


def test_other_channels_and_what_is_no_sds_message_are_counted_apart() -> None:
    tally = StoreTally(0, "another")
    for payload in (crafted("a", "alice", 0).payload, b"no SDS message"):
        tally.add(TOPIC, 0, len(payload), payload)
    assert (tally.messages, dict(tally.foreign), tally.channels) == (2, {TOPIC: 1}, {})


def conversation(seconds: int, *senders: str) -> list[StoredMessage]:
    """A message every five seconds, in turns."""
    found: list[StoredMessage] = []
    for number, second in enumerate(range(0, seconds, 5)):
        refers_to = [f"m{number - 1}"] if number else []
        found.append(
            crafted(f"m{number}", senders[number % len(senders)], second, refers_to=refers_to)
        )
    return found


def ordered(*messages: StoredMessage) -> list[StoredMessage]:
    return sorted(messages, key=lambda each: each.timestamp_ns)


def test_a_filter_that_lacks_messages() -> None:
    talk = conversation(100, "alice", "bob")
    whole = RollingBloomFilter(BloomParameters(), (f"m{n}" for n in range(20)))
    half = RollingBloomFilter(BloomParameters(), (f"m{n}" for n in range(10)))
    good = verdict_of([*talk, sync("carol", 120, bloom_filter=bytes(whole))])
    assert troubles(good) == []
    assert good.tally.channels["ops"].senders["carol"].tested == 20
    bad = verdict_of([*talk, sync("carol", 120, bloom_filter=bytes(half))])
    assert troubles(bad) == [("lag", None, "carol")]
    carol = bad.tally.channels["ops"].senders["carol"]
    assert (carol.lacking, carol.lag_ms) == (10, 70_000), "since the message of second 50"
    short = verdict_of([*talk, sync("carol", 120, bloom_filter=b"of another size")])
    assert short.tally.channels["ops"].senders["carol"].tested == 0


def test_a_sender_that_falls_silent() -> None:
    talk = [*conversation(100, "alice", "bob", "carol"), *(sync("bob", 200 + n) for n in (0, 600))]
    later = [*talk, sync("alice", 500)]
    assert troubles(verdict_of(later, silent_ms=600_000)) == [("silent", None, "carol")]
    who = {who for _, _, who in troubles(verdict_of(talk, silent_ms=600_000))}
    assert who == {"alice", "carol"}
    assert troubles(verdict_of(talk)) == []


def test_a_sender_that_sends_more_than_it_may() -> None:
    flood = [crafted(f"f{n}", "mallory", n / 10, content=bytes([n])) for n in range(150)]
    assert troubles(verdict_of(flood)) == [("rate", None, "mallory")]
    slow = [crafted(f"f{n}", "mallory", n * 10, content=bytes([n])) for n in range(150)]
    assert troubles(verdict_of(slow)) == []


def test_somebody_elses_repairs_are_not_held_against_a_sender() -> None:
    copies = [crafted("a", "alice", n) for n in range(150)]
    verdict = verdict_of(copies)
    assert troubles(verdict) == []
    assert verdict.tally.channels["ops"].senders["alice"].copies == 149


def test_the_newest_are_in_order_of_time_and_bounded() -> None:
    seconds = Random(7).sample(range(10 * MAX_RECENT), 2 * MAX_RECENT)
    verdict = verdict_of(crafted(str(each), "alice", each) for each in seconds)
    newest = [each.message_id for each in verdict.tally.channels["ops"].newest]
    assert newest == [str(each) for each in sorted(seconds)[-MAX_RECENT:]]


@pytest.mark.anyio
async def test_a_real_member_that_hears_nothing_is_seen(virtual_time: None) -> None:
    verdict = verdict_of(await real_store(deaf="carol"))
    assert ("lag", None, "carol") in troubles(verdict)
    assert {who for _, _, who in troubles(verdict)} == {"carol"}


def _id(stored: StoredMessage) -> list[str]:
    found = sds_message(stored.payload)
    return [] if found is None else [found[0].message_id]
