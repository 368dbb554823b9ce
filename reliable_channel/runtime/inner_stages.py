"""Encryption inside SDS: the order in which ids and causal history stay readable (a profile's
choice).

The published order seals whole SDS messages. In this one only the content is sealed, before SDS and
after segmentation: observers see who speaks and what refers to what, and in return whoever lacks
the key can still take part in acknowledging and repairing.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

import anyio

from ..encryption import Encryption
from ..errors import EncryptionFailed
from ..events import EphemeralReceived, MessageReceived, MessageRejected, RejectionReason
from .engine import Engine
from .stages import Foreign, Parcel, Sealing, StageFailed, Stages


class InnerStages:
    """Seals contents on their way to the core, and opens those that it delivered, in their
    order."""

    def __init__(self, stages: Stages) -> None:
        self._stages = stages
        self._delivered: deque[tuple[MessageReceived | EphemeralReceived, int]] = deque()
        self._changed = anyio.Event()
        self._lock = anyio.Lock()

    @property
    def in_order(self) -> anyio.Lock:
        """Held from sealing to sending, so that what was sent first is sealed and logged first."""
        return self._lock

    async def seal(self, contents: Sequence[bytes]) -> list[bytes]:
        """Seal all contents of a message before any of it goes anywhere.

        Raises:
            EncryptionFailed: nothing was sent.
        """
        try:
            return [(await self._stages.outward(Parcel(content))).payload for content in contents]
        except StageFailed as error:
            raise EncryptionFailed(f"nothing was sent: {error}") from error

    def delivered(self, event: MessageReceived | EphemeralReceived, number: int) -> None:
        """Queue what the core delivered, with the number of its delivery."""
        self._delivered.append((event, number))
        self._changed.set()

    async def run(self, engine: Engine) -> None:
        """Open what was delivered and hand it on, one after the other, for ever."""
        while True:
            while not self._delivered:
                self._changed = anyio.Event()
                await self._changed.wait()
            event, number = self._delivered[0]
            try:
                content = await self._opened(event.content)
            except Foreign as error:
                engine.unopened(
                    MessageRejected(
                        RejectionReason.UNDECRYPTABLE, str(error), event.message_id, event.sender_id
                    ),
                    number,
                )
            else:
                engine.opened(replace(event, content=content), number)
            self._delivered.popleft()

    async def open(self, content: bytes) -> bytes | None:
        """Open the content of a log entry; None where the key does not open it."""
        try:
            return await self._opened(content)
        except Foreign:
            return None

    async def _opened(self, content: bytes) -> bytes:
        return (await self._stages.inward(Parcel(content))).payload


def inner_chain(encryption: Encryption | None) -> InnerStages | None:
    """Encrypt → SDS, or nothing where that is not asked for."""
    return None if encryption is None else InnerStages(Stages([Sealing(encryption)]))
