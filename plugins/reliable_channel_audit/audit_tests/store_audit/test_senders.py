"""Senders that lag, lack, fall silent or send too much; and those that do not."""

from random import Random

import pytest

from reliable_channel.sds.bloom import RollingBloomFilter
from reliable_channel.spi import BloomParameters
from reliable_channel_audit.store_audit.senders import MAX_RECENT, Newest, Recent

from .stores import StoredMessage, crafted, real_store, sync, troubles, verdict_of


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
    random = Random(7)
    newest = Newest(settle_ms=0)
    times = random.sample(range(10 * MAX_RECENT), 2 * MAX_RECENT)
    for at_ms in times:
        newest.add(Recent(at_ms, "alice", str(at_ms)))
    due = newest.due("bob", 10 * MAX_RECENT)
    assert [each.message_id for each in due] == [
        str(at_ms) for at_ms in sorted(times, reverse=True)[:20]
    ]
    assert newest.due("alice", 10 * MAX_RECENT) == [], "its own are not looked for"


@pytest.mark.anyio
async def test_a_real_member_that_hears_nothing_is_seen(virtual_time: None) -> None:
    verdict = verdict_of(await real_store(deaf="carol"))
    assert ("lag", None, "carol") in troubles(verdict)
    assert {who for _, _, who in troubles(verdict)} == {"carol"}
