"""Judge of payloads, each of which must arrive whole, once and unchanged, in any number of
segments."""

from dataclasses import dataclass, field
from typing import Final

from reliable_channel.engine.logged import Logged
from reliable_channel.events import AnyEvent, MessageReceived, PayloadDropped
from reliable_channel.segmentation import payload_hash

from .ledger import Fail

WHOLE: Final = "a payload arrives whole"
AS_SENT: Final = "a payload arrives as it was sent"
ONCE: Final = "a payload arrives once"
BOUNDED: Final = "what is kept of payloads is half there"
ENDS: Final = "what is half there comes to an end"
HALF: Final = "what is given up is half there"
SLACK_MS: Final = 120_000


@dataclass(slots=True)
class Payload:
    sender_id: str
    content: bytes
    message_ids: tuple[str, ...]


class Payloads:
    """Payloads that the group accepted for sending."""

    def __init__(self) -> None:
        self._of_segment: dict[str, Payload] = {}
        self._long: dict[tuple[str, bytes], list[Payload]] = {}
        self._forgotten: set[tuple[str, bytes]] = set()

    def add(self, payload: Payload) -> None:
        self._of_segment.update(dict.fromkeys(payload.message_ids, payload))
        if len(payload.message_ids) > 1:
            key = payload.sender_id, payload_hash(payload.content)
            self._long.setdefault(key, []).append(payload)

    def of_segment(self, message_id: str) -> Payload | None:
        """Return the payload to which a segment belongs."""
        return self._of_segment.get(message_id)

    def with_hash(self, sender_id: str, digest: bytes) -> list[Payload]:
        """Return the long payloads of a sender that have this hash."""
        return self._long.get((sender_id, digest), [])

    def forget_requests_of(self, sender_id: str) -> None:
        """Note that a participant lost its state, and may send its accepted payloads again."""
        mine = [each for each in self._of_segment.values() if each.sender_id == sender_id]
        self._forgotten.update((sender_id, payload.content) for payload in mine)

    def may_repeat(self, payload: Payload) -> bool:
        """Return True if the sender may have sent a payload twice, because it lost the record of
        it."""
        return (payload.sender_id, payload.content) in self._forgotten


@dataclass(slots=True)
class _Half:
    newest_ms: int
    """When its newest segment was delivered, or its process started."""
    message_ids: set[str] = field(default_factory=set)


class Arrivals:
    """Payloads that one participant received, also in earlier processes."""

    def __init__(self, payloads: Payloads, timeout_ms: int, fail: Fail) -> None:
        self._payloads, self._timeout_ms, self._fail = payloads, timeout_ms, fail
        self.started()

    def started(self) -> None:
        """Begin with a process that has no state."""
        self._got: set[tuple[str, bytes]] = set()
        self._halves: dict[str, _Half] = {}
        """Long payloads of which segments were delivered, by the first segment's id."""
        self._dropped: dict[str, _Half] = {}
        """Those that were given up; until that is confirmed a restart begins them anew."""
        self._whole: Payload | None = None
        """The one whose last segment was delivered in this step."""
        self._is_sure = True

    def restarted(self, now_ms: int) -> None:
        """Begin with a process that starts from its disk, and waits again for missing segments."""
        for first_id, dropped in self._dropped.items():
            self._half(first_id, now_ms).message_ids |= dropped.message_ids
        self._dropped.clear()
        for half in self._halves.values():
            half.newest_ms = now_ms

    def rolled_back(self) -> None:
        """Begin with a process that starts from an older state. Which payloads were incomplete in
        the older state is not known."""
        self.started()
        self._is_sure = False

    def emitted(self, event: AnyEvent | Logged, now_ms: int, *, is_repeated: bool) -> None:
        """Note an event that was emitted, or that is on disk to be emitted."""
        match event:
            case Logged() if event.first_segment_id is None:
                self._delivered(event.message_id, now_ms)
            case MessageReceived():
                self._received(event, is_repeated=is_repeated)
            case PayloadDropped():
                self._given_up(event)

    def _given_up(self, event: PayloadDropped) -> None:
        for payload in self._payloads.with_hash(event.sender_id, event.payload_hash):
            first_id = payload.message_ids[0]
            if (half := self._halves.pop(first_id, None)) is not None:
                self._dropped[first_id] = half
            elif self._is_sure:
                self._fail(HALF, first_id, f"{event.chunks} of {event.total_chunks} segments")

    def confirmed(self, event: AnyEvent) -> None:
        """Note that the confirmation of an event is on disk."""
        if isinstance(event, PayloadDropped):
            for payload in self._payloads.with_hash(event.sender_id, event.payload_hash):
                self._dropped.pop(payload.message_ids[0], None)

    def check(self, now_ms: int, *, is_waiting: bool) -> None:
        """Check that the engine waits for missing segments, but not for too long."""
        if self._is_sure and is_waiting != bool(self._halves):
            first_id = next(iter(self._halves), "")
            detail = f"{len(self._halves)} payloads are half there, and the rest is "
            detail += "waited for" if is_waiting else "not waited for"
            self._fail(BOUNDED, first_id, detail)
        for first_id, half in self._halves.items():
            if now_ms > half.newest_ms + self._timeout_ms + SLACK_MS:
                detail = f"{len(half.message_ids)} segments since {half.newest_ms}"
                self._fail(ENDS, first_id, detail)

    def stepped(self) -> None:
        """Check after a released step that all completed payloads were emitted."""
        if self._whole is not None:
            detail = "all of its segments are delivered, and it is not"
            self._fail(WHOLE, self._whole.message_ids[0], detail)

    def _delivered(self, message_id: str, now_ms: int) -> None:
        payload = self._payloads.of_segment(message_id)
        if not self._is_sure or payload is None or len(payload.message_ids) == 1:
            return
        first_id = payload.message_ids[0]
        half = self._half(first_id, now_ms)
        half.newest_ms = now_ms
        half.message_ids.add(message_id)
        if len(half.message_ids) == len(payload.message_ids):
            del self._halves[first_id]
            self._whole = payload

    def _half(self, first_id: str, now_ms: int) -> _Half:
        return self._halves.setdefault(first_id, _Half(now_ms))

    def _received(self, event: MessageReceived, *, is_repeated: bool) -> None:
        payload = self._payloads.of_segment(event.message_id)
        if payload is None:
            return
        if event.content != payload.content:
            detail = f"{len(event.content)} bytes, of {len(payload.content)}"
            self._fail(AS_SENT, event.message_id, detail)
        self._whole = None
        # A restart may put together what was given up before, with what came since.
        self._halves.pop(payload.message_ids[0], None)
        key = payload.sender_id, payload.content
        if key in self._got and not (is_repeated or self._payloads.may_repeat(payload)):
            self._fail(ONCE, event.message_id, "its application got it before")
        self._got.add(key)
