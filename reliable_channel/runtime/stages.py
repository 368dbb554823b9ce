"""The stages between the core and the transport, in the published order (LIP 173, Procedures).

Out: SDS → encrypt → marker → rate limit → dispatch. In: marker → decrypt → SDS. A stage is one
object with one method each way; the chain is built in `chain` and nowhere else. The rate limit
decides when something goes, not what: the engine has it (`engine/rate_limit.py`).

With the order `encrypt-then-sds`, a profile's choice, only contents are encrypted, before SDS and
after segmentation: observers see senders and references, and in return a participant
that lacks the key can still acknowledge and repair (`ContentStages`).
"""

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, Protocol

import anyio

from .._contracts.encryption import DecryptionFailed, Encryption
from ..errors import EncryptionFailed
from .driver import RealTimeDriver


class Frame(NamedTuple):
    """What a Waku message carries of ours."""

    payload: bytes
    meta: bytes = b""
    """Beside the payload, in clear, at most 64 bytes."""


class NotForUs(Exception):
    """A parcel that is not for this channel; it is dropped silently and counted."""


class NotOpened(NotForUs):
    """A parcel that the key does not open: for others, forged, or of another key."""


class StageError(Exception):
    """A stage could not pass a parcel on; the message is not sent, least of all in clear."""


class Stage(Protocol):
    """One step on the way out and its reverse on the way in."""

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
    """Encrypts whole SDS messages. What cannot be opened is for others, or forged."""

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption

    async def outward(self, parcel: Frame) -> Frame:
        """Encrypt.

        Raises:
            StageError: the encryption raised something.
        """
        try:
            return parcel._replace(payload=await self._encryption.encrypt(parcel.payload))
        except Exception as error:  # given code: whatever it raises is this message's failure
            raise StageError(f"encryption failed: {error!r}") from error

    async def inward(self, parcel: Frame) -> Frame:
        """Open.

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
        """Attach the marker."""
        return parcel._replace(meta=self._marker)

    async def inward(self, parcel: Frame) -> Frame:
        """Check the marker.

        Raises:
            NotForUs: it is missing or another one.
        """
        if self._required and parcel.meta != self._marker:
            raise NotForUs(f"the marker is {parcel.meta!r}")
        return parcel


class Stages:
    """The chain, walked forwards on the way out and backwards on the way in."""

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        self._stages = tuple(stages)
        self.change_anything: Final = bool(self._stages)
        """True if there is a stage at all."""

    async def outward(self, parcel: Frame) -> Frame:
        """From the core to the transport."""
        for stage in self._stages:
            parcel = await stage.outward(parcel)
        return parcel

    async def inward(self, parcel: Frame) -> Frame:
        """From the transport to the core.

        Raises:
            NotForUs: it is not for this channel.
        """
        for stage in reversed(self._stages):
            parcel = await stage.inward(parcel)
        return parcel


class ContentStages:
    """Encrypts contents on their way to the core, and decrypts those that it delivered, in their
    order."""

    def __init__(self, stages: Stages) -> None:
        self.in_order: Final = anyio.Lock()
        """Held from encryption to `send`, so that messages are logged in the order of the calls."""
        self._stages = stages

    async def encrypt(self, contents: Sequence[bytes]) -> list[bytes]:
        """Encrypt all contents of a message before any of it goes anywhere.

        Raises:
            EncryptionFailed: nothing was sent.
        """
        try:
            return [(await self._stages.outward(Frame(content))).payload for content in contents]
        except StageError as error:
            raise EncryptionFailed(f"nothing was sent: {error}") from error

    async def run(self, driver: RealTimeDriver, tried: Callable[[str, bool], None]) -> None:
        """Decrypt what was delivered and hand it on, one after the other, for ever; call `tried`
        with the id of each message, and True if it opened."""
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
        """Decrypt the content of a log entry; None where the key does not open it."""
        try:
            return await self._decrypted(content)
        except NotForUs:
            return None

    async def _decrypted(self, content: bytes) -> bytes:
        return (await self._stages.inward(Frame(content))).payload


def content_chain(encryption: Encryption | None) -> ContentStages | None:
    """Encrypt → SDS, or None where that is not asked for."""
    return None if encryption is None else ContentStages(Stages([EncryptStage(encryption)]))


def chain(encryption: Encryption | None, marker: bytes | None, *, marker_required: bool) -> Stages:
    """SDS → encrypt → marker; what is not asked for is left out."""
    encrypt = [EncryptStage(encryption)] if encryption is not None else []
    marking = [MarkerStage(marker, required=marker_required)] if marker is not None else []
    return Stages([*encrypt, *marking])
