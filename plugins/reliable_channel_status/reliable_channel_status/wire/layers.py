"""Interfaces for decrypting direct messages and group messages."""

from typing import Protocol

from .direct.correspondence import DirectPayload
from .keys import PublicKey
from .outcomes import Received, Refused
from .status_pb2 import HRKeys
from .waiting import WaitingMessage


class DirectLayer(Protocol):
    """Interface for decrypting direct messages, which `direct.Correspondence` implements."""

    @property
    def public_key(self) -> PublicKey:
        """Public key of the user that receives direct messages."""

    def open(
        self, data: bytes, sender: PublicKey | None, timestamp_ms: int = 0
    ) -> DirectPayload | Refused | None:
        """Decrypt a `ProtocolMessage`. If nothing in the message is encrypted for devices, `open`
        returns None."""


class GroupLayer(Protocol):
    """Interface for decrypting group messages, which `GroupKeys` implements."""

    def open(
        self,
        data: bytes,
        topic_id: str,
        timestamp_ms: int,
        signer: PublicKey | None,
        is_ephemeral: bool,
    ) -> bytes | Refused | None:
        """Decrypt a `ProtocolMessage` of a group. If the message is not for a group, `open` returns
        None."""

    def learn(self, group_id: bytes, raw: HRKeys, sender: PublicKey) -> Refused | None:
        """Accept the keys of a group that a user sent."""

    def describe(self, received: Received) -> Received | Refused:
        """Return a description with all parts that the participant's keys decrypt."""

    def take_ready(self) -> list[WaitingMessage]:
        """Return messages that waited for a key which has arrived."""

    def done(self, waiting_id: bytes) -> None:
        """Remove a waiting message, because it was handled."""
