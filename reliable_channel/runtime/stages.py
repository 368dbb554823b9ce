"""Stages of a message between the core and the transport, in the order of LIP 173 (Procedures).

A sent message passes SDS → encrypt → marker → rate limit → dispatch. A received message passes
marker → decrypt → SDS. Each stage is one object with a method for each direction. Only the function
`chain` puts the stages together. The rate limit changes only the time of sending, so it is part of
the engine (`engine/rate_limit.py`).

In the order `encrypt-then-sds`, only contents are encrypted, after segmentation and before SDS.
Observers of the network then see senders and references. With this order, a participant without the
key can still acknowledge and repair (`ContentStages`).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import anyio

from .._contracts.encryption import DecryptionFailed, Encryption
from ..errors import EncryptionFailed
from .driver import RealTimeDriver


class Frame(NamedTuple):
    """Payload and meta bytes of a Waku message, as the stages process them."""

    payload: bytes
    meta: bytes = b""
    """Unencrypted bytes that are sent with the payload, at most 64."""


class NotForUs(Exception):
    """The message is not for this channel. A message for others is dropped silently and counted."""


class NotOpened(NotForUs):
    """The key cannot decrypt the message. The message is for others, forged, or encrypted with
    another key."""


class StageError(Exception):
    """A stage could not process a message to send. The message is not sent, and in particular not
    without encryption."""


class Stage(Protocol):
    """Stage of a sent message, and the reverse stage of a received message."""

    async def outward(self, parcel: Frame) -> Frame:
        """Process a message on its way to the transport."""
        ...

    async def inward(self, parcel: Frame) -> Frame:
        """Process a message on its way to the core.

        Raises:
            NotForUs: it is not for this channel.
        """
        ...


class EncryptStage:
    """Stage that encrypts whole SDS messages. A received message that cannot be decrypted is for
    others, or forged."""

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption

    async def outward(self, parcel: Frame) -> Frame:
        """Encrypt the payload of a message to send.

        Raises:
            StageError: the encryption raised something.
        """
        try:
            return parcel._replace(payload=await self._encryption.encrypt(parcel.payload))
        except Exception as error:  # given code: whatever it raises is this message's failure
            raise StageError(f"encryption failed: {error!r}") from error

    async def inward(self, parcel: Frame) -> Frame:
        """Decrypt the payload of a received message.

        Raises:
            NotOpened: another key, or none.
        """
        try:
            return parcel._replace(payload=await self._encryption.decrypt(parcel.payload))
        except DecryptionFailed as error:
            raise NotOpened(str(error)) from error


class MarkerStage:
    """Stage that marks the messages of reliable-channel on a topic (LIP 173, wire marker)."""

    def __init__(self, marker: bytes, *, required: bool) -> None:
        self._marker = marker
        self._required = required

    async def outward(self, parcel: Frame) -> Frame:
        """Add the marker to a message to send."""
        return parcel._replace(meta=self._marker)

    async def inward(self, parcel: Frame) -> Frame:
        """Check the marker of a received message.

        Raises:
            NotForUs: it is missing or another one.
        """
        if self._required and parcel.meta != self._marker:
            raise NotForUs(
                f"the message has another marker than this channel requires (got {parcel.meta!r})"
            )
        return parcel


class Stages:
    """Chain of stages, which a sent message passes forwards and a received message backwards."""

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        self._stages = tuple(stages)
        self.change_anything: Final = bool(self._stages)
        """True if there is a stage at all."""

    async def outward(self, parcel: Frame) -> Frame:
        """Process a message from the core for the transport."""
        for stage in self._stages:
            parcel = await stage.outward(parcel)
        return parcel

    async def inward(self, parcel: Frame) -> Frame:
        """Process a message from the transport for the core.

        Raises:
            NotForUs: it is not for this channel.
        """
        for stage in reversed(self._stages):
            parcel = await stage.inward(parcel)
        return parcel


class ContentStages:
    """Encryption of contents on their way to the core, and decryption of delivered contents in
    order."""

    def __init__(self, stages: Stages) -> None:
        self.in_order: Final = anyio.Lock()
        """Held from encryption to `send`, so that messages are logged in the order of the calls."""
        self._stages = stages

    async def encrypt(self, contents: Sequence[bytes]) -> list[bytes]:
        """Encrypt the contents of all segments of a payload before any segment is sent.

        Raises:
            EncryptionFailed: nothing was sent.
        """
        try:
            return [(await self._stages.outward(Frame(content))).payload for content in contents]
        except StageError as error:
            raise EncryptionFailed(f"the channel sent nothing: {error}") from error

    async def run(self, driver: RealTimeDriver, tried: Callable[[str, bool], None]) -> None:
        """Decrypt delivered contents and pass them on, one after another, until cancelled. Call
        `tried` with the id of each message, and with True if the content was decrypted."""
        engine = driver.engine
        while True:
            while not engine.to_decrypt:
                await driver.to_decrypt.wait()
            to_decrypt = engine.to_decrypt[0]
            try:
                content = await self._decrypted(to_decrypt.event.content)
            except NotForUs as error:
                driver.turn(engine.undecryptable, to_decrypt, str(error))
                tried(to_decrypt.event.message_id, False)
            else:
                driver.turn(engine.decrypted, to_decrypt, content)
                tried(to_decrypt.event.message_id, True)
            engine.to_decrypt.popleft()

    async def open(self, content: bytes) -> bytes | None:
        """Decrypt the content of a log entry, or return None if the key does not fit."""
        try:
            return await self._decrypted(content)
        except NotForUs:
            return None

    async def _decrypted(self, content: bytes) -> bytes:
        return (await self._stages.inward(Frame(content))).payload


def content_chain(encryption: Encryption | None) -> ContentStages | None:
    """Return the stage that encrypts contents before SDS, or None if contents are not encrypted."""
    return None if encryption is None else ContentStages(Stages([EncryptStage(encryption)]))


def chain(encryption: Encryption | None, marker: bytes | None, *, marker_required: bool) -> Stages:
    """Return the chain of the stages SDS → encrypt → marker. The chain leaves out stages that the
    options do not name."""
    encrypt = [EncryptStage(encryption)] if encryption is not None else []
    marking = [MarkerStage(marker, required=marker_required)] if marker is not None else []
    return Stages([*encrypt, *marking])
