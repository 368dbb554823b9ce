"""The participants: ours and js-waku's, each a container that is driven by JSON lines."""

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
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
    "max_request_attempts": 60,
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
"""The same of js-waku, which asks Store for all that it misses each time, and sends all that nobody
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
        """Payloads that its application was told of, each as often as it was told."""
        return [b64decode(event["payload"]) for event in self.told("message_received")]

    def holds(self, payloads: set[bytes]) -> bool:
        """Whether its application was told all of these."""
        return payloads <= set(self.received())

    def acknowledged(self) -> set[str]:
        """Ids of own messages that it was told somebody has."""
        return {event["message_id"] for event in self.told("message_acknowledged")}

    def cause(self) -> str:
        """What it said last, for who has to find out."""
        told = [event for event in self.events if "ref" not in event]  # no answers: logs are long
        return f"{self.name}: {told[-3:]} | {list(self.errors)[-3:]}"


class OurPeer(Peer):
    """`reliable-channel peer`, from the wheel of this tree."""

    kind = "ours"

    def statistics(self) -> Event:
        """Its counters."""
        return self.command("statistics")


class JsPeer(Peer):
    """A `ReliableChannel` of `@waku/sdk`."""

    kind = "js"

    def waiting(self) -> set[str]:
        """Ids of messages that wait for others in its incoming buffer."""
        return set(self.command("statistics")["waiting"])


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
