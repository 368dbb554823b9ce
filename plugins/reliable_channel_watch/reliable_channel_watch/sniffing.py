"""Observer that shows the messages of a content topic in a view. The observer decodes messages
without being a participant, and sends nothing."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import anyio

from reliable_channel.spi import (
    DecryptionFailed,
    Received,
    StoreUnavailable,
    Transport,
    TransportError,
    sds_message,
    topic_decryption,
    topic_transport,
)

from .model import WHOLE_CHANNEL, View
from .values import Lamp

WATCHER_ID: Final = "watch"
RETRY_S: Final = 1.0


def sniffed(
    view: View, received: Received, payload: bytes, at_ms: int, *, channel_id: str | None = None
) -> None:
    """Note a message that arrived from the network. A message that is not SDS or belongs to another
    channel counts only as traffic."""
    digest = received.message_hash
    if view.has_passed(digest):
        return
    found = sds_message(payload)
    message = None if found is None else found[0]
    if message is None or (channel_id is not None and message.channel_id != channel_id):
        view.traffic(digest, len(received.payload), 0, at_ms)
        return
    content = message.content or b""
    is_logged = bool(content) and message.lamport_timestamp is not None
    before = view.message(message.message_id)
    sent_ms = received.timestamp_ns // 1_000_000
    view.on_channel(message.channel_id)
    view.passed(
        message.message_id,
        message.sender_id,
        at_ms,
        references=message.causal_ids,
        has_content=is_logged,
        lamport_timestamp=message.lamport_timestamp,
        size_bytes=len(received.payload),
        hint=digest,
        sent_ms=sent_ms,
    )
    is_first = is_logged and (before is None or not before.is_whole)
    view.traffic(digest, len(received.payload), len(content) if is_first else 0, at_ms)
    if is_logged:
        view.went_out(message.sender_id, message.message_id, "seen" if is_first else "again", at_ms)
    missing = [entry.message_id for entry in message.repair_request]
    for entry in message.repair_request:
        view.is_missing(
            message.sender_id,
            entry.message_id,
            at_ms,
            sender=entry.sender_id,
            hint=entry.retrieval_hint,
        )
    view.asked_others(message.sender_id, missing, at_ms)


class Sniffer:
    """Observer of a content topic.

    Args:
        given: arguments of a channel (`channel_settings`) that name the topic and the node.

    Raises:
        ValueError: an argument is unusable.
        PluginError: a plugin failed.
    """

    def __init__(
        self,
        given: Mapping[str, Any],
        *,
        history_s: float = 0,
        transport: Transport | None = None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._channel_id = given.get("channel_id")
        self._history_s = history_s
        self._now_ns = now_ns
        self._transport = transport or topic_transport(given, WATCHER_ID)
        self._decrypt = topic_decryption(given, WATCHER_ID)

    async def listen(self, view: View) -> None:
        """Show the messages of the topic in a view until cancelled. `listen` begins with the last
        `history_s` seconds of messages in Store."""
        # Around the scopes that `open` enters and `aclose` leaves, which must nest.
        with anyio.CancelScope() as scope:
            await self._transport.open()
            try:
                if self._history_s and self._transport.has_store:
                    await self._fetch(view)
                while True:
                    await self._receive(view)
            finally:
                scope.shield = True
                await self._transport.aclose()

    async def _receive(self, view: View) -> None:
        try:
            batch = await self._transport.receive()
        except TransportError as error:
            self._lamp(view, Lamp.RECEIVE, str(error))
            if not error.retryable:
                raise
            await anyio.sleep(RETRY_S)
            return
        self._lamp(view, Lamp.RECEIVE)
        for received in batch.messages:
            await self._note(view, received, self._now_ns() // 1_000_000)

    async def _fetch(self, view: View) -> None:
        now = self._now_ns()
        first = now - int(self._history_s * 1e9)
        try:
            async for page in self._transport.by_time(first, now):
                for received in page:
                    # Store has no other time than the sender's, who may have made it up.
                    at_ns = min(max(received.timestamp_ns, first), now)
                    await self._note(view, received, at_ns // 1_000_000)
        except StoreUnavailable as error:
            self._lamp(view, Lamp.STORE, str(error))
        else:
            self._lamp(view, Lamp.STORE)

    async def _note(self, view: View, received: Received, at_ms: int) -> None:
        payload = received.payload
        if self._decrypt is not None:
            try:
                payload = await self._decrypt(payload)
            except DecryptionFailed:
                payload = b""  # of others, and still traffic
        sniffed(view, received, payload, at_ms, channel_id=self._channel_id)

    def _lamp(self, view: View, lamp: Lamp, why: str = "") -> None:
        at_ms = self._now_ns() // 1_000_000
        view.lamp(None, WHOLE_CHANNEL, lamp, at_ms, is_on=not why, why=why)
