"""Evidence about a message, its history across journals with file and line of each step."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Final, NamedTuple

from .facts import message_in
from .findings import Finding, severity
from .journals import Noted, Participant, lived, numbered_texts
from .lines import LOGGED, Line, time_text
from .verdict import Verdict

AROUND: Final = 2
"""Number of lines that are shown before and after a step."""
MAX_EVIDENCE: Final = 20
"""Maximum number of findings for which evidence is collected, the worst first."""
MAX_STEPS: Final = 500
"""Maximum number of steps of one message. A message in a large group, or with endless repairs, has
more steps."""
MAX_TEXT: Final = 200
"""Maximum number of characters of a line that are shown."""
SHORTEST_ID: Final = 8
"""Minimum length of a shortened id that names a message."""


class Step(NamedTuple):
    """Step of a message in one journal, such as its arrival."""

    message_id: str
    at_ms: int
    """Time of the step by the participant's clock."""
    channel_id: str
    participant_id: str
    path: str
    line: int
    what: str


Clocks = Mapping[tuple[str, str], int | None]
"""Leads of clocks, as in `Verdict.clocks`."""
UNCORRECTED: Final = "unknown, its times are not corrected"


def lives_of(group: Iterable[Participant], message_ids: Collection[str]) -> dict[str, list[Step]]:
    """Return the steps of messages in order of time, at most `MAX_STEPS` of each message. A message
    id may be shortened to `SHORTEST_ID` characters."""
    return _read(group, message_ids, ())[0]


def _read(
    group: Iterable[Participant], message_ids: Collection[str], findings: Collection[Finding]
) -> tuple[dict[str, list[Step]], dict[Finding, Noted]]:
    """The steps of messages, first those at participants of findings and at senders, and the lines
    at which findings begin."""
    wanted = tuple(each for each in message_ids if len(each) >= SHORTEST_ID)
    kept: defaultdict[str, tuple[list[Step], list[Step]]] = defaultdict(lambda: ([], []))
    moments: dict[Finding, Noted] = {}
    for participant in group:
        whose = participant.channel_id, participant.participant_id
        about = [each for each in findings if _whose(each) == whose]
        near = {each.message_id for each in about}
        for noted in lived(*whose, participant.paths):
            for finding in about:
                _come_nearer(moments, finding, noted)
            for message_id in _among(wanted, noted.line):
                what, at_ms = _what(noted.line), noted.line.at_ms or 0
                steps = kept[message_id][message_id not in near and what != ACCEPTED]
                if len(steps) < MAX_STEPS:
                    steps.append(Step(message_id, at_ms, *whose, noted.path, noted.number, what))
    lives = {
        message_id: sorted([*near_steps, *far_steps][:MAX_STEPS], key=_when)
        for message_id, (near_steps, far_steps) in kept.items()
    }
    return lives, moments


class Evidence(NamedTuple):
    """Evidence from journals that a finding is true."""

    finding: Finding
    severity: int
    path: str
    """Path of the finding's place in the journal of its participant. If the journal lacks the
    message, the place is at the time of the finding."""
    line: int
    around: dict[str, list[str]]
    """Surrounding lines by path and line, in the journals of the participant and of the sender."""
    life: list[Step]
    """Steps of the message, with corrected times if the clocks are known."""
    clocks: list[str]
    """Corrections that were applied to the times of participants with a wrong clock."""
    command: str
    """Command that prints the evidence again."""

    def to_dict(self) -> dict[str, object]:
        steps = [step._asdict() for step in self.life]
        return self._asdict() | {"finding": self.finding._asdict(), "life": steps}


def evidence(
    group: Iterable[Participant], found: Verdict, paths: Sequence[str | Path]
) -> list[Evidence]:
    """Return evidence for the worst findings, one for each message, from journals at `paths`."""
    first: dict[tuple[str, ...], Finding] = {}
    for each in sorted(found.findings, key=lambda each: (severity(each), each)):
        about = (each.audit, each.participant_id, str(each.at_ms))
        if len(first) < MAX_EVIDENCE:
            first.setdefault((each.message_id,) if each.message_id else about, each)
    shown = list(first.values())
    channels = {each.channel_id for each in shown}
    ids = {each.message_id for each in shown if each.message_id}
    lives, moments = _read((each for each in group if each.channel_id in channels), ids, shown)
    places = " ".join(shlex.quote(str(path)) for path in paths)
    return [
        _evidence(each, lives.get(each.message_id, []), moments.get(each), places, found.clocks)
        for each in shown
    ]


def show(step: Step) -> str:
    """Return a step of a message as a line of text."""
    return f"{time_text(step.at_ms)}  {step.participant_id}  {step.what}  ({step.path}:{step.line})"


def _lines_around(path: str, number: int) -> list[str]:
    found = []
    for at, text in takewhile(lambda each: each[0] <= number + AROUND, numbered_texts(Path(path))):
        if at >= number - AROUND:
            known = text.record or "" if isinstance(text, Line) else text.decode(errors="replace")
            found.append(f"{at}: {known.strip()}"[:MAX_TEXT])
    return found


def _evidence(
    finding: Finding, life: list[Step], moment: Noted | None, places: str, clocks: Clocks
) -> Evidence:
    own = [step for step in life if _whose(step) == _whose(finding)]
    at = min(own, key=lambda step: abs(step.at_ms - finding.at_ms), default=None)
    place = ("", 0) if moment is None else moment[:2]
    place = place if at is None else (at.path, at.line)
    origin = next(((each.path, each.line) for each in life if each.what == ACCEPTED), place)
    around = {f"{path}:{line}": _lines_around(path, line) for path, line in (place, origin) if path}
    again = f" --message {finding.message_id}" if len(finding.message_id) >= SHORTEST_ID else ""
    command = f"reliable-channel check {places}{again}"
    wrong = {whose: clocks[whose] for whose in sorted(map(_whose, life)) if whose in clocks}
    notes = [
        f"clock of {whose[1]}: " + (UNCORRECTED if ms is None else f"corrected by {-ms:+,} ms")
        for whose, ms in wrong.items()
    ]
    life = [each._replace(at_ms=each.at_ms - (wrong.get(_whose(each)) or 0)) for each in life]
    life.sort(key=_when)
    return Evidence(finding, severity(finding), *place, around, life, notes, command)


def _whose(of: Finding | Step) -> tuple[str, str]:
    return of.channel_id, of.participant_id


def _come_nearer(moments: dict[Finding, Noted], finding: Finding, noted: Noted) -> None:
    """The line of the time of a finding, or else the first after it, or else the last one."""
    if noted.life != finding.life or noted.line.at_ms is None:
        return
    known = moments.get(finding)
    before_ms = None if known is None else known.line.at_ms
    if before_ms == finding.at_ms:
        return
    if before_ms is None or before_ms < finding.at_ms or noted.line.at_ms == finding.at_ms:
        moments[finding] = noted


ACCEPTED: Final = "accepted, and entered the log of its sender"
_WORDS: Final = {
    "wire_in": "arrived ({0.source}): {0.outcome}",
    "wire_out": "sent ({0.source})",
    "message_acknowledged": "acknowledged by {0.source}",
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
    if line.event != LOGGED:
        return _WORDS.get(line.event, line.event.replace("_", " ")).format(line)
    if line.first_segment_id is not None:
        return ACCEPTED
    again = ", as before the restart" if line.outcome == "restored" else ""
    return f"entered the log at position {line.position}{again}"


def _among(wanted: tuple[str, ...], line: Line) -> Iterator[str]:
    """The messages that a line is about, if their ids begin like wanted ones."""
    ids = [line.message_id or ""]
    if line.event not in (LOGGED, "message_received"):  # there: what it was delivered without
        ids += line.message_ids or ()
    payload = line.payload
    if payload is not None and line.message_id is None:
        # Ids stand in a message as they are: most are not worth decoding.
        is_near = any(each.encode() in payload for each in wanted)
        message = message_in(line) if is_near else None
        ids += [] if message is None else [message.message_id]
    return (each for each in dict.fromkeys(ids) if each.startswith(wanted))


def _when(step: Step) -> tuple[int, str, int]:
    return step.at_ms, step.participant_id, step.line
