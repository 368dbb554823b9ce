"""What a message of Status costs to open: `python -m bench.direct`.

From the Waku message on the wire to the payload: of a direct message ECIES, both signatures,
decryption, MVDS and protobuf, and with a ratchet the rows of its session; of one in a community the
key of its topic, both signatures and protobuf. One process, no I/O.
"""

from __future__ import annotations

import argparse
import time
from typing import Final

from bench.timing import middle
from reliable_channel_status import (
    ChatMessage,
    MessageType,
    Opener,
    PrivateKey,
    PublicKey,
    Received,
    Sealer,
    Topic,
    partitioned_topic,
    wrap,
)
from reliable_channel_status.direct import (
    Correspondence,
    DataSync,
    DataSyncPayload,
    MemorySessionStore,
    Sessions,
)
from waku import WakuMessage

NOW_MS: Final = 1_700_000_000_000
NS_PER_MS: Final = 1_000_000
ALICE: Final = PrivateKey(b"a" * 32)
BOT: Final = PrivateKey(b"b" * 32)
COMMUNITY: Final = "community"
KINDS: Final = {
    COMMUNITY: "in a channel of a community",
    "dh": "one Diffie-Hellman, without a bundle",
    "chain": "double ratchet, one chain",
    "turns": "double ratchet, a new chain with each message",
}


class Device:
    """One end: it writes to the other and reads what that writes."""

    def __init__(self, key: PrivateKey, peer: PublicKey, *, ratchet: bool) -> None:
        sessions = Sessions(key, "device", MemorySessionStore()) if ratchet else None
        self.layer = Correspondence(key, sessions=sessions, now_ms=lambda: NOW_MS)
        self._key, self._peer = key, peer
        self._sealer, self._datasync = Sealer(key), DataSync(key.public_key)
        topic = partitioned_topic(key.public_key)
        self._opener = Opener([topic], private_keys=[key], direct=self.layer)
        self._written = 0

    def write(self, text: str) -> WakuMessage:
        """The next message."""
        self._written += 1
        clock = NOW_MS + self._written
        payload = ChatMessage(
            clock=clock,
            timestamp=clock,
            text=text,
            chat_id=self._peer.hex,
            message_type=MessageType.ONE_TO_ONE,
        )
        signed = wrap(payload, self._key)
        one, _ = self._datasync.send(self._peer, signed.message_id, signed.data, clock)
        data = self.layer.encrypt(DataSyncPayload(messages=(one.message,)).encode(), self._peer)
        topic = partitioned_topic(self._peer)
        (message,) = self._sealer.seal_protocol(data, topic, clock * NS_PER_MS, receiver=self._peer)
        return message

    def read(self, message: WakuMessage) -> None:
        """Open a message and forget its key, as when it is handled."""
        (outcome,) = self._opener.receive(message, NOW_MS)
        assert isinstance(outcome, Received), outcome
        if outcome.ratchet_key is not None:
            self.layer.confirm(outcome.ratchet_key)


def community_cost_us(messages: int, text: str) -> float:
    """CPU microseconds to open one message in a channel of a community."""
    topic = Topic(f"{BOT.public_key.hex}{'c' * 36}")
    sealer, opener = Sealer(ALICE), Opener([topic])
    spent_ns = 0
    for number in range(messages):
        clock = NOW_MS + number
        payload = ChatMessage(
            clock=clock,
            timestamp=clock,
            text=text,
            chat_id=topic.id,
            message_type=MessageType.COMMUNITY_CHAT,
        )
        (message,) = sealer.seal(payload, topic, clock).messages
        before_ns = time.process_time_ns()
        (outcome,) = opener.receive(message, NOW_MS)
        spent_ns += time.process_time_ns() - before_ns
        assert isinstance(outcome, Received), outcome
    return spent_ns / 1000 / messages


def cost_us(kind: str, messages: int, text: str) -> float:
    """CPU microseconds to open one message."""
    if kind == COMMUNITY:
        return community_cost_us(messages, text)
    ratchet = kind != "dh"
    alice = Device(ALICE, BOT.public_key, ratchet=ratchet)
    bot = Device(BOT, ALICE.public_key, ratchet=ratchet)
    bot.read(alice.write(text))
    alice.read(bot.write(text))
    spent_ns = 0
    for _ in range(messages):
        message = alice.write(text)
        before_ns = time.process_time_ns()
        bot.read(message)
        spent_ns += time.process_time_ns() - before_ns
        if kind == "turns":
            alice.read(bot.write(text))
    return spent_ns / 1000 / messages


def main() -> None:
    """Print a line for each way to encrypt."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--bytes", type=int, default=100, help="length of the text")
    arguments = parser.parse_args()
    text = "x" * arguments.bytes
    for kind, name in KINDS.items():
        us = middle(cost_us(kind, arguments.messages, text) for _ in range(arguments.rounds))
        print(f"{name:<48} {us / 1000:.2f} ms")


if __name__ == "__main__":
    main()
