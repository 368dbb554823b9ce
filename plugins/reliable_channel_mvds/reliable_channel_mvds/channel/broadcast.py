"""Packets of a participant that wait until the transport has accepted them."""

from hashlib import sha256
from itertools import count

from reliable_channel.spi import CoreContext, Outgoing, OutgoingKind

from ..message import Message, Payload, PeerId
from ..wire import SEED
from .wire import Envelope


class Broadcast:
    """Puts payloads into envelopes for the transport."""

    def __init__(self, context: CoreContext) -> None:
        self.outgoing: list[Outgoing] = []
        self.under_way: set[str] = set()
        """Payloads that the transport has not taken yet. Until it has, no further ones are made:
        they would pile up while there is no node."""
        self._context = context
        self._numbers = count()

    def message(self, kind: OutgoingKind, message: Message) -> None:
        data = self._envelope(payload=SEED.encode(Payload(messages=(message,))))
        self.outgoing.append(Outgoing(kind, message.id.hex(), data))

    def payload(self, peer_id: PeerId, payload: bytes) -> None:
        """Add an envelope with a payload for one peer."""
        self._emit(f"payload {next(self._numbers)}", peer_id, payload)

    def answer(self, peer_id: PeerId) -> bool:
        """Answer a peer's "I am here" with an empty payload that needs no answer. If an earlier
        answer to the peer still waits, `answer` returns False."""
        answer_id = f"answer to {peer_id.decode()}"
        if answer_id in self.under_way:
            return False
        self._emit(answer_id, peer_id, b"")
        return True

    def _emit(self, payload_id: str, peer_id: PeerId, payload: bytes) -> None:
        """Of the kind of a retry, so that it is reported when it is out."""
        self.under_way.add(payload_id)
        data = self._envelope(recipient_id=peer_id.decode(), payload=payload)
        self.outgoing.append(Outgoing(OutgoingKind.RETRY, payload_id, data))

    def hello(self) -> str:
        """Send "I am here" to all peers, and return the message's id."""
        hello_id = f"hello {next(self._numbers)}"
        self.outgoing.append(Outgoing(OutgoingKind.SYNC, hello_id, self._envelope()))
        return hello_id

    def ephemeral(self, content: bytes, now_ms: int) -> Outgoing:
        """Return an ephemeral message for all peers. The caller of `ephemeral` sends the
        message."""
        nonce = now_ms.to_bytes(8) + next(self._numbers).to_bytes(8)
        data = self._envelope(ephemeral=content, nonce=nonce)
        return Outgoing(OutgoingKind.EPHEMERAL, sha256(data).hexdigest(), data)

    def _envelope(
        self,
        *,
        recipient_id: str = "",
        payload: bytes = b"",
        ephemeral: bytes = b"",
        nonce: bytes = b"",
    ) -> bytes:
        context = self._context
        return Envelope(
            context.channel_id, context.sender_id, recipient_id, payload, ephemeral, nonce
        ).encode()
