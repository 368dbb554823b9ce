"""The js-waku side: `bench/js/peer.mjs` in a Node process, a JSON line each command and answer."""

from __future__ import annotations

import json
import select
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from bench.node_runtime import JS, Node
from bench.workload import CHANNEL_ID, WireMessage, history_messages, write

ANSWER_TIMEOUT_S: Final = 240
"""A command that takes longer has hung: the longest, receiving at 100,000, takes some seconds."""
HEAP_MIB: Final = 4096
MESSAGES_PER_FILE: Final = 1000
"""Messages of 40 kB in one file on their way to the memory measurement."""


class JsWakuFailed(RuntimeError):
    """The peer died, hung or answered with an error."""


class JsWaku:
    """A running peer; leave the context to end it.

    One session at a time: `setup`, then `receive`, `send` and `leave_unacknowledged` in any order.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._folder = tempfile.TemporaryDirectory(prefix="sds-bench-")
        self._errors = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._process = subprocess.Popen(
            [node.node, "--expose-gc", f"--max-old-space-size={HEAP_MIB}", "peer.mjs"],
            cwd=JS,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()
        self._errors.close()
        self._folder.cleanup()

    def setup(self, history: int, causal_history: int, traffic: Sequence[WireMessage]) -> None:
        """Begin with a channel that holds `history` messages and will receive `traffic`."""
        answer = self.ask(
            "setup",
            channelId=CHANNEL_ID,
            causalHistory=causal_history,
            history=str(self._file("history", history_messages(history, causal_history))),
            traffic=str(self._file("traffic", traffic)),
        )
        if answer["history"] != history:
            raise JsWakuFailed(f"js-waku's log has {answer['history']} messages, not {history}")

    def receive(self, start: int, count: int) -> float:
        """CPU microseconds a message for `count` messages, after one that is not timed."""
        answer = self.ask("receive", start=start, count=count)
        if answer["delivered"] != count + 1:
            raise JsWakuFailed(f"js-waku delivered {answer['delivered']} of {count + 1} messages")
        return float(answer["us"])

    def send(self, payloads: Iterable[bytes]) -> float:
        """CPU microseconds for each payload but the first; a peer acknowledges them afterwards."""
        return float(self.ask("send", payloads=_base64(payloads))["us"])

    def leave_unacknowledged(self, payloads: Iterable[bytes]) -> None:
        """Send own messages that are never acknowledged."""
        self.ask("leaveUnacknowledged", payloads=_base64(payloads))

    def primitives(
        self, traffic: Iterable[WireMessage], ids: Sequence[str], rounds: int
    ) -> dict[str, float]:
        """CPU microseconds a call of encode, decode and the parts of the bloom filter."""
        path = self._file("traffic", traffic)
        answer = self.ask("primitives", traffic=str(path), ids=ids, rounds=rounds)
        return {name: float(us) for name, us in answer.items()}

    def memory_bytes(self, traffic: Iterable[WireMessage]) -> int:
        """Bytes of heap and buffers that a history of these messages takes, content included."""
        self.ask("memoryBegin")
        messages = iter(traffic)
        while chunk := list(islice(messages, MESSAGES_PER_FILE)):
            self.ask("memoryAdd", messages=str(self._file("memory", chunk)))
        return int(self.ask("memoryEnd")["bytes"])

    def _file(self, name: str, messages: Iterable[WireMessage]) -> Path:
        path = Path(self._folder.name) / name
        write(path, messages)
        return path

    def ask(self, command: str, **parameters: object) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps({"command": command, **parameters}) + "\n")
            stdin.flush()
        except OSError as error:
            raise JsWakuFailed(f"{command}: {self._last_words()}") from error
        # One line a command, so that nothing can be left in the text layer's buffer.
        if not select.select([stdout], [], [], ANSWER_TIMEOUT_S)[0]:
            raise JsWakuFailed(f"{command}: no answer within {ANSWER_TIMEOUT_S} s")
        line = stdout.readline()
        if not line:
            raise JsWakuFailed(f"{command}: {self._last_words()}")
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise JsWakuFailed(answer["error"])
        return answer

    def _last_words(self) -> str:
        self._errors.seek(0)
        return f"Node ended: {self._errors.read()[-1000:].strip() or 'no word why'}"


def _base64(payloads: Iterable[bytes]) -> list[str]:
    return [b64encode(payload).decode() for payload in payloads]
