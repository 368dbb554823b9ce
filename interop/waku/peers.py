"""The participants: ours and js-waku's, each a container that is driven by JSON lines."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final

from .container import Container, Event

CHANNEL: Final = "interop"
OUR_QUICK: Final[Mapping[str, object]] = {
    "sync_min_interval_ms": 5_000,
    "retry_interval_ms": 5_000,
    "possibly_acknowledged_retry_interval_ms": 10_000,
    "max_retry_attempts": 60,
    "retrieve_frequency_ms": 1_000,
    "sweep_in_buf_interval_ms": 500,
    "repair_t_min_ms": 2_000,
    "repair_t_max_ms": 6_000,
    "repair_sweep_interval_ms": 1_000,
    "repair_max_request_attempts": 60,
    "confirm_interval_ms": 10_000,
}
"""Periods for cells of a minute; all else is the default."""
JS_QUICK: Final[Mapping[str, object]] = {
    "syncMinIntervalMs": 5_000,
    "retryIntervalMs": 15_000,
    "maxRetryAttempts": 60,
    "retrieveFrequencyMs": 5_000,
    "sweepInBufIntervalMs": 2_000,
    "processTaskMinElapseMs": 500,
    "repairConfig": {"tMin": 2_000, "tMax": 6_000},
}
"""The same of js-waku, which asks Store for all that it misses each time, and sends all that is not
acknowledged at once: shorter periods than these keep it busy with itself."""
OUR_STOCK: Final = {
    **OUR_QUICK,
    "retrieval_strategy": "sds-r-only",
    "sync_min_interval_ms": 10_000,
    "retry_interval_ms": 30_000,
    "repair_t_min_ms": 5_000,
    "repair_t_max_ms": 20_000,
    "repair_sweep_interval_ms": 5_000,
    "repair_cache_bytes": 256 * 1024 * 1024,
}
"""Through stock go-waku, which takes one light push a second and has no Store v3."""
JS_STOCK: Final = {
    **JS_QUICK,
    "syncMinIntervalMs": 10_000,
    "retryIntervalMs": 30_000,
    "repairConfig": {"tMin": 5_000, "tMax": 20_000},
}


class Peer(Container):
    """A participant of the channel."""

    kind: str
    link: Container
    """Whose network a partition cuts: the participant's own node, if it has one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.accepted: dict[str, bytes] = {}
        """Payloads that it was given to send, by message id."""

    def send(self, payload: bytes) -> str:
        """Give it a message; it is accepted when this returns.

        Raises:
            ValueError: it refuses.
        """
        answer = self.command("send", payload=b64encode(payload).decode())
        message_id = str(answer["message_id"])
        self.accepted[message_id] = payload
        return message_id

    def log(self) -> list[Event]:
        """What it holds, in its order."""
        entries: list[Event] = self.command("log")["entries"]
        return entries

    def received(self) -> list[bytes]:
        """Payloads that it emitted, each as often as it did."""
        return [b64decode(event["payload"]) for event in self.emitted("message_received")]

    def holds(self, payloads: set[bytes]) -> bool:
        """Whether it emitted all of these."""
        return payloads <= set(self.received())

    def acknowledged(self) -> set[str]:
        """Ids of own messages whose acknowledgement it emitted."""
        return {event["message_id"] for event in self.emitted("message_acknowledged")}

    def cause(self) -> str:
        """Its last output, for a failure report."""
        emitted = [
            event for event in self.events if "ref" not in event
        ]  # no answers: logs are long
        return f"{self.name}: {emitted[-3:]} | {list(self.errors)[-3:]}"


class OurPeer(Peer):
    """`reliable-channel peer`, from the wheel of this tree."""

    kind = "ours"

    def statistics(self) -> Event:
        return self.command("statistics")


@dataclass(frozen=True, slots=True)
class JsState:
    """What js-waku lacks at one moment, by message id."""

    waiting: frozenset[str]
    """They came, and wait for others in its incoming buffer."""
    to_request: frozenset[str]
    """It will ask the other participants for them."""
    sought: frozenset[str]
    """It asks Store for them, by the hash that it was given first."""


class JsPeer(Peer):
    """A `ReliableChannel` of `@waku/sdk`."""

    kind = "js"

    def state(self) -> JsState:
        statistics = self.command("statistics")
        return JsState(*(frozenset(statistics[name]) for name in JsState.__slots__))

    def queries(self) -> int:
        """How often Store has answered its question for messages by hash."""
        return sum("reason" not in event for event in self._store_queries("hash"))

    def requested_at_ms(self, message_id: str) -> int | None:
        """When its first repair request for a message went out, or should have."""
        requests = self.emitted("repair_requested")
        return next((e["at_ms"] for e in requests if message_id in e["message_ids"]), None)

    def cause(self) -> str:
        """What it did to get what it lacks, too."""
        by_hash, by_time = self._store_queries("hash"), self._store_queries("time")
        requests, unsent = self.emitted("repair_requested"), self.emitted("push_failed")
        last = [(e["asked"], e["found"], e.get("reason", "")) for e in by_hash[-3:]]
        return (
            f"{super().cause()} | Store by hash: {len(by_hash)} queries, "
            f"{sum(e['found'] for e in by_hash)} found, the last (asked, found, error) {last}; "
            f"by time: {len(by_time)}, {sum(e['found'] for e in by_time)} found; "
            f"repair: {sum(len(e['message_ids']) for e in requests)} ids in {len(requests)} "
            f"requests; {len(unsent)} light pushes failed, the last {unsent[-1:]}"
        )

    def found_in_store(self) -> int:
        """Messages that its queries by hash found."""
        return sum(event["found"] for event in self._store_queries("hash"))

    def _store_queries(self, by: str) -> list[Event]:
        return [event for event in self.emitted("store_queried") if event["by"] == by]


def digest(entries: list[Event]) -> str:
    """What `log_digest()` of our channel is, of any log: all fields, in order."""
    total = sha256()
    for entry in entries:
        for field in (
            str(entry["lamport_timestamp"]).encode(),
            entry["message_id"].encode(),
            entry["sender_id"].encode(),
            b64decode(entry["payload"]),
        ):
            total.update(len(field).to_bytes(8) + field)
    return total.hexdigest()


def our_arguments(
    name: str, topic: str, node: str, options: Mapping[str, object], *flags: str
) -> list[str]:
    """The command line of `reliable-channel peer`."""
    return [
        *("peer", "--node", node, "--channel-id", CHANNEL, "--sender-id", name),
        *("--content-topic", topic, "--state", f"sqlite:////data/{name}.db"),
        *flags,
        *(part for flag, value in options.items() for part in _flag(flag, value)),
    ]


def js_arguments(
    name: str, topic: str, node: str, options: Mapping[str, object], *flags: str
) -> list[str]:
    """The command line of `js/peer.mjs`."""
    return [
        *("peer.mjs", "--node", node, "--channel-id", CHANNEL, "--sender-id", name),
        *("--content-topic", topic, "--options", json.dumps(dict(options)), *flags),
    ]


def _flag(name: str, value: object) -> list[str]:
    return [f"--{name.replace('_', '-')}", str(value)]
