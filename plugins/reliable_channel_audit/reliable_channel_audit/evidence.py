"""What journals have of a message: its life across participants, each step with file and line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from .facts import message_in
from .findings import Finding, severity
from .journals import Participant, lived, numbered_texts
from .lines import LOGGED, WIRE_IN, WIRE_OUT, Line

AROUND: Final = 2
"""Lines before and after a step that are shown with it."""
MAX_STEPS: Final = 500
"""Of one message; a message that is repaired without end has more."""
MAX_TEXT: Final = 200
"""Characters of a line that are shown."""
SHORTEST_ID: Final = 8
"""So much of an id names a message."""


class Step(NamedTuple):
    """What one journal has of a message at one time."""

    message_id: str
    at_ms: int
    """By the clock of the participant."""
    participant_id: str
    path: str
    line: int
    what: str


def lives_of(group: Iterable[Participant], message_ids: Collection[str]) -> dict[str, list[Step]]:
    """The steps of messages, in order of time; an id may be cut short, from `SHORTEST_ID`."""
    found: defaultdict[str, list[Step]] = defaultdict(list)
    wanted = tuple(each for each in message_ids if len(each) >= SHORTEST_ID)
    for participant in group:
        whose = participant.channel_id, participant.participant_id
        for noted in lived(*whose, participant.paths):
            for message_id in _about(noted.line, wanted):
                steps = found[message_id]
                if len(steps) < MAX_STEPS:
                    at_ms, what = noted.line.at_ms or 0, _what(noted.line)
                    place = noted.path, noted.number
                    steps.append(Step(message_id, at_ms, whose[1], *place, what))
    return {message_id: sorted(steps, key=_when) for message_id, steps in found.items()}


class Evidence(NamedTuple):
    """What shows that a finding is true."""

    finding: Finding
    severity: int
    path: str
    """Where it was seen, in the journal of the participant that it is about; empty where that has
    nothing of the message."""
    line: int
    around: dict[str, list[str]]
    """By path and line, the lines around it, in this journal and in the sender's."""
    life: list[Step]

    def to_dict(self) -> dict[str, object]:
        """For JSON."""
        steps = [step._asdict() for step in self.life]
        return self._asdict() | {"finding": self.finding._asdict(), "life": steps}


def evidence(
    group: Sequence[Participant], findings: Iterable[Finding], most: int
) -> list[Evidence]:
    """Evidence for the worst findings, of each message for one."""
    worst: dict[str, Finding] = {}
    for each in sorted(findings, key=lambda each: (severity(each), each)):
        about = each.message_id or f"{each.audit} {each.participant_id} {each.at_ms}"
        if len(worst) < most:
            worst.setdefault(about, each)
    lives = lives_of(group, {each.message_id for each in worst.values()})
    return [_evidence(each, lives.get(each.message_id, [])) for each in worst.values()]


def show(step: Step) -> str:
    """A step as a line of text."""
    when = datetime.fromtimestamp(step.at_ms / 1000, UTC).isoformat(" ", "milliseconds")[:-6]
    return f"{when}  {step.participant_id}  {step.what}  ({step.path}:{step.line})"


def lines_around(path: str, number: int) -> list[str]:
    """The lines around one, cut short, with their numbers."""
    first = max(1, number - AROUND)
    texts = numbered_texts(Path(path))
    near = islice((each for each in texts if each[0] >= first), 2 * AROUND + 1)
    return [
        f"{at}: {text.record if isinstance(text, Line) else text.decode(errors='replace').strip()}"[
            :MAX_TEXT
        ]
        for at, text in near
        if at <= number + AROUND
    ]


def _evidence(finding: Finding, life: list[Step]) -> Evidence:
    own = [step for step in life if step.participant_id == finding.participant_id]
    at = min(own, key=lambda step: abs(step.at_ms - finding.at_ms), default=None)
    origin = next((step for step in life if step.what == ACCEPTED), None)
    around = {
        f"{step.path}:{step.line}": lines_around(step.path, step.line)
        for step in (at, origin)
        if step is not None
    }
    place = ("", 0) if at is None else (at.path, at.line)
    return Evidence(finding, severity(finding), *place, around, life)


ACCEPTED: Final = "accepted, and entered the log of its sender"
_WORDS: Final = {
    "message_sent": "went to the network",
    "message_received": "received by the application",
    "message_missing": "missing: known by reference alone",
    "repair_requested": "asked of others",
    "repair_request_received": "asked for by another",
    "repair_sent": "sent again for others",
    "message_lost": "declared lost",
    "delivery_failed": "failed",
    "send_failed": "not sent",
    "message_forged": "found to be forged",
    "sending_message": "to be sent",
}


def _what(line: Line) -> str:
    match line.event:
        case event if event == WIRE_IN:
            return f"arrived ({line.source}): {line.outcome}"
        case event if event == WIRE_OUT:
            return f"sent ({line.source})"
        case event if event == LOGGED and line.first_segment_id is not None:
            return ACCEPTED
        case event if event == LOGGED:
            again = ", as before the restart" if line.outcome == "restored" else ""
            return f"entered the log at position {line.position}{again}"
        case "message_acknowledged":
            return f"acknowledged by {line.source}"
        case event:
            return _WORDS.get(event, event.replace("_", " "))


def _about(line: Line, wanted: tuple[str, ...]) -> Iterator[str]:
    """The wanted messages that a line is about."""
    message = message_in(line)
    ids = [] if message is None else [message.message_id]
    ids += [line.message_id or "", *(line.message_ids or ())]
    for message_id in dict.fromkeys(ids):
        if message_id.startswith(wanted):
            yield message_id


def _when(step: Step) -> tuple[int, str, int]:
    return step.at_ms, step.participant_id, step.line
