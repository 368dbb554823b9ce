"""Logs as nodes of 10ksim write them, of a run that is known.

The forms of the lines are those of vacp2p/10ksim at 4f90a3c: `test_waku_tracer.py` (relay, as text
and as JSON) and the comments of `waku_tracer.py` (light push). The subscriber's line is what
`docker-utils/status-subscriber/subscribe.py` of vacp2p/status-benchmarks logs. Dumps have the
fields that `VictoriaReader` asks for.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Final

BEGIN_US: Final = 1_784_214_600_000_000
EVERY_US: Final = 1_000_000


@dataclass
class KnownRun:
    """Who had what, and how long it took: the truth that figures are compared with."""

    nodes: int = 6
    messages: int = 60
    shard: int = 0
    lost: dict[int, set[int]] = field(default_factory=dict)
    """By node, which messages it never had."""
    seed: int = 1
    latencies_us: list[int] = field(default_factory=list)

    def pod(self, node: int) -> str:
        return f"nodes-{self.shard}-{node}"

    def peer(self, node: int) -> str:
        return f"16U*{sha256(f'{self.seed} {self.pod(node)}'.encode()).hexdigest()[:6]}"

    def message(self, number: int) -> str:
        return "0x" + sha256(f"{self.seed} {self.shard} {number}".encode()).hexdigest()

    def sent_us(self, number: int) -> int:
        return BEGIN_US + number * EVERY_US

    def origin(self, number: int) -> int:
        return number % self.nodes

    def hops(self) -> Iterator[tuple[int, int, int, int]]:
        """Message, node, when it came there (µs), and which copy it is there, from 0."""
        random = Random(self.seed)
        self.latencies_us = []
        for number in range(self.messages):
            for node in range(self.nodes):
                lost = number in self.lost.get(node, ())
                late_us = random.randrange(2_000, 900_000)
                if node == self.origin(number) or lost:
                    continue
                self.latencies_us.append(late_us)
                for copy in range(2):
                    yield number, node, self.sent_us(number) + late_us * (1 + copy), copy


def relay_lines(run: KnownRun, *, as_json: bool = False) -> Iterator[tuple[int, int, str]]:
    """Time (µs), node and text of every line of nwaku about relay."""
    for number in range(run.messages):
        node, at_us = run.origin(number), run.sent_us(number)
        there = f"to_peer_id={run.peer((node + 1) % run.nodes)}"
        yield (
            at_us,
            node,
            (
                f"sent relay message my_peer_id={run.peer(node)} msg_hash={run.message(number)} "
                f"{there} sentTime={at_us * 1000}"
            ),
        )
    for number, node, at_us, copy in run.hops():
        if copy:
            continue  # nwaku's validator sees a message once
        sender = run.peer(run.origin(number))
        yield at_us, node, _received(run, number, node, at_us, sender, as_json)
        onward = f"to_peer_id={run.peer((node + 1) % run.nodes)} sentTime={(at_us + 90) * 1000}"
        head = f"sent relay message my_peer_id={run.peer(node)} msg_hash={run.message(number)}"
        yield at_us + 90, node, f"{head} {onward}"


def _received(run: KnownRun, number: int, node: int, at_us: int, sender: str, as_json: bool) -> str:
    if not as_json:
        return (
            f'DBG {_text(at_us)} received relay message topics="waku relay" tid=7 '
            f"my_peer_id={run.peer(node)} msg_hash={run.message(number)} "
            f"from_peer_id={sender} receivedTime={at_us * 1000}"
        )
    values = {
        "lvl": "DBG",
        "ts": _text(at_us),
        "msg": "received relay message",
        "topics": "waku relay",
        "tid": 7,
        "file": "protocol.nim:221",
        "my_peer_id": run.peer(node),
        "msg_hash": run.message(number),
        "msg_id": "b9cfa467b62a...67128d31aecc",
        "from_peer_id": sender,
        "topic": f"/waku/2/rs/0/{run.shard}",
        "contentTopic": "/my-app/1/dst/proto",
        "receivedTime": at_us * 1000,
        "payloadSizeBytes": 1000.0,
    }
    return json.dumps(values, separators=(",", ":"))


def status_lines(run: KnownRun) -> Iterator[tuple[int, int, str]]:
    """The same of subscribers to Status' signals; a signal may have several messages."""
    for number, node, at_us, copy in run.hops():
        if not copy:
            yield at_us, node, _signal(run, number, at_us, {})
    for number in range(run.messages):
        at_us = run.sent_us(number) + 1_000
        yield at_us, run.origin(number), _signal(run, number, at_us, {"outgoingStatus": "sent"})


def _signal(run: KnownRun, number: int, at_us: int, values: dict[str, str]) -> str:
    message = {
        "id": run.message(number),
        "from": "0x04" + run.message(run.origin(number))[2:],
        "text": f"Message {number}",
        "chatId": "0x02community",
        "timestamp": run.sent_us(number) // 1000,
        **values,
    }
    signal = {"type": "messages.new", "event": {"chats": [], "messages": [message]}}
    stamp = datetime.fromtimestamp(at_us / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]
    return f"{stamp} - INFO - Received valid message: {signal}"


def write_files(directory: Path, run: KnownRun, lines: Iterator[tuple[int, int, str]]) -> None:
    """A `.log` for each node, as 10ksim dumps them."""
    directory.mkdir(parents=True, exist_ok=True)
    texts: dict[int, list[str]] = {node: [] for node in range(run.nodes)}
    for _, node, text in sorted(lines):
        texts[node].append(text)
    for node, own in texts.items():
        noise = ["INF 2026-07-16 15:10:00.000+00:00 Node started", ""]
        (directory / f"{run.pod(node)}.log").write_text("\n".join([*noise, *own, ""]))


def write_dump(
    path: Path, run: KnownRun, lines: Iterator[tuple[int, int, str]], *, seed: int = 0
) -> None:
    """One answer of VictoriaLogs, in no order."""
    path.parent.mkdir(parents=True, exist_ok=True)
    records = [
        {
            "_time": _text(at_us).replace(" ", "T"),
            "_stream": '{kubernetes.container_name="waku"}',
            "_msg": text,
            "kubernetes.container_name": "waku",
            "kubernetes.pod_name": run.pod(node),
            "kubernetes.pod_node_name": "metal-01.he-eu-hel1.misc.vacdst",
        }
        for at_us, node, text in lines
    ]
    Random(seed).shuffle(records)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def _text(at_us: int) -> str:
    return datetime.fromtimestamp(at_us / 1e6, UTC).isoformat(" ", "milliseconds")
