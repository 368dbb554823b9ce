"""We decrypt what `@waku/message-encryption` encrypts, and the reverse: both kinds of keys,
with signature and without, on both sides of the boundaries of padding and of lengths' lengths."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from reliable_channel_status import (
    ChatMessage,
    Community,
    Opened,
    Opener,
    PrivateKey,
    Received,
    Sealer,
    SymmetricKey,
    open_ecies,
    open_symmetric,
    seal_ecies,
    seal_symmetric,
    to_protocol,
    wrap,
)
from waku import WakuMessage

from ..node_install import NodeUnavailable, installed

SEED = 20_240_131
NOW_MS = 1_700_000_000_000
SIGNATURE_BYTES = 65
SIZES = sorted(
    {1, 2, 70_000, 150_000}
    | {255, 256, 257, 65_535, 65_536, 65_537}
    | {
        # one less, exactly, and one more than what fills 256 bytes, or a few of them
        blocks * 256 - 1 - length_bytes - signature + off
        for blocks, length_bytes in ((1, 1), (2, 2), (3, 2), (16, 2), (256, 2), (257, 3))
        for signature in (0, SIGNATURE_BYTES)
        for off in (-1, 0, 1)
    }
)
KEY = SymmetricKey(bytes(range(32)))
ALICE, BOB = PrivateKey(b"a" * 32), PrivateKey(b"b" * 32)


class Peer:
    """The peer's process: one request, one answer."""

    def __init__(self, script: Path) -> None:
        self.process = subprocess.Popen(
            ["node", script.name],
            cwd=script.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, do: str, kind: str, payload: bytes, signer: bytes | None = None) -> Any:
        keys = {
            ("seal", "symmetric"): KEY.reveal(),
            ("open", "symmetric"): KEY.reveal(),
            ("seal", "ecies"): BOB.public_key.uncompressed,
            ("open", "ecies"): BOB.reveal(),
        }
        request = {
            "do": do,
            "kind": kind,
            "key": keys[do, kind].hex(),
            "payload": payload.hex(),
            "signer": None if signer is None else signer.hex(),
        }
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def seal(self, kind: str, payload: bytes, signer: PrivateKey | None) -> bytes:
        answer = self.ask("seal", kind, payload, None if signer is None else signer.reveal())
        return bytes.fromhex(answer["payload"])

    def open_(self, kind: str, sealed: bytes) -> tuple[bytes, str | None]:
        answer = self.ask("open", kind, sealed)
        return bytes.fromhex(answer["payload"]), answer["signer"]


@pytest.fixture(scope="module")
def peer() -> Iterator[Peer]:
    try:
        script = installed(Path(__file__).parent / "node")
    except NodeUnavailable as reason:
        pytest.skip(str(reason))  # in CI too: not every mirror of npm has it; vectors hold there
    running = Peer(script)
    try:
        yield running
    finally:
        running.process.kill()
        running.process.communicate()


def ours(kind: str, payload: bytes, signer: PrivateKey | None) -> bytes:
    if kind == "symmetric":
        return seal_symmetric(payload, KEY, signer)
    return seal_ecies(payload, BOB.public_key, signer)


def opened(kind: str, sealed: bytes) -> Opened:
    return open_symmetric(sealed, KEY) if kind == "symmetric" else open_ecies(sealed, BOB)


@pytest.mark.parametrize("signer", [None, ALICE], ids=["unsigned", "signed"])
@pytest.mark.parametrize("kind", ["symmetric", "ecies"])
def test_each_opens_what_the_other_seals(kind: str, signer: PrivateKey | None, peer: Peer) -> None:
    random = Random(SEED)
    public_key = None if signer is None else signer.public_key
    for size in SIZES:
        payload = random.randbytes(size)
        theirs = peer.seal(kind, payload, signer)
        assert opened(kind, theirs) == Opened(payload, public_key), size
        mine = ours(kind, payload, signer)
        assert len(mine) == len(theirs), size
        expected = None if public_key is None else public_key.hex.removeprefix("0x")
        assert peer.open_(kind, mine) == (payload, expected), size


def test_what_was_changed_on_the_way_is_opened_by_neither(peer: Peer) -> None:
    for kind in ("symmetric", "ecies"):
        sealed = bytearray(ours(kind, b"hello", ALICE))
        sealed[-1] ^= 1
        assert "error" in peer.ask("open", kind, bytes(sealed))


def test_a_chat_message_in_the_envelope_of_js_and_in_ours(peer: Peer) -> None:
    """Through the whole way in and out, but for the key, which js takes from us."""
    community = Community(BOB.public_key)
    channel = community.channel_id("1dc14fd8-9a8b-4df5-a358-2c3067be5439")
    topic = community.channel_topic(channel)
    message = ChatMessage(clock=NOW_MS, timestamp=NOW_MS, text="ünï-çødé 👋", chat_id=channel)
    signed = wrap(message, ALICE)

    opener = Opener([topic], private_keys=[BOB])
    theirs = peer.seal("ecies", to_protocol(signed), ALICE)
    (received,) = opener.receive(WakuMessage(theirs, topic.content_topic, 1), NOW_MS)
    assert isinstance(received, Received)
    assert received.signed == signed

    outgoing = Sealer(ALICE).seal_signed(signed, topic, NOW_MS, receiver=BOB.public_key)
    plain, signer = peer.open_("ecies", outgoing.messages[0].payload)
    assert plain == to_protocol(signed)
    assert signer == ALICE.public_key.hex.removeprefix("0x")
