"""What opens encrypted messages: the contracts of direct messages and of groups."""

from typing import Protocol

from .direct.correspondence import DirectPayload
from .keys import PublicKey
from .outcomes import Received, Refused
from .status_pb2 import HRKeys
from .waiting import WaitingMessage


class DirectLayer(Protocol):
    """What opens direct messages: `direct.Correspondence`."""

    @property
    def public_key(self) -> PublicKey:
        """Their receiver."""

    def open(
        self, data: bytes, sender: PublicKey | None, timestamp_ms: int = 0
    ) -> DirectPayload | Refused | None:
        """Open a `ProtocolMessage`; None if nothing in it is encrypted for devices."""


class GroupLayer(Protocol):
    """What opens messages for groups: `GroupKeys`."""

    def open(
        self,
        data: bytes,
        topic_id: str,
        timestamp_ms: int,
        signer: PublicKey | None,
        is_ephemeral: bool,
    ) -> bytes | Refused | None:
        """Open a `ProtocolMessage`; None if it is not for a group."""

    def learn(self, group_id: bytes, raw: HRKeys, sender: PublicKey) -> Refused | None:
        """Take the keys of a group that a user sent."""

    def describe(self, received: Received) -> Received | Refused:
        """A description in the clear, as far as the keys are here."""

    def take_ready(self) -> list[WaitingMessage]:
        """What waited for a key that has come."""

    def done(self, waiting_id: bytes) -> None:
        """Forget what waited."""
