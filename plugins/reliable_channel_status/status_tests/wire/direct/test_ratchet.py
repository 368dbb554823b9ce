"""The double ratchet and X3DH: recorded keys of real clients, disorder, and messages far ahead."""

import json
from collections import OrderedDict
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from reliable_channel_status import PrivateKey, PublicKey, RefusalReason, Refused
from reliable_channel_status.testing.fake_direct import StatusGoSessions
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.direct import (
    Correspondence,
    DirectPayload,
    MemorySessionStore,
    Ratchet,
    RatchetHeader,
    Sessions,
    SignedPreKey,
    read_bundle,
    secret_of_initiator,
    secret_of_responder,
    sign_bundle,
)
from reliable_channel_status.wire.direct.ratchet import (
    MAX_KEYS,
    MAX_SKIP,
    KeyUsed,
    NotAuthentic,
    TooManySkipped,
    chain_step,
    decrypt_message,
    encrypt_message,
    root_step,
)
from reliable_channel_status.wire.direct.sessions import (
    MAX_PER_DEVICE,
    MAX_SESSIONS,
    PRE_KEY_MS,
    RENEWED_PRE_KEY_MS,
)
from status_tests.world import ALICE, BOB, MALLORY

DATA: Final = Path(__file__).parents[5] / "tests/vectors/data/status-real"
MESSAGES: Final[list[Any]] = json.loads((DATA / "messages.json").read_text())
KEYS: Final[Any] = json.loads((DATA / "keys.json").read_text())
MESSAGE_KEYS: Final = {
    (one["dh"], one["n"]): bytes.fromhex(one["message_key_hex"])
    for one in KEYS["double_ratchet_message_keys"]
}
NOW_MS: Final = 1_700_000_000_000
SECRET: Final = bytes(range(32))


def pair(seed: int = 7) -> tuple[Ratchet, Ratchet]:
    """Both ends of a session."""
    random = Random(seed)

    def new_key() -> PrivateKey:
        return PrivateKey(random.randbytes(32))

    pre_key = new_key()
    first = Ratchet.initiator(SECRET, pre_key.public_key, new_key=new_key)
    return first, Ratchet.responder(SECRET, pre_key, new_key=new_key)


# -- recorded -------------------------------------------------------------------------------------


def recorded() -> list[tuple[Any, status_pb2.ProtocolMessage]]:
    found = []
    for case in MESSAGES:
        if isinstance(case["protocol"], dict):
            data = bytes.fromhex(case["envelope"]["payload_hex"])
            found.append((case, status_pb2.ProtocolMessage.FromString(data)))
    return found


def test_the_bundles_of_real_clients_are_theirs_and_written_again_the_same() -> None:
    bundles = [(case, raw) for case, message in recorded() for raw in message.bundles]
    assert len(bundles) == 32
    for case, raw in bundles:
        bundle = read_bundle(raw)
        assert bundle.identity.hex == case["envelope"]["signer"]
        assert bundle.encode() == raw
        assert case["protocol"]["installation_id"] in bundle.devices
        changed = status_pb2.Bundle.FromString(raw.SerializeToString())
        changed.timestamp += 1
        with pytest.raises(ValueError, match="no valid signature"):
            read_bundle(changed)


def test_the_messages_of_real_clients_open_and_are_encrypted_to_the_same_bytes() -> None:
    opened = 0
    for case, message in recorded():
        for encrypted in message.encrypted_message.values():
            if not encrypted.HasField("dr_header"):
                continue
            head = encrypted.dr_header
            header = RatchetHeader(head.key, head.n, head.pn)
            key = MESSAGE_KEYS[head.key.hex(), head.n]
            plain = decrypt_message(key, encrypted.payload, header.associated_data)
            assert plain.hex() == case["inner_hex"]
            again = encrypt_message(key, plain, header.associated_data)
            assert again == encrypted.payload
            opened += 1
    assert opened == 6


def test_the_roots_of_real_clients_lead_to_their_message_keys() -> None:
    """Of each session the first chain, whose Diffie-Hellman has the recorded pre-key."""
    pre_keys = {
        one["signed_pre_key"]: PrivateKey.from_hex(one["private_hex"]) for one in KEYS["bundles"]
    }
    found = []
    for root in KEYS["ratchet_roots"]:
        for (dh, n), wanted in MESSAGE_KEYS.items():
            shared = pre_keys[root["bundle"]].shared_secret(PublicKey(bytes.fromhex(dh)))
            _, chain = root_step(bytes.fromhex(root["symmetric_key_hex"]), shared)
            for _ in range(n + 1):
                chain, message_key = chain_step(chain)
            if message_key == wanted:
                found.append((root["of"], root["peer"][:6], dh[:6], n))
    assert found == [
        ("alice", "023caf", "03fc60", 0),
        ("alice", "024646", "0304f6", 0),
        ("bob", "031c0b", "03fc60", 0),
    ]


def test_a_session_begins_from_a_recorded_bundle() -> None:
    """Alice's recorded private keys answer what is written to her recorded bundle."""
    raw = next(
        raw
        for case, message in recorded()
        for raw in message.bundles
        if case["envelope"]["signer_name"] == "alice"
    )
    alice = PrivateKey.from_hex(KEYS["keys"]["alice"]["private_hex"])
    (pre_key,) = (one for one in KEYS["bundles"] if one["of"] == "alice")
    bundle, ephemeral = read_bundle(raw), PrivateKey.generate()
    published = bundle.devices[pre_key["installation_id"]].public_key
    assert published.compressed.hex() == pre_key["signed_pre_key"]
    secret = secret_of_initiator(BOB, ephemeral, alice.public_key, published)
    private = PrivateKey.from_hex(pre_key["private_hex"])
    assert secret == secret_of_responder(alice, private, BOB.public_key, ephemeral.public_key)
    header, sealed = Ratchet.initiator(secret, published).encrypt(b"hello")
    assert Ratchet.responder(secret, private).decrypt(header, sealed) == b"hello"


# -- the state machine ----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_messages_in_any_order_open_once_and_lost_ones_hold_nobody_up(seed: int) -> None:
    random = Random(seed)
    ends = pair(seed)
    under_way: tuple[list[Any], list[Any]] = ([], [])
    opened = sent = lost = 0
    for step in range(300):
        side = random.randrange(2)
        if random.random() < 0.5 and (side == 0 or ends[1].state.peer is not None):
            text = f"{side} {step}".encode()
            under_way[1 - side].append((*ends[side].encrypt(text), text))
            sent += 1
        elif under_way[side]:
            header, sealed, text = under_way[side].pop(random.randrange(len(under_way[side])))
            if random.random() < 0.1:
                lost += 1
                continue
            assert ends[side].decrypt(header, sealed) == text
            ends[side].confirm(header.key, header.n)
            opened += 1
            with pytest.raises((KeyUsed, NotAuthentic, TooManySkipped)):
                ends[side].decrypt(header, sealed)
    assert opened > 80 and lost > 3


def test_a_message_can_be_read_again_until_it_is_confirmed() -> None:
    one, two = pair()
    header, sealed = one.encrypt(b"hello")
    assert two.decrypt(header, sealed) == two.decrypt(header, sealed) == b"hello"
    two.confirm(header.key, header.n)
    with pytest.raises(KeyUsed):
        two.decrypt(header, sealed)


def test_a_message_a_million_ahead_is_refused_at_once_and_changes_nothing() -> None:
    one, two = pair()
    header, sealed = one.encrypt(b"hello")
    state = two.state
    for n, pn in ((1_000_000, 0), (2**32 - 1, 0), (MAX_SKIP + 1, 0)):
        with pytest.raises(TooManySkipped):
            two.decrypt(RatchetHeader(header.key, n, pn), sealed)
    assert two.state is state and not two.keys
    assert two.decrypt(header, sealed) == b"hello"
    # Of the chain before, too.
    other = PrivateKey.generate().public_key.compressed
    with pytest.raises(TooManySkipped):
        two.decrypt(RatchetHeader(other, 0, 1_000_000), sealed)


def test_the_thousandth_message_opens_and_keys_are_bounded() -> None:
    one, two = pair()
    for _ in range(MAX_SKIP):
        one.encrypt(b"lost")
    header, sealed = one.encrypt(b"here")
    assert header.n == MAX_SKIP
    assert two.decrypt(header, sealed) == b"here"
    for _ in range(3):
        for _ in range(MAX_SKIP):
            one.encrypt(b"lost")
        two.decrypt(*one.encrypt(b"here"))
    assert len(two.keys) == MAX_KEYS


@pytest.mark.parametrize("change", ["n", "pn", "key", "cipher", "mac", "short"])
def test_what_is_changed_does_not_open_and_changes_nothing(change: str) -> None:
    one, two = pair()
    two.decrypt(*one.encrypt(b"first"))
    one.decrypt(*two.encrypt(b"second"))
    header, sealed = one.encrypt(b"third")
    state, keys = two.state, OrderedDict(two.keys)
    wrong, bad = header, sealed
    match change:
        case "n":
            wrong = RatchetHeader(header.key, header.n + 1, header.pn)
        case "pn":
            wrong = RatchetHeader(header.key, header.n, header.pn + 1)
        case "key":
            wrong = RatchetHeader(b"\x02" + bytes(32), header.n, header.pn)
        case "cipher":
            bad = sealed[:20] + bytes([sealed[20] ^ 1]) + sealed[21:]
        case "mac":
            bad = sealed[:-1] + bytes([sealed[-1] ^ 1])
        case "short":
            bad = sealed[:40]
    with pytest.raises(NotAuthentic):
        two.decrypt(wrong, bad)
    assert (two.state, two.keys) == (state, keys)
    assert two.decrypt(header, sealed) == b"third"


# -- sessions -------------------------------------------------------------------------------------


class Device:
    """A device that forgets what is not in its store."""

    kind: type[Sessions] = Sessions

    def __init__(self, key: PrivateKey, name: str, store: MemorySessionStore | None = None) -> None:
        self.key, self.name = key, name
        self.store = store or MemorySessionStore()
        self.now_ms = NOW_MS
        self.restart()

    def restart(self) -> None:
        self.sessions = self.kind(self.key, self.name, self.store)
        self.correspondence = Correspondence(
            self.key, sessions=self.sessions, now_ms=lambda: self.now_ms
        )

    def to(self, other: "Device", text: bytes = b"hello") -> bytes:
        self.now_ms += 1
        return self.correspondence.encrypt(text, other.key.public_key)

    def read(self, data: bytes, sender: "Device") -> bytes | RefusalReason | None:
        opened = self.correspondence.open(data, sender.key.public_key, sender.now_ms)
        if isinstance(opened, Refused):
            return opened.reason
        assert isinstance(opened, DirectPayload)
        if opened.ratchet_key is not None:
            self.correspondence.confirm(opened.ratchet_key)
        return opened.bodies[0][0] if opened.bodies else None


class Client(Device):
    """A device that keeps its sessions as status-go does."""

    kind = StatusGoSessions


def kinds(data: bytes) -> dict[str, list[str]]:
    message = status_pb2.ProtocolMessage.FromString(data)
    return {
        device: [field.name for field, _ in one.ListFields() if field.name.endswith("header")]
        for device, one in message.encrypted_message.items()
    }


def test_two_devices_go_from_one_exchange_to_a_ratchet_and_outlive_restarts() -> None:
    alice, bob = Device(ALICE, "phone"), Device(BOB, "bot")
    first = alice.to(bob)
    assert kinds(first) == {"none": ["dh_header"]}
    assert bob.read(first, alice) == b"hello"
    second = bob.to(alice)
    assert kinds(second) == {"phone": ["x3dh_header", "dr_header"]}
    assert alice.read(second, bob) == b"hello"
    for turn in range(6):
        writer, reader = (alice, bob) if turn % 2 else (bob, alice)
        data = writer.to(reader, b"%d" % turn)
        writer.restart()
        reader.restart()
        assert reader.read(data, writer) == b"%d" % turn
        assert reader.read(data, writer) in (
            RefusalReason.REPEATED_KEY,
            RefusalReason.BAD_CIPHERTEXT,
        )
    assert kinds(alice.to(bob)) == {"bot": ["dr_header"]}


def test_several_devices_of_one_user_read_the_same_message() -> None:
    alice, tablet, bob = Device(ALICE, "phone"), Device(ALICE, "tablet"), Device(BOB, "bot")
    bob.read(alice.to(bob), alice)
    tablet.now_ms += 10
    bob.read(tablet.to(bob), tablet)
    data = bob.to(alice, b"for both")
    assert set(kinds(data)) == {"phone", "tablet"}
    assert alice.read(data, bob) == tablet.read(data, bob) == b"for both"
    assert bob.read(tablet.to(bob, b"from one"), tablet) == b"from one"


def test_both_begin_at_once_and_understand_each_other() -> None:
    alice, bob = Device(ALICE, "phone"), Device(BOB, "bot")
    for one, other in ((alice, bob), (bob, alice)):
        raw = one.sessions.bundle(NOW_MS, other.key.public_key).encode()
        assert other.sessions.learn(raw, one.key.public_key) is None
    crossing = alice.to(bob, b"a"), bob.to(alice, b"b")
    assert bob.read(crossing[0], alice) == b"a" and alice.read(crossing[1], bob) == b"b"
    for turn in range(4):
        assert bob.read(alice.to(bob, b"%d" % turn), alice) == b"%d" % turn
        assert alice.read(bob.to(alice, b"%d" % turn), bob) == b"%d" % turn


@pytest.mark.parametrize("begins", ["client", "bot"])
def test_a_restored_backup_heals_with_one_message(begins: str) -> None:
    client, bot = Client(ALICE, "phone"), Device(BOB, "bot")
    one, other = (client, bot) if begins == "client" else (bot, client)
    raw = one.sessions.bundle(NOW_MS, other.key.public_key).encode()
    assert other.sessions.learn(raw, one.key.public_key) is None
    one.read(other.to(one), other)
    other.read(one.to(other), one)
    backup = {name: dict(rows) for name, rows in bot.store.tables.items()}
    for _ in range(3):
        bot.read(client.to(bot), client)
        client.read(bot.to(client), bot)
    old_version = versions(bot.to(client))["bot"]
    bot.store.tables = backup
    bot.restart()
    for _ in range(2):
        lost = bot.read(client.to(bot, b"lost"), client)
        assert lost in (RefusalReason.BAD_CIPHERTEXT, RefusalReason.TOO_MANY_SKIPPED)
    assert bot.sessions.take_lost() == {ALICE.public_key: True}
    bot.now_ms += RENEWED_PRE_KEY_MS
    client.now_ms += RENEWED_PRE_KEY_MS
    bot.sessions.renew(ALICE.public_key, bot.now_ms)
    late = client.to(bot, b"written before the news")
    news = bot.to(client, b"")
    ((new_id, version),) = versions(news).items()
    assert new_id != "bot" and version > old_version
    assert client.read(news, bot) is None
    assert bot.read(late, client) is RefusalReason.BAD_CIPHERTEXT
    assert bot.sessions.take_lost() == {ALICE.public_key: False}, "it is told again, by the same id"
    for turn in range(3):
        bot.restart()
        assert bot.read(client.to(bot, b"%d" % turn), client) == b"%d" % turn
        assert client.read(bot.to(client, b"%d" % turn), bot) == b"%d" % turn
    assert set(kinds(client.to(bot))) == {"bot", new_id}


def test_another_peer_keeps_its_session_and_ids_are_bounded() -> None:
    client, other, bot = Client(ALICE, "phone"), Client(MALLORY, "phone"), Device(BOB, "bot")
    for one in (client, other, client, other):
        bot.read(one.to(bot), one)
        one.read(bot.to(one), bot)
    for _ in range(4):
        bot.sessions.renew(ALICE.public_key, bot.now_ms)
        client.read(bot.to(client, b""), bot)
    assert kinds(bot.to(other)) == {"phone": ["dr_header"]}
    assert len(bot.store.tables["direct_sessions"]) == 3, "two ids of Alice, one of the other"


def versions(data: bytes) -> dict[str, int]:
    """The version of each device in the bundle of a message."""
    (bundle,) = status_pb2.ProtocolMessage.FromString(data).bundles
    return {device: key.version for device, key in bundle.signed_pre_keys.items()}


def test_a_device_that_lost_everything_is_written_to_again() -> None:
    alice, bob = Device(ALICE, "phone"), Device(BOB, "bot")
    bob.read(alice.to(bob), alice)
    alice.read(bob.to(alice), bob)
    fresh = Device(BOB, "bot")
    fresh.now_ms += 1000
    assert fresh.read(alice.to(bob, b"lost"), alice) is RefusalReason.UNKNOWN_SESSION
    assert fresh.sessions.take_lost() == {ALICE.public_key: True}
    assert alice.read(fresh.to(alice, b""), fresh) is None
    assert fresh.read(alice.to(fresh, b"again"), alice) == b"again"


def test_a_replayed_beginning_does_not_bring_an_old_session_back() -> None:
    alice, bob = Device(ALICE, "phone"), Device(BOB, "bot")
    alice.sessions.learn(bob.sessions.bundle(NOW_MS, ALICE.public_key).encode(), BOB.public_key)
    first = alice.to(bob, b"first")
    assert bob.read(first, alice) == b"first"
    again = Device(ALICE, "phone")  # the same device begins once more with the same bundle
    again.sessions.learn(bob.sessions.bundle(NOW_MS, ALICE.public_key).encode(), BOB.public_key)
    assert bob.read(again.to(bob, b"second"), again) == b"second"
    assert bob.read(first, alice) is RefusalReason.REPEATED_KEY
    assert bob.read(again.to(bob, b"third"), again) == b"third"


def test_bundles_of_others_and_forged_ones_are_not_taken() -> None:
    bob, mallory = Device(BOB, "bot"), Device(MALLORY, "phone")
    devices = {"phone": SignedPreKey(MALLORY.public_key)}
    theirs = sign_bundle(ALICE, devices, 1).encode()
    assert bob.sessions.learn(theirs, MALLORY.public_key) is None  # Alice's, from another
    assert bob.sessions.encrypt(b"", ALICE.public_key) == {}
    forged = sign_bundle(MALLORY, devices, 1).encode()
    forged.identity = ALICE.public_key.compressed
    for raw in (forged, status_pb2.Bundle(), status_pb2.Bundle(identity=b"x")):
        refused = bob.sessions.learn(raw, ALICE.public_key)
        assert refused is not None and refused.reason is RefusalReason.BAD_BUNDLE
    assert bob.sessions.encrypt(b"", ALICE.public_key) == {}
    # What it comes with is read all the same.
    message = status_pb2.ProtocolMessage.FromString(mallory.to(bob, b"hello"))
    message.bundles[0].timestamp += 1
    opened = bob.correspondence.open(message.SerializeToString(), MALLORY.public_key)
    assert isinstance(opened, DirectPayload) and opened.bodies == ((b"hello", None),)
    assert [one.reason for one in opened.refused] == [RefusalReason.BAD_BUNDLE]


def test_sessions_and_their_keys_are_bounded() -> None:
    alice, bob = Device(ALICE, "phone"), Device(BOB, "bot")
    for day in range(8):
        bob.now_ms = NOW_MS + day * PRE_KEY_MS
        fresh = Device(ALICE, "phone")
        fresh.sessions.learn(
            bob.sessions.bundle(bob.now_ms, ALICE.public_key).encode(), BOB.public_key
        )
        assert bob.read(fresh.to(bob), fresh) == b"hello"
    assert len(bob.store.tables["direct_sessions"]) == MAX_PER_DEVICE
    assert not bob.store.tables["direct_message_keys"]
    assert MAX_SESSIONS <= 20_000
    head = status_pb2.EncryptedMessageProtocol()
    head.dr_header.id = bytes(1000)
    refused = bob.sessions.decrypt(head, ALICE.public_key, "phone", "bot", NOW_MS)
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.BAD_CIPHERTEXT
    assert alice.sessions.take_lost() == {}
