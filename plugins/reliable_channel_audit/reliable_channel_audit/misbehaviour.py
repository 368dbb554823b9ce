"""What others sent that no honest member sends, as one participant saw it.

These are figures, not findings: any program that may publish on a topic could have sent it, under
any name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from reliable_channel.diagnostics import RejectionReason
from reliable_channel.spi import Message, set_bits

from .lines import WIRE_IN, Line

MAX_FILL: Final = 0.99
"""Share of the bits of a bloom filter: one with all of them acknowledges every message. At its
capacity half of them are set; js-waku, which never empties its filter, comes here after some 70,000
messages."""
MAX_SENDERS: Final = 1_000
"""Maximum number of names that are counted separately, the first ones: a made-up name costs
nothing, and the first ones show when it began. Those after them are counted as one."""
OTHERS: Final = f"others, after the first {MAX_SENDERS:,} names"
DISHONEST: Final = frozenset(
    reason.value
    for reason in (
        RejectionReason.MALFORMED,
        RejectionReason.MISSING_ID,
        RejectionReason.LAMPORT_TOO_FAR_AHEAD,
        RejectionReason.ID_ALREADY_USED,
        RejectionReason.FORGED_ID,
        RejectionReason.UNDECRYPTABLE,
        RejectionReason.UNPROVEN_SENDER,
        RejectionReason.EXCESSIVE_REFERENCES,
    )
)
"""Why a message was refused that no honest member sends. The other reasons are of settings that
differ, and of a receiver that has no room."""


class Deed(NamedTuple):
    """What a sender did of one kind, as a participant saw it: the first time, and how often."""

    channel_id: str
    participant_id: str
    life: int
    sender: str
    """As the message called itself, quoted; that it had no name; or `OTHERS`."""
    what: str
    message_id: str
    at_ms: int
    times: int


class Names:
    """Names that strangers give themselves, of which only this many are counted separately."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def known_as(self, sender_id: str) -> str:
        """The name, quoted; or what it is counted as."""
        name = f"{sender_id!r:.80}" if sender_id else "a participant without a name"
        if name not in self._known and len(self._known) >= MAX_SENDERS:
            return OTHERS
        self._known.add(name)
        return name


class Misbehaviour:
    """Counts deeds by sender; takes the lines of a life in order."""

    def __init__(self, whose: tuple[str, str, int]) -> None:
        self._whose = whose
        self._names = Names()
        self._deeds: dict[tuple[str, str], Deed] = {}

    def __iter__(self) -> Iterator[Deed]:
        return iter(self._deeds.values())

    def add(self, line: Line, message: Message | None, at_ms: int) -> None:
        """Take a line, and the message that it carries."""
        sender_id, message_id = line.sender_id or "", line.message_id or ""
        match line.event:
            case "message_rejected":
                reason = str(json.loads(line.record or "{}").get("reason"))
                if reason in DISHONEST:
                    self.note(sender_id, f"refused as {reason}", message_id, at_ms)
            case "message_forged":
                self.note(sender_id, "took the id of another message", message_id, at_ms)
            case event if event == WIRE_IN and message is not None and message.bloom_filter:
                if _fill(message.bloom_filter) > MAX_FILL:
                    what = "a bloom filter that has everything"
                    self.note(message.sender_id, what, message.message_id, at_ms)

    def note(self, sender_id: str, what: str, message_id: str, at_ms: int) -> None:
        sender = self._names.known_as(sender_id)
        first = self._deeds.get((sender, what))
        if first is None:
            first = Deed(*self._whose, sender, what, message_id, at_ms, 0)
        self._deeds[sender, what] = first._replace(times=first.times + 1)


def _fill(bloom_filter: bytes) -> float:
    """The share of bits that are set, the few of a header among them."""
    return set_bits(bloom_filter) / (8 * len(bloom_filter))
