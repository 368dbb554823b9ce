"""Facts and what was judged, for small tables."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any, TypeVar, get_args

from reliable_channel_audit.check import check
from reliable_channel_audit.clocks import Offset
from reliable_channel_audit.facts import Delivery, Fact
from reliable_channel_audit.journals import Participant
from reliable_channel_audit.tables.arrivals import Arrivals
from reliable_channel_audit.tables.ingest import ingest
from reliable_channel_audit.tables.judging import Judged, judge
from reliable_channel_audit.tables.participants import Facts, Many
from reliable_channel_audit.verdict import Verdict

F = TypeVar("F")


def fact(of: type[F], participant_id: str, /, **values: object) -> F:
    """A fact of a participant of `general`; what is not given is None."""
    assert of in get_args(Fact)
    given = {"channel_id": "general", "participant_id": participant_id, "life": 0, **values}
    fields: tuple[str, ...] = of._fields  # type: ignore[attr-defined]
    assert given.keys() <= {*fields}
    return of(**{name: given.get(name) for name in fields})


def delivery(participant_id: str, at_ms: int, **values: object) -> Delivery:
    """The message `m` of alice in a log."""
    message = {"message_id": "m", "lamport_timestamp": 1_000, "sender_id": "alice"}
    return fact(Delivery, participant_id, at_ms=at_ms, **{**message, **values})


def known(
    participant_id: str, *deliveries: Delivery, sent: dict[bytes, str] | None = None
) -> Facts:
    """A participant that was judged by rows."""
    participant = Participant("general", participant_id, (), 0)
    return Facts(participant, [], {}, sent or {}, [], [], by_rows=Many([*deliveries], [], []))


def judged_facts(
    *facts: Any,
    offsets: dict[tuple[str, str], Offset] | None = None,
    arrivals: dict[str, Arrivals] | None = None,
) -> Judged:
    kinds: defaultdict[type, list[Any]] = defaultdict(list)
    for each in facts:
        kinds[type(each)].append(each)
    return Judged("", Verdict(), [], kinds, offsets or {}, [], arrivals or {})


def judged(journals: Path, directory: Path) -> Judged:
    """The verdict of journals, which is that of `check`."""
    done = ingest([journals], directory, with_open=True)
    found = judge(directory, done.group)
    assert found.verdict == check([journals])
    return found
