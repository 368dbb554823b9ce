"""Explanation of a message's history, its holders, and the reason for its delay, in words.

The words contain names of participants, so a user interface must print them only as text.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Final, NamedTuple

from reliable_channel.explanation import LATE_MS, SHORT_ID, Explanation, RequestSeen, Way

from .model import WHOLE_CHANNEL, Reception, View
from .values import Lamp, Message

_WORDS: Final = {
    "content": "sent",
    "retry": "sent again: not acknowledged in time",
    "repair": "sent again: others asked for it",
    "seen": "passed on the wire",
    "again": "passed again: a retry or a repair",
}
_CAME: Final = {"store": Way.STORE, "reconciliation": Way.RECONCILIATION}


class Step(NamedTuple):
    """Event of a message, with its time."""

    at_ms: int
    what: str


class Delay(NamedTuple):
    """Arrival of a message at another participant, with its delay."""

    participant: str
    delay_ms: int | None
    """Time from the message's sender to this log, or None if the log is not known to have the
    message."""
    why: str
    """Reason for the delay, or an empty text."""


@dataclass(frozen=True, slots=True)
class MessageView:
    """Details of a message for display."""

    number: int
    message_id: str
    sender: str
    at_ms: int
    lamport_timestamp: int | None
    hint: str | None
    size_bytes: int
    references: int
    after: list[tuple[int, str, str]]
    """Number, id and sender of each message that this message directly follows."""
    before: list[tuple[int, str, str]]
    has: list[str]
    has_not: list[str]
    """Names of the participants that are not known to have the message."""
    others: int
    history: list[Step]
    delays: list[Delay]

    def to_dict(self) -> dict[str, object]:
        delays = [delay._asdict() for delay in self.delays]
        return asdict(self) | {"delays": delays}


def explain(view: View, message: Message) -> MessageView:
    """Return everything that the view knows about a message."""
    has, has_not = view.holders(message)
    return MessageView(
        message.number,
        message.message_id,
        view.lanes[message.lane].name,
        message.at_ms,
        message.lamport_timestamp,
        None if message.hint is None else message.hint.hex(),
        message.size_bytes,
        message.references,
        list(_named(view, message.parents)),
        list(_named(view, message.children)),
        has,
        has_not,
        len(view.lanes) - 1,
        sorted(_history(view, message)),
        list(_delays(view, message)),
    )


def _named(view: View, numbers: "list[int] | tuple[int, ...]") -> Iterator[tuple[int, str, str]]:
    for number in numbers:
        found = view.messages.get(number)
        if found is not None:
            yield number, found.message_id, view.lanes[found.lane].name


def _history(view: View, message: Message) -> Iterator[Step]:
    sender = view.lanes[message.lane]
    first = "accepted, and entered the log of its sender" if sender.has_journal else "first seen"
    yield Step(message.at_ms, first)
    for dispatch in message.dispatches:
        yield Step(dispatch.at_ms, _WORDS.get(dispatch.kind, f"sent ({dispatch.kind})"))
    for gap in view.gaps_of(message.message_id):
        name = view.lanes[gap.lane].name
        yield Step(gap.since_ms, f"{name} misses it: a message refers to it")
        for at_ms in gap.asked_ms:
            yield Step(at_ms, f"{name} asks the others for it")
        if gap.is_lost and gap.until_ms is not None:
            yield Step(gap.until_ms, f"{name} declared it lost")
    for lane, reception in view.receptions(message):
        name = view.lanes[lane].name
        if reception.arrived_ms is not None:
            waits = ", and waits for what it refers to" if reception.parked else ""
            came = "from Store" if reception.source == "store" else "live"
            yield Step(reception.arrived_ms, f"arrived at {name} {came}{waits}")
        if reception.logged_ms is not None:
            yield Step(reception.logged_ms, f"entered the log of {name}")
    if message.acknowledged_ms is not None:
        yield Step(message.acknowledged_ms, f"acknowledged, {message.acknowledged_how}")
    if message.failed_ms is not None:
        yield Step(message.failed_ms, f"given up by its sender: {message.failure}")


def _delays(view: View, message: Message) -> Iterator[Delay]:
    receptions = dict(view.receptions(message))
    for lane, participant in enumerate(view.lanes):
        reception = receptions.get(lane)
        if lane == message.lane:
            continue
        if reception is not None and reception.logged_ms is not None:
            delay_ms = reception.logged_ms - message.at_ms
            why = _why_late(view, message, lane, reception) if delay_ms >= LATE_MS else ""
            yield Delay(participant.name, delay_ms, why)
        elif participant.has_journal:
            yield Delay(participant.name, None, _why_absent(view, message, lane, reception))


def _why_late(view: View, message: Message, lane: int, reception: Reception) -> str:
    sent_ms = message.at_ms if message.sent_ms is None else message.sent_ms
    arrived_ms, logged_ms = reception.arrived_ms, reception.logged_ms
    name = view.lanes[lane].name
    gap = next((gap for gap in view.gaps_of(message.message_id) if gap.lane == lane), None)
    asked_ms = [] if gap is None else gap.asked_ms
    way = _CAME.get(reception.source, Way.LIVE)
    if reception.source == "repair":
        way = Way.REPAIR if asked_ms else Way.EXTRA_COPY
    waited_for: tuple[str, ...] = ()
    if arrived_ms is not None and logged_ms is not None:
        waited_for = tuple(_waited_for(view, message, lane, arrived_ms, logged_ms))
    explanation = Explanation(
        message_id=message.message_id,
        participant_id=name,
        at_ms=view.last_ms,
        sender_id=view.lanes[message.lane].name,
        sent_ms=sent_ms,
        noticed_ms=None if gap is None else gap.since_ms,
        noticed_from="" if gap is None else gap.referrer,
        requests=tuple(RequestSeen(at_ms, name) for at_ms in asked_ms),
        arrived_ms=arrived_ms,
        way=way,
        waited_for=waited_for,
        logged_ms=logged_ms,
        in_log=True,
    )
    why = (_at_sender(view, message), explanation.sentence)
    return "; ".join(each for each in why if each)


def _at_sender(view: View, message: Message) -> str:
    if message.sent_ms is None or message.sent_ms - message.at_ms < LATE_MS:
        return ""
    waited = f"it waited {_seconds(message.sent_ms - message.at_ms)} at its sender"
    service = view.lamps.get((message.lane, WHOLE_CHANNEL))
    send = service and service[Lamp.SEND].at(message.at_ms)
    return f"{waited}, which could not send: {send[1]}" if send and not send[0] else waited


def _waited_for(
    view: View, message: Message, lane: int, since_ms: int, until_ms: int
) -> Iterator[str]:
    """The messages that were missing meanwhile; the wait ended with the first one."""
    missing = [
        gap
        for gap in view.gaps.values()
        if gap.lane == lane
        and gap.message_id != message.message_id
        and gap.since_ms <= until_ms
        and gap.until_ms is not None
        and since_ms < gap.until_ms <= until_ms
    ]
    missing.sort(key=lambda gap: -(gap.until_ms or 0))
    for gap in missing:
        sender = f" of {gap.sender_id}" if gap.sender_id else ""
        yield f"{gap.message_id[:SHORT_ID]}{sender}{' (lost)' if gap.is_lost else ''}"


def _why_absent(view: View, message: Message, lane: int, reception: Reception | None) -> str:
    if reception is not None and reception.arrived_ms is not None:
        return "it arrived, and waits for messages that it refers to"
    for gap in view.gaps_of(message.message_id):
        if gap.lane == lane and gap.is_lost:
            return "declared lost"
        if gap.lane == lane and gap.until_ms is None:
            return f"missing; asked are: {gap.asked(view.last_ms)}"
    return "it did not arrive, and nothing that arrived refers to it"


def _seconds(duration_ms: int) -> str:
    return f"{duration_ms / 1000:.1f} s"
