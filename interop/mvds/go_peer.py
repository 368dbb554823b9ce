"""The reference's node as a process (`peer/`), and how it is spoken to."""

import json
import subprocess
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from types import TracebackType
from typing import Any, Final, Self

from reliable_channel_mvds import GroupId, PeerId

from ..go_build import built
from ..needed import PATIENCE_S

SOURCES: Final = Path(__file__).parent / "peer"
BUILD_OPTIONS: Final = {
    "v0.0.23": (),
    "v0.0.25": ("-tags", "later", "-modfile", "later.mod"),
}
PEER_ID_BYTES: Final = 65
"""The reference's peer ids: uncompressed public keys."""


class GoPeer:
    """A running node; its ids of peers have 65 bytes."""

    def __init__(
        self, program: Path, peer_id: PeerId, *, mode: str, epoch_ms: int, resend_epochs: int
    ) -> None:
        self._process = subprocess.Popen(
            [
                *(str(program), "-id", peer_id.hex(), "-mode", mode),
                *("-epoch", f"{epoch_ms}ms", "-resend", str(resend_epochs)),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._events: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._answers: SimpleQueue[dict[str, Any]] = SimpleQueue()
        self._reader = Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def program(cls, version: str, *, install: bool) -> Path:
        """What to run, built if need be, with v0.0.23 or v0.0.25 of the reference; raises
        `GoUnavailable`."""
        return built(SOURCES, *BUILD_OPTIONS[version], install=install)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._reader.join()
        self._process.stdout.close()

    def add_peer(self, group_id: GroupId, peer_id: PeerId) -> None:
        self._command(op="add_peer", group=group_id.hex(), peer=peer_id.hex())

    def start(self) -> None:
        self._command(op="start")

    def append(self, group_id: GroupId, body: bytes) -> bytes:
        return bytes.fromhex(
            self._command(op="append", group=group_id.hex(), body=body.hex())["id"]
        )

    def receive(self, peer_id: PeerId, payload: bytes) -> None:
        self._command(op="receive", peer=peer_id.hex(), payload=payload.hex())

    def records(self) -> dict[str, int]:
        """How many offers, requests and messages are left in its state."""
        answer = self._command(op="state")
        return {kind: answer[kind] for kind in ("offers", "requests", "messages")}

    def next_event(self, timeout_s: float) -> dict[str, Any] | None:
        """A payload that it sends or a message that came to it, or None."""
        try:
            return self._events.get(timeout=max(0.0, timeout_s))
        except Empty:
            return None

    def _command(self, **fields: str) -> dict[str, Any]:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(fields) + "\n")
        self._process.stdin.flush()
        answer = self._answers.get(timeout=PATIENCE_S)
        if "error" in answer:
            raise RuntimeError(f"the Go peer refuses {fields['op']}: {answer['error']}")
        return answer

    def _read(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            event = json.loads(line)
            (self._answers if event["event"] == "answer" else self._events).put(event)
