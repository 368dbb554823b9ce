"""Problems that a Store shows, and questions that a Store cannot answer."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any, Final, NamedTuple

from ..verdict import often
from .tally import RATE_WINDOW_MS, ChannelTally, MissingReference, Sender, StoreTally

MAX_PER_WINDOW: Final = 100
"""Maximum number of a member's messages in ten minutes, by RLN's limit on Waku's networks."""


TROUBLES: Final = {
    "gap": "messages refer to it, and it is not in Store",
    "altered": "two contents under one id",
    "lag": "the newest bloom filter lacks messages that had time to arrive",
    "silent": "nothing is stored any more",
    "rate": "more messages in ten minutes than allowed",
}
"""Kinds of findings in a Store, the worst first, with their meanings."""
SYNC_LAG: Final = "when participants last synced, and which fell silent"
READERS: Final = "how many participants there are"
LAG_OF_SENDERS: Final = "whether all senders receive"


class StoreFinding(NamedTuple):
    """Finding in a Store for an operator."""

    trouble: str
    channel_id: str
    sender_id: str | None
    message_id: str | None
    at_ms: int
    detail: str


class Unknown(NamedTuple):
    """Question about a channel that the Store cannot answer, with the reason."""

    channel_id: str
    what: str
    why: str


class StoreVerdict(NamedTuple):
    """Verdict on the messages of a Store."""

    tally: StoreTally
    findings: list[StoreFinding]
    unknown: list[Unknown]

    def to_dict(self) -> dict[str, Any]:
        """Return the whole verdict for programs."""
        tally = self.tally
        return {
            "messages": tally.messages,
            "total_bytes": tally.total_bytes,
            "foreign": dict(tally.foreign),
            "channels": [_channel(each) for each in tally.channels.values()],
            "findings": [each._asdict() for each in self.findings],
            "unknown": [each._asdict() for each in self.unknown],
        }


def judged(
    tally: StoreTally, *, silent_ms: int | None = None, max_per_window: int = MAX_PER_WINDOW
) -> StoreVerdict:
    """Return the verdict on a Store, with the worst problems first.

    Args:
        silent_ms: Time without messages of a sender, beyond which it is a finding (ms). By default
            silence is no finding, because mere readers send only sync messages.
        max_per_window: Maximum number of a sender's messages in ten minutes.
    """
    order, channels = list(TROUBLES), tally.channels.values()
    found = [each for channel in channels for each in _found(channel, silent_ms, max_per_window)]
    found.sort(key=lambda each: (order.index(each.trouble), each.channel_id, each.at_ms))
    unknown = [each for channel in channels for each in _unknown(channel)]
    return StoreVerdict(tally, found, unknown)


def _unknown(channel: ChannelTally) -> Iterator[Unknown]:
    senders = channel.senders.values()
    synced = sum(each.syncs > 0 for each in senders)
    if synced < len(senders):
        of = f"{synced:,} of {len(senders):,} senders"
        why = f"syncs of {of} are stored; most peers send them as ephemeral messages"
        yield Unknown(channel.channel_id, SYNC_LAG, why)
    yield Unknown(channel.channel_id, READERS, "a participant that only reads stores nothing")
    untested = sum(not each.tested for each in senders)
    if untested:
        why = f"{untested:,} of {len(senders):,} senders have no stored bloom filter to look into"
        yield Unknown(channel.channel_id, LAG_OF_SENDERS, why)


def _found(
    channel: ChannelTally, silent_ms: int | None, max_per_window: int
) -> Iterator[StoreFinding]:
    name = channel.channel_id
    for gap in channel.gaps.values():
        if not gap.may_be_older and gap.at_ms <= channel.last_ms - channel.settle_ms:
            asked = f", asked for {often(gap.requests)}" if gap.requests else ""
            detail = f"{gap.references} references, first in {gap.referred_by}{asked}"
            yield StoreFinding("gap", name, gap.sender_id, gap.message_id, gap.at_ms, detail)
    for message_id, sender_id, at_ms in channel.altered:
        detail = "the first content in Store is another one"
        yield StoreFinding("altered", name, sender_id, message_id, at_ms, detail)
    for sender in channel.senders.values():
        about = name, sender.sender_id, None, sender.last_ms
        for_ms = channel.last_ms - sender.last_ms
        if silent_ms is not None and for_ms > silent_ms:
            perhaps = "" if sender.syncs else "; it may read, as none of its syncs is stored"
            detail = f"for {_seconds(for_ms)}, while others went on{perhaps}"
            yield StoreFinding("silent", *about, detail)
        if sender.last_lacking:
            share = f"{sender.lacking} of {sender.tested} in all its filters"
            detail = f"{sender.last_lacking}, since {_seconds(sender.lag_ms)}; {share}"
            yield StoreFinding("lag", *about, detail)
        if sender.max_per_window > max_per_window:
            minutes = RATE_WINDOW_MS // 60_000
            yield StoreFinding("rate", *about, f"{sender.max_per_window} in {minutes} minutes")


def _seconds(ms: int) -> str:
    return f"{ms / 1000:,.0f} s"


def _channel(channel: ChannelTally) -> dict[str, Any]:
    return {
        "channel_id": channel.channel_id,
        "messages": channel.messages,
        "first_ms": channel.first_ms,
        "last_ms": channel.last_ms,
        "gaps": [_values(gap) for gap in channel.gaps.values()],
        "orphans": channel.orphans,
        "repair_requests": channel.requests,
        "altered": len(channel.altered),
        "senders": [_values(sender) for sender in channel.senders.values()],
    }


def _values(of: MissingReference | Sender) -> dict[str, Any]:
    """The figures of a gap or of a sender."""
    return {each.name: getattr(of, each.name) for each in fields(of) if each.repr}
