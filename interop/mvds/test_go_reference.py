"""Our node and the Go reference of 2/MVDS: 500 messages each way, 30 % of the payloads lost, our
side restarted from its state on disk; in batch and interactive mode."""

from pathlib import Path
from random import Random
from typing import Final

import pytest

from reliable_channel_mvds import (
    LATER,
    SEED,
    MessageAcknowledged,
    MessageReceived,
    Mode,
    NodeOptions,
    PeerId,
    WireProfile,
)

from ..go_build import GoUnavailable
from ..needed import IN_CI, PATIENCE_S, needed
from .go_peer import GoPeer
from .our_side import EPOCH_MS, GROUP, OURS, THEIRS, OurSide, until

MESSAGES: Final = 500
LOSS: Final = 0.3
RESTARTS: Final = 3
SOMEBODY_ELSE: Final = PeerId(b"\x04other")


def _program(version: str) -> Path:
    with needed(f"the MVDS reference {version}", GoUnavailable):
        return GoPeer.program(version, install=IN_CI)


@pytest.mark.parametrize("theirs", Mode, ids=lambda mode: f"go-{mode.value}")
@pytest.mark.parametrize("ours", Mode, ids=lambda mode: f"py-{mode.value}")
def test_all_arrive_once(tmp_path: Path, ours: Mode, theirs: Mode) -> None:
    _both_ways(tmp_path, "v0.0.23", SEED, ours, theirs)


@pytest.mark.parametrize("mode", Mode, ids=lambda mode: mode.value)
def test_all_arrive_once_in_the_later_numbering(tmp_path: Path, mode: Mode) -> None:
    _both_ways(tmp_path, "v0.0.25", LATER, mode, mode)


def _both_ways(
    tmp_path: Path, version: str, profile: WireProfile, ours: Mode, theirs: Mode
) -> None:
    random = Random(f"{version} {ours} {theirs}")
    side = OurSide(tmp_path / "state.sqlite", random, mode=ours, loss=LOSS, profile=profile)
    side.node.add_peer(GROUP, THEIRS)
    to_go, to_py = _bodies("py"), _bodies("go")
    restarts = 0
    program = _program(version)
    with GoPeer(program, THEIRS, mode=theirs.value, epoch_ms=EPOCH_MS, resend_epochs=5) as peer:
        peer.add_peer(GROUP, OURS)
        peer.start()
        for _ in until(PATIENCE_S):
            for _ in range(min(10, len(to_go))):
                side.append(to_go.pop())
                peer.append(GROUP, to_py.pop())
            side.exchange(peer)
            arrived = len(set(side.delivered))
            if restarts < RESTARTS and arrived > MESSAGES * restarts // RESTARTS:
                restarts += 1
                side.restart()
            if arrived == MESSAGES and side.node.next_deadline_ms() is None and _is_idle(peer):
                break
    side.close()
    received = [event.body for event in side.events if isinstance(event, MessageReceived)]
    acknowledged = [
        event.message_id for event in side.events if isinstance(event, MessageAcknowledged)
    ]
    assert sorted(received) == sorted(_bodies("go"))  # each once
    assert set(side.delivered) == set(_bodies("py"))  # the reference tells duplicates again
    # The reference takes payloads beside each other (`go n.onPayload`): an offer that is looked up
    # before its message arrives, and noted after it, makes it ask for the message once more.
    assert len(set(acknowledged)) == MESSAGES
    assert len(side.events) == MESSAGES + len(acknowledged)
    assert restarts == RESTARTS
    assert side.node.statistics().records == 0


@pytest.mark.parametrize("version", ["v0.0.23", "v0.0.25"])
def test_the_reference_passes_our_messages_on_and_lives(tmp_path: Path, version: str) -> None:
    """v0.0.25 in interactive mode dies of a message without metadata that is to be passed on."""
    profile = SEED if version == "v0.0.23" else LATER
    # The reference offers a message once for each copy, and a slow machine would send a second one.
    once = NodeOptions(epoch_ms=EPOCH_MS, first_interval=1_000_000, longest_interval=1_000_000)
    side = OurSide(
        tmp_path / "state.sqlite",
        Random(7),
        mode=Mode.BATCH,
        loss=0,
        profile=profile,
        options=once,
    )
    side.node.add_peer(GROUP, THEIRS)
    program = _program(version)
    with GoPeer(program, THEIRS, mode="interactive", epoch_ms=EPOCH_MS, resend_epochs=5) as peer:
        peer.add_peer(GROUP, OURS)
        peer.add_peer(GROUP, SOMEBODY_ELSE)
        peer.start()
        side.append(b"pass it on")
        for _ in until(PATIENCE_S):
            side.exchange(peer)
            # It may not have read yet that we have the message.
            if side.node.next_deadline_ms() is None and peer.records()["offers"] == 1:
                break
        assert peer.records() == {"offers": 1, "requests": 0, "messages": 0}
    side.close()
    assert side.delivered == [b"pass it on"]


def _is_idle(peer: GoPeer) -> bool:
    return not any(peer.records().values())


def _bodies(sender: str) -> list[bytes]:
    return [f"{sender} {number}".encode() for number in range(MESSAGES)]
