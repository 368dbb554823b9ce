"""Known facts about a channel, as a view that can answer questions about any time.

The view does no I/O. Only observations, in order of their time, change the view. Observations come
from journals (`reading.py`) or from the network (`sniffing.py`). Names and ids come from other
participants, so a user interface must print them only as text.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from .values import (
    LAMPS,
    MAX_DISPATCHES,
    Dispatch,
    Gap,
    Lamp,
    Lane,
    Limits,
    Message,
    Service,
)

WHOLE_CHANNEL: Final = ""
"""Value in place of a node's address for all nodes of a participant together."""

ONLOOKER: Final = -1
"""Lane number that stands for the observer itself, which is not a participant."""
PLAUSIBLE_MS: Final = 60_000
"""Maximum difference of a sender's clock, beyond which the time of arrival is used."""


@dataclass(slots=True)
class Reception:
    """Arrival of a message at one participant."""

    arrived_ms: int | None = None
    source: str = ""
    """Way by which the message arrived, `live`, `store`, `repair` (sent again) or
    `reconciliation`."""
    parked: bool = False
    """True if the message waited for messages that it refers to."""
    logged_ms: int | None = None


class View:
    """View of a channel, as far as it was observed."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits: Final = limits or Limits()
        self.lanes: Final[list[Lane]] = []
        self.messages: Final[OrderedDict[int, Message]] = OrderedDict()
        """By number, in the order in which they were first seen."""
        self.gaps: Final[OrderedDict[int, Gap]] = OrderedDict()
        self.lamps: Final[dict[tuple[int, str], dict[Lamp, Service]]] = {}
        """By lane and address of a node."""
        self.channel_ids: Final[set[str]] = set()
        self.first_ms: int | None = None
        self.last_ms = 0
        self.forgotten = 0
        """Messages that went for newer ones, or of senders beyond the limit."""
        self.changed_messages: Final[set[int]] = set()
        """Numbers that a face has not drawn yet; it clears them."""
        self.changed_gaps: Final[set[int]] = set()
        self._next = self._next_gap = 0
        self._by_id: Final[dict[str, Message]] = {}
        self._lane_of: Final[dict[str, int]] = {}
        self._open_gaps: Final[dict[tuple[int, str], Gap]] = {}
        self._receptions: Final[OrderedDict[tuple[int, int], Reception]] = OrderedDict()
        self._passed: Final[OrderedDict[bytes, None]] = OrderedDict()
        self._traffic: Final[OrderedDict[int, tuple[int, int]]] = OrderedDict()

    # Inputs

    def opened(self, participant: str, at_ms: int, channel_id: str = "") -> None:
        """Note that a participant opened the channel, according to its journal."""
        lane = self._lane(participant, at_ms)
        if lane is not None:
            self.lanes[lane].has_journal = True
        self.on_channel(channel_id)

    def on_channel(self, channel_id: str) -> None:
        if len(self.channel_ids) < self.limits.nodes:
            self.channel_ids.add(channel_id[: self.limits.name_characters])

    def entered_log(
        self,
        participant: str,
        message_id: str,
        sender: str,
        at_ms: int,
        *,
        lamport_timestamp: int | None = None,
    ) -> None:
        """Note that a message entered a participant's message log. A participant's own message
        enters the log when it is accepted."""
        lane = self._lane(participant, at_ms)
        message = self._message(message_id, sender, at_ms)
        if lane is None or message is None:
            return
        if message.lamport_timestamp is None:
            message.lamport_timestamp = lamport_timestamp
        self._close_gap(lane, message_id, at_ms, is_lost=False)
        if lane != message.lane:
            self._reception(message, lane).logged_ms = at_ms
            self._hold(message, lane, at_ms)

    def went_out(self, participant: str, message_id: str, kind: str, at_ms: int) -> None:
        """Note that a participant published a message, either its own or another's as a repair."""
        self._lane(participant, at_ms)
        message = self._by_id.get(message_id)
        if message is not None and len(message.dispatches) < MAX_DISPATCHES:
            message.dispatches.append(Dispatch(at_ms, kind))
            self.changed_messages.add(message.number)

    def passed(
        self,
        message_id: str,
        sender: str,
        at_ms: int,
        *,
        references: Sequence[str],
        has_content: bool,
        lamport_timestamp: int | None,
        size_bytes: int,
        hint: bytes,
        sent_ms: int,
    ) -> None:
        """Note a complete message from the network. The sender of a message has all messages that
        the message refers to.

        `sent_ms` is the time by the sender's clock. A wrong `sent_ms` is ignored, because it is far
        from the time of arrival.
        """
        lane = self._lane(sender, at_ms)
        if lane is None:
            self.forgotten += has_content
            return
        if self._open_gaps:
            for each in references:
                self._close_gap(lane, each, at_ms, is_lost=False)
        known = [found for each in references if (found := self._by_id.get(each)) is not None]
        if has_content:
            is_plausible = at_ms - PLAUSIBLE_MS <= sent_ms <= at_ms
            message = self._message(message_id, sender, sent_ms if is_plausible else at_ms)
            if message is not None and not message.is_whole:
                message.is_whole = True
                message.hint, message.size_bytes = hint, size_bytes
                message.lamport_timestamp = lamport_timestamp
                message.references = len(references)
                self._follow(message, known)
                self.changed_messages.add(message.number)
        self._has_all(lane, known, at_ms)

    def came_in(
        self, participant: str, message_id: str, source: str, at_ms: int, *, parked: bool
    ) -> None:
        """Note that a message arrived at a participant."""
        lane = self._lane(participant, at_ms)
        message = self._by_id.get(message_id)
        if lane is None or message is None or lane == message.lane:
            return
        reception = self._reception(message, lane)
        if reception.arrived_ms is None:
            again = any(each.kind == "repair" for each in message.dispatches)
            is_late = source == "live" and again and len(message.dispatches) > 1
            reception.arrived_ms = at_ms
            reception.source = "repair" if is_late else source
            reception.parked = parked

    def is_missing(
        self,
        participant: str,
        message_id: str,
        at_ms: int,
        *,
        sender: str | None,
        hint: bytes | None,
        referrer: str = "",
    ) -> None:
        """Note that a participant knows a message only by a reference in a message of
        `referrer`."""
        lane = self._lane(participant, at_ms)
        if lane is None or (lane, message_id) in self._open_gaps:
            return
        if len(self.gaps) >= self.limits.gaps:
            _, old = self.gaps.popitem(last=False)
            self._open_gaps.pop((old.lane, old.message_id), None)
        name = None if sender is None else sender[: self.limits.name_characters]
        gap = Gap(self._next_gap, lane, message_id, name, at_ms, hint)
        gap.referrer = referrer[: self.limits.name_characters]
        self._next_gap += 1
        self.gaps[gap.number] = self._open_gaps[lane, message_id] = gap
        self.changed_gaps.add(gap.number)

    def asked_others(self, participant: str, message_ids: Iterable[str], at_ms: int) -> None:
        """Note that a participant requested missing messages from other participants."""
        lane = self._lane(participant, at_ms)
        for message_id in message_ids:
            gap = self._open_gaps.get((-1 if lane is None else lane, message_id))
            if gap is not None and len(gap.asked_ms) < MAX_DISPATCHES:
                gap.asked_ms.append(at_ms)
                self.changed_gaps.add(gap.number)

    def was_lost(self, participant: str, message_id: str, at_ms: int) -> None:
        """Note that a participant gave up a missing message as lost."""
        lane = self._lane(participant, at_ms)
        if lane is not None:
            self._close_gap(lane, message_id, at_ms, is_lost=True)

    def was_acknowledged(
        self, participant: str, message_id: str, at_ms: int, *, by: str, how: str
    ) -> None:
        """Note that a sender learned that another participant has its message."""
        self._lane(participant, at_ms)
        lane, message = self._lane(by, at_ms), self._by_id.get(message_id)
        if message is None or lane is None:
            return
        if message.acknowledged_ms is None:
            message.acknowledged_ms = at_ms
            message.acknowledged_how = f"by the {how.replace('_', ' ')} of {self.lanes[lane].name}"
        self._hold(message, lane, at_ms)

    def has_failed(self, participant: str, message_id: str, at_ms: int, reason: str) -> None:
        """Note that a sender gave up its own message."""
        self._lane(participant, at_ms)
        message = self._by_id.get(message_id)
        if message is not None:
            message.failed_ms, message.failure = at_ms, reason[: self.limits.name_characters]
            self.changed_messages.add(message.number)

    def lamp(
        self,
        participant: str | None,
        node: str,
        lamp: Lamp,
        at_ms: int,
        *,
        is_on: bool,
        why: str = "",
    ) -> None:
        """Note that a service of a participant's node works or does not work. If `participant` is
        None, the node is that of the observer."""
        self._at(at_ms)
        lane = ONLOOKER if participant is None else self._lane(participant, at_ms)
        if lane is None:
            return
        name, why = (text[: self.limits.name_characters] for text in (node, why))
        if (lane, name) not in self.lamps:
            if sum(each == lane for each, _ in self.lamps) >= self.limits.nodes:
                return
            self.lamps[lane, name] = {each: Service() for each in LAMPS}
        changes = self.lamps[lane, name][lamp].changes
        if (not changes or changes[-1][1:] != (is_on, why)) and len(changes) < self.limits.changes:
            changes.append((at_ms, is_on, why))

    def traffic(self, digest: bytes, size_bytes: int, content_bytes: int, at_ms: int) -> None:
        """Note the size of a packet on the network. A packet that is seen twice counts once."""
        self._at(at_ms)
        if digest in self._passed:
            return
        self._passed[digest] = None
        if len(self._passed) > self.limits.messages:
            self._passed.popitem(last=False)
        before = self._traffic.get(at_ms // 1000, (0, 0))
        self._traffic[at_ms // 1000] = before[0] + size_bytes, before[1] + content_bytes
        if len(self._traffic) > self.limits.seconds:
            self._traffic.popitem(last=False)

    def has_passed(self, digest: bytes) -> bool:
        """Return True if a packet with this hash was counted already."""
        return digest in self._passed

    # Questions

    def message(self, message_id: str) -> Message | None:
        """Return the message with the given id, or None."""
        return self._by_id.get(message_id)

    def holders(self, message: Message) -> tuple[list[str], list[str]]:
        """Return the names of other participants that have a message, and of those that may lack
        it."""
        has: list[str] = []
        has_not: list[str] = []
        for number, lane in enumerate(self.lanes):
            if number != message.lane:
                (has if message.holders >> number & 1 else has_not).append(lane.name)
        return has, has_not

    def receptions(self, message: Message) -> Iterator[tuple[int, Reception]]:
        """Yield what is known about a message's arrival at each participant."""
        for lane in range(len(self.lanes)):
            found = self._receptions.get((message.number, lane))
            if found is not None:
                yield lane, found

    def gaps_of(self, message_id: str) -> list[Gap]:
        """Return the participants at which a message is or was missing."""
        return [gap for gap in self.gaps.values() if gap.message_id == message_id]

    def seconds(self, since: int = 0) -> Iterator[tuple[int, int, int]]:
        """Yield each second with traffic, its bytes and its bytes of content, the newest first."""
        for second in reversed(self._traffic):
            if second < since - PLAUSIBLE_MS // 1000:  # those before it are older, but for clocks
                return
            if second >= since:
                total, useful = self._traffic[second]
                yield second, total, useful

    # Inside

    def _at(self, at_ms: int) -> None:
        self.first_ms = at_ms if self.first_ms is None else min(self.first_ms, at_ms)
        self.last_ms = max(self.last_ms, at_ms)

    def _lane(self, participant: str, at_ms: int) -> int | None:
        self._at(at_ms)
        lane = self._lane_of.get(participant)
        if lane is None and len(self.lanes) < self.limits.participants:
            lane = self._lane_of[participant] = len(self.lanes)
            self.lanes.append(Lane(participant[: self.limits.name_characters], at_ms))
        if lane is not None:
            self.lanes[lane].heard_ms = max(self.lanes[lane].heard_ms, at_ms)
        return lane

    def _message(self, message_id: str, sender: str, at_ms: int) -> Message | None:
        message = self._by_id.get(message_id)
        if message is not None:
            return message
        lane = self._lane(sender, at_ms)
        if lane is None:
            return None
        if len(self.messages) >= self.limits.messages:
            _, old = self.messages.popitem(last=False)
            del self._by_id[old.message_id]
            self.forgotten += 1
        message = Message(self._next, message_id, lane, at_ms)
        self._next += 1
        self.messages[message.number] = self._by_id[message_id] = message
        self.changed_messages.add(message.number)
        return message

    def _follow(self, message: Message, known: Sequence[Message]) -> None:
        """Keep of its references those that no other of them refers to."""
        covered = {parent for each in known for parent in each.parents}
        heads = [each for each in known if each.number not in covered and each is not message]
        heads = heads[-self.limits.parents :]
        message.parents = tuple(each.number for each in heads)
        for each in heads:
            if len(each.children) < self.limits.children:
                each.children.append(message.number)

    def _has_all(self, lane: int, known: Iterable[Message], at_ms: int) -> None:
        """Mark what a participant has: what it referred to, and what that refers to."""
        bit, steps, messages = 1 << lane, self.limits.steps, self.messages
        while known:
            fresh = [each for each in known if not each.holders & bit and each.lane != lane]
            for message in fresh:
                self._hold(message, lane, at_ms)
            numbers = {number for each in fresh for number in each.parents}
            before = [messages[number] for number in numbers if number in messages]
            known, steps = before[:steps], steps - len(before[:steps])

    def _hold(self, message: Message, lane: int, at_ms: int) -> None:
        if message.hold(lane, at_ms, len(self.lanes) - 1):
            self.changed_messages.add(message.number)

    def _close_gap(self, lane: int, message_id: str, at_ms: int, *, is_lost: bool) -> None:
        gap = self._open_gaps.pop((lane, message_id), None)
        if gap is not None:
            gap.until_ms, gap.is_lost = at_ms, is_lost
            self.changed_gaps.add(gap.number)

    def _reception(self, message: Message, lane: int) -> Reception:
        key = message.number, lane
        if key not in self._receptions:
            if len(self._receptions) >= self.limits.receptions:
                self._receptions.popitem(last=False)
            self._receptions[key] = Reception()
        return self._receptions[key]
