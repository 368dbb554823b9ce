"""Counter of stored messages in order of time, with missing references and senders that lag."""

from __future__ import annotations

from bisect import insort
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import islice
from typing import Final, NamedTuple

from reliable_channel.spi import (
    NIM,
    SPEC,
    BloomFilterError,
    BloomParameters,
    HistoryEntry,
    Message,
    sds_message,
)

RATE_WINDOW_MS: Final = 600_000
"""Length of an RLN epoch on Waku's networks (ms)."""
FILTER_EVERY_MS: Final = 10_000
"""Period in which only the first bloom filter of a sender is examined (ms)."""
MAX_RECENT: Final = 1_000
"""Maximum number of the newest messages in a channel that a sender's filters are checked for."""
MAX_TESTED: Final = 20
"""Maximum number of ids that are looked for in a filter, the newest that the sender could have
received."""
_PROFILES: Final = {profile.name: profile for profile in (SPEC, NIM)}
_DIGEST_BYTES: Final = 8


@dataclass(slots=True)
class Sender:
    """Statistics of one sender in a Store. Times are by the sender's clock (ms), and Store does not
    prove them."""

    sender_id: str
    first_ms: int
    last_ms: int
    contents: int = 0
    """Number of the sender's log messages, each counted once."""
    copies: int = 0
    """Number of repeated messages, which are retries of the sender and repairs by others."""
    syncs: int = 0
    total_bytes: int = 0
    max_per_window: int = 0
    """Maximum number of first copies and sync messages in one `RATE_WINDOW_MS`."""
    tested: int = 0
    """Number of ids that were looked for in the sender's filters."""
    lacking: int = 0
    """Number of ids that the sender's filters lacked."""
    last_lacking: int = 0
    """Number of ids that the sender's newest filter lacked."""
    lag_ms: int = 0
    """Age of the oldest id that the sender's newest filter lacked (ms)."""
    max_lag_ms: int = 0
    _window: int = field(default=0, repr=False)
    _in_window: int = field(default=0, repr=False)
    _filter_ms: int | None = field(default=None, repr=False)

    def sent(self, message: Message, at_ms: int, size_bytes: int, *, is_copy: bool) -> None:
        """Count a message of the sender.

        A copy counts neither for times nor for the rate, because it may be another participant's
        repair.
        """
        self.total_bytes += size_bytes
        if is_copy:
            self.copies += 1
            return
        self.first_ms, self.last_ms = min(self.first_ms, at_ms), max(self.last_ms, at_ms)
        if message.content:
            self.contents += 1
        else:
            self.syncs += 1
        window = at_ms // RATE_WINDOW_MS
        if window != self._window:
            self._window, self._in_window = window, 0
        self._in_window += 1
        self.max_per_window = max(self.max_per_window, self._in_window)

    def shows(self, message: Message, profile: str, at_ms: int, recent: Iterable[Recent]) -> None:
        """Compare the bloom filter of a message with messages that the sender could have received,
        the newest first."""
        is_due = self._filter_ms is None or at_ms - self._filter_ms >= FILTER_EVERY_MS
        if not (message.bloom_filter and is_due):
            return
        self._filter_ms = at_ms
        form = _PROFILES[profile].bloom
        try:
            layout, words = form.read(message.bloom_filter, BloomParameters())
        except BloomFilterError:
            return  # of another size, which a Store does not tell
        due = list(islice(recent, MAX_TESTED))
        named = set(message.causal_ids)
        absent = [
            each.at_ms
            for each in due
            if each.message_id not in named
            and not layout.holds(words, form.hash_pair(each.message_id))
        ]
        self.tested += len(due)
        self.lacking += len(absent)
        self.last_lacking = len(absent)
        self.lag_ms = at_ms - min(absent, default=at_ms)
        self.max_lag_ms = max(self.max_lag_ms, self.lag_ms)


class Recent(NamedTuple):
    """Message of the log that other senders should soon have."""

    at_ms: int
    sender_id: str
    message_id: str


@dataclass(slots=True)
class MissingReference:
    """Message that is missing in Store although stored messages refer to it."""

    message_id: str
    sender_id: str | None
    """Sender of the missing message, if a repair request names the sender."""
    referred_by: str
    """Id of the first stored message that refers to the missing message."""
    at_ms: int
    """Time of the first message that refers to the missing message."""
    may_be_older: bool
    """True if the missing message may be older than the first stored message."""
    references: int = 0
    requests: int = 0
    """Number of repair requests for the missing message. A repair request shows that at least one
    participant lacked the message."""
    waiting: list[str] = field(default_factory=list, repr=False)
    """Ids of the stored messages that refer to the missing message."""


@dataclass(slots=True)
class ChannelTally:
    channel_id: str
    settle_ms: int
    first_ms: int
    last_ms: int
    senders: dict[str, Sender] = field(default_factory=dict)
    gaps: dict[str, MissingReference] = field(default_factory=dict)
    altered: list[tuple[str, str, int]] = field(default_factory=list)
    """Message id, sender id and time of each other content under the id of a stored message."""
    requests: int = 0
    """Number of message ids in all repair requests of the channel."""
    is_complete: bool = False
    """True if the whole causal history of some message is in Store. Messages that are missing after
    this message are then not older than the Store."""
    _contents: dict[str, bytes] = field(default_factory=dict, repr=False)
    """Of each message of the log the first bytes of its content's SHA-256."""
    newest: list[Recent] = field(default_factory=list, repr=False)
    """The newest messages of the log, in order of time."""

    @property
    def messages(self) -> int:
        """Number of log messages, each counted once."""
        return len(self._contents)

    @property
    def orphans(self) -> int:
        """Number of messages with a missing reference. From the Store alone, the order of messages
        with a missing reference is unknown."""
        return len({each for gap in self.gaps.values() for each in gap.waiting})

    def add(self, message: Message, profile: str, at_ms: int, size_bytes: int) -> None:
        self.first_ms, self.last_ms = min(self.first_ms, at_ms), max(self.last_ms, at_ms)
        sender = self.senders.get(message.sender_id)
        if sender is None:
            sender = self.senders[message.sender_id] = Sender(message.sender_id, at_ms, at_ms)
        is_logged = bool(message.content) and message.lamport_timestamp is not None
        is_copy = is_logged and message.message_id in self._contents
        sender.sent(message, at_ms, size_bytes, is_copy=is_copy)
        # What others asked for before it came is a repair: the filter is older than the copy.
        is_late = is_logged and message.message_id in self.gaps
        if is_logged:
            self._logged(message, at_ms, is_copy=is_copy)
        if not is_copy:
            self._refers(message, at_ms)
            if not is_late:
                until_ms = at_ms - self.settle_ms
                others = (e for e in reversed(self.newest) if e.sender_id != message.sender_id)
                recent = (each for each in others if each.at_ms <= until_ms)
                sender.shows(message, profile, at_ms, recent)
        for entry in message.repair_request:
            self.requests += 1
            if entry.message_id not in self._contents:
                self._gap(entry, message, at_ms).requests += 1

    def _logged(self, message: Message, at_ms: int, *, is_copy: bool) -> None:
        digest = sha256(message.content or b"").digest()[:_DIGEST_BYTES]
        if is_copy:
            if self._contents[message.message_id] != digest:
                self.altered.append((message.message_id, message.sender_id, at_ms))
            return
        self._contents[message.message_id] = digest
        insort(self.newest, Recent(at_ms, message.sender_id, message.message_id))
        del self.newest[:-MAX_RECENT]
        self.gaps.pop(message.message_id, None)

    def _refers(self, message: Message, at_ms: int) -> None:
        """Note what of a causal history is absent."""
        history = enumerate(message.causal_history)
        absent = [(at, each) for at, each in history if each.message_id not in self._contents]
        if not absent:
            self.is_complete = self.is_complete or bool(message.causal_history)
        for seen, (place, entry) in enumerate(absent):
            gap = self._gap(entry, message, at_ms)
            gap.references += 1
            # A history is in log order, so what stands after a stored message is no older.
            gap.may_be_older = gap.may_be_older and seen == place
            if message.content:
                gap.waiting.append(message.message_id)

    def _gap(self, entry: HistoryEntry, message: Message, at_ms: int) -> MissingReference:
        gap = self.gaps.get(entry.message_id)
        if gap is None:
            may_be_older = not self.is_complete
            gap = self.gaps[entry.message_id] = MissingReference(
                entry.message_id, entry.sender_id, message.message_id, at_ms, may_be_older
            )
        gap.sender_id = gap.sender_id or entry.sender_id
        return gap


class StoreTally:
    """Counter of all channels in a Store.

    Args:
        settle_ms: how long a message may be on its way.
        channel_id: count this channel alone.
    """

    def __init__(self, settle_ms: int, channel_id: str | None = None) -> None:
        self.channels: dict[str, ChannelTally] = {}
        self.messages = 0
        self.total_bytes = 0
        self.foreign: Counter[str] = Counter()
        """By content topic, what is no SDS message."""
        self._settle_ms = settle_ms
        self._channel_id = channel_id

    def add(self, content_topic: str, timestamp_ns: int, size_bytes: int, payload: bytes) -> None:
        """Add the next message in order of time, with its decrypted payload."""
        at_ms = timestamp_ns // 1_000_000
        self.messages += 1
        self.total_bytes += size_bytes
        found = sds_message(payload)
        if found is None:
            self.foreign[content_topic] += 1
            return
        message, profile = found
        channel_id = message.channel_id
        if self._channel_id not in (None, channel_id):
            return
        channel = self.channels.get(channel_id)
        if channel is None:
            channel = ChannelTally(channel_id, self._settle_ms, at_ms, at_ms)
            self.channels[channel_id] = channel
        channel.add(message, profile, at_ms, size_bytes)
