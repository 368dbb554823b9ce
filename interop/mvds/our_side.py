"""Our node as an application would run it: on the clock, with its state in SQLite, behind a link
that loses payloads."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from time import time
from typing import Final

from reliable_channel.engine.sync_core import Recorder
from reliable_channel.state import Identity, SqliteStateStore
from reliable_channel_mvds import (
    SEED,
    Event,
    GroupId,
    Mode,
    MvdsNode,
    NodeOptions,
    PeerId,
    WireProfile,
)

from .go_peer import PEER_ID_BYTES, GoPeer

GROUP: Final = GroupId(b"interop".ljust(32, b"\0"))
OURS: Final = PeerId(b"\x04py".ljust(PEER_ID_BYTES, b"\0"))
THEIRS: Final = PeerId(b"\x04go".ljust(PEER_ID_BYTES, b"\0"))
EPOCH_MS: Final = 20
OPTIONS: Final = NodeOptions(epoch_ms=EPOCH_MS, first_interval=5, longest_interval=20)


class OurSide:
    """Our node, and a link to the Go peer."""

    def __init__(
        self,
        path: Path,
        random: Random,
        *,
        mode: Mode,
        loss: float,
        profile: WireProfile = SEED,
        options: NodeOptions = OPTIONS,
    ) -> None:
        self._path, self._random, self._loss, self._profile = path, random, loss, profile
        self._options = replace(options, mode=mode)
        self.events: list[Event] = []
        self.delivered: list[bytes] = []
        """Bodies that came to the Go peer, each as often as it reported it."""
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
            profile=self._profile,
            recorder=Recorder(),
        )
        self.node.restore(saved.tables, now_ms)

    def restart(self) -> None:
        """Forget all that is not on disk."""
        self._store.close()
        self._begin()

    def close(self) -> None:
        """Take what is left of the events, and let go of the file."""
        self._write()
        self._store.close()

    def append(self, body: bytes) -> None:
        """Give a message to the group."""
        self.node.append(GROUP, body, _now_ms())

    def exchange(self, peer: GoPeer) -> None:
        """Let both sides say what is due, and wait a little."""
        deadline_ms = self.node.next_deadline_ms()
        if deadline_ms is not None and deadline_ms <= _now_ms():
            self.node.on_deadline(_now_ms())
        for data in self._write():
            if self._arrives():
                peer.receive(OURS, data)
        event = peer.next_event(EPOCH_MS / 4_000)
        while event is not None:
            if event["event"] == "message":
                self.delivered.append(bytes.fromhex(event["body"]))
            elif event["event"] == "send" and self._arrives():
                if bytes.fromhex(event["to"]) == OURS:
                    self.node.receive(THEIRS, bytes.fromhex(event["payload"]), _now_ms())
            event = peer.next_event(0)

    def _write(self) -> list[bytes]:
        """Write what changed, then let out what happened and what is to be sent."""
        if changes := self.node.changes():
            self._store.write(changes)
        self.events += self.node.events()
        return [outgoing.data for outgoing in self.node.outgoing() if outgoing.peer_id == THEIRS]

    def _arrives(self) -> bool:
        return self._random.random() >= self._loss


def until(limit_s: float) -> Iterator[None]:
    """Once a round, until it takes too long."""
    end = time() + limit_s
    while time() < end:
        yield
    raise TimeoutError(f"not done within {limit_s} s")


def _now_ms() -> int:
    return int(time() * 1000)
