"""The control node of a community: what it publishes, whom it lets in, and what it refuses."""

import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from reliable_channel.spi import MemoryStateStore, SqliteStateStore, StateInUse
from reliable_channel_status import (
    Access,
    ChannelRole,
    CommunityDescription,
    CommunityMember,
    CommunityProfile,
    CommunityRequestToLeave,
    CommunityTokenPermission,
    ControlNode,
    JoinRefusal,
    NotControlNode,
    Opener,
    PayloadType,
    PrivateKey,
    Received,
    RefusedRequest,
    Request,
    Role,
    Sealer,
    TokenCriteria,
    decode_payload,
    encode_payload,
    join_request,
    keccak256,
    why_invalid,
)
from reliable_channel_status.community.control_memory import ControlMemory
from reliable_channel_status.community.control_node import REQUEST_LIFE_S, Superseded
from reliable_channel_status.community.descriptions import Descriptions
from reliable_channel_status.community.edits import (
    Edit,
    banned,
    described,
    kicked,
    muted,
    unbanned,
    with_category,
    with_channel,
    with_role,
    without_category,
    without_channel,
)
from reliable_channel_status.wire.rooms import Rooms
from status_tests.world import (
    ALICE,
    BOB,
    COMMUNITY,
    GENERAL,
    MALLORY,
    NOW_MS,
    OTHER,
    OWNER,
    describing,
)

MANUAL: Final = CommunityProfile(name="tea", description="tea", access=Access.MANUAL_ACCEPT)
PNG: Final = b"\x89PNG\r\n\x1a\n" + bytes(100)
BOT: Final = ALICE.public_key
USER: Final = BOB.public_key


def founded(profile: CommunityProfile = MANUAL) -> ControlNode:
    node = ControlNode(OWNER)
    node.found(profile, BOT, NOW_MS)
    return node


def asks(node: ControlNode, key: PrivateKey = BOB, at_ms: int = NOW_MS) -> Request | RefusedRequest:
    return node.ask(join_request(key, COMMUNITY, at_ms), key.public_key, at_ms)


def refusal(outcome: object) -> JoinRefusal:
    assert isinstance(outcome, RefusedRequest), outcome
    return outcome.reason


def of(node: ControlNode) -> CommunityDescription:
    assert node.description is not None
    return node.description


def runs(node: ControlNode) -> bool:
    """Whether the community is run there; asked anew each time, which type checkers do not do."""
    return node.is_active


def test_a_description_has_what_clients_want_and_a_clock_that_grows() -> None:
    node = founded()
    assert why_invalid(of(node)) is None
    assert of(node).members[BOT.hex].roles == (Role.ROLE_OWNER,)
    assert (of(node).clock, of(node).id) == (NOW_MS, COMMUNITY.id)
    node.change(with_channel(GENERAL, "general"), NOW_MS)
    assert of(node).clock == NOW_MS + 1, "also where the time stands still"
    node.change(with_channel(OTHER, "other"), NOW_MS + 500)
    assert of(node).clock == NOW_MS + 500
    assert [chat.position for chat in of(node).chats.values()] == [0, 1]
    again = decode_payload(PayloadType.COMMUNITY_DESCRIPTION, encode_payload(of(node)))
    assert again == of(node)
    with pytest.raises(NotControlNode, match="exists already"):
        node.found(MANUAL, BOT, NOW_MS)


def test_channels_categories_images_and_texts() -> None:
    node = founded()
    node.change(with_category("drinks", "Drinks"), NOW_MS)
    node.change(with_channel(GENERAL, "general", "all", emoji="🫖", category="drinks"), NOW_MS)
    chat = of(node).chats[GENERAL]
    assert (chat.category_id, chat.identity and chat.identity.emoji) == ("drinks", "🫖")
    node.change(without_category("drinks"), NOW_MS)
    assert of(node).chats[GENERAL].category_id == "" and why_invalid(of(node)) is None
    node.change(without_channel(GENERAL), NOW_MS)
    assert not of(node).chats
    profile = replace(MANUAL, name="coffee", image=PNG, banner=PNG, members_may_pin=True)
    node.change(described(profile), NOW_MS)
    node.change(described(replace(MANUAL, name="coffee")), NOW_MS)
    identity = of(node).identity
    assert identity is not None and identity.display_name == "coffee"
    assert sorted(identity.images) == ["banner", "large", "thumbnail"], "they stay"


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        (with_channel(GENERAL, ""), "the name of the channel is empty"),
        (with_channel(GENERAL, "x", category="none"), "no category 'none'"),
        (without_channel(GENERAL), "no channel"),
        (without_category("none"), "no category"),
        (with_category("c", ""), "the name of the category is empty"),
        (kicked(USER), "no member"),
        (kicked(BOT), "the owner must stay"),
        (banned(BOT), "the owner must stay"),
        (unbanned(USER), "no banned user"),
        (with_role(USER, Role.ROLE_ADMIN), "no member"),
        (with_role(BOT, Role.ROLE_NONE), "role of the owner"),
        (muted(USER), "no member"),
        (with_channel(GENERAL, "\ud800"), "surrogates|utf-8|UTF-8"),
        (
            lambda before: replace(before, permissions=None),
            "clients would refuse .*: .* no org perm",
        ),
    ],
)
def test_what_cannot_be_changed_changes_nothing(edit: Edit, why: str) -> None:
    node = founded()
    before = node.description
    with pytest.raises(ValueError, match=why):
        node.change(edit, NOW_MS + 1)
    assert node.description is before


def test_two_channels_have_two_names() -> None:
    node = founded()
    node.change(with_channel(GENERAL, "general"), NOW_MS)
    with pytest.raises(ValueError, match="a channel named 'general' exists already"):
        node.change(with_channel(OTHER, "general"), NOW_MS)
    node.change(with_channel(GENERAL, "general", "renamed"), NOW_MS)


@pytest.mark.parametrize(
    "made",
    [
        lambda: CommunityProfile(name="", description="x"),
        lambda: CommunityProfile(name="x" * 31, description="x"),
        lambda: CommunityProfile(name="é" * 16, description="x"),
        lambda: CommunityProfile(name="x", description="x" * 141),
        lambda: CommunityProfile(name="x", description="x", intro_message="x" * 1401),
        lambda: CommunityProfile(name="x", description="x", access=Access.INVITATION_ONLY),
        lambda: CommunityProfile(name="x", description="x", color=""),
        lambda: CommunityProfile(name="x", description="x", image=b"BM"),
        lambda: CommunityProfile(name="x", description="x", banner=PNG + bytes(50_000)),
    ],
)
def test_profiles_that_clients_refuse(made: Callable[[], CommunityProfile]) -> None:
    with pytest.raises(ValueError):
        made()


# -- requests -------------------------------------------------------------------------------------


def test_who_is_accepted_is_listed_and_answered_once() -> None:
    node = founded()
    assert isinstance(asks(node), Request)
    assert [request.user for request in node.pending] == [USER]
    description = node.accept((USER,), NOW_MS)
    assert description.members[USER.hex].last_update_clock == NOW_MS // 1000
    (request,) = node.unanswered()
    answer = node.answer(request, b"the signed description")
    assert (answer.accepted, answer.clock) == (True, description.clock)
    assert answer.community_description_protocol_message == b"the signed description"
    node.answered(request)
    assert not node.pending and not list(node.unanswered())
    with pytest.raises(ValueError, match="no pending request"):
        node.accept((USER,), NOW_MS)


def test_who_is_declined_may_ask_again_with_a_new_request() -> None:
    node = founded()
    asks(node)
    node.decline(USER)
    (request,) = node.unanswered()
    assert not node.answer(request, b"x").community_description_protocol_message
    assert USER.hex not in of(node).members
    assert refusal(asks(node)) is JoinRefusal.REPLAYED
    assert isinstance(asks(node, at_ms=NOW_MS + 1000), Request)


def test_requests_that_are_refused() -> None:
    node = founded()
    request = join_request(BOB, COMMUNITY, NOW_MS)
    taken_over = node.ask(request, MALLORY.public_key, NOW_MS)
    assert refusal(taken_over) is JoinRefusal.INVALID
    without = replace(request, revealed_accounts=())
    outcome = node.ask(without, USER, NOW_MS)
    assert outcome == RefusedRequest(JoinRefusal.INVALID, "no addresses revealed")
    late = NOW_MS + REQUEST_LIFE_S * 1000
    assert refusal(node.ask(request, USER, late)) is JoinRefusal.EXPIRED
    ahead = join_request(BOB, COMMUNITY, NOW_MS + 121_000)
    assert refusal(node.ask(ahead, USER, NOW_MS)) is JoinRefusal.CLOCK_AHEAD
    node.change(banned(USER), NOW_MS)
    assert refusal(asks(node)) is JoinRefusal.BANNED
    node.change(unbanned(USER), NOW_MS)
    assert isinstance(asks(node), Request)
    assert refusal(asks(ControlNode(OWNER))) is JoinRefusal.NOT_CONTROL_NODE


def test_a_request_that_is_replayed_after_kick_or_leave_lets_nobody_in() -> None:
    node = founded(replace(MANUAL, access=Access.AUTO_ACCEPT))
    request = join_request(BOB, COMMUNITY, NOW_MS)
    node.ask(request, USER, NOW_MS)
    node.accept((USER,), NOW_MS)
    node.change(kicked(USER), NOW_MS)
    assert refusal(node.ask(request, USER, NOW_MS + 1)) is JoinRefusal.REPLAYED
    again = join_request(BOB, COMMUNITY, NOW_MS + 10_000)
    node.ask(again, USER, NOW_MS + 10_000)
    node.accept((USER,), NOW_MS + 10_000)
    leaves = CommunityRequestToLeave(
        clock=NOW_MS // 1000 + 20, community_id=COMMUNITY.public_key.compressed
    )
    old = replace(leaves, clock=NOW_MS // 1000 + 5)
    assert refusal(node.leave(old, USER, NOW_MS + 20_000)) is JoinRefusal.REPLAYED
    elsewhere = replace(leaves, community_id=b"x")
    assert refusal(node.leave(elsewhere, USER, NOW_MS)) is JoinRefusal.INVALID
    assert refusal(node.leave(leaves, BOT, NOW_MS)) is JoinRefusal.INVALID, "the owner stays"
    assert isinstance(node.leave(leaves, USER, NOW_MS + 20_000), CommunityDescription)
    assert USER.hex not in of(node).members
    assert refusal(node.leave(leaves, USER, NOW_MS + 20_000)) is JoinRefusal.REPLAYED
    for replayed in (request, again):
        assert refusal(node.ask(replayed, USER, NOW_MS + 30_000)) is JoinRefusal.REPLAYED


def keys(count: int) -> list[PrivateKey]:
    return [PrivateKey(keccak256(f"user {n}".encode())) for n in range(count)]


def test_a_flood_of_requests_is_bounded() -> None:
    node = founded()
    outcomes = [asks(node, key) for key in keys(103)]
    assert [refusal(one) for one in outcomes[100:]] == [JoinRefusal.TOO_MANY] * 3
    assert len(node.requests) == len(node.pending) == 100
    first = keys(1)[0]
    assert isinstance(asks(node, first, NOW_MS + 1000), Request), "its own place is renewed"
    later = NOW_MS + REQUEST_LIFE_S * 1000
    assert isinstance(asks(node, keys(103)[-1], later), Request), "the others expired"
    assert len(node.pending) == 2


def test_of_decided_requests_the_oldest_are_forgotten_and_not_taken_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("reliable_channel_status.community.control_node.MAX_DECIDED", 2)
    node = founded()
    users = keys(4)
    for number, key in enumerate(users):
        assert isinstance(asks(node, key, NOW_MS + 1000 * number), Request)
        node.decline(key.public_key)
        for request in node.unanswered():
            node.answered(request)
    assert len(node.requests) <= 3
    assert node.forgotten_s == NOW_MS // 1000 + 1
    assert refusal(asks(node, users[0])) is JoinRefusal.REPLAYED


# -- one control node at a time -------------------------------------------------------------------


def test_a_newer_description_of_the_same_key_ends_it_until_it_takes_over() -> None:
    node, other = founded(), founded()
    assert node.observe(of(node)) is Superseded.OWN
    old = of(node)
    node.change(with_channel(GENERAL, "general"), NOW_MS + 5)
    assert node.observe(old) is Superseded.OUTDATED and runs(node)
    other.change(with_channel(OTHER, "other"), NOW_MS + 10)
    assert node.observe(of(other)) is Superseded.NEWER and not runs(node)
    for change in (
        lambda: node.change(kicked(USER), NOW_MS),
        lambda: node.accept((USER,), NOW_MS),
        lambda: node.decline(USER),
    ):
        with pytest.raises(NotControlNode, match="another control node runs"):
            change()
    assert refusal(asks(node)) is JoinRefusal.NOT_CONTROL_NODE
    taken = node.take_over(USER, NOW_MS)
    assert taken.clock > of(other).clock and list(taken.chats) == [OTHER]
    assert taken.members[USER.hex].roles == (Role.ROLE_OWNER,)
    assert other.observe(taken) is Superseded.NEWER and not runs(other)


def test_the_same_clock_with_another_content_is_another_control_node() -> None:
    node = founded()
    assert node.observe(replace(of(node), members={})) is Superseded.NEWER
    assert not runs(node)


def test_what_another_control_node_published_is_kept_when_it_is_not_known_here() -> None:
    foreign = bytes([0x80, 0x7D, 7])  # field 2000
    theirs = decode_payload(
        PayloadType.COMMUNITY_DESCRIPTION, encode_payload(of(founded())) + foreign
    )
    assert isinstance(theirs, CommunityDescription) and theirs.unknown == foreign
    node = ControlNode(OWNER)
    node.observe(theirs)
    node.take_over(USER, NOW_MS + 1)
    after = node.change(with_category("c", "Drinks"), NOW_MS + 2)
    assert encode_payload(after).count(foreign) == 1


def test_a_community_with_tokens_is_not_taken_over() -> None:
    node = ControlNode(OWNER)
    with pytest.raises(NotControlNode, match="no other control node published"):
        node.take_over(BOT, NOW_MS)
    with pytest.raises(NotControlNode, match="did not found"):
        node.change(kicked(USER), NOW_MS)
    gate = {"1": CommunityTokenPermission(id="1", token_criteria=(TokenCriteria(),))}
    node.observe(replace(of(founded()), token_permissions=gate))
    with pytest.raises(NotControlNode, match="has permissions by tokens"):
        node.take_over(BOT, NOW_MS)
    with pytest.raises(NotControlNode, match="exists already"):
        node.found(MANUAL, BOT, NOW_MS)


# -- what is kept ---------------------------------------------------------------------------------


def test_everything_outlives_a_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    store = MemoryStateStore()
    memory = ControlMemory(store, OWNER)
    memory.node.found(MANUAL, BOT, NOW_MS)
    memory.save()
    for key in keys(3):
        asks(memory.node, key)
    memory.node.accept((keys(1)[0].public_key,), NOW_MS + 1)
    memory.node.change(muted(keys(1)[0].public_key), NOW_MS + 2)
    memory.node.forgotten_s = 7
    memory.save()
    memory.published(5, NOW_MS)
    memory.close()
    again = ControlMemory(store, OWNER)
    assert again.node.description == memory.node.description
    role = of(again.node).members[keys(1)[0].public_key.hex].channel_role
    assert role is ChannelRole.CHANNEL_ROLE_VIEWER
    assert again.node.requests == memory.node.requests
    assert (again.node.forgotten_s, again.published_clock, again.published_ms) == (7, 5, NOW_MS)
    again.node.observe(replace(of(again.node), clock=NOW_MS + 50))
    again.save()
    again.close()
    third = ControlMemory(store, OWNER)
    assert not third.node.is_active, "another control node is remembered"
    third.node.take_over(BOT, NOW_MS)
    third.save()
    third.close()
    assert ControlMemory(store, OWNER).node.is_active


def test_two_bots_with_one_file_do_not_both_run_the_community(tmp_path: Path) -> None:
    file = tmp_path / "community.control.db"
    memory = ControlMemory(SqliteStateStore(file), OWNER)
    memory.node.found(MANUAL, BOT, NOW_MS)
    memory.save()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(StateInUse):
        ControlMemory(SqliteStateStore(file), OWNER)
    memory.close()
    assert ControlMemory(SqliteStateStore(file), OWNER).node.description == of(memory.node)


def test_a_ban_stands_in_both_lists_once() -> None:
    node = founded()
    node.change(banned(USER, delete_messages=True), NOW_MS)
    assert of(node).banned_members[USER.hex].delete_all_messages
    node.change(banned(USER), NOW_MS)
    assert of(node).ban_list == (USER.hex,)


@pytest.mark.slow
def test_a_community_of_a_hundred_thousand_members_is_published_and_read() -> None:
    keys = [
        f"0x04{keccak256(b'%d' % n).hex()}{keccak256(b'y%d' % n).hex()}" for n in range(100_000)
    ]
    members = {key: CommunityMember() for key in keys}
    description = replace(describing({}), members=members)
    sealed = Sealer(OWNER).seal(description, COMMUNITY.description_topic, NOW_MS)
    assert len(sealed.messages) < 256, "what segments allow"
    opener = Opener([COMMUNITY.description_topic])
    (received,) = [one for message in sealed.messages for one in opener.receive(message, NOW_MS)]
    assert isinstance(received, Received) and received.payload == description
    descriptions = Descriptions(rooms := Rooms(), BOB.public_key)
    rooms.join(COMMUNITY, None, "universal")
    assert descriptions.learn(COMMUNITY, description)
    assert not descriptions.lists(BOB.public_key, COMMUNITY)
