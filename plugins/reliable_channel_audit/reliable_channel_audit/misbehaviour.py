"""Messages from others that no honest member sends, as one participant received them.

The messages are figures, not findings, because any program could have sent them under any name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final, NamedTuple

from reliable_channel.diagnostics import RejectionReason
from reliable_channel.spi import Message, set_bits

from .lines import WIRE_IN, Line

MAX_FILL: Final = 0.99
"""Share of set bits beyond which a bloom filter is suspicious, because it acknowledges everything.
A filter at its capacity has half of its bits set. js-waku never empties its filter, and sets 99 %
of the bits after about 70,000 messages."""
MAX_SENDERS: Final = 1_000
"""Maximum number of sender names that are counted separately, in order of their appearance. Anybody
can invent names without cost, and the first names show how it began. Later names are counted
together as one."""
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
"""Reasons for refusals of messages that no honest member sends. Other refusals have harmless
causes, such as different settings or a receiver without room."""


class Deed(NamedTuple):
    """Misbehaviour of one kind by one sender, with its first time and its number."""

    channel_id: str
    participant_id: str
    life: int
    sender: str
    """Name in the message in quotation marks, or a text for an empty name, or `OTHERS`."""
    what: str
    message_id: str
    at_ms: int
    times: int


class Misbehaviour:
    """Counter of misbehaviour by sender, from a participant's journal lines in order."""

    def __init__(self, whose: tuple[str, str, int]) -> None:
        self._whose = whose
        self._names: set[str] = set()
        self._deeds: dict[tuple[str, str], Deed] = {}

    def __iter__(self) -> Iterator[Deed]:
        return iter(self._deeds.values())

    def add(self, line: Line, message: Message | None, at_ms: int) -> None:
        """Process the next line of the journal, with the message in the line."""
        sender_id, message_id = line.sender_id or "", line.message_id or ""
        match line.event:
            case "message_rejected":
                reason = str(json.loads(line.record or "{}").get("reason"))
                if reason in DISHONEST:
                    self.note(sender_id, f"refused as {reason}", message_id, at_ms)
            case "message_forged":
                self.note(sender_id, "took the id of another message", message_id, at_ms)
            case event if event == WIRE_IN and message is not None and message.bloom_filter:
                bits = 8 * len(message.bloom_filter)  # the few of a header among them
                if set_bits(message.bloom_filter) > MAX_FILL * bits:
                    what = "a bloom filter that has everything"
                    self.note(message.sender_id, what, message.message_id, at_ms)

    def note(self, sender_id: str, what: str, message_id: str, at_ms: int) -> None:
        sender = f"{sender_id!r:.80}" if sender_id else "a participant without a name"
        if sender not in self._names and len(self._names) >= MAX_SENDERS:
            sender = OTHERS
        else:
            self._names.add(sender)
        first = self._deeds.get((sender, what))
        if first is None:
            first = Deed(*self._whose, sender, what, message_id, at_ms, 0)
        self._deeds[sender, what] = first._replace(times=first.times + 1)
