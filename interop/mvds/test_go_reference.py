"""Our node and the Go reference v0.0.23: 500 messages each way, 30 % of the payloads lost, our side
restarted from its state on disk; in batch and interactive mode."""

import os
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import monotonic, time
from typing import Final

import pytest

from reliable_channel.changes import Recorder
from reliable_channel.state import Identity, SqliteStateStore
from reliable_channel_mvds import (
    Event,
    GroupId,
    MessageAcknowledged,
    MessageReceived,
    Mode,
    MvdsNode,
    NodeOptions,
    PeerId,
)

from ..go_build import GoUnavailable
from .go_peer import PEER_ID_BYTES, GoPeer

IN_CI: Final = os.environ.get("CI") == "true"
pytestmark = pytest.mark.timeout(600)  # the first run builds, in CI it may install Go

GROUP: Final = GroupId(b"interop".ljust(32, b"\0"))
OURS: Final = PeerId(b"\x04py".ljust(PEER_ID_BYTES, b"\0"))
THEIRS: Final = PeerId(b"\x04go".ljust(PEER_ID_BYTES, b"\0"))
MESSAGES: Final = 500
LOSS: Final = 0.3
EPOCH_MS: Final = 20
LIMIT_S: Final = 45


@pytest.fixture(scope="module")
def program() -> Path:
    try:
        return GoPeer.program(install=IN_CI)
    except GoUnavailable as error:
        if IN_CI:
            raise
        pytest.skip(f"the MVDS reference is not run: {error}")


class OurSide:
    """Our node with its state in SQLite."""

    def __init__(self, path: Path, mode: Mode, random: Random) -> None:
        self._path, self._random = path, random
        self._options = NodeOptions(mode=mode, epoch_ms=EPOCH_MS, longest_interval=40)
        self.events: list[Event] = []
        self._begin()

    def _begin(self) -> None:
        self._store = SqliteStateStore(self._path)
        saved = self._store.open(Identity("interop", "py", "spec"))
        now_ms = _now_ms()
        self.node = MvdsNode(
            OURS,
            now_ms=now_ms,
            random=self._random.random,
            options=self._options,
            recorder=Recorder(),
        )
        self.node.restore(saved.tables, now_ms)

    def restart(self) -> None:
        """Forget all that is not on disk."""
        self._store.close()
        self._begin()

    def close(self) -> None:
        self._store.close()

    def step(self) -> Iterator[bytes]:
        """Write what changed, then let out what happened and what is to be sent."""
        if (deadline_ms := self.node.next_deadline_ms()) and deadline_ms <= _now_ms():
            self.node.on_deadline(_now_ms())
        if changes := self.node.changes():
            self._store.write(changes)
        self.events += self.node.events()
        for outgoing in self.node.outgoing():
            assert outgoing.peer_id == THEIRS
            yield outgoing.data


@pytest.mark.parametrize("theirs", Mode, ids=lambda mode: f"go-{mode.value}")
@pytest.mark.parametrize("ours", Mode, ids=lambda mode: f"py-{mode.value}")
def test_all_arrive_once(program: Path, tmp_path: Path, ours: Mode, theirs: Mode) -> None:
    random = Random(f"{ours}{theirs}")
    side = OurSide(tmp_path / "state.sqlite", ours, random)
    side.node.add_peer(GROUP, THEIRS)
    with GoPeer(program, THEIRS, mode=theirs.value, epoch_ms=EPOCH_MS, resend_epochs=10) as peer:
        peer.add_peer(GROUP, OURS)
        peer.start()
        to_go = _bodies("py")
        to_py = _bodies("go")
        at_go: set[bytes] = set()
        restarts, give_until = 0, monotonic() + LIMIT_S
        while monotonic() < give_until:
            for _ in range(min(10, len(to_go))):
                side.node.append(GROUP, to_go.pop(), _now_ms())
                peer.append(GROUP, to_py.pop())
            for data in side.step():
                if random.random() >= LOSS:
                    peer.receive(OURS, data)
            at_go |= _take_events(peer, side, random)
            if len(at_go) >= MESSAGES * (restarts + 1) // 4 and restarts < 3:
                restarts += 1
                side.restart()
            if not to_go and _is_done(side) and len(at_go) == MESSAGES and _is_idle(peer):
                break
        records = peer.records()
    assert not list(side.step())
    statistics = side.node.statistics()
    side.close()
    received = [event.body for event in side.events if isinstance(event, MessageReceived)]
    acknowledged = [event for event in side.events if isinstance(event, MessageAcknowledged)]
    assert sorted(received) == sorted(_bodies("go"))
    assert sorted(at_go) == sorted(_bodies("py"))
    assert len(acknowledged) == MESSAGES
    assert restarts == 3
    assert statistics.records == 0
    assert records == {"offers": 0, "requests": 0, "messages": 0}
    unexpected = {type(event) for event in side.events} - {MessageReceived, MessageAcknowledged}
    assert not unexpected


def _take_events(peer: GoPeer, side: OurSide, random: Random) -> set[bytes]:
    """Hand what the peer sends to our side, and return what came to it; waits a little."""
    came = set()
    event = peer.next_event(EPOCH_MS / 4_000)
    while event is not None:
        if event["event"] == "message":
            came.add(bytes.fromhex(event["body"]))
        elif event["event"] == "send" and random.random() >= LOSS:
            side.node.receive(THEIRS, bytes.fromhex(event["payload"]), _now_ms())
        event = peer.next_event(0)
    return came


def _is_done(side: OurSide) -> bool:
    return side.node.next_deadline_ms() is None


def _is_idle(peer: GoPeer) -> bool:
    return not any(peer.records().values())


def _bodies(sender: str) -> list[bytes]:
    return [f"{sender} {number}".encode() for number in range(MESSAGES)]


def _now_ms() -> int:
    return int(time() * 1000)
