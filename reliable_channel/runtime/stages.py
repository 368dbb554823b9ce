"""Stages between the core and the transport, in the published order (LIP 173, Procedures).

Out: SDS → encrypt → marker → rate limit → dispatch. In: marker → decrypt → SDS. A stage is one
object with one method for each direction. Only `chain` builds the chain. The rate limit decides
when a message is sent, not its content, so it is part of the engine (`engine/rate_limit.py`).

In the order `encrypt-then-sds`, which a profile may choose, only contents are encrypted, after
segmentation and before SDS. Observers then see senders and references. In return, a participant
without the key can still acknowledge and repair (`ContentStages`).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import anyio

from .._contracts.encryption import DecryptionFailed, Encryption
from ..errors import EncryptionFailed
from .driver import RealTimeDriver


class Frame(NamedTuple):
    """Our part of a Waku message."""

    payload: bytes
    meta: bytes = b""
    """Clear bytes besides the payload, at most 64."""


class NotForUs(Exception):
    """The parcel is not for this channel. It is dropped silently and counted."""


class NotOpened(NotForUs):
    """The key does not open the parcel. It is for others, forged, or encrypted with another key."""


class StageError(Exception):
    """A stage could not pass a parcel on. The message is not sent, and never in clear."""


class Stage(Protocol):
    """Step on the way out, with its reverse on the way in."""

    async def outward(self, parcel: Frame) -> Frame:
        """Pass a parcel on towards the transport."""
        ...

    async def inward(self, parcel: Frame) -> Frame:
        """Pass a parcel on towards the core.

        Raises:
            NotForUs: it is not for this channel.
        """
        ...


class EncryptStage:
    """Encrypts whole SDS messages. A message that cannot be opened is for others, or forged."""

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption

    async def outward(self, parcel: Frame) -> Frame:
        """Encrypt the payload of a parcel.

        Raises:
            StageError: the encryption raised something.
        """
        try:
            return parcel._replace(payload=await self._encryption.encrypt(parcel.payload))
        except Exception as error:  # given code: whatever it raises is this message's failure
            raise StageError(f"encryption failed: {error!r}") from error

    async def inward(self, parcel: Frame) -> Frame:
        """Decrypt the payload of a parcel.

        Raises:
            NotOpened: another key, or none.
        """
        try:
            return parcel._replace(payload=await self._encryption.decrypt(parcel.payload))
        except DecryptionFailed as error:
            raise NotOpened(str(error)) from error


class MarkerStage:
    """Distinguishes reliable-channel messages from others on the topic (LIP 173, wire marker)."""

    def __init__(self, marker: bytes, *, required: bool) -> None:
        self._marker = marker
        self._required = required

    async def outward(self, parcel: Frame) -> Frame:
        """Attach the marker to a parcel."""
        return parcel._replace(meta=self._marker)

    async def inward(self, parcel: Frame) -> Frame:
        """Check the marker of a parcel.

        Raises:
            NotForUs: it is missing or another one.
        """
        if self._required and parcel.meta != self._marker:
            raise NotForUs(f"the marker is {parcel.meta!r}")
        return parcel


class Stages:
    """Chain of stages, walked forwards on the way out and backwards on the way in."""

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        self._stages = tuple(stages)
        self.change_anything: Final = bool(self._stages)
        """True if there is a stage at all."""

    async def outward(self, parcel: Frame) -> Frame:
        """Pass a parcel from the core to the transport."""
        for stage in self._stages:
            parcel = await stage.outward(parcel)
        return parcel

    async def inward(self, parcel: Frame) -> Frame:
        """Pass a parcel from the transport to the core.

        Raises:
            NotForUs: it is not for this channel.
        """
        for stage in reversed(self._stages):
            parcel = await stage.inward(parcel)
        return parcel


class ContentStages:
    """Encrypts contents on their way to the core, and decrypts delivered contents in their
    order."""

    def __init__(self, stages: Stages) -> None:
        self.in_order: Final = anyio.Lock()
        """Held from encryption to `send`, so that messages are logged in the order of the calls."""
        self._stages = stages

    async def encrypt(self, contents: Sequence[bytes]) -> list[bytes]:
        """Encrypt all contents of a message before any of them is sent.

        Raises:
            EncryptionFailed: nothing was sent.
        """
        try:
            return [(await self._stages.outward(Frame(content))).payload for content in contents]
        except StageError as error:
            raise EncryptionFailed(f"nothing was sent: {error}") from error

    async def run(self, driver: RealTimeDriver, tried: Callable[[str, bool], None]) -> None:
        """Decrypt delivered contents and pass them on, one after the other, until cancelled. Call
        `tried` with the id of each message, and True if it opened."""
        engine = driver.engine
        while True:
            while not engine.to_decrypt:
                await driver.to_decrypt.wait()
            to_decrypt = engine.to_decrypt[0]
            try:
                content = await self._decrypted(to_decrypt.event.content)
            except NotForUs as error:
                driver.undecryptable(to_decrypt, str(error))
                tried(to_decrypt.event.message_id, False)
            else:
                driver.decrypted(to_decrypt, content)
                tried(to_decrypt.event.message_id, True)
            engine.to_decrypt.popleft()

    async def open(self, content: bytes) -> bytes | None:
        """Decrypt the content of a log entry. Return None if the key does not open it."""
        try:
            return await self._decrypted(content)
        except NotForUs:
            return None

    async def _decrypted(self, content: bytes) -> bytes:
        return (await self._stages.inward(Frame(content))).payload


def content_chain(encryption: Encryption | None) -> ContentStages | None:
    """Return the stage encrypt → SDS, or None if it is not wanted."""
    return None if encryption is None else ContentStages(Stages([EncryptStage(encryption)]))


def chain(encryption: Encryption | None, marker: bytes | None, *, marker_required: bool) -> Stages:
    """Return the chain SDS → encrypt → marker. Unwanted stages are left out."""
    encrypt = [EncryptStage(encryption)] if encryption is not None else []
    marking = [MarkerStage(marker, required=marker_required)] if marker is not None else []
    return Stages([*encrypt, *marking])
