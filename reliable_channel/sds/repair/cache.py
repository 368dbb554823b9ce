"""Cache of wire messages, from which repair requests are answered, and its saved form.

Own messages are saved as differences, in groups. Each message of a group, except the first, is
saved as its difference from the previous message. A group therefore leaves the saved state as a
whole, after its last message left the cache.

A draft has 20 kB by default, nearly all of which also is in the previous draft. A causal history
loses entries at its start and gets new entries at its end. The difference has about 500 bytes.

A difference is a sequence of pieces. A piece `=` has a length and new bytes. A piece `@` has start
and length of a part of the base. Numbers in a piece have 4 bytes.
"""

import struct
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple, SupportsBytes

from ..changes import NO_RECORDER, DamagedRow, Recorder, Row, typed_table
from ..draft import Draft

_ONE: Final = struct.Struct(">I")
_TWO: Final = struct.Struct(">II")
_ANCHOR_BYTES: Final = 64
"""Bytes that a piece is looked for by: shorter than an entry of a causal history."""
MAX_GROUP: Final = 64
"""Maximum number of messages in a group, whose first message has 20 kB by default."""
SMALL_BYTES: Final = 2_048
"""Maximum size (bytes) of a message that is always written whole."""


class Assembled(NamedTuple):
    """Message, and its part that resembles the previous message."""

    data: bytes
    history: bytes


def difference(base: Assembled, message: Assembled) -> bytes | None:
    """Return a message as a difference, or None if the difference saves few bytes."""
    data, history = message
    anchor = history[:_ANCHOR_BYTES]
    old, start = base.history.find(anchor), data.find(anchor)
    first = base.data.find(base.history[:_ANCHOR_BYTES])
    if not anchor or min(old, start, first) < 0:
        return None
    part, piece = base.history[old:], first + old  # the one copy of 20 kB
    if not history.startswith(part):
        part = part[: _common(part, history)]
    # A restart must find the very same bytes.
    if not (data.startswith(part, start) and base.data.startswith(part, piece)):
        return None
    where, rest = _TWO.pack(piece, len(part)), data[start + len(part) :]
    found = b"".join((_literal(data[:start]), b"@", where, _literal(rest)))
    return found if len(found) < len(data) // 2 else None


def restored(base: bytes, difference: bytes) -> bytes:
    """Return the message that the base and the difference give."""
    pieces, at = list[bytes](), 0
    while at < len(difference):
        if difference[at : at + 1] == b"=":
            (length,) = _ONE.unpack_from(difference, at + 1)
            at += 1 + _ONE.size
            pieces.append(difference[at : at + length])
            at += length
        else:
            start, length = _TWO.unpack_from(difference, at + 1)
            at += 1 + _TWO.size
            pieces.append(base[start : start + length])
    return b"".join(pieces)


def _common(one: bytes, other: bytes) -> int:
    """How many bytes both begin with."""
    least, most = 0, min(len(one), len(other))
    if one[:most] == other[:most]:
        return most
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _literal(data: bytes) -> bytes:
    return b"=%b%b" % (_ONE.pack(len(data)), data)


class _WholeRow(NamedTuple):
    message_id: str
    number: int
    data: bytes


class _DifferenceRow(NamedTuple):
    message_id: str
    number: int
    base: int | None
    data: bytes


REPAIR_CACHE: Final = typed_table("repair_cache", _WholeRow)
DIFFERENCES: Final = typed_table("repair_cache_differences", _DifferenceRow)
"""Table of messages that are saved as differences. `base` is the number of the previous message."""


_Group = dict[str, bool]
"""Ids in order, and whether the message is still in the cache."""


class KeptMessages:
    """Saved messages of a repair cache, which survive a restart."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._groups: dict[str, _Group] = {}
        self._numbers: dict[str, int] = {}
        self._number = 0
        self._newest: tuple[str, Assembled] | None = None
        """What the next own message may be a difference from."""

    def put(self, message_id: str, data: bytes, own: Assembled | None) -> None:
        """Save a message of the cache. `own` has the parts of an own message."""
        self._number += 1
        if own is not None and len(data) > SMALL_BYTES:
            newest, self._newest = self._newest, (message_id, own)
            if newest is not None and self._put_difference(message_id, own, *newest):
                return
        self._put_whole(message_id, self._number, data)

    def evicted(self, message_id: str) -> None:
        """Note that the oldest message was evicted from the cache."""
        if (group := self._groups.get(message_id)) is not None:
            group[message_id] = False
            if not any(group.values()):
                self._delete(list(group))

    def remove(self, message_id: str, messages: Mapping[str, tuple[int, SupportsBytes]]) -> None:
        """Delete a message from the saved state. `messages` are the messages in the cache
        with their sizes."""
        group = self._groups.get(message_id, {})
        if message_id not in group:
            return
        # Rare: what is a difference from it, and so on, is written anew.
        later = list(group)[list(group).index(message_id) :]
        numbers = [(each, self._numbers[each]) for each in later[1:] if group[each]]
        self._delete(later)
        for each in later:
            del group[each]
        for each, number in numbers:
            self._put_whole(each, number, bytes(messages[each][1]))
        if not any(group.values()):
            self._delete(list(group))

    def restore(self, whole: Iterable[Row], differences: Iterable[Row]) -> dict[str, bytes]:
        """Restore the messages that were saved before a restart. Return the messages, oldest
        first."""
        messages: dict[str, bytes] = {}
        by_number: dict[int, tuple[str, _Group]] = {}
        rows = [_DifferenceRow(*row[:2], None, row.data) for row in REPAIR_CACHE.read(whole)]
        rows += DIFFERENCES.read(differences)
        for message_id, number, base, data in sorted(rows, key=attrgetter("number")):
            group: _Group = {}
            if base is not None:
                base_id, group = by_number[base]
                try:
                    data = restored(messages[base_id], data)
                except struct.error as error:
                    raise DamagedRow(
                        f"the stored difference of message {message_id!r} is damaged: {error}"
                    ) from error
            messages[message_id] = data
            by_number[number] = message_id, group
            self._add(message_id, number, group)
            self._number = number
        return messages

    def _put_difference(
        self, message_id: str, message: Assembled, base_id: str, base: Assembled
    ) -> bool:
        """Write a message as a difference, if it is similar to the one before."""
        group = self._groups.get(base_id, {})
        if not 0 < len(group) < MAX_GROUP:
            return False
        if (found := difference(base, message)) is None:
            return False
        self._recorder.put(DIFFERENCES, message_id, self._number, self._numbers[base_id], found)
        self._add(message_id, self._number, group)
        return True

    def _put_whole(self, message_id: str, number: int, data: bytes) -> None:
        self._recorder.put(REPAIR_CACHE, message_id, number, data)
        self._add(message_id, number, {})

    def _add(self, message_id: str, number: int, group: _Group) -> None:
        group[message_id] = True
        self._groups[message_id], self._numbers[message_id] = group, number

    def _delete(self, message_ids: Iterable[str]) -> None:
        for message_id in message_ids:
            group = self._groups.pop(message_id)
            del self._numbers[message_id]
            is_whole = next(iter(group)) == message_id
            self._recorder.delete(REPAIR_CACHE if is_whole else DIFFERENCES, message_id)


class RepairCache:
    """Newest wire messages of all participants, to answer repair requests. The total size in bytes
    is limited.

    Args:
        evicted: called with the id of each saved message that leaves.
    """

    def __init__(
        self,
        limit_bytes: int,
        recorder: Recorder = NO_RECORDER,
        evicted: Callable[[str], object] = lambda message_id: None,
    ) -> None:
        self._limit_bytes = limit_bytes
        self._evicted = evicted
        # Not a dict: taking the first key of one is linear in the keys deleted before it.
        self._messages: OrderedDict[str, tuple[int, bytes | Draft]] = OrderedDict()
        self._is_recorded = recorder is not NO_RECORDER
        self._kept = KeptMessages(recorder)
        self.size_bytes = 0

    def __contains__(self, message_id: str) -> bool:
        return message_id in self._messages

    def add(
        self,
        message_id: str,
        data: bytes | Draft,
        *,
        durably: bool = False,
        own: Assembled | None = None,
    ) -> bool:
        """Add a message to the cache, with `durably` also to the saved state. The oldest messages
        are evicted.

        Return True if the message is new and not too large.
        """
        size_bytes = data.size_bytes if isinstance(data, Draft) else len(data)
        if size_bytes > self._limit_bytes or message_id in self._messages:
            return False
        if durably and self._is_recorded:
            self._kept.put(message_id, own.data if own else bytes(data), own)
        self._messages[message_id] = size_bytes, data
        self.size_bytes += size_bytes
        if self.size_bytes > self._limit_bytes:
            self._make_room()
        return True

    def replace(self, message_id: str, data: bytes) -> None:
        """Replace the draft of an own message in the cache by the sent bytes. The saved state keeps
        the draft."""
        if (draft := self._messages.get(message_id)) is None:
            return
        if (size_bytes := len(data)) > self._limit_bytes:
            return self._evict(message_id)
        self._messages[message_id] = size_bytes, data
        self._messages.move_to_end(message_id)
        self.size_bytes += size_bytes - draft[0]
        if self.size_bytes > self._limit_bytes:
            self._make_room()

    def discard(self, message_id: str) -> None:
        """Delete a message from the cache and from the saved state."""
        self._let_go(message_id)
        self._kept.remove(message_id, self._messages)

    def get(self, message_id: str) -> bytes | None:
        """Return the bytes of a message, or None if the message is not in the cache."""
        held = self._messages.get(message_id)
        return None if held is None else bytes(held[1])

    def restore(self, whole: Iterable[Row], differences: Iterable[Row]) -> dict[str, bytes]:
        """Read the messages that were saved before a restart, oldest first. `fill` adds the
        returned messages to the cache."""
        return self._kept.restore(whole, differences)

    def fill(self, restored: Mapping[str, bytes]) -> None:
        """Add the messages that `restore` returned to the cache."""
        for message_id, data in restored.items():
            if not self.add(message_id, data):
                self._evict(message_id)

    def _make_room(self) -> None:
        while self.size_bytes > self._limit_bytes:
            evicted_id, (size_bytes, _) = self._messages.popitem(last=False)
            self.size_bytes -= size_bytes
            if self._is_recorded:
                self._evicted(evicted_id)
                self._kept.evicted(evicted_id)

    def _evict(self, message_id: str) -> None:
        self._let_go(message_id)
        self._kept.evicted(message_id)

    def _let_go(self, message_id: str) -> None:
        self.size_bytes -= self._messages.pop(message_id, (0, b""))[0]
        self._evicted(message_id)
