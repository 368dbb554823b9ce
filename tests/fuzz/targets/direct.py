"""Direct messages of Status: bundles, MVDS payloads, ratchet sessions, and membership events."""

from collections.abc import Iterator
from random import Random
from typing import Final

from reliable_channel_status import PrivateKey, Refused, status_pb2
from reliable_channel_status.direct import (
    Correspondence,
    DataSync,
    DataSyncMessage,
    DataSyncPayload,
    DirectPayload,
    MemorySessionStore,
    Sessions,
    group_of,
    read_bundle,
    read_datasync,
)
from reliable_channel_status.direct.ratchet import MAX_KEYS
from reliable_channel_status.outcomes import MessageId

from ..target import Target, joined, records

NOW_MS: Final = 1_700_000_000_000
ALICE: Final = PrivateKey(b"a" * 32)
BOB: Final = PrivateKey(b"b" * 32)


class Device:
    """A device whose keys are the same in each run."""

    def __init__(self, key: PrivateKey, name: str) -> None:
        self.random = Random(name)
        self.store = MemorySessionStore()
        self.sessions = Sessions(key, name, self.store, new_key=self.new_key)
        self.layer = Correspondence(
            key,
            sessions=self.sessions,
            now_ms=lambda: NOW_MS,
            new_key=self.new_key,
            random=self.random.randbytes,
        )

    def new_key(self) -> PrivateKey:
        return PrivateKey(self.random.randbytes(32))


def talk() -> tuple[Device, list[bytes]]:
    """Bob's device after an exchange, and what Alice's writes next."""
    alice, bob = Device(ALICE, "phone"), Device(BOB, "bot")
    bob.layer.open(alice.layer.encrypt(b"hello", BOB.public_key), ALICE.public_key)
    alice.layer.open(bob.layer.encrypt(b"hello", ALICE.public_key), BOB.public_key)
    return bob, [alice.layer.encrypt(b"%d" % n, BOB.public_key) for n in range(4)]


def _direct(data: bytes) -> None:
    """Only what Alice wrote opens, in any order and after anything; stores are bounded."""
    bob, messages = talk()
    for number, record in enumerate(records(data)):
        opened = bob.layer.open(record, ALICE.public_key, NOW_MS + number)
        if isinstance(opened, DirectPayload):
            assert all(body in (b"0", b"1", b"2", b"3") for body, _ in opened.bodies)
        else:
            assert opened is None or isinstance(opened, Refused)
        assert len(bob.store.tables["direct_message_keys"]) <= MAX_KEYS
    opened = bob.layer.open(messages[-1], ALICE.public_key)
    assert isinstance(opened, DirectPayload) and opened.bodies == ((b"3", None),)


def _bundle(data: bytes) -> None:
    """What is read is signed by its identity, and means the same when written again."""
    try:
        bundle = read_bundle(status_pb2.Bundle.FromString(data))
    except Exception as error:
        assert isinstance(error, ValueError) or type(error).__name__ == "DecodeError"
        return
    assert read_bundle(bundle.encode()) == bundle


def _bundles() -> Iterator[bytes]:
    yield Device(BOB, "bot").sessions.bundle(NOW_MS).encode().SerializeToString()


def _datasync(data: bytes) -> None:
    """Written again it means the same, and only the peer's acknowledgement counts."""
    payload = read_datasync(data)
    if payload is None:
        return
    assert read_datasync(payload.encode()) == payload
    datasync = DataSync(BOB.public_key)
    one, _ = datasync.send(ALICE.public_key, MessageId("0x1"), b"hello", NOW_MS)
    assert datasync.receive(BOB.public_key, payload) == []
    delivered = datasync.receive(ALICE.public_key, payload)
    assert (delivered == [one]) == (one.message.id in payload.acks)


def _datasyncs() -> Iterator[bytes]:
    group = group_of(ALICE.public_key, BOB.public_key)
    message = DataSyncMessage(group, NOW_MS // 1000, b"hello")
    yield DataSyncPayload(messages=(message,)).encode()
    yield DataSyncPayload(acks=(message.id,), requests=(bytes(32),)).encode()


TARGETS: Final = (
    Target("status_direct", _direct, lambda: [joined(talk()[1])]),
    Target("status_bundle", _bundle, _bundles),
    Target("status_datasync", _datasync, _datasyncs),
)
