"""Encrypted messages of Status: bundles, MVDS payloads, ratchet sessions, and group keys."""

from collections.abc import Iterator
from random import Random
from typing import Final

from google.protobuf.message import DecodeError

from reliable_channel_status import Community, GroupKeys, PrivateKey, Refused
from reliable_channel_status.community.group_keys import TABLES
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.direct import (
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
from reliable_channel_status.wire.direct.dh import ANY_DEVICE
from reliable_channel_status.wire.direct.ratchet import MAX_KEYS
from reliable_channel_status.wire.hash_ratchet import MAX_SEQ_NO, seal_for_members, write_keys
from reliable_channel_status.wire.outcomes import MessageId
from reliable_channel_status.wire.waiting import MAX_WAITING

from ..target import Target, joined, records

NOW_MS: Final = 1_700_000_000_000
ALICE: Final = PrivateKey(b"a" * 32)
BOB: Final = PrivateKey(b"b" * 32)
MALLORY: Final = PrivateKey(b"m" * 32).public_key
COMMUNITY: Final = Community(PrivateKey(b"o" * 32).public_key)


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
    bundle = Device(BOB, "bot").sessions.bundle(NOW_MS, ALICE.public_key)
    yield bundle.encode().SerializeToString()


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
    acknowledged = [other.message for other in delivered]  # a request made it due before
    assert (acknowledged == [one.message]) == (one.message.id in payload.acks)


def _datasyncs() -> Iterator[bytes]:
    group = group_of(ALICE.public_key, BOB.public_key)
    message = DataSyncMessage(group, NOW_MS // 1000, b"hello")
    yield DataSyncPayload(messages=(message,)).encode()
    yield DataSyncPayload(acks=(message.id,), requests=(bytes(32),)).encode()


def _member() -> tuple[GroupKeys, MemorySessionStore, list[bytes]]:
    """Bob's group keys after Alice gave him one, and what she writes next."""
    group, stores = COMMUNITY.public_key.compressed, [MemorySessionStore(TABLES) for _ in "ab"]
    alice, bob = (
        GroupKeys(
            key,
            [COMMUNITY],
            store,
            is_owner=lambda user, _: user == ALICE.public_key,
            random=Random(key.reveal()).randbytes,
        )
        for key, store in zip((ALICE, BOB), stores, strict=True)
    )
    key = alice.generate(group, NOW_MS)
    bob.learn(group, write_keys([key]), ALICE.public_key)
    message = status_pb2.ProtocolMessage()  # the same key for all members
    one = message.encrypted_message[ANY_DEVICE]
    one.payload, one.hr_header.group_id = b"4", group
    rekey = seal_for_members(key, ALICE, [BOB.public_key], random=Random(1).randbytes)
    one.hr_header.keys.rekey_group.CopyFrom(rekey)
    written = [alice.encrypt(group, b"%d" % n) for n in range(4)]
    alice.generate(group, NOW_MS)
    return bob, stores[1], [*written, message.SerializeToString(), alice.encrypt(group, b"5")]


def _group(data: bytes) -> None:
    """Only what Alice wrote opens; strangers' keys are not written with; stores are bounded."""
    bob, store, messages = _member()
    before = bob.current(COMMUNITY.public_key.compressed)
    for record in records(data):
        if 1_000 < seq_no_of(record) <= MAX_SEQ_NO:
            continue  # half a second of hashing, once for a key
        opened = bob.open(record, COMMUNITY.id, NOW_MS, MALLORY, False)
        is_beside_a_key = isinstance(opened, bytes) and not seq_no_of(record)
        assert (
            is_beside_a_key
            or opened in (None, b"0", b"1", b"2", b"3", b"4")
            or isinstance(opened, Refused)
        )
        assert len(store.tables["group_waiting"]) <= MAX_WAITING
    assert bob.current(COMMUNITY.public_key.compressed) == before
    assert bob.open(messages[3], COMMUNITY.id, NOW_MS, ALICE.public_key, False) == b"3"


def seq_no_of(record: bytes) -> int:
    """The number of a message; 0 of one that brings a key, beside which is what is in the clear."""
    message = status_pb2.ProtocolMessage()
    try:
        message.ParseFromString(record)
    except DecodeError:
        return 0
    return message.encrypted_message[ANY_DEVICE].hr_header.seq_no


TARGETS: Final = (
    Target("status_group", _group, lambda: [joined(_member()[2])]),
    Target("status_direct", _direct, lambda: [joined(talk()[1])]),
    Target("status_bundle", _bundle, _bundles),
    Target("status_datasync", _datasync, _datasyncs),
)
