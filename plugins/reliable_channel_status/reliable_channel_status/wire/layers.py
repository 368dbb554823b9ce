"""Interfaces for opening encrypted direct messages and group messages."""

from typing import Protocol

from .direct.correspondence import DirectPayload
from .keys import PublicKey
from .outcomes import Received, Refused
from .status_pb2 import HRKeys
from .waiting import WaitingMessage


class DirectLayer(Protocol):
    """Opener of direct messages: `direct.Correspondence`."""

    @property
    def public_key(self) -> PublicKey:
        """Receiver of the messages."""

    def open(
        self, data: bytes, sender: PublicKey | None, timestamp_ms: int = 0
    ) -> DirectPayload | Refused | None:
        """Open a `ProtocolMessage`. Return None if nothing in it is encrypted for devices."""


class GroupLayer(Protocol):
    """Opener of messages for groups: `GroupKeys`."""

    def open(
        self,
        data: bytes,
        topic_id: str,
        timestamp_ms: int,
        signer: PublicKey | None,
        is_ephemeral: bool,
    ) -> bytes | Refused | None:
        """Open a `ProtocolMessage`. Return None if it is not for a group."""

    def learn(self, group_id: bytes, raw: HRKeys, sender: PublicKey) -> Refused | None:
        """Accept the keys of a group that a user sent."""

    def describe(self, received: Received) -> Received | Refused:
        """Return a description with all parts that the keys here open."""

    def take_ready(self) -> list[WaitingMessage]:
        """Return the messages that waited for a key which has arrived."""

    def done(self, waiting_id: bytes) -> None:
        """Remove a waiting message that is handled."""
