"""A bundle is several messages in one broadcast, for participants that lack them.

Every participant that has the messages could broadcast the bundle. A random delay decides which
participants begin. The other participants hear the bundles and stop, and lost messages are
requested again. If several participants lack the messages, several participants answer, because no
participant broadcasts a message twice for lists. If a participant leaves its answer unfinished,
another participant answers the next request. A participant repeats its bundle when it answers a
repair request for a message of the bundle.
"""

import zlib
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from ..changes import LogKey
from ..dialects import sds_pb2
from ..dialects.codec import MAX_BUNDLED_MESSAGES, leading_values
from ..message import Reconciling
from ..pacing import Bucket
from ..sync import Random
from .estimates import Observations
from .inbox import Bundle
from .law import copies

BUNDLE_BYTES: Final = 100_000
"""Maximum length (bytes) of an encoded bundle of several messages."""
PACKED_BYTES: Final = 1024 * 1024
"""Maximum total length (bytes) of the messages in a bundle before compression. A bundle of a single
message may be longer."""
MAX_UNPACKED_BYTES: Final = 2 * 1024 * 1024
"""Maximum length (bytes) of a received bundle after decompression. A participant ignores a longer
bundle."""
FIRST_BUNDLE_BYTES: Final = 8_000
"""Maximum length (bytes) of the first bundle of an answer. The first bundle is short, because
several participants may send one before they hear each other."""
MAX_LACKING: Final = 50_000
"""Maximum number of messages that a participant plans to broadcast for others."""
PAUSE_MS: Final = 250
"""Minimum time (ms) between two bundles of a participant, so that others hear the first bundle."""
MAX_COPIES: Final = 3
"""Maximum number of participants that answer together if several participants lack a message."""
SAME_MS: Final = 10_000
"""Time (ms) after a bundle in which its messages reach the participants that lost them."""
LOST_BY: Final = 2
"""Number of participants that are assumed to lack an answer requested again within `SAME_MS`."""
AGAIN_MS: Final = 600_000
"""Time (ms) after a broadcast of a message in which it is not broadcast for another request.
Participants that lost it then get the message from other participants or by a repair request."""
REPEATS: Final = 3
"""Number of times that a bundle is repeated because of repair requests. The participant that lost
the bundle knows one or two of its ids at a time. Perhaps no other participant has the messages."""
HOUR_MS: Final = 3_600_000
"""Period (ms) in which a participant answers with at most as many messages as its log has."""
BUNDLES: Final = 80
BUNDLES_EVERY_MS: Final = 1_000
ON_AIR_SCALES: Final = 2
"""Time, in units of the delay D, in which a message is not broadcast a second time. A request in
this time was sent before the first broadcast of the message arrived."""
LEAVES: Final = 3
"""Number of times that a participant leaves a message to another answering participant."""
YIELDS: Final = 20
"""Number of bundles of others for which a participant waits before its answer."""
MESSAGE_BYTES: Final = 96
"""Minimum size (bytes) that counts for a message in a bundle, about the size of a single message.
Without the minimum, compression would make floods cheaper. A participant pads its own bundles to
this size, and reads fewer messages of shorter bundles."""
EXPANSION: Final = 32
"""Bytes of messages that a participant reads for each further byte of a bundle."""
_TAG: Final = sds_pb2.Reconciling.BUNDLE_FIELD_NUMBER << 3 | 2


class Bundles:
    """Messages that one participant broadcasts because others lack them."""

    def __init__(
        self,
        own_id: str,
        observations: Observations,
        random: Random,
        held: Callable[[str, str | None], bytes | None],
        log_length: Callable[[], int],
    ) -> None:
        self.due_ms: int | None = None
        """When `take` has a bundle."""
        self._own_id = own_id
        self._observations = observations
        self._random = random
        self._held = held
        """A message as it is to be broadcast, made anew after the message of the second id where
        its bytes are gone."""
        self._log_length = log_length
        self._lacking: OrderedDict[LogKey, None] = OrderedDict()
        self._left: OrderedDict[LogKey, int] = OrderedDict()
        """How often each was left to others."""
        self._on_air: OrderedDict[LogKey, int] = OrderedDict()
        """When each was in a bundle last, the oldest first."""
        self._broadcast: OrderedDict[LogKey, int] = OrderedDict()
        """When each was broadcast here last, repetitions aside, the oldest first."""
        self._repeats = Counter[int]()
        """How often the bundle of each of these times was repeated."""
        self._in_hour: deque[tuple[int, int]] = deque()
        """Times of own bundles of the last hour, and their numbers of messages."""
        self._limit_bytes = FIRST_BUNDLE_BYTES
        self._has_begun = False
        """True if the first bundle of an answer is out."""
        self._may_leave = False
        self._yielded = 0
        self._sent_last: str | None = None
        """The message that was broadcast last in this answer."""
        self._ratio = 1.0
        """Compression ratio of the last bundle: bytes of messages for each byte on the air."""
        self._lacked_by = 1
        """How many participants, as far as is known, lack the same."""
        self._copies = 1
        self._ahead = set[str]()
        """Participants that answer too, and began earlier or have an earlier name."""
        self._sent: dict[LogKey, None] = {}
        """In this answer."""
        self._heard_ms: int | None = None
        """When the last bundle went out or came."""
        self._budget = Bucket(BUNDLES, BUNDLES_EVERY_MS)

    def lacked_by(self, participants: int) -> None:
        """Note how many other participants have the log that differs from the own log."""
        self._lacked_by = participants

    def lacks(self, keys: Iterable[LogKey], now_ms: int) -> bool:
        """Plan to broadcast messages that another participant lacks. Return False if the limit of
        an hour (`HOUR_MS`) excludes some of the messages."""
        self._forget(now_ms)
        left = self._left_in_hour - len(self._lacking)
        for key in keys:
            if key in self._broadcast or self._is_on_air(key, now_ms):
                continue
            if left <= 0:
                return False
            left -= key not in self._lacking
            self._lack(key, now_ms)
        return True

    def answered(self, key: LogKey, now_ms: int) -> None:
        """Note that this participant answers a repair request for a message. If an own bundle had
        the message, a participant lost the bundle, which is therefore repeated."""
        self._forget(now_ms)
        at_ms = self._broadcast.get(key)
        is_coming = key in self._lacking or self._is_on_air(key, now_ms)
        if at_ms is None or is_coming or self._repeats[at_ms] == REPEATS:
            return
        self._repeats[at_ms] += 1
        for each in [each for each, sent_ms in self._broadcast.items() if sent_ms == at_ms]:
            self._lack(each, now_ms)
        self._limit_bytes = BUNDLE_BYTES

    def _is_on_air(self, key: LogKey, now_ms: int) -> bool:
        on_air_ms = self._on_air.get(key)
        return on_air_ms is not None and now_ms - on_air_ms <= self._hold_ms

    def _lack(self, key: LogKey, now_ms: int) -> None:
        if len(self._lacking) < MAX_LACKING:
            self._lacking[key] = None
            self._may_leave = True
        if self.due_ms is None:
            self._begin(now_ms)
            self.due_ms = now_ms + self._observations.draw_ms(self._random())

    def _forget(self, now_ms: int) -> None:
        while self._in_hour and now_ms - self._in_hour[0][0] > HOUR_MS:
            self._in_hour.popleft()
        while self._broadcast and now_ms - next(iter(self._broadcast.values())) > AGAIN_MS:
            del self._repeats[self._broadcast.popitem(last=False)[1]]

    @property
    def _left_in_hour(self) -> int:
        """How many more messages may be broadcast."""
        return self._log_length() - sum(count for _, count in self._in_hour)

    def _begin(self, now_ms: int) -> None:
        self._limit_bytes = FIRST_BUNDLE_BYTES
        self._has_begun, self._yielded, self._sent_last = False, 0, None
        self._sent.clear()
        self._ahead.clear()
        is_again = self._heard_ms is not None and now_ms - self._heard_ms <= SAME_MS
        lacked_by = LOST_BY if is_again else self._lacked_by
        measured = replace(self._observations.measured(), others=lacked_by)
        self._copies = copies(measured, MAX_COPIES)

    def came(self, key: LogKey, sender_id: str, now_ms: int) -> None:
        """Note that another participant broadcast this message in a bundle.

        If more participants than the number of copies began to answer, only the first in the order
        of names continue.
        """
        is_own_answer = key in self._lacking or key in self._sent
        self._note_on_air(key, now_ms)
        is_ahead = not self._has_begun or sender_id < self._own_id
        if is_own_answer and is_ahead and len(self._ahead) < self._copies:
            self._ahead.add(sender_id)
        goes_on = len(self._ahead) < self._copies
        if self._copies == 1 or not goes_on:
            self._lacking.pop(key, None)
        if not is_own_answer:
            return
        if self._may_leave and not goes_on:
            self._may_leave = False
            for each in [key for key in self._lacking if self._left.get(key, 0) < LEAVES]:
                del self._lacking[each]
                self._left[each] = self._left.pop(each, 0) + 1
            while len(self._left) > MAX_LACKING:
                self._left.popitem(last=False)
        if not self._lacking:
            self.due_ms = None
        elif self.due_ms is not None and not goes_on and self._yielded < YIELDS:
            self._yielded += 1
            later_ms = now_ms + self._hold_ms + self._observations.draw_ms(self._random())
            self.due_ms = max(self.due_ms, later_ms)

    def take(self, now_ms: int) -> bytes:
        """Return the next bundle if a bundle is due, otherwise None."""
        if self.due_ms is None or now_ms < self.due_ms:
            return b""
        self.due_ms = None
        if not self._budget.take(now_ms):
            self._lacking.clear()  # whoever lacks them will ask again
            return b""
        bundle = self._fill(now_ms)
        if not bundle:
            return b""
        if not self._has_begun:
            self._has_begun = True
            self._ahead = {name for name in self._ahead if name < self._own_id}
        self._limit_bytes = min(4 * self._limit_bytes, BUNDLE_BYTES)
        if self._lacking:
            pause_ms = max(self._scale_ms, PAUSE_MS, self._budget.wait_ms(now_ms))
            self.due_ms = now_ms + pause_ms
        return bundle

    def _fill(self, now_ms: int) -> bytes:
        """As many messages as fit by what the last ones were compressed to."""
        chosen, messages, left_bytes = (
            list[LogKey](),
            list[bytes](),
            self._limit_bytes * self._ratio,
        )
        left_bytes = min(left_bytes, PACKED_BYTES)
        for key in self._lacking:
            if len(chosen) == MAX_BUNDLED_MESSAGES:
                break
            data = self._held(key[1], chosen[-1][1] if chosen else self._sent_last)
            if data is not None and chosen and len(data) > left_bytes:
                break
            chosen.append(key)
            messages.append(data or b"")
            left_bytes -= len(messages[-1])
        bundle = packed(list(filter(None, messages)))
        while len(bundle) > BUNDLE_BYTES and len(chosen) > 1:
            del chosen[len(chosen) // 2 :], messages[len(messages) // 2 :]
            bundle = packed(list(filter(None, messages)))
        pairs = list(zip(chosen, messages, strict=True))
        first = sum(bool(data) for key, data in pairs if key not in self._broadcast)
        self._in_hour.append((now_ms, first))
        for key, data in pairs:
            del self._lacking[key]
            if data:
                self._note_on_air(key, now_ms)
                self._sent[key] = None
                self._sent_last = key[1]
                self._broadcast.setdefault(key, now_ms)
        self._ratio = max(1.0, sum(map(len, messages)) / len(bundle)) if bundle else self._ratio
        return bundle

    def _note_on_air(self, key: LogKey, now_ms: int) -> None:
        self._heard_ms = self._on_air[key] = now_ms
        self._on_air.move_to_end(key)
        while now_ms - next(iter(self._on_air.values())) > self._hold_ms:
            self._on_air.popitem(last=False)

    @property
    def _hold_ms(self) -> int:
        return ON_AIR_SCALES * self._scale_ms

    @property
    def _scale_ms(self) -> int:
        return round(self._observations.delays.scale_ms)


def packed(bundle: Sequence[bytes]) -> bytes:
    """Encode messages for one broadcast, compressed because messages are mostly ids and references.
    Return None if there are no messages."""
    if not bundle:
        return b""
    data = zlib.compress(sds_pb2.Reconciling(bundle=bundle).SerializeToString())
    return data.ljust(sum(map(_air_bytes, bundle)), b"\0")


def readable(said: Reconciling, sender_id: str) -> tuple[Bundle, bool]:
    """Return the messages to read, and True if the broadcast holds more messages.

    The size of the broadcast limits the number of messages, so a short broadcast costs little.
    """
    left_bytes, messages = len(said.packed) + sum(map(_air_bytes, said.bundle)), messages_of(said)
    bundle = Bundle(sender_id, deque())
    for data in messages[:MAX_BUNDLED_MESSAGES]:
        left_bytes -= _air_bytes(data)
        if left_bytes < 0:
            break
        bundle.messages.append(data)
    return bundle, len(bundle.messages) < len(messages)


def _air_bytes(data: bytes) -> int:
    return MESSAGE_BYTES + len(data) // EXPANSION


def messages_of(said: Reconciling) -> tuple[bytes, ...]:
    """Return the messages of a broadcast, decompressed if necessary."""
    return said.bundle + unpacked(said.packed)


def unpacked(data: bytes) -> tuple[bytes, ...]:
    """Decompress the messages of `packed`, at most one more than a bundle may have.

    Return no messages if the data are invalid, or longer than `MAX_UNPACKED_BYTES`.
    """
    stream = zlib.decompressobj()
    try:
        plain = stream.decompress(data, MAX_UNPACKED_BYTES)
    except zlib.error:
        return ()
    # Counted before anything is made of them: a million fit into 2 MiB.
    return leading_values(plain, _TAG, MAX_BUNDLED_MESSAGES + 1) if stream.eof else ()
