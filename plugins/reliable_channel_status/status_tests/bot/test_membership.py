"""Bots become members: by requests that the owner's client takes, and by nothing else."""

import json
import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from reliable_channel_status import (
    DEFAULT_SHARD,
    NON_PROTECTED_SHARD,
    Access,
    ChatMessage,
    Community,
    CommunityMember,
    CommunityRequestToJoin,
    CommunityRequestToJoinResponse,
    CommunityTokenPermission,
    Opener,
    PrivateKey,
    PublicKey,
    Received,
    Sealer,
    SignedPayload,
    TokenCriteria,
    TokenPermissionType,
    TokenType,
    ethereum_address,
    join_request,
    partitioned_topic,
    unwrap,
    wallet_of,
    why_refused,
)
from reliable_channel_status.bot import (
    BotOptions,
    CannotJoin,
    MembershipChange,
    Message,
    NotAMember,
    StatusBot,
)
from reliable_channel_status.testing import BotTester, FakeOwner
from status_tests.world import ALICE, COMMUNITY, GENERAL, MALLORY, NOW_MS, OWNER
from waku import PubsubTopic, WakuMessage

DATA: Final = Path(__file__).parents[4] / "tests/vectors/data/status-real"
LINK: Final = (
    "https://status.app/c/Cw6AChsKBnlveW95bxIGeW95b3lvGAEiByM4OEIwRkYD"
    "#zQ3shwHXstcword5gUtJCWVi55ZxPsdtfTQitnWNEAR1p3Gzd"
)


class Member:
    """A bot that notes what becomes of its membership."""

    def __init__(self, **options: Any) -> None:
        self.told: list[str] = []
        self.bot = StatusBot(
            node="http://node",
            community=COMMUNITY,
            channels=[GENERAL],
            options=BotOptions(display_name="tea bot", **options),
        )

        @self.bot.command("ping")
        async def ping(message: Message) -> str:
            return "pong"

        @self.bot.on_joined
        async def joined(change: MembershipChange) -> None:
            assert change.community == COMMUNITY
            self.told.append("joined")

        @self.bot.on_rejected
        async def rejected(change: MembershipChange) -> None:
            self.told.append("rejected")

        @self.bot.on_kicked
        async def kicked(change: MembershipChange) -> None:
            self.told.append("kicked")

        @self.bot.on_not_a_member
        async def not_a_member(change: MembershipChange) -> None:
            self.told.append("not_a_member")


def test_the_key_stands_in_an_invite_link() -> None:
    assert Community.parse(LINK).id == (
        "0x03f751777ab35759f98ad241150f4329b9cc13aa42052ef64d16e9d474b9677bea"
    )
    for text in ("https://status.app/c/Ow==", "https://status.app/c/Ow==#nonsense", "nonsense"):
        with pytest.raises(ValueError, match="invite link"):
            Community.parse(text)


def recorded_requests() -> list[tuple[CommunityRequestToJoin, PublicKey, Community]]:
    found = []
    for case in json.loads((DATA / "messages.json").read_text()):
        signed = unwrap(bytes.fromhex(case["messages"][0]["signed_hex"]))
        if isinstance(signed, SignedPayload) and isinstance(signed.payload, CommunityRequestToJoin):
            key = PrivateKey.from_hex(case["opens_with"]["private_key_hex"])
            found.append((signed.payload, signed.signer, Community(key.public_key)))
    return found


def test_requests_of_real_clients_and_ours_are_proven_alike() -> None:
    requests = recorded_requests()
    assert len(requests) == 3
    for request, signer, community in requests:
        assert why_refused(request, signer, community) is None
    ours = join_request(ALICE, COMMUNITY, NOW_MS, display_name="tea bot")
    assert why_refused(ours, ALICE.public_key, COMMUNITY) is None
    assert (ours.clock, ours.display_name) == (NOW_MS // 1000, "tea bot")
    (account,) = ours.revealed_accounts
    assert account.address == ethereum_address(wallet_of(ALICE).public_key)
    assert account.address != ethereum_address(ALICE.public_key)


def test_an_address_is_that_of_ethereum() -> None:
    """The first account of the mnemonic "test … junk", which every development chain has."""
    key = PrivateKey.from_hex("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
    assert ethereum_address(key.public_key) == "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"


def test_what_the_owner_refuses() -> None:
    request = join_request(ALICE, COMMUNITY, NOW_MS)
    (account,) = request.revealed_accounts

    def why(request: CommunityRequestToJoin, signer: PublicKey = ALICE.public_key) -> str | None:
        return why_refused(request, signer, COMMUNITY)

    assert why(replace(request, revealed_accounts=())) == "no addresses revealed"
    assert why(replace(request, community_id=b"x")) == "another community"
    assert "did not sign" in str(why(request, MALLORY.public_key)), "taken over by somebody else"
    for signature in (b"", bytes(65), account.signature[:-1] + b"\x01"):
        forged = replace(account, signature=signature)
        assert "did not sign" in str(why(replace(request, revealed_accounts=(forged,))))


@pytest.mark.parametrize(
    "shards",
    [(NON_PROTECTED_SHARD,), (DEFAULT_SHARD,), (DEFAULT_SHARD, NON_PROTECTED_SHARD)],
    ids=["before 2.40", "from 2.42", "between"],
)
def test_a_bot_asks_to_be_let_in_and_is_heard_from_then_on(
    shards: tuple[PubsubTopic, ...],
) -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, shards=(*shards,))
        alice = tester.user("Alice")
        listener = tester.client(COMMUNITY)
        alice.asks("!ping")
        assert owner.shown == listener.shown == []
        assert owner.refused == ["user can't post in community"] * 2 * (DEFAULT_SHARD in shards)
        assert listener.refused == ["community not found"] * 2
        owner.members[alice.public_key] = None
        owner.publishes()
        tester.wait(2)
        assert member.told == ["not_a_member", "joined"]
        assert list(owner.members) == [alice.public_key, tester.public_key]
        assert member.bot.standing(COMMUNITY) == "member"
        alice.asks("!ping")
        assert listener.texts == ["!ping", "pong"] and listener.refused[2:] == []


def test_a_request_waits_for_an_owner_who_decides() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT)
        owner.publishes()
        tester.wait()
        assert owner.requests == [tester.public_key], "once, though it came on two shards"
        assert member.bot.standing(COMMUNITY) == "requested"
        owner.publishes()
        tester.wait()
        assert owner.requests == [tester.public_key], "it is not repeated"
        owner.lets_in(tester.public_key)
        assert member.told == ["not_a_member", "joined"]


def test_rejected_kicked_and_let_in_again(caplog: pytest.LogCaptureFixture) -> None:
    member = Member()
    with caplog.at_level(logging.WARNING), BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT)
        owner.publishes()
        owner.rejects(tester.public_key)
        assert member.told == ["not_a_member", "rejected"]
        owner.publishes()
        assert owner.requests == [tester.public_key], "who was rejected asks no more by itself"
        tester.wait(1)
        run(tester, member.bot, "request_to_join")
        assert owner.requests == [tester.public_key] * 2
        owner.lets_in(tester.public_key)
        owner.removes(tester.public_key)
        assert member.told == ["not_a_member", "rejected", "joined", "kicked"]
        assert member.bot.standing(COMMUNITY) == "kicked"
        owner.publishes()
        assert len(owner.requests) == 2, "who was kicked asks no more by itself"
    events = [record.__dict__.get("event") for record in caplog.records]
    assert [e for e in events if e in ("not_a_member", "rejected", "kicked")] == [
        "not_a_member",
        "rejected",
        "kicked",
    ]


def run(tester: BotTester, bot: StatusBot, what: str) -> None:
    """Have the running bot do something."""
    tester.run(getattr(bot, what)(COMMUNITY))


def test_leaving_lasts_over_a_restart() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER)
        owner.publishes()
        tester.wait(2)
        run(tester, member.bot, "leave")
        assert not owner.members
        tester.stop()
        tester.start()
        owner.publishes()
        assert member.bot.standing(COMMUNITY) == "left" and not owner.members
        run(tester, member.bot, "request_to_join")
        tester.wait(2)
        assert list(owner.members) == [tester.public_key]
    assert member.told == ["not_a_member", "joined", "joined"]


def test_a_restart_neither_asks_nor_tells_again() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT)
        owner.publishes()
        tester.wait()
        tester.crash()
        tester.start()
        owner.publishes()
        assert owner.requests == [tester.public_key]
        owner.lets_in(tester.public_key)
        tester.crash()
        tester.start()
        owner.publishes()
    assert member.told == ["not_a_member", "joined"]


def test_a_description_of_last_week_is_found_in_store() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        tester.stop()
        owner = tester.owner(OWNER)
        owner.publishes()
        tester.forget()
        tester.wait(7 * 86_400)
        tester.start()
        tester.wait(2)
        assert list(owner.members) == [tester.public_key]
        assert member.told == ["not_a_member", "joined"]


def test_where_no_description_is_found_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    member = Member()
    with caplog.at_level(logging.WARNING), BotTester(member.bot):
        assert member.bot.standing(COMMUNITY) == "unknown"
    assert f"description_not_found community={COMMUNITY.id!r}" in caplog.text


def test_no_request_is_sent_where_none_is_wanted() -> None:
    member = Member(request_membership=False)
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER)
        owner.publishes()
        tester.wait(2)
        assert (member.told, member.bot.standing(COMMUNITY)) == (["not_a_member"], "not_a_member")
        assert not owner.members
        with pytest.raises(ValueError, match="the bot is not a member of 0x"):
            member.bot.standing(Community(ALICE.public_key))


def test_a_request_that_finds_no_room_waits_for_the_next_description(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER)
        with monkeypatch.context() as patch:
            patch.setattr("reliable_channel_status.bot.memory.UNPUBLISHED", 0)
            owner.publishes()
            tester.wait(2)
        assert (member.told, list(owner.members)) == (["not_a_member"], [])
        owner.publishes()
        tester.wait(2)
        assert list(owner.members) == [tester.public_key]
    assert member.told == ["not_a_member", "joined"]


def response(accepted: bool, data: bytes = b"") -> CommunityRequestToJoinResponse:
    return CommunityRequestToJoinResponse(
        clock=NOW_MS,
        accepted=accepted,
        community_id=COMMUNITY.public_key.compressed,
        community_description_protocol_message=data,
    )


def test_only_the_owner_decides() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT)
        old = owner.publishes()
        tester.wait()
        topic, me = partitioned_topic(tester.public_key), tester.public_key
        listed = replace(old, clock=old.clock + 10, members={me.hex: CommunityMember()})
        forged = Sealer(MALLORY).seal(listed, COMMUNITY.description_topic, tester.now_ms())
        enclosed = response(True, forged.signed.data)
        for payload in (response(False), enclosed):
            sealed = Sealer(MALLORY).seal(payload, topic, tester.now_ms(), receiver=me)
            tester.publish(sealed.messages[0])
        tester.publish(forged.messages[0])
        by_owner = Sealer(OWNER).seal(enclosed, topic, tester.now_ms(), receiver=me)
        tester.publish(by_owner.messages[0])  # a description of another in the owner's answer
        assert member.bot.standing(COMMUNITY) == "requested"
        owner.lets_in(me)
        replayed = Sealer(OWNER).seal(old, COMMUNITY.description_topic, tester.now_ms())
        tester.publish(replayed.messages[0])
        tester.crash()
        tester.start()
        tester.publish(
            Sealer(OWNER).seal(old, COMMUNITY.description_topic, tester.now_ms()).messages[0]
        )
        assert member.bot.standing(COMMUNITY) == "member", "an older description counts no more"
    assert member.told == ["not_a_member", "joined"]


def test_what_is_whispered_to_the_bot_is_not_answered_in_the_channel() -> None:
    """The bot now has a key that opens what is sealed for it alone."""
    member = Member()
    with BotTester(member.bot) as tester:
        now_ms = tester.now_ms()
        message = ChatMessage(
            clock=now_ms,
            timestamp=now_ms,
            text="!ping",
            chat_id=COMMUNITY.channel_id(GENERAL),
        )
        for topic in (partitioned_topic(tester.public_key), COMMUNITY.universal_topic):
            sealed = Sealer(MALLORY).seal(message, topic, now_ms, receiver=tester.public_key)
            tester.publish(sealed.messages[0])
        assert tester.said() == []
        assert member.bot.reporter.counts["refused", "direct_message_not_supported"] == 2


def test_the_request_goes_out_on_both_shards_for_the_owner_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heard: list[tuple[str, WakuMessage]] = []
    monkeypatch.setattr(FakeOwner, "hear", lambda _, message, shard: heard.append((shard, message)))
    with BotTester(Member().bot) as tester:
        tester.owner(OWNER).publishes()
        tester.wait(2)
    topic = COMMUNITY.requests_topic
    requests = [(shard, m) for shard, m in heard if m.content_topic == topic.content_topic]
    shards = [str(DEFAULT_SHARD), str(NON_PROTECTED_SHARD)]
    assert sorted(shard for shard, _ in requests) == sorted(shards)
    ids = set()
    for _, message in requests:
        (outcome,) = Opener([topic], private_keys=[OWNER]).receive(message, NOW_MS)
        assert isinstance(outcome, Received) and outcome.is_private
        assert isinstance(outcome.payload, CommunityRequestToJoin)
        assert outcome.payload.display_name == "tea bot"
        ids.add(outcome.message_id)
    assert len(ids) == 1, "the same request"


def token_gate() -> CommunityTokenPermission:
    """Members need ten and a half SNT."""
    snt = TokenCriteria(
        type=TokenType.ERC20, symbol="SNT", decimals=18, amount_in_wei="10500000000000000000"
    )
    kind = TokenPermissionType.BECOME_MEMBER
    return CommunityTokenPermission(id="gate", type=kind, token_criteria=(snt,))


def test_a_community_that_wants_tokens_is_not_asked_and_the_permission_is_named() -> None:
    member, why = Member(), []

    @member.bot.on_not_a_member
    async def note(change: MembershipChange) -> None:
        why.append(change.why)

    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, token_permissions=[token_gate()])
        owner.publishes()
        tester.wait(2)
        assert why == ["tokens are needed: BECOME_MEMBER (10.5 SNT)"]
        assert (owner.members, owner.refused) == ({}, [])
        assert member.bot.standing(COMMUNITY) == "closed"
        with pytest.raises(CannotJoin, match=r"tokens are needed: BECOME_MEMBER \(10\.5 SNT\)"):
            tester.run(member.bot.request_to_join(COMMUNITY))
        owner.lets_in(tester.public_key)  # such as by airdrop
        assert member.bot.standing(COMMUNITY) == "member"


def test_who_is_not_a_member_does_not_speak_into_the_void() -> None:
    member = Member()
    with BotTester(member.bot) as tester:
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT)
        alice = tester.user("Alice")
        owner.members[alice.public_key] = None
        owner.publishes()
        tester.wait(2)
        alice.says("!ping")
        with pytest.raises(NotAMember, match=r"not a member of 0x\w+ \(requested\)"):
            tester.run(member.bot.channel(GENERAL).send("hello"))
        assert tester.said() == [] and owner.refused == []
        assert (
            sum(n for (name, _), n in member.bot.reporter.counts.items() if name == "not_said") == 1
        )
        owner.lets_in(tester.public_key)
        assert alice.asks("!ping") == "pong"


def test_a_bot_that_needs_its_membership_ends_with_what_is_wrong() -> None:
    member = Member(needs_membership=True)
    with (
        pytest.raises(NotAMember, match=r"\(rejected\)"),
        BotTester(member.bot) as tester,
    ):
        owner = tester.owner(OWNER, access=Access.MANUAL_ACCEPT)
        owner.publishes()
        tester.wait(2)
        assert member.bot.standing(COMMUNITY) == "requested"
        owner.rejects(tester.public_key)
        tester.wait(70)
    assert member.told == ["not_a_member", "rejected"]
