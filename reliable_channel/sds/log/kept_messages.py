"""Wire messages in the saved state, with own messages as differences, in groups.

Each message of a group, except the first, is saved as its difference from the previous message. A
group therefore leaves the saved state as a whole, after its last message left the cache.
"""

from collections.abc import Iterable, Mapping
from operator import attrgetter
from struct import error as StructError
from typing import Final, NamedTuple, SupportsBytes

from ..changes import DamagedRow, Recorder, Row, typed_table
from .differences import Assembled, difference, restored


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
MAX_GROUP: Final = 64
"""Maximum number of messages in a group, whose first message has 20 kB by default."""
SMALL_BYTES: Final = 2_048
"""Maximum size (bytes) of a message that is always written whole."""


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

    def remove(self, message_id: str, messages: Mapping[str, SupportsBytes]) -> None:
        """Delete a message from the saved state. `messages` are the messages in the cache."""
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
            self._put_whole(each, number, bytes(messages[each]))
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
                except StructError as error:
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
