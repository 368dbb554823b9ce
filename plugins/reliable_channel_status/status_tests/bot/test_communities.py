"""Bots inside SDS channels: what plain chat loses, who can read whom, and what is forged."""

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel.spi import (
    NIM,
    Changes,
    HistoryEntry,
    MemoryStateStore,
    Message,
    StateUnavailable,
)
from reliable_channel_audit.check import check
from reliable_channel_status import (
    STATUS_SDS,
    ChatMessage,
    CommunityDescription,
    CommunityMember,
    CommunityRequestToJoin,
    Opener,
    Payload,
    PrivateKey,
    Received,
    RefusalReason,
    Refused,
    Role,
    SdsArrival,
    SdsWrapper,
    Sealer,
    Topic,
    from_protocol,
    join_request,
    keccak256,
    message_id,
    open_symmetric,
    sds_message_id,
    seal_ecies,
    seal_symmetric,
    unwrap,
    wrap,
)
from reliable_channel_status.bot import BotMemory, BotOptions, JoinRequest, StatusBot
from reliable_channel_status.bot import Message as BotMessage
from reliable_channel_status.bot.link import Fetched, Link
from reliable_channel_status.testing import BotTester
from reliable_channel_status.testing.fake_user import key_of
from reliable_channel_status.wire import payload_builders
from status_tests.lossy_world import Member, converse, options_of
from status_tests.world import (
    ALICE,
    CHAT_ID,
    COMMUNITY,
    GENERAL,
    MALLORY,
    NOW_MS,
    OWNER,
    TOPIC,
    describing,
    said,
)
from tests.slow import slow
from waku import WakuMessage, message_hash
from waku.node import NodeOptions

SEEDS = (1, *slow(2))
SHARD = "/waku/2/rs/16/32"
SAID = 12


def missed(members: list[Member]) -> list[str]:
    """What a member said and another one did not hear."""
    return [
        f"{listener.name}: {text}"
        for listener in members
        for speaker in members
        if listener is not speaker
        for text in speaker.said
        if text not in listener.heard
    ]


def two(reliability: Any, **values: Any) -> list[Member]:
    return [Member(name, options_of(reliability, **values), SAID) for name in ("ann", "ben")]


@pytest.mark.parametrize("seed", SEEDS)
def test_sds_loses_nothing_where_plain_chat_loses_much(seed: int, tmp_path: Path) -> None:
    plain, sds = two("plain"), two("sds", journals=tmp_path)
    for members in (plain, sds):
        converse(members, seed=seed, minutes=18, store=False)
    assert len(missed(plain)) > 3
    assert missed(sds) == []
    assert [len(member.heard) for member in sds] == [SAID, SAID]  # each once
    assert len(list(tmp_path.iterdir())) == 2
    found = check([tmp_path])
    assert not found.broken, found


def test_plain_chat_with_store_loses_nothing_either() -> None:
    """The node says that it took a message and did not, or that nothing came: only Store tells."""
    careful, careless = two("plain"), two("plain", confirm_ms=0)
    for members in (careful, careless):
        converse(members, seed=1, minutes=15, store=True)
    assert len(missed(careless)) > 3 and missed(careful) == []
    assert [len(member.heard) for member in careful] == [SAID, SAID]
    counts = careful[0].bot.reporter.counts
    assert counts["stored", ""] == SAID and counts["published_again", ""] > 0
    assert counts["not_stored", ""] == 0


@pytest.mark.parametrize("hash_queries", ["refuse", "ignore"])
def test_a_store_that_cannot_be_asked_by_hash_is_asked_by_time(hash_queries: Any) -> None:
    bot = new_bot("plain")
    options = NodeOptions(hash_queries=hash_queries, cache_capacity=1000, client_idle_s=1e9)
    with BotTester(bot, node=options) as tester:
        for number in range(150):  # more than the page that a Store gives that ignores hashes
            old = WakuMessage(b"old", "/app/1/other/proto", timestamp=NOW_MS * 1_000 + number)
            tester.node.publish(SHARD, old)
        assert tester.user("Alice").asks("!ping") == "pong"
        tester.wait(3600)
        said = [one for one in tester.relayed if one.payload != b"old"]
        assert len(said) == 1 + 1  # hers, and one answer
        assert bot.reporter.counts["stored", ""] == 1
        assert bot.reporter.counts["published_again", ""] == 0


@pytest.mark.parametrize("hash_queries", ["refuse", *slow("ignore")])
@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_members_lose_nothing_with_such_a_store(reliability: str, hash_queries: Any) -> None:
    members = two(reliability)
    converse(members, seed=1, minutes=15, store=True, hash_queries=hash_queries)
    assert missed(members) == []
    assert [len(member.heard) for member in members] == [SAID, SAID]  # each once


def test_what_store_never_keeps_is_not_published_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def forgets(*_: object) -> list[Fetched]:
        return []

    async def pages(*_: object) -> AsyncGenerator[list[Fetched], None]:
        yield []

    monkeypatch.setattr(Link, "by_hash", forgets)
    monkeypatch.setattr(Link, "stored", pages)
    bot = new_bot("plain", publish_at_most=3)
    with BotTester(bot) as tester:
        assert tester.user("Alice").asks("!ping") == "pong"
        tester.wait(3600)
        assert [len(tester.relayed), len(tester.said())] == [1 + 3, 1]
        tester.crash()
        tester.start()
        tester.wait(3600)
        assert len(tester.relayed) == 1 + 3
    assert "not_stored" in caplog.text


def test_without_store_nothing_is_published_again() -> None:
    bot = new_bot("plain")
    with BotTester(bot, node=NodeOptions(store=False, client_idle_s=1e9)) as tester:
        assert tester.user("Alice").asks("!ping") == "pong"
        tester.wait(7200)
        assert len(tester.relayed) == 2
        tester.crash()
        tester.start()
        tester.wait(60)
        assert len(tester.relayed) == 2


# -- who reads whom -------------------------------------------------------------------------------


def new_bot(reliability: Any = "sds", **values: Any) -> StatusBot:
    options = BotOptions(reliability=reliability, **values)
    bot = StatusBot(node="http://node", community=COMMUNITY, channels=[GENERAL], options=options)

    @bot.command("ping")
    async def ping(message: ChatMessage) -> str:
        return "pong"

    return bot


def sds_of(tester: BotTester) -> list[SdsArrival]:
    """All SDS messages that were published."""
    found: list[SdsArrival] = []
    opener = Opener([TOPIC], on_sds=found.append)
    for message in tester.relayed:
        opener.receive(message, tester.now_ms())
    return found


def test_the_layers_are_those_of_status_go() -> None:
    """Channel and id as of `WrapPayloadForSDS`, in `ProtocolMessage`, in a sealed envelope."""
    with BotTester(new_bot()) as tester:
        tester.user("Alice").asks("!ping")
        answer = tester.heard[-1]
        (message,) = (one for one in tester.relayed[-1:])
        assert message.version == 1 and message.content_topic == TOPIC.content_topic
        plain = open_symmetric(message.payload, TOPIC.key)
        assert plain.signer == tester.public_key
        data = from_protocol(plain.payload)
        assert isinstance(data, bytes) and data != plain.payload
        sds = NIM.codec.decode(data)
        assert sds.channel_id == COMMUNITY.id
        assert sds.sender_id == tester.public_key.hex
        assert sds.content == answer.signed.data
        assert sds.message_id == f"0x{keccak256(answer.signed.data).hex()}"
        assert [entry.message_id for entry in sds.causal_history] == [
            sds_message_id("", 0, tester.heard[-2].signed.data)
        ]


def test_hints_are_those_of_status_go() -> None:
    """`RetrievalHint`: Waku message hashes as text."""
    with BotTester(new_bot()) as tester:
        alice = tester.user("Alice")
        alice.asks("!ping")
        first = message_hash(SHARD, tester.relayed[-1])
        alice.asks("!ping")
        plain = open_symmetric(tester.relayed[-1].payload, TOPIC.key)
        data = from_protocol(plain.payload)
        assert isinstance(data, bytes)
        hints = {e.message_id: e.retrieval_hint for e in NIM.codec.decode(data).causal_history}
        text = f"0x{first.hex()}".encode()
        assert hints[sds_message_id("", 0, tester.heard[1].signed.data)] == b"\x0a\x42" + text
        read = {
            e.message_id: e.retrieval_hint for e in STATUS_SDS.codec.decode(data).causal_history
        }
        assert read[sds_message_id("", 0, tester.heard[1].signed.data)] == first


@pytest.mark.parametrize(
    ("hint", "read"),
    [
        (b"\x0a\x420x" + 32 * b"ab", 32 * b"\xab"),
        (b"\x0a\x42" + 33 * b"0x" + b"\x0a\x42" + b"0x" + 32 * b"CD", 32 * b"\xcd"),
        (b"\x0a\x040xab", None),
        (32 * b"\xab", None),  # as others speak nim-sds
        (b"\x10\x01", None),
        (b"\xff", None),
    ],
)
def test_a_hint_that_is_none_is_not_followed(hint: bytes, read: bytes | None) -> None:
    entry = HistoryEntry("earlier", hint, "somebody")
    data = NIM.codec.encode(message(causal_history=(entry,), repair_request=(entry,)))
    found = STATUS_SDS.codec.decode(data)
    expected = replace(entry, retrieval_hint=read)
    assert (*found.causal_history, *found.repair_request) == (expected, expected)
    if read is not None:
        again = STATUS_SDS.codec.decode(STATUS_SDS.codec.encode(found))
        assert (*again.causal_history, *again.repair_request) == (expected, expected)


def test_a_bot_whose_channel_cannot_remember_ends() -> None:
    class FullDisk(MemoryStateStore):
        writes = 0

        def write(self, changes: Changes) -> None:
            self.writes += 1
            if self.writes > 5:
                raise StateUnavailable("no space left")
            super().write(changes)

    member = Member("ann", options_of("sds"), SAID)
    member.stores[COMMUNITY] = FullDisk()
    with pytest.raises(ExceptionGroup) as group:
        converse([member], seed=1, minutes=5, store=True)
    assert group.value.subgroup(StateUnavailable)


def test_an_answer_that_somebody_has_is_known_to_be_acknowledged() -> None:
    bot = new_bot()
    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        alice.asks("!ping")
        answer = tester.heard[-1].message_id
        assert not bot.is_acknowledged(answer)
        alice.says("thanks")
        assert bot.is_acknowledged(answer)
        assert bot.reporter.counts["acknowledged", ""] == 1


def test_a_bot_that_speaks_plain_reads_sds_and_one_that_speaks_sds_reads_plain() -> None:
    with BotTester(new_bot("plain")) as tester:
        signed = wrap(said("!ping"), ALICE)
        data = SdsWrapper(COMMUNITY.id).wrap(signed.data, NOW_MS)
        (message,) = Sealer(ALICE).seal_sds(data, TOPIC, NOW_MS * 1_000_000)
        tester.publish(message)
        assert tester.answers(signed.message_id) == ["pong"] and sds_of(tester) != []
    with BotTester(new_bot("sds")) as tester:
        outgoing = Sealer(ALICE).seal(said("!ping"), TOPIC, NOW_MS)
        tester.publish(outgoing.messages[0])
        assert tester.answers(outgoing.message_id) == ["pong"] and len(sds_of(tester)) == 1


def test_who_knows_no_sds_finds_no_message_in_it() -> None:
    data = SdsWrapper(COMMUNITY.id).wrap(wrap(said("hello"), ALICE).data, NOW_MS)
    outcome = unwrap(data)  # what clients did before they looked for SDS
    assert isinstance(outcome, Refused) and outcome.reason is RefusalReason.MALFORMED_MESSAGE


@pytest.mark.parametrize(
    ("reliability", "heard"), [("plain", ["after it"]), ("sds", ["after it", "missed"])]
)
def test_what_the_node_kept_to_itself_is_fetched_once_somebody_refers_to_it(
    monkeypatch: pytest.MonkeyPatch, reliability: str, heard: list[str]
) -> None:
    look, texts = Link.look, []

    async def sees_nothing(link: Link) -> list[Fetched]:
        await look(link)
        return []

    bot = new_bot(reliability, confirm_ms=0)

    @bot.on_message
    async def note(message: BotMessage) -> None:
        texts.append(message.text)

    with BotTester(bot) as tester:
        tester.wait(120)  # a newcomer would take the reference for one to times before it came
        with monkeypatch.context() as patch:
            patch.setattr(Link, "look", sees_nothing)
            tester.user("Alice").says("missed")
        tester.user("Bob").says("after it")
        tester.wait(120)
    assert texts == heard


@pytest.mark.parametrize(("size", "is_sds"), [(300_000, True), (1_200_000, False)])
def test_large_images_go_in_segments_and_the_largest_without_sds(
    size: int, is_sds: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(payload_builders, "fitting", bytes)
    bot, image = new_bot(), b"\x89PNG\r\n\x1a\n" + Random(3).randbytes(size)

    @bot.command("picture")
    async def picture(message: BotMessage) -> None:
        await message.channel.send(image=image)

    with BotTester(bot) as tester:
        tester.user("Alice").says("!picture")
        tester.wait(10)
        (answer,) = tester.said()
        assert answer.image is not None and answer.image.payload == image
        assert any(sds.content and len(sds.content) > size for sds in sds_of(tester)) is is_sds
        tester.user("Alice").says("seen")
        assert bot.is_acknowledged(tester.heard[-2].message_id) is is_sds


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_what_a_crash_kept_from_its_channel_goes_as_the_bot_speaks_now(reliability: str) -> None:
    key, store = key_of("the bot"), MemoryStateStore()
    signed = wrap(said("left over"), key)
    memory = BotMemory(store, key.public_key, NOW_MS)
    carried = WakuMessage(signed.data, TOPIC.content_topic, timestamp=NOW_MS * 1_000_000)
    memory.say("whatever", signed.message_id, COMMUNITY.id, (carried,))
    memory.close()
    with BotTester(new_bot(reliability), store=store) as tester:
        tester.wait(1)
        assert [message.text for message in tester.said()] == ["left over"]
        assert [sds.content for sds in sds_of(tester)] == [signed.data] * (reliability == "sds")


@pytest.mark.parametrize("reliability", ["plain", "sds"])
def test_requests_to_join_and_descriptions_are_read_inside_sds_too(reliability: str) -> None:
    """status-go wraps whatever it sends to a community, and these without a `ProtocolMessage`."""
    bot, asked = new_bot(reliability), []

    @bot.command("rule", allow="moderators")
    async def rule(message: BotMessage) -> str:
        return "ruled"

    @bot.on_join_request
    async def note(request: JoinRequest) -> None:
        asked.append(request.display_name)

    request = join_request(ALICE, COMMUNITY, NOW_MS + 1000, display_name="Carol")
    members = {MALLORY.public_key: CommunityMember(roles=(Role.ROLE_ADMIN,))}
    description = describing({**members, key_of("the bot").public_key: CommunityMember()})
    wrapper = SdsWrapper(COMMUNITY.id)
    with BotTester(bot, community_key=OWNER) as tester:
        for payload, key, topic in (
            (request, ALICE, COMMUNITY.requests_topic),
            (description, OWNER, COMMUNITY.description_topic),
        ):
            data = wrapper.wrap(wrap(payload, key).data, tester.now_ms())
            sealed = (
                seal_ecies(data, OWNER.public_key, key)
                if key is ALICE
                else seal_symmetric(data, topic.key, key)
            )
            at_ns = tester.now_ms() * 1_000_000
            tester.publish(WakuMessage(sealed, topic.content_topic, version=1, timestamp=at_ns))
        assert asked == ["Carol"]
        assert tester.bot.reporter.counts["refused", "forged_sds"] == 0
        assert tester.user("Mallory", MALLORY).asks("!rule") == "ruled"


def test_a_public_chat_is_plain() -> None:
    bot = StatusBot(node="http://node", options=BotOptions(reliability="sds"))
    bot.join_public("status")

    @bot.on_message
    async def echo(message: BotMessage) -> str:
        return message.text

    with BotTester(bot) as tester:
        assert tester.user("Alice").asks("hello") == "hello"
        assert Opener([Topic("status")]).receive(tester.relayed[-1], tester.now_ms()) != []
        assert bot.reporter.counts["said", "ChatMessage"] == 1


def test_a_crash_repeats_nothing_and_what_only_the_channel_kept_is_answered() -> None:
    """Without Store, what was heard and not answered stands in the channel's log alone."""
    bot = StatusBot(
        node="http://node",
        community=COMMUNITY,
        channels=[GENERAL],
        options=BotOptions(reliability="sds"),
    )

    @bot.command("ask")
    async def ask(message: BotMessage) -> str:
        await message.reply("first")
        await anyio.sleep(5)
        return "second"

    node = NodeOptions(store=False, client_idle_s=1e9)
    with BotTester(bot, node=node) as tester:
        asked = tester.user("Alice").says("!ask")
        assert tester.answers(asked) == ["first"]
        tester.crash()
        tester.start()
        tester.wait(10)
        assert tester.answers(asked) == ["first", "second"]


# -- what is forged -------------------------------------------------------------------------------

GOOD = wrap(said(), ALICE)


def arrives(message: Message, key: PrivateKey = ALICE, topic: Topic = TOPIC) -> list[object]:
    """What becomes of an SDS message that somebody seals, and whether it is one to the channel."""
    taken: list[SdsArrival] = []
    opener = Opener([topic], on_sds=taken.append)
    data = NIM.codec.encode(message)
    (sealed,) = Sealer(key).seal_sds(data, topic, NOW_MS * 1_000_000)
    outcomes: list[object] = list(opener.receive(sealed, NOW_MS))
    assert bool(taken) is not any(
        isinstance(one, Refused) and one.reason is RefusalReason.FORGED_SDS for one in outcomes
    )
    return outcomes


def message(content: bytes | None = GOOD.data, **fields: Any) -> Message:
    sds_id = sds_message_id("", 0, content or b"sync")
    lamport = NOW_MS // 1000 * 1000
    made = Message(ALICE.public_key.hex, sds_id, COMMUNITY.id, lamport, content=content)
    return replace(made, **fields)


def test_what_is_not_forged_is_taken() -> None:
    for sds, key in (
        (message(), ALICE),
        (message(sender_id=""), ALICE),  # status-go
        (message(), MALLORY),  # she has it broadcast again, for somebody who missed it
        (message(message_id=GOOD.message_id), ALICE),  # as status-go once proposed
        (message(b"nonsense"), ALICE),
    ):
        (outcome,) = arrives(sds, key)
        if sds.content == GOOD.data:
            assert isinstance(outcome, Received) and outcome.signed == GOOD
        else:
            assert isinstance(outcome, Refused)
            assert outcome.reason is RefusalReason.MALFORMED_MESSAGE
    assert arrives(message(None)) == [] == arrives(message(None, sender_id=""))


@pytest.mark.parametrize(
    ("sds", "key"),
    [
        (message(sender_id=MALLORY.public_key.hex), ALICE),
        (message(sender_id=MALLORY.public_key.hex), MALLORY),
        (message(message_id="0x" + "00" * 32), ALICE),
        (message(message_id=message_id(MALLORY.public_key, GOOD.data)), MALLORY),
        (message(channel_id="0x" + "02" * 33), ALICE),
        (message(channel_id=CHAT_ID), ALICE),
        (message(channel_id=""), ALICE),
        (message(None), MALLORY),
        (message(b"nonsense"), MALLORY),
    ],
)
def test_what_is_forged_is_refused(sds: Message, key: PrivateKey) -> None:
    (outcome,) = arrives(sds, key)
    assert isinstance(outcome, Refused) and outcome.reason is RefusalReason.FORGED_SDS
    with BotTester(new_bot()) as tester:
        (sealed,) = Sealer(key).seal_sds(NIM.codec.encode(sds), TOPIC, tester.now_ms() * 1_000_000)
        tester.publish(sealed)
        assert tester.bot.reporter.counts["refused", "forged_sds"] == 1
        assert tester.user("Alice").asks("!ping") == "pong"


@pytest.mark.parametrize("kind", ["description", "request to join"])
def test_what_newer_clients_wrap_in_sds_without_a_protocol_message_is_read(kind: str) -> None:
    """They wrap whatever belongs to a community; some of it has no `ProtocolMessage` around it."""
    payload: Payload = CommunityDescription(clock=1)
    topic, key = COMMUNITY.description_topic, OWNER
    if kind == "request to join":
        payload = CommunityRequestToJoin(clock=1, community_id=OWNER.public_key.compressed)
        topic, key = COMMUNITY.requests_topic, ALICE
    data = SdsWrapper(COMMUNITY.id).wrap(wrap(payload, key).data, NOW_MS)
    envelope = seal_symmetric(data, topic.key, key)
    if kind == "request to join":
        envelope = seal_ecies(data, OWNER.public_key, key)
    sealed = WakuMessage(envelope, topic.content_topic, 0, NOW_MS * 1_000_000)
    (outcome,) = Opener([topic], private_keys=[OWNER]).receive(sealed, NOW_MS)
    assert isinstance(outcome, Received) and outcome.payload == payload


@given(st.binary(max_size=300))
def test_any_bytes_in_a_protocol_message_are_told(data: bytes) -> None:
    (sealed,) = Sealer(ALICE).seal_sds(data or b"x", TOPIC, NOW_MS * 1_000_000)
    outcomes = Opener([TOPIC]).receive(sealed, NOW_MS)
    assert all(isinstance(one, Refused) for one in outcomes)


def test_options_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(ValueError, match="one content topic"):
        BotOptions(reliability="sds", derivation="per-channel")
    with pytest.raises(ValueError, match="only SDS channels"):
        BotOptions(journals="journals")
    with pytest.raises(ValueError, match="'plain' or 'sds'"):
        BotOptions(reliability="mvds")  # type: ignore[arg-type]
