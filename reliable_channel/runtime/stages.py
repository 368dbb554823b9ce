"""The stages between the core and the transport, in the published order (LIP 173, Procedures).

Out: SDS → encrypt → marker → rate limit → dispatch. In: marker → decrypt → SDS. A stage is one
object with one method each way; the chain is built in `chain` and nowhere else. The rate limit
decides when something goes, not what, and so it is asked by the dispatcher (`rate_limit.py`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ..encryption import DecryptionFailed, Encryption


@dataclass(frozen=True, slots=True)
class Parcel:
    """What a Waku message carries of ours."""

    payload: bytes
    meta: bytes = b""
    """Beside the payload, in clear, at most 64 bytes."""


class StageFailed(Exception):
    """A stage could not pass a parcel on; the message is not sent, least of all in clear."""


class Foreign(Exception):
    """A parcel that is not for this channel; it is dropped silently and counted."""


class Stage(Protocol):
    """One step on the way out and its reverse on the way in."""

    async def outward(self, parcel: Parcel) -> Parcel:
        """Pass a parcel on towards the transport."""
        ...

    async def inward(self, parcel: Parcel) -> Parcel:
        """Pass a parcel on towards the core.

        Raises:
            Foreign: it is not for this channel.
        """
        ...


class Sealing:
    """Encrypts whole SDS messages. What cannot be opened is for others, or forged."""

    def __init__(self, encryption: Encryption) -> None:
        self._encryption = encryption

    async def outward(self, parcel: Parcel) -> Parcel:
        """Seal.

        Raises:
            StageFailed: the encryption raised something.
        """
        try:
            return replace(parcel, payload=await self._encryption.encrypt(parcel.payload))
        except Exception as error:  # given code: whatever it raises is this message's failure
            raise StageFailed(f"encryption failed: {error!r}") from error

    async def inward(self, parcel: Parcel) -> Parcel:
        """Open.

        Raises:
            Foreign: it does not open.
        """
        try:
            return replace(parcel, payload=await self._encryption.decrypt(parcel.payload))
        except DecryptionFailed as error:
            raise Foreign(str(error)) from error


class Marking:
    """Tells reliable-channel messages from others on the topic (LIP 173, wire marker)."""

    def __init__(self, marker: bytes, *, required: bool) -> None:
        self._marker = marker
        self._required = required

    async def outward(self, parcel: Parcel) -> Parcel:
        """Attach the marker."""
        return replace(parcel, meta=self._marker)

    async def inward(self, parcel: Parcel) -> Parcel:
        """Check the marker.

        Raises:
            Foreign: it is missing or another one.
        """
        if self._required and parcel.meta != self._marker:
            raise Foreign(f"the marker is {parcel.meta!r}")
        return parcel


class Stages:
    """The chain, walked forwards on the way out and backwards on the way in."""

    def __init__(self, stages: Sequence[Stage] = ()) -> None:
        self._stages = tuple(stages)

    async def outward(self, parcel: Parcel) -> Parcel:
        """From the core to the transport."""
        for stage in self._stages:
            parcel = await stage.outward(parcel)
        return parcel

    async def inward(self, parcel: Parcel) -> Parcel:
        """From the transport to the core.

        Raises:
            Foreign: it is not for this channel.
        """
        for stage in reversed(self._stages):
            parcel = await stage.inward(parcel)
        return parcel


def chain(encryption: Encryption | None, marker: bytes | None, *, marker_required: bool) -> Stages:
    """SDS → encrypt → marker; what is not asked for is left out."""
    sealing = [Sealing(encryption)] if encryption is not None else []
    marking = [Marking(marker, required=marker_required)] if marker is not None else []
    return Stages([*sealing, *marking])
