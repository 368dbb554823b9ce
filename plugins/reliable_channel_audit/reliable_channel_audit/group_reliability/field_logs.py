"""Logs of nodes in the format of 10ksim, as the facts that journals give.

The lines are those of the tracers in vacp2p/10ksim (4f90a3c, August 2026,
`src/analysis/mesh_analysis/readers/tracers`). The logs come from nwaku, or from the
`status-subscriber` of status-benchmarks. A log is a file of one node, or a JSON answer of
VictoriaLogs to `/select/logsql/query`.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from ..facts import Delivery
from ..findings import SETTLE_MS
from ..journals import numbered_texts
from ..lines import Line
from ..replay import Life

WAKU: Final = "waku relay"
STATUS: Final = "status-go"
ENTERED: Final = "entered"
"""Kind of a sighting in which the node sent the message, or accepted it from a client."""
RECEIVED: Final = "received"
PEEKED_LINES: Final = 10_000
"""Number of lines that are read to find the node of a file."""
_WAKU_LINES: Final = {
    "received relay message": (RECEIVED, "receivedTime"),
    "handling lightpush request": (ENTERED, "receivedTime"),
    "sent relay message": (ENTERED, "sentTime"),
    "publishWithConn": (ENTERED, "sentTime"),
}
"""Words of nwaku's lines about messages, with the kind of sighting and the field of its time."""
_SIGNAL: Final = "Received valid message: "


class Sighting(NamedTuple):
    """Sighting of a message at a node, with its time."""

    node: str
    """Name of the node, or an empty text for a line without a name."""
    message: str
    at_us: int
    """Time of the sighting by the node's clock (µs since 1970)."""
    kind: str
    """Kind of the sighting, `ENTERED` or `RECEIVED`."""
    sent_us: int | None
    """Time when the message was sent, if the line has it (µs)."""
    implementation: str
    group: str = ""
    """Group of nodes on one shard, all of which should receive the message. If the names of nodes
    show no shard, `group` is empty."""


class FieldLogs:
    """Reader of the logs of one run. A group of nodes counts as a channel."""

    def __init__(self) -> None:
        self.implementations: Counter[str] = Counter()
        """Number of sightings by implementation."""
        self.unreadable = 0
        """Number of damaged lines, and of lines that have the words of a sighting but lack its
        fields."""
        self.nodes: set[tuple[str, str]] = set()
        """Group and name of each node."""
        self._had: defaultdict[tuple[str, str], dict[str, tuple[int, bool]]] = defaultdict(dict)
        """By group and message: when each node had it first (µs), and False if it then sent it."""
        self._sent_us: dict[tuple[str, str], int] = {}

    def read(self, path: Path) -> None:
        """Add the sightings of a file. A `.log` without any is that of a node that had nothing."""
        before = self.implementations.total()
        for each in self.sightings(path):
            self.implementations[each.implementation] += 1
            self.nodes.add((each.group, each.node))
            message = each.group, each.message
            first = each.at_us, each.kind == RECEIVED
            nodes = self._had[message]
            nodes[each.node] = min(first, nodes.get(each.node, first))
            if each.sent_us is not None:
                self._sent_us[message] = min(each.sent_us, self._sent_us.get(message, each.sent_us))
        if self.implementations.total() == before and path.name.split(".")[1:2] == ["log"]:
            self.nodes.add(("", _stem(path)))

    def sightings(self, path: Path) -> Iterator[Sighting]:
        """Yield each sighting of a file, in order."""
        alone, stem = _peers(path) <= 1, _stem(path)
        for _, line in numbered_texts(path):
            if isinstance(line, Line):
                self.unreadable += 1
                continue
            text, fields = _unwrapped(line)
            # A dump of VictoriaLogs has names of pods; its file has the name of no node.
            alone &= "_msg" not in fields
            try:
                seen = list(seen_in(text, fields))
            except (ValueError, SyntaxError, RecursionError, TypeError, AttributeError):
                self.unreadable += 1
                continue
            for each in seen:
                node = _pod(fields) or (stem if alone else each.node) or stem
                # 10ksim names pods of nwaku `nodes-SHARD-INDEX`.
                pod = re.fullmatch(r".*-(\d+)-\d+", node) if each.implementation == WAKU else None
                yield each._replace(node=node, group=pod[1] if pod else "")

    def facts(self) -> Iterator[Life | Delivery]:
        """Yield each node as a participant that was there all the time, and what it had."""
        times_us = (at_us for nodes in self._had.values() for at_us, _ in nodes.values())
        until_ms = max(times_us, default=0) // 1000
        for group, node in self.nodes:
            about = group, node, 0, "", 0, until_ms, 0, SETTLE_MS
            yield Life(*about, 0, "", True, 0, True, 0, "")
        for message, nodes in self._had.items():
            # A node that had received a message only forwards it.
            senders = [(at_us, node) for node, (at_us, is_late) in nodes.items() if not is_late]
            _, sender = min(senders, default=(0, ""))
            if message in self._sent_us:
                nodes[sender] = self._sent_us[message], False
            group, message_id = message
            for node, (at_us, _) in nodes.items():
                own = message_id if node == sender else None
                sent = message_id, sender, 0, b"", at_us // 1000, own
                yield Delivery(group, node, 0, *sent, None, None, None, 0)


def seen_in(text: str, fields: Mapping[str, Any]) -> Iterator[Sighting]:
    """Yield the sightings that a line of a log contains. `fields` are the fields into which
    VictoriaLogs may have split the line.

    Raises:
        ValueError: the line has the words of a sighting, and not its fields.
    """
    for words, (kind, time) in _WAKU_LINES.items():
        if words in text:
            at_us = int(_field(text, fields, time)) // 1000
            node, message = _field(text, fields, "my_peer_id", ""), _field(text, fields, "msg_hash")
            yield Sighting(node, message, at_us, kind, None, WAKU)
            return
    if _SIGNAL in text:
        yield from _signal(text, fields)


def _signal(text: str, fields: Mapping[str, Any]) -> Iterator[Sighting]:
    """Messages of a signal `messages.new`; those that the node sent itself come back as well."""
    begin, _, value = text.partition(_SIGNAL)
    if not re.search("""['"]messages['"]""", value):
        return
    signal = json.loads(value) if value.startswith('{"') else ast.literal_eval(value)
    at = datetime.fromisoformat(fields.get("_time") or begin.split(" - ")[0])
    at_us = round((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() * 1_000_000)
    for message in (signal.get("event") or {}).get("messages") or ():
        sent_us = int(message["timestamp"]) * 1000
        kind = ENTERED if message.get("outgoingStatus") else RECEIVED
        yield Sighting("", message["id"], at_us, kind, sent_us, STATUS)


def _field(text: str, fields: Mapping[str, Any], name: str, otherwise: str | None = None) -> str:
    found = re.search(rf'\b{name}"?\s*[=:]\s*"?([\w*.+-]+)', text)
    value = found[1] if found else fields.get(name, otherwise)
    if value is None:
        raise ValueError(f"no {name}")
    return str(value)


def _unwrapped(line: bytes) -> tuple[str, Mapping[str, Any]]:
    """The text of a line, and the fields beside it where VictoriaLogs wrote it."""
    if b'"_msg"' in line:
        with suppress(ValueError):
            record = msgspec.json.decode(line, type=dict[str, Any])
            if isinstance(record.get("_msg"), str):
                return record["_msg"], record
    return line.decode(errors="replace"), {}


def _peers(path: Path) -> int:
    """How many nodes write in a file, as its beginning shows."""
    begin = (line for _, line in islice(numbered_texts(path), PEEKED_LINES))
    texts = (line.decode(errors="replace") for line in begin if not isinstance(line, Line))
    return len({_field(text, {}, "my_peer_id", "") for text in texts} - {""})


def _pod(fields: Mapping[str, Any]) -> str:
    """The pod's name; collectors put it beside the text, flat or as an object."""
    nested = fields.get("kubernetes")
    if isinstance(nested, dict):
        return str(nested.get("pod_name", ""))
    return str(fields.get("kubernetes.pod_name", ""))


def _stem(path: Path) -> str:
    return re.sub(r"(\.(log|txt|json|jsonl|ndjson|gz|zst))+$", "", path.name)
