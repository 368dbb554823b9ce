"""The JSON events of the library, one function a type; the names of fields are its own."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from typing import Any, Final

from waku import WakuMessage

__all__ = [
    "Emit",
    "channel_message_error",
    "channel_message_received",
    "channel_message_sent",
    "connection_change",
    "connection_status_change",
    "message_error",
    "message_propagated",
    "message_received",
    "message_sent",
    "topic_health_change",
]

Event = dict[str, Any]
Emit = Callable[[Event], None]

PAYLOAD_VARIABLE: Final = "RELIABLE_CHANNEL_COMPAT_PAYLOAD"
"""`base64` for suites from autumn 2026 on; until then bytes were arrays of numbers."""


def message_received(message_hash: bytes, message: WakuMessage) -> Event:
    """A message on a subscribed content topic, be it a channel's or not."""
    as_text = os.environ.get(PAYLOAD_VARIABLE) == "base64"

    def plain(data: bytes) -> str | list[int]:
        return b64encode(data).decode() if as_text else list(data)

    return {
        "eventType": "message_received",
        "messageHash": _hex(message_hash),
        "message": {
            "payload": plain(message.payload),
            "contentTopic": message.content_topic,
            "meta": plain(message.meta),
            "version": message.version,
            "timestamp": message.timestamp,
            "ephemeral": message.ephemeral,
            "proof": [] if not as_text else "",
        },
    }


def message_propagated(request_id: str, message_hash: bytes) -> Event:
    """At least one other node has it."""
    return _of_request("message_propagated", request_id, message_hash)


def message_sent(request_id: str, message_hash: bytes) -> Event:
    """A Store node has it."""
    return _of_request("message_sent", request_id, message_hash)


def message_error(request_id: str, message_hash: bytes, error: str) -> Event:
    return {**_of_request("message_error", request_id, message_hash), "error": error}


def connection_change(peer_id: str, *, is_connected: bool) -> Event:
    """A node came or went."""
    kind = "EventConnected" if is_connected else "EventDisconnected"
    return {"eventType": "connection_change", "peerId": peer_id, "peerEvent": kind}


def connection_status_change(status: str) -> Event:
    """`Disconnected`, `PartiallyConnected` or `Connected`."""
    return {"eventType": "connection_status_change", "connectionStatus": status}


def topic_health_change(pubsub_topic: str, health: str) -> Event:
    """`UnHealthy`, `MinimallyHealthy` or `SufficientlyHealthy`."""
    return {
        "eventType": "relay_topic_health_change",
        "pubsubTopic": pubsub_topic,
        "topicHealth": health,
    }


def channel_message_received(channel_id: str, sender_id: str, content: bytes) -> Event:
    """A channel delivers a message."""
    return {
        "eventType": "channel_message_received",
        "channelId": channel_id,
        "senderId": sender_id,
        "payload": b64encode(content).decode(),
    }


def channel_message_sent(channel_id: str, request_id: str) -> Event:
    """Every segment of a request is in a Store."""
    return _of_channel("channel_message_sent", channel_id, request_id)


def channel_message_error(channel_id: str, request_id: str, error: str) -> Event:
    """A segment of a request was given up."""
    return {**_of_channel("channel_message_error", channel_id, request_id), "error": error}


def _of_request(event_type: str, request_id: str, message_hash: bytes) -> Event:
    return {"eventType": event_type, "requestId": request_id, "messageHash": _hex(message_hash)}


def _of_channel(event_type: str, channel_id: str, request_id: str) -> Event:
    return {"eventType": event_type, "channelId": channel_id, "requestId": request_id}


def _hex(message_hash: bytes) -> str:
    return f"0x{message_hash.hex()}"
