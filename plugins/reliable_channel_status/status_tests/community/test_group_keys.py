"""Group keys: the ratchet, keys that are taken and refused, and what waits for them."""

from dataclasses import replace
from random import Random
from typing import Final

import pytest

from reliable_channel_status import (
    CommunityDescription,
    CommunityMember,
    CommunityTokenPermission,
    Opener,
    PrivateKey,
    PublicKey,
    Received,
    RefusalReason,
    Refused,
    Role,
    Sealer,
    TokenPermissionType,
    keccak256,
    why_not_heard,
    wrap,
)
from reliable_channel_status.community.edits import encrypted, muted, private, public
from reliable_channel_status.community.encryption import groups_of, hide, is_hidden, read_name, show
from reliable_channel_status.community.group_keys import (
    MAX_CANDIDATES,
    TABLES,
    GroupKeys,
)
from reliable_channel_status.wire.direct import Correspondence, MemorySessionStore, Sessions
from reliable_channel_status.wire.hash_ratchet import (
    MAX_KEYS,
    MAX_SEQ_NO,
    STRIDE,
    Chain,
    GroupKey,
    NoGroupKey,
    next_key,
    open_for_member,
    read_keys,
    seal_for_members,
    write_keys,
)
from reliable_channel_status.wire.sealing import NS_PER_MS
from reliable_channel_status.wire.status_pb2 import HRKey, HRKeys, ProtocolMessage
from reliable_channel_status.wire.waiting import MAX_WAITING
from status_tests.world import (
    ALICE,
    BOB,
    CHAT_ID,
    COMMUNITY,
    GENERAL,
    MALLORY,
    NOW_MS,
    OTHER,
    OWNER,
    describing,
    received,
    said,
)

GROUP: Final = COMMUNITY.public_key.compressed
TOPIC: Final = COMMUNITY.universal_topic


class Device:
    """The group keys of a user; it takes Alice for the owner."""

    def __init__(self, key: PrivateKey, store: MemorySessionStore | None = None) -> None:
        self.key = key
        self.store = store or MemorySessionStore(TABLES)
        self.keys = GroupKeys(
            key,
            [COMMUNITY],
            self.store,
            is_owner=lambda user, _: user == ALICE.public_key,
            random=Random(key.reveal()).randbytes,
        )
        self.opener = Opener(
            [TOPIC, COMMUNITY.description_topic],
            private_keys=[key],
            direct=Correspondence(key),
            groups=self.keys,
        )

    def writes(self, text: str) -> bytes:
        return self.keys.encrypt(GROUP, wrap(said(text), self.key).data)

    def reads(self, data: bytes, sender: PublicKey) -> bytes | Refused | None:
        return self.keys.open(data, TOPIC.id, NOW_MS, sender, False)


def alice_and_bob() -> tuple[Device, Device]:
    alice, bob = Device(ALICE), Device(BOB)
    alice.keys.generate(GROUP, NOW_MS)
    give(alice, bob)
    return alice, bob


def give(owner: Device, member: Device, group: bytes = GROUP) -> Refused | None:
    keys = write_keys(owner.keys.keys_of(group))
    return member.keys.learn(group, keys, owner.key.public_key)


# -- the ratchet ----------------------------------------------------------------------------------


def test_a_key_is_named_and_hashed_as_in_the_source() -> None:
    key = GroupKey(GROUP, 0x0102030405, bytes(range(32)))
    assert key.id == keccak256(GROUP + bytes.fromhex("0504030201000000") + bytes(range(32)))
    assert key.deprecated_id == 0x02030405
    assert Chain(key).hash_at(1) == keccak256(key.key)
    assert Chain(key).hash_at(3) == keccak256(keccak256(keccak256(key.key)))


@pytest.mark.parametrize("numbers", [[1, 2, 700, 3, 699, 701, 1, STRIDE, STRIDE + 1, 2 * STRIDE]])
def test_numbers_in_any_order_give_the_same_keys(numbers: list[int]) -> None:
    key = next_key(GROUP, None, NOW_MS, random=Random(1).randbytes)
    chain = Chain(key)
    for number in numbers:
        value = key.key
        for _ in range(number):
            value = keccak256(value)
        assert chain.hash_at(number) == value
    for number in (0, -1, MAX_SEQ_NO + 1, 1_000_000):
        with pytest.raises(ValueError, match="from 1 to 100000"):
            chain.hash_at(number)


def test_keys_grow_later_and_impossible_ones_are_refused() -> None:
    first = next_key(GROUP, None, NOW_MS)
    second = next_key(GROUP, first, NOW_MS - 5_000)
    assert second.timestamp_ms == first.timestamp_ms + 1
    with pytest.raises(ValueError, match="32 bytes"):
        GroupKey(GROUP, NOW_MS, b"short")
    with pytest.raises(ValueError, match="time of a group key"):
        read_keys(GROUP, HRKeys(keys=[HRKey(key=bytes(32))]))
    (old,) = read_keys(GROUP, HRKeys(keys=[HRKey(key=bytes(32), deprecated_key_id=7)]))
    assert old.timestamp_ms == 7


def test_a_key_for_all_members_opens_for_each_of_them_alone() -> None:
    key = next_key(GROUP, None, NOW_MS)
    rekey = seal_for_members(key, OWNER, [ALICE.public_key, BOB.public_key])
    for member in (ALICE, BOB):
        assert open_for_member(GROUP, rekey, OWNER.public_key, member) == key
    assert open_for_member(GROUP, rekey, OWNER.public_key, MALLORY) is None
    assert open_for_member(GROUP, rekey, MALLORY.public_key, BOB) is None
    place = int.from_bytes(BOB.public_key.uncompressed[1:5], "little")
    rekey.keys[place] = bytes(60) + rekey.keys[place]  # another member whose key begins alike
    assert open_for_member(GROUP, rekey, OWNER.public_key, BOB) == key
    rekey.keys[place] = b"short"
    assert open_for_member(GROUP, rekey, OWNER.public_key, BOB) is None


# -- keys -----------------------------------------------------------------------------------------


def test_messages_open_out_of_order_again_and_after_a_restart() -> None:
    alice, bob = alice_and_bob()
    written = [alice.writes(f"message {n}") for n in range(5)]
    for n in (4, 0, 3, 0, 1, 2):
        assert bob.reads(written[n], ALICE.public_key) == wrap(said(f"message {n}"), ALICE).data
    again = Device(BOB, bob.store)
    assert again.reads(written[2], ALICE.public_key) == wrap(said("message 2"), ALICE).data
    bob.writes("one")
    assert (
        ProtocolMessage.FromString(Device(BOB, bob.store).writes("two"))
        .encrypted_message["none"]
        .hr_header.seq_no
        == 2
    ), "a restart counts on"


def test_a_message_a_million_ahead_or_changed_is_refused() -> None:
    alice, bob = alice_and_bob()
    message = ProtocolMessage.FromString(alice.writes("hello"))
    changed = message.encrypted_message["none"]
    changed.hr_header.seq_no = 1_000_000
    refused = bob.reads(message.SerializeToString(), MALLORY.public_key)
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.TOO_MANY_SKIPPED
    changed.hr_header.seq_no = 2
    refused = bob.reads(message.SerializeToString(), MALLORY.public_key)
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.BAD_CIPHERTEXT
    assert isinstance(bob.reads(alice.writes("still"), ALICE.public_key), bytes)


def test_a_member_that_uses_the_last_number_silences_nobody() -> None:
    alice, bob = alice_and_bob()
    key = bob.keys.current(GROUP)
    assert key is not None
    message = ProtocolMessage()
    one = message.encrypted_message["none"]
    one.hr_header.group_id, one.hr_header.key_id = GROUP, key.id
    one.hr_header.seq_no = MAX_SEQ_NO
    one.payload = Chain(key).encrypt(MAX_SEQ_NO, b"last")
    assert alice.reads(message.SerializeToString(), BOB.public_key) == b"last"
    assert isinstance(bob.reads(alice.writes("and on"), ALICE.public_key), bytes)


def test_keys_of_strangers_open_and_are_not_written_with() -> None:
    _, bob = alice_and_bob()
    genuine = bob.keys.current(GROUP)
    mallory = Device(MALLORY)
    mallory.keys.generate(GROUP, NOW_MS + 10**9)
    assert give(mallory, bob) is None
    assert bob.keys.current(GROUP) == genuine
    with pytest.raises(NoGroupKey, match="has arrived"):
        Device(MALLORY).keys.encrypt(GROUP, b"x")


def test_a_description_of_the_community_vouches_for_a_key() -> None:
    bob, owner = Device(BOB), Device(OWNER)
    key = owner.keys.generate(GROUP, NOW_MS)
    bob.keys.learn(GROUP, write_keys([key]), MALLORY.public_key)  # an owner that is not known yet
    assert bob.keys.current(GROUP) is None
    bob.keys.name(COMMUNITY, [key.id])
    assert bob.keys.current(GROUP) == key == Device(BOB, bob.store).keys.current(GROUP)
    other = owner.keys.generate(GROUP, NOW_MS)
    late = Device(BOB)
    late.keys.name(COMMUNITY, [other.id])
    late.keys.learn(GROUP, write_keys([key, other]), MALLORY.public_key)
    assert late.keys.current(GROUP) == other


@pytest.mark.parametrize(
    "group",
    [BOB.public_key.compressed, b"", b"\xff" * 50, COMMUNITY.id.encode() + b"x" * 36, b"a" * 500],
)
def test_keys_of_other_groups_are_refused(group: bytes) -> None:
    bob = Device(BOB)
    raw = HRKeys(keys=[HRKey(key=bytes(32), timestamp=1)])
    refused = bob.keys.learn(group, raw, OWNER.public_key)
    assert refused is not None and refused.reason is RefusalReason.UNKNOWN_KEY_GROUP
    assert not bob.store.tables["group_keys"]
    bad = bob.keys.learn(GROUP, HRKeys(keys=[HRKey(key=b"1", timestamp=1)]), OWNER.public_key)
    assert bad is not None and bad.reason is RefusalReason.BAD_GROUP_KEY


def test_floods_of_keys_are_bounded() -> None:
    alice, bob = alice_and_bob()
    genuine = bob.keys.current(GROUP)
    random = Random(3)
    for n in range(MAX_CANDIDATES + 50):
        forged = GroupKey(GROUP, NOW_MS + n + 100, random.randbytes(32))
        bob.keys.learn(GROUP, write_keys([forged]), MALLORY.public_key)
    assert len(bob.store.tables["group_keys"]) == MAX_CANDIDATES + 1
    assert bob.keys.current(GROUP) == genuine
    many = [alice.keys.generate(GROUP, NOW_MS + n) for n in range(MAX_KEYS + 10)]
    give(alice, bob)
    assert bob.keys.keys_of(GROUP) == tuple(many[-MAX_KEYS:])
    assert len(read_keys(GROUP, write_keys(many))) == MAX_KEYS


# -- waiting --------------------------------------------------------------------------------------


def test_what_comes_before_its_key_waits_over_a_restart() -> None:
    alice, bob = Device(ALICE), Device(BOB)
    alice.keys.generate(GROUP, NOW_MS)
    data = alice.writes("early")
    (message,) = Sealer(ALICE).seal_protocol(data, TOPIC, NOW_MS * NS_PER_MS)
    (refused,) = bob.opener.receive(message, NOW_MS)
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.WAITS_FOR_KEY
    assert bob.keys.lacking == {COMMUNITY} and bob.opener.waited() == []
    bob = Device(BOB, bob.store)
    give(alice, bob)
    (outcome,) = bob.opener.waited()
    assert isinstance(outcome, Received) and outcome.payload == said("early")
    assert outcome.waiting_id is not None and bob.opener.waited() == []
    (again,) = Device(BOB, bob.store).opener.waited()
    assert again == outcome, "until it is handled"
    bob.keys.done(outcome.waiting_id)
    assert Device(BOB, bob.store).opener.waited() == [] and not bob.keys.lacking


def test_floods_of_messages_without_a_key_are_bounded() -> None:
    alice, bob = Device(ALICE), Device(BOB)
    alice.keys.generate(GROUP, NOW_MS)
    for n in range(MAX_WAITING + 20):
        bob.reads(alice.writes(f"{n}"), ALICE.public_key)
    assert len(bob.store.tables["group_waiting"]) == MAX_WAITING
    huge = alice.keys.encrypt(GROUP, bytes(3 * 1024 * 1024))
    for n in range(3):
        bob.reads(alice.keys.encrypt(GROUP, bytes(3 * 1024 * 1024) + bytes([n])), ALICE.public_key)
    assert len(bob.store.tables["group_waiting"]) == 2
    refused = bob.reads(huge * 1, ALICE.public_key)
    assert isinstance(refused, Refused)
    refused = bob.reads(alice.keys.encrypt(GROUP, bytes(9 * 1024 * 1024)), ALICE.public_key)
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.ENCRYPTED


def test_messages_on_a_topic_of_another_community_are_refused() -> None:
    alice, bob = alice_and_bob()
    refused = bob.keys.open(alice.writes("x"), "another topic", NOW_MS, ALICE.public_key, False)
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.ENCRYPTED


@pytest.mark.parametrize("has_sessions", [False, True])
def test_keys_come_encrypted_for_a_device(has_sessions: bool) -> None:
    alice, bob = Device(ALICE), Device(BOB)
    key = alice.keys.generate(GROUP, NOW_MS)
    layers = []
    for user, name in ((ALICE, "owner"), (BOB, "bot")):
        sessions = Sessions(user, name, MemorySessionStore()) if has_sessions else None
        layers.append(Correspondence(user, sessions=sessions))
    if has_sessions:  # so that Alice knows a bundle
        layers[0].open(layers[1].encrypt(b"", ALICE.public_key), BOB.public_key)
    data = layers[0].encrypt_keys(GROUP, write_keys([key]), BOB.public_key)
    assert key.key not in data, "nothing of it is in a header"
    (one,) = ProtocolMessage.FromString(data).encrypted_message.values()
    assert one.HasField("dr_header") == has_sessions
    opened = layers[1].open(data, ALICE.public_key)
    assert opened is not None and not isinstance(opened, Refused)
    assert opened.group_keys is not None and opened.bodies == ()
    bob.keys.learn(opened.group_id, opened.group_keys, ALICE.public_key)
    assert bob.keys.current(GROUP) == key


# -- descriptions ---------------------------------------------------------------------------------


def encrypted_description() -> CommunityDescription:
    owner = CommunityMember(roles=(Role.ROLE_OWNER,))
    people = {ALICE.public_key: owner, BOB.public_key: CommunityMember()}
    return encrypted("all")(describing(people))


def test_a_description_is_hidden_and_shown() -> None:
    alice, bob = alice_and_bob()
    chat_id = CHAT_ID
    plain = private(GENERAL, chat_id, {ALICE.public_key}, "few")(encrypted_description())
    assert groups_of(plain, COMMUNITY) == {
        GROUP: {ALICE.public_key, BOB.public_key},
        chat_id.encode(): {ALICE.public_key},
    }
    alice.keys.generate(chat_id.encode(), NOW_MS)
    hidden = hide(plain, COMMUNITY, alice.keys.encrypt_part)
    assert is_hidden(hidden) and not hidden.chats and len(hidden.private_data) == 2
    assert show(hidden, alice.keys.open_part) == plain
    as_bob = show(hidden, bob.keys.open_part)
    assert as_bob.members == plain.members and not as_bob.chats[GENERAL].members
    assert as_bob.chats[OTHER] == plain.chats[OTHER] and len(as_bob.private_data) == 1
    assert show(hidden, Device(MALLORY).keys.open_part) == hidden
    in_the_clear = public(GENERAL, chat_id)(encrypted("", is_encrypted=False)(plain))
    assert groups_of(in_the_clear, COMMUNITY) == {}
    assert hide(in_the_clear, COMMUNITY, alice.keys.encrypt_part) == in_the_clear


@pytest.mark.parametrize("name", ["", "00" * 32, "00" * 32 + "x", "zz" * 32 + "1", "00" * 32 + "²"])
def test_other_names_of_parts_are_left_alone(name: str) -> None:
    assert read_name(name) is None
    description = replace(encrypted_description(), private_data={name: b"?"})
    assert show(description, Device(BOB).keys.open_part) == description


def test_a_muted_member_is_muted_in_private_channels_too() -> None:
    plain = private(GENERAL, CHAT_ID, {BOB.public_key}, "few")(encrypted_description())
    after = muted(BOB.public_key)(plain)
    assert why_not_heard(plain, COMMUNITY, BOB.public_key, said()) is None
    assert why_not_heard(after, COMMUNITY, BOB.public_key, said()) is not None


def test_a_channel_that_all_may_view_is_in_the_clear() -> None:
    gate = CommunityTokenPermission(
        id="view", type=TokenPermissionType.CAN_VIEW_CHANNEL, chat_ids=(CHAT_ID,)
    )
    description = replace(describing({}), token_permissions={"view": gate})
    assert groups_of(description, COMMUNITY) == {}


def test_a_description_waits_for_the_next_key_and_is_not_replaced_by_an_older_one() -> None:
    alice, bob = alice_and_bob()
    alice.keys.generate(GROUP, NOW_MS + 1_000)
    plain = encrypted_description()
    hidden = hide(plain, COMMUNITY, alice.keys.encrypt_part)
    refused = bob.keys.describe(received(hidden, OWNER))
    assert isinstance(refused, Refused) and refused.reason is RefusalReason.WAITS_FOR_KEY
    older = bob.keys.describe(received(replace(hidden, clock=1), OWNER))
    assert isinstance(older, Refused) and older.reason is RefusalReason.OUTDATED
    give(alice, bob)
    (shown,) = bob.opener.waited()
    assert isinstance(shown, Received) and shown.payload == plain
    newcomer = Device(MALLORY).keys.describe(received(hidden, OWNER))
    assert isinstance(newcomer, Received) and newcomer.payload == hidden, "so that it can ask"
