"""What has to hold at the end of every cell, and how failures read."""

from base64 import b64decode
from collections import Counter
from dataclasses import dataclass, field
from time import sleep
from typing import Final

from .container import Event
from .defects import ONE_REQUEST, WAITS_FOR_EVER, explanation
from .missing import missed_by, what_it_misses
from .peers import JsPeer, JsState, OurPeer, digest
from .stage import POLL_S, Stage

LOOKS: Final = 10
"""At a participant that still moves; one that never stands is judged as it is."""


@dataclass(frozen=True)
class Verdict:
    cell: str
    accepted: int
    """Messages that all of ours hold, with their content."""
    digest: str
    """Of all logs that hold all."""
    js_missed: dict[str, int] = field(default_factory=dict)
    """Messages that js-waku has not got, by the name of the defect that explains it."""
    notes: tuple[str, ...] = ()
    """What the scenario found out besides."""
    failures: int = 0
    """How often the cell failed before, where a run goes on where it was."""


def judge(stage: Stage) -> Verdict:
    """Check content, counts and digests of all logs.

    Raises:
        AssertionError: something is missing, doubled, changed or out of order.
    """
    accepted = stage.accepted
    if stage.cell.scenario.is_segmented:
        return _judge_payloads(stage)
    digests = {peer.name: _check_ours(stage, peer, accepted) for peer in stage.ours}
    missed: Counter[str] = Counter()
    for peer in stage.js:
        explained, js_digest = _check_js(stage, peer, accepted)
        missed += explained
        if js_digest is not None:
            digests[peer.name] = js_digest
    assert len(set(digests.values())) == 1, f"logs differ: {digests}"
    common = next(iter(digests.values()))
    return Verdict(stage.cell.name, len(accepted), common, dict(missed), tuple(stage.notes))


def _judge_payloads(stage: Stage) -> Verdict:
    """Where payloads are cut, a log has segments: the payloads are in the events."""
    accepted = stage.accepted
    for peer in stage.ours:
        others = [payload for i, payload in accepted.items() if i not in peer.accepted]
        assert Counter(peer.received()) == Counter(others), f"{peer.name} emitted other payloads"
    digests = {str(peer.command("log")["digest"]) for peer in stage.ours}
    assert len(digests) == 1, "logs differ"
    return Verdict(stage.cell.name, len(accepted), digests.pop(), notes=tuple(stage.notes))


def _check_ours(stage: Stage, peer: OurPeer, accepted: dict[str, bytes]) -> str:
    """All is there, nothing else, nothing twice, in the log and in the events."""
    answer = peer.command("log")
    log = [(e["message_id"], b64decode(e["payload"])) for e in answer["entries"]]
    log = [entry for entry in log if entry[0] not in stage.forgotten]
    assert len(log) == len(dict(log)), f"{peer.name}: a message is in the log twice"
    lost, foreign = set(accepted) - set(dict(log)), set(dict(log)) - set(accepted)
    assert not lost, (
        f"{peer.name} misses {len(lost)} of {len(accepted)} accepted messages: {stage.names(lost)}"
    )
    assert not foreign, f"{peer.name} holds {len(foreign)} messages that were not accepted"
    assert dict(log) == accepted, f"{peer.name} holds changed contents"
    assert answer["digest"] == digest(answer["entries"])
    _check_emitted(stage, peer, set(accepted) - set(peer.accepted))
    return str(answer["digest"])


def _check_emitted(stage: Stage, peer: OurPeer, others: set[str]) -> None:
    """Each was emitted once. A participant that was killed between noting that and emitting it
    emits it again, as redelivered."""
    for _ in range(LOOKS):  # a message is emitted once it is on disk, later than it is in the log
        events = peer.emitted("message_received")
        emitted = [event for event in events if event["message_id"] not in stage.forgotten]
        new = Counter(event["message_id"] for event in emitted if not event["redelivered"])
        again = {event["message_id"] for event in emitted if event["redelivered"]}
        missing = others - set(new) - (again if peer.lives > 1 else set())
        if not missing:
            break
        sleep(POLL_S)
    twice = {message_id for message_id, count in new.items() if count > 1}
    foreign = (set(new) | again) - others
    assert not twice, f"{peer.name} emitted twice as new: {stage.names(twice)}"
    assert not missing, f"{peer.name} did not emit {stage.names(missing)}"
    assert not foreign, f"{peer.name} emitted {len(foreign)} messages that were not accepted"


def _check_js(
    stage: Stage, peer: JsPeer, accepted: dict[str, bytes]
) -> tuple[Counter[str], str | None]:
    """What is there is right; what is not there is explained."""
    entries, state, emitted = _standing(peer, accepted)
    log = {e["message_id"]: b64decode(e["payload"]) for e in entries}
    foreign = set(log) - set(accepted) - stage.forgotten
    assert not foreign, f"{peer.name} holds {len(foreign)} messages that were not accepted"
    wrong = [i for i, payload in log.items() if accepted.get(i, payload) != payload]
    assert not wrong, f"{peer.name} holds changed contents"
    allowed = [*stage.cell.scenario.js_may_miss, ONE_REQUEST, WAITS_FOR_EVER]
    missed = {
        i: missed_by(stage, peer, state, i, was_emitted=accepted[i] in emitted)
        for i in set(accepted) - set(log)
    }
    defects = {i: explanation(each, allowed) for i, each in missed.items()}
    unexplained = {i: missed[i] for i, defect in defects.items() if defect is None}
    assert not unexplained, what_it_misses(stage, peer, len(log), missed, unexplained)
    explained = Counter(defect.name for defect in defects.values() if defect)
    waits_for_others = stage.forgotten or set(explained) != {WAITS_FOR_EVER.name}
    assert waits_for_others, (
        f"{peer.name} waits for nothing that we know: "
        f"{what_it_misses(stage, peer, len(log), missed, missed)}"
    )
    return explained, None if explained or stage.forgotten else digest(entries)


def _standing(peer: JsPeer, accepted: dict[str, bytes]) -> tuple[list[Event], JsState, set[bytes]]:
    """The log, what it lacks, and the events, of one moment: js-waku emits a message before it
    looks at it, and a message that it looks at may be on its way from the buffer into the log."""
    found = None
    for _ in range(LOOKS):
        before, found = found, (peer.log(), peer.state(), set(peer.received()))
        if found == before or len(found[0]) == len(accepted):
            break
        sleep(POLL_S)
    assert found is not None
    return found
