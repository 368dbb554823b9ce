"""Judge of requests, each of which must have exactly one result, after its cause."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Final

from reliable_channel.engine.logged import Logged
from reliable_channel.engine.requests import Accepted
from reliable_channel.events import (
    AnyEvent,
    DeliveryFailed,
    MessageAcknowledged,
    MessageSent,
    MessageStored,
    SendFailed,
    SendingMessage,
    SendProgress,
)
from reliable_channel.sds.events import Outgoing

from .ledger import Fail

ONE_REQUEST: Final = "a key is one request"
ON_DISK: Final = "what is accepted is on disk"
SENT: Final = "sent means that it went out"
STORED: Final = "stored means that Store has it"
COUNTED: Final = "what is counted happened"
OUTLIVES: Final = "what is unacknowledged outlives a restart"
FATE: Final = "a message has one fate"
_OUTCOMES: Final = (MessageAcknowledged, DeliveryFailed, SendFailed)


class Results:
    """Send requests of one participant, also in earlier processes."""

    def __init__(self, in_store: Callable[[bytes], bool], fail: Fail) -> None:
        self._in_store, self._fail = in_store, fail
        self._published: Counter[str] = Counter()
        """How often each own message went out."""
        self._hashes: dict[bytes, str] = {}
        self.started()

    def started(self) -> None:
        """Begin with a process that has no state."""
        self._by_key: dict[str, Accepted] = {}
        self._new: dict[str, Accepted] = {}
        """Taken, and not on disk yet, by the first message."""
        self._requests: dict[str, Accepted] = {}
        self._of_message: dict[str, Accepted] = {}
        self._fates: dict[str, str] = {}
        """"acknowledged" or "failed", of those that have one."""
        self._chunks: dict[tuple[str, str], int] = {}
        """How many segments of a request were sent, and acknowledged."""
        self._reported: set[tuple[type, str]] = set()

    def restarted(self, unacknowledged: Collection[str]) -> None:
        """Begin with a process that starts from its disk. Requests without a result are still
        unacknowledged."""
        self._new.clear()
        for message_id in sorted(unacknowledged):
            accepted = self._of_message.get(message_id)
            if accepted is None or self._fates.get(accepted.message_ids[0]) == "acknowledged":
                self._fail(OUTLIVES, message_id, "it is unacknowledged now, and was not before")
        for first_id, accepted in self._requests.items():
            open_now = sum(i in unacknowledged for i in accepted.message_ids)
            before = len(accepted.message_ids) - self._chunks.get((first_id, "acknowledged"), 0)
            if first_id not in self._fates and open_now != before:
                detail = f"{before} of its messages were unacknowledged, now {open_now} are"
                self._fail(OUTLIVES, first_id, detail)

    def rolled_back(self, known: Collection[str], unacknowledged: Collection[str]) -> None:
        """Begin with a process that starts from an older state, with the requests in that state."""
        requests, fates = self._requests, self._fates
        self.started()
        for first_id, accepted in requests.items():
            if not all(i in known for i in accepted.message_ids):
                continue
            self._accepted(accepted)
            count = len(accepted.message_ids)
            open_now = sum(i in unacknowledged for i in accepted.message_ids)
            if count > 1:
                self._chunks[first_id, "acknowledged"] = count - open_now
                self._reported.add((SendProgress, first_id))
            if not open_now and first_id in fates:
                self._fates[first_id] = fates[first_id]

    def sent(self, accepted: Accepted) -> None:
        """Note that the engine accepted a message for sending."""
        key = accepted.idempotency_key
        if key is not None and key in self._by_key:
            detail = f"key {key!r} is request {self._by_key[key].request_id}, and now another one"
            self._fail(ONE_REQUEST, accepted.message_ids[0], detail)
        self._new[accepted.message_ids[0]] = accepted

    def answered(self, accepted: Accepted) -> None:
        """Note that the application learned that the engine accepted its message."""
        first_id = accepted.message_ids[0]
        if self._requests.get(first_id) != accepted:
            self._fail(ON_DISK, first_id, f"request {accepted.request_id} is not")
        key = accepted.idempotency_key
        if key is not None and self._by_key[key] != accepted:
            self._fail(ONE_REQUEST, first_id, f"key {key!r} is another one")

    def published(self, outgoing: Outgoing, message_hash: bytes) -> None:
        self._published[outgoing.message_id] += 1
        self._hashes[message_hash] = outgoing.message_id

    def emitted(self, event: AnyEvent | Logged) -> None:
        """Note an event that was emitted for the first time, or that is on disk to be emitted."""
        match event:
            case SendingMessage():
                self._accepted(self._new.pop(event.message_id))
            case SendProgress():
                self._check_progress(event)
            case MessageSent():
                self._check_sent(event)
            case MessageStored():
                self._check_stored(event)
            case MessageAcknowledged():
                self._ends(event.message_id, "acknowledged")
            case DeliveryFailed():
                self._ends(event.message_id, "failed")
                self._check_attempts(event)
            case SendFailed():
                self._ends(event.message_id, "failed")

    def is_open(self, event: AnyEvent | Logged) -> bool:
        """Return True if an event is the first result of its request."""
        return isinstance(event, _OUTCOMES) and event.message_id not in self._fates

    def request(self, first_id: str) -> Accepted | None:
        """Return the request whose first message has this id."""
        return self._requests.get(first_id)

    def acknowledged(self) -> list[str]:
        """Return the messages of requests that count as received by others."""
        return [
            message_id
            for first_id, fate in self._fates.items()
            if fate == "acknowledged"
            for message_id in self._requests[first_id].message_ids
        ]

    def check_end(self) -> None:
        """Check that every request has a result."""
        for first_id in self._requests:
            if first_id not in self._fates:
                self._fail(FATE, first_id, "it has none")

    def _accepted(self, accepted: Accepted) -> None:
        self._requests[accepted.message_ids[0]] = accepted
        self._of_message.update(dict.fromkeys(accepted.message_ids, accepted))
        if accepted.idempotency_key is not None:
            self._by_key[accepted.idempotency_key] = accepted

    def _ends(self, first_id: str, fate: str) -> None:
        if first_id not in self._requests:
            self._fail(FATE, first_id, f"{fate}, and no event says that it is a request")
        if first_id in self._fates:
            self._fail(FATE, first_id, f"{fate} after {self._fates[first_id]}")
        self._fates[first_id] = fate

    def _check_progress(self, event: SendProgress) -> None:
        place = event.message_id, event.state
        before = self._chunks.get(place, 0)
        is_known = event.state == "acknowledged" or (SendProgress, place[0]) not in self._reported
        if is_known and event.chunks != before + 1:
            self._fail(
                COUNTED, event.message_id, f"{event.chunks} are {event.state} after {before}"
            )
        self._chunks[place] = event.chunks
        if event.state == "sent":
            ids = self._requests[event.message_id].message_ids
            self._check_out(event.message_id, ids, event.chunks)

    def _check_sent(self, event: MessageSent) -> None:
        self._once(event, event.message_id)
        ids = self._requests[event.message_id].message_ids
        self._check_out(event.message_id, ids, len(ids))

    def _check_out(self, first_id: str, ids: Sequence[str], least: int) -> None:
        out = sum(self._published[message_id] > 0 for message_id in ids)
        if out < least:
            self._fail(SENT, first_id, f"{out} of its {len(ids)} messages did, {least} are named")

    def _check_stored(self, event: MessageStored) -> None:
        self._once(event, event.message_id)
        if self._hashes.get(event.message_hash) != event.message_id:
            self._fail(STORED, event.message_id, "its hash is that of another message")
        if not self._in_store(event.message_hash):
            self._fail(STORED, event.message_id, "it has not")

    def _check_attempts(self, event: DeliveryFailed) -> None:
        ids = self._requests[event.message_id].message_ids
        if event.attempts > max(self._published[message_id] for message_id in ids):
            detail = f"{event.attempts} are reported, it went out {self._published[ids[0]]} times"
            self._fail(COUNTED, event.message_id, detail)

    def _once(self, event: MessageSent | MessageStored, message_id: str) -> None:
        key = type(event), message_id
        if key in self._reported:
            self._fail(FATE, message_id, f"{event.wire_name} comes twice")
        self._reported.add(key)
