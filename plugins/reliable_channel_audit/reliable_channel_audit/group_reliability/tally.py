"""Arrivals of messages at participants in arrays, with 17 bytes for each message and
participant."""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from .figures import Figures

UNSAID: Final = "not said"
"""Path of a delivery whose path the logs do not show."""
WAYS: Final = ("", UNSAID, "live", "store", "retransmission", "repair", "unknown")
FOREVER: Final = 2**62


@dataclass(slots=True)
class _Message:
    first_us: int
    """When a participant had it first; from `figures` on when it was sent, where that is known."""
    sent_us: int = FOREVER
    """As its sender stamped it."""
    origin: int = -1
    """The participant at which it entered the network; -1 where no line shows that."""
    origin_us: int = FOREVER
    is_failed: bool = False


@dataclass(slots=True)
class _Participant:
    had_us: array[int] = field(default_factory=lambda: array("q"))
    """By message, when it came first; 0 where it did not."""
    missing_us: array[int] = field(default_factory=lambda: array("q"))
    """By message, for how long it was missing before; -1 where that is not known."""
    ways: bytearray = field(default_factory=bytearray)
    copies: int = 0
    firsts: int = 0
    """Messages that it received, once or more often."""
    groups: set[str] = field(default_factory=set)
    from_us: int = 0
    until_us: int = FOREVER

    def make_room(self, message: int) -> None:
        short = message + 1 - len(self.had_us)
        if short > 0:
            self.had_us.frombytes(bytes(8 * short))
            self.missing_us.extend(array("q", [-1]) * short)
            self.ways.extend(bytes(short))


class Tally:
    """Counter of one run, which takes sightings of messages and returns figures.

    All times are µs since 1970. The caller must correct the clocks of participants as far as
    possible.
    """

    def __init__(self) -> None:
        self._names: dict[str, int] = {}
        self._participants: list[_Participant] = []
        self._ids: dict[str, int] = {}
        self._messages: list[_Message] = []
        self._groups: defaultdict[str, set[int]] = defaultdict(set)
        self._end_us = 0
        self._figures = Figures()

    def participant(
        self, name: str, *, group: str = "", from_us: int = 0, until_us: int = FOREVER
    ) -> None:
        """Add a participant that should receive the messages of a time range."""
        each = self._participants[self._number(name)]
        each.groups.add(group)
        each.from_us, each.until_us = from_us, until_us

    def sent(self, message: str, at_us: int, *, name: str | None = None, group: str = "") -> None:
        """Note that a message was sent, by the participant with the name if it is known."""
        number = self._message(message, at_us, group)
        self._messages[number].sent_us = min(at_us, self._messages[number].sent_us)
        if name is not None:
            self._enters(number, self._number(name), at_us, group)

    def entered(self, name: str, message: str, at_us: int, *, group: str = "") -> None:
        """Note that a participant forwarded or sent a message. The origin of a message is the first
        sender that had not received the message before. Lines may be added in any order."""
        number, whose = self._message(message, at_us, group), self._number(name)
        self._enters(number, whose, at_us, group)

    def had(
        self,
        name: str,
        message: str,
        at_us: int,
        *,
        group: str = "",
        way: str = UNSAID,
        missing_us: int = -1,
    ) -> None:
        """Note that a participant received a message, for the first time or again."""
        number = self._message(message, at_us, group)
        each = self._participants[self._number(name)]
        each.groups.add(group)
        each.make_room(number)
        if way == UNSAID:  # journals have what entered a log, once
            each.copies += 1
            each.firsts += not each.ways[number]
        each.ways[number] = each.ways[number] or WAYS.index(way)
        if not each.had_us[number] or at_us < each.had_us[number]:
            each.had_us[number] = at_us
            each.missing_us[number] = missing_us
            each.ways[number] = WAYS.index(way)

    def failed(self, message: str) -> None:
        """Note that the sender was told of a message's failure, so that no delivery is expected."""
        if message in self._ids:
            self._messages[self._ids[message]].is_failed = True

    def repairs(self, requests: int, responses: int) -> None:
        """Add numbers of repair requests and answers (SDS-R)."""
        self._figures.requests += requests
        self._figures.responses += responses

    def figures(self, settle_us: int) -> Figures:
        """Return the figures of all messages that were due `settle_us` before the end."""
        figures = self._figures
        figures.participants = len(self._participants)
        figures.silent = sum(not any(each.had_us) for each in self._participants)
        figures.copies = sum(each.copies for each in self._participants)
        figures.received = sum(each.firsts for each in self._participants)
        for message_number, message in enumerate(self._messages):
            self._check_origin(message_number, message)
        lacking, due = set[int](), set[int]()
        orders = {
            group: sorted(numbers, key=lambda number: self._messages[number].first_us)
            for group, numbers in self._groups.items()
        }
        for number, each in enumerate(self._participants):
            merged = self._order(each, orders)
            self._judge(number, each, merged, settle_us, lacking, due)
        figures.messages, figures.complete = len(due), len(due - lacking)
        figures.failed = sum(each.is_failed for each in self._messages)
        figures.without_origin = sum(
            self._messages[number].origin < 0 and self._messages[number].sent_us == FOREVER
            for number in due
        )
        return figures

    def _order(self, each: _Participant, orders: dict[str, list[int]]) -> list[int]:
        if len(each.groups) == 1:
            return orders.get(next(iter(each.groups)), [])
        numbers = {number for group in each.groups for number in orders.get(group, ())}
        return sorted(numbers, key=lambda number: self._messages[number].first_us)

    def _judge(
        self,
        whose: int,
        each: _Participant,
        order: list[int],
        settle_us: int,
        lacking: set[int],
        due: set[int],
    ) -> None:
        figures, hole = self._figures, 0
        each.make_room(len(self._messages) - 1)
        until_us = self._end_us if each.until_us == FOREVER else each.until_us
        for number in order:
            message = self._messages[number]
            if message.is_failed or message.first_us < each.from_us:
                continue
            if message.first_us + settle_us > until_us:
                figures.not_due += message.origin != whose
                continue
            due.add(number)
            if message.origin == whose:
                continue
            figures.expected += 1
            if not (at_us := each.had_us[number]):
                lacking.add(number)
                hole += 1
                continue
            figures.delivered += 1
            figures.latency.add(at_us - message.first_us)
            if (way := WAYS[each.ways[number]]) not in ("", UNSAID):
                figures.ways[way] += 1
            if each.missing_us[number] >= 0:
                figures.missing_for.add(each.missing_us[number])
            if hole:
                figures.holes += 1
                figures.in_holes += hole
                figures.longest_hole = max(figures.longest_hole, hole)
                hole = 0

    def _number(self, name: str) -> int:
        number = self._names.setdefault(name, len(self._participants))
        if number == len(self._participants):
            self._participants.append(_Participant())
        return number

    def _message(self, message_id: str, at_us: int, group: str) -> int:
        number = self._ids.setdefault(message_id, len(self._messages))
        if number == len(self._messages):
            self._messages.append(_Message(at_us))
        message = self._messages[number]
        message.first_us = min(message.first_us, at_us)
        self._groups[group].add(number)
        self._end_us = max(self._end_us, at_us)
        return number

    def _enters(self, number: int, whose: int, at_us: int, group: str) -> None:
        message, each = self._messages[number], self._participants[whose]
        each.groups.add(group)
        each.make_room(number)
        if not each.had_us[number] or at_us < each.had_us[number]:
            each.had_us[number] = at_us
        if at_us < message.origin_us:
            message.origin, message.origin_us = whose, at_us

    def _check_origin(self, number: int, message: _Message) -> None:
        """A participant that sent a message on after it had received it is not its origin; with
        the origin it is known when the message was sent."""
        if message.origin >= 0:
            had_us = self._participants[message.origin].had_us[number]
            if had_us < message.origin_us:
                message.origin, message.origin_us = -1, FOREVER
        sent_us = min(message.sent_us, message.origin_us)
        if sent_us < FOREVER:
            message.first_us = sent_us

    @property
    def names(self) -> Iterator[str]:
        """Names of the participants, in order of their first sighting."""
        return iter(self._names)
