"""What a hostile member puts on the wire, and the state of all others afterwards."""

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import sleep
from typing import Final

from reliable_channel.sds.dialects import SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message

from . import hostile
from .bench import TOPIC
from .container import Container, Event
from .peers import CHANNEL, JsPeer, Peer
from .stage import Stage, log_of

WHO: Final = "mallory"
SEED: Final = 11
GARBAGE: Final = 50
FILTER_BYTES: Final = 18_752
"""Of js-waku's bloom filter, and of ours by default."""
POISON: Final = 2**62
"""A Lamport timestamp of the far future, which fits all implementations' numbers."""


def attack(stage: Stage) -> None:
    """A hostile member acknowledges all with a bloom filter of ones, sends garbage, refers to
    nothing, and poisons clocks. js-waku's fate is recorded, ours go on."""
    stage.open_all()
    stage.speak(20)
    stage.converge()
    mallory = stage.network.program_behind_gateway(WHO, Path(hostile.__file__))
    _claim_all(stage, mallory)
    for data in _garbage():
        _publish(mallory, data)
    _publish(mallory, _message("of nothing", history=[HistoryEntry("00" * 32)]))
    stage.speak(10)
    stage.converge()
    stage.attack_begins()
    _publish(mallory, _message("poison", lamport=POISON))
    stage.eventually(
        lambda: all(_has_refused_poison(peer) for peer in stage.ours), "refused by ours"
    )
    stage.speak(10)
    stage.forgotten |= {i for peer in stage.js for i in _said_since(stage, peer)}
    stage.forgotten |= {
        e["message_id"] for peer in stage.peers for e in log_of(peer) if _is_hers(e)
    }
    stage.converge()
    for peer in stage.ours:
        assert not any(_is_hers(e) and e["message_id"] == "poison" for e in peer.log())
        stage.speak(1, peer)
    stage.converge()
    stage.notes += [_fate(stage, peer) for peer in stage.js]


def _claim_all(stage: Stage, mallory: Container) -> None:
    """While all others sleep, one member's messages reach none of them, and a filter of ones claims
    that all is there: ours ignore it."""
    for peer in stage.peers:
        for other in stage.others(peer):
            other.pause()
        said = {stage.send(peer) for _ in range(3)}
        sleep(1)
        for number in range(2):
            ones = _message(f"ones {number}", bloom=b"\xff" * FILTER_BYTES, content=None)
            _publish(mallory, ones)
        sleep(3)
        believed = len(said & peer.acknowledged())
        for other in stage.others(peer):
            other.unpause()
        if isinstance(peer, JsPeer):
            if not stage.network.has_store:
                stage.forgotten |= said  # js-waku sends them no more, and nobody else has them
            stage.notes.append(
                f"{peer.name} took {believed} of 3 made-up messages for acknowledged, because of a "
                "filter of ones"
            )
        else:
            assert believed == 0, f"{peer.name} believes a filter of ones"


def _garbage() -> Iterator[bytes]:
    random = Random(SEED)
    whole = _message("whole")
    yield b"\0"
    yield b"\xff" * 1_000
    for _ in range(GARBAGE):
        yield random.randbytes(random.randrange(1, 400))
        yield whole[: random.randrange(1, len(whole))]


def _message(
    message_id: str,
    *,
    lamport: int | None = None,
    history: list[HistoryEntry] | None = None,
    bloom: bytes | None = None,
    content: bytes | None = b"evil",
) -> bytes:
    timestamp = lamport if lamport is not None else 1
    return SpecCodec().encode(
        Message(WHO, message_id, CHANNEL, timestamp, history or (), bloom, (), content)
    )


def _publish(mallory: Container, data: bytes) -> None:
    mallory.command("publish", payload=b64encode(data).decode(), topic=TOPIC)


def _has_refused_poison(peer: Peer) -> bool:
    return any(e["reason"] == "lamport_too_far_ahead" for e in peer.emitted("message_rejected"))


def _is_hers(entry: Event) -> bool:
    return bool(entry["sender_id"] == WHO)


def _said_since(stage: Stage, peer: Peer) -> list[str]:
    assert stage.attacked_at is not None
    return [i for i in peer.accepted if stage.accepted_at[i] > stage.attacked_at]


def _fate(stage: Stage, peer: JsPeer) -> str:
    """What became of a js-waku participant, in numbers."""
    if not (log := log_of(peer)):
        return f"{peer.name} died"
    clock = max(int(entry["lamport_timestamp"]) for entry in log)
    later = _said_since(stage, peer)
    held = {entry["message_id"] for entry in stage.ours[0].log()}
    refused = sum(message_id not in held for message_id in later)
    return (
        f"{peer.name} took a Lamport timestamp of {clock:.1e} from a stranger; ours refuse "
        f"{refused} of the {len(later)} messages that it sent after that"
    )
