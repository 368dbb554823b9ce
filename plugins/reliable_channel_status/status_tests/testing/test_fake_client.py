"""The scripted client shows what real clients sent, and refuses what a real one refuses."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from reliable_channel_status import (
    DEFAULT_SHARD,
    ChatMessage,
    Community,
    CommunityDescription,
    MessageId,
    Received,
    Sealer,
    SignedPayload,
    Topic,
    unwrap,
    why_closed,
    why_invalid,
    why_not_heard,
)
from reliable_channel_status.testing import FakeClient
from status_tests.world import ALICE
from waku import WakuMessage

DATA: Final = Path(__file__).parents[4] / "tests/vectors/data/status-real"
CASES: Final[list[dict[str, Any]]] = json.loads((DATA / "messages.json").read_text())


def signed(case: dict[str, Any]) -> SignedPayload | None:
    one = unwrap(bytes.fromhex(case["messages"][0]["signed_hex"]))
    return one if isinstance(one, SignedPayload) else None


def descriptions() -> list[SignedPayload]:
    found = [one for case in CASES if (one := signed(case)) is not None]
    return [one for one in found if isinstance(one.payload, CommunityDescription)]


def clock_of(one: SignedPayload) -> int:
    assert isinstance(one.payload, CommunityDescription)
    return one.payload.clock


COMMUNITY: Final = Community(descriptions()[0].signer)


class Offline:
    """What a scripted client needs, without a node: the time of the recording."""

    def now_ms(self) -> int:
        return int(CASES[0]["timestamp"]) // 1_000_000

    def next_clock(self) -> int:
        return self.now_ms()

    def publish(self, message: WakuMessage) -> None:
        raise AssertionError("a member's client publishes nothing")


def client() -> FakeClient:
    texts = {case["opens_with"].get("topic_text") for case in CASES} - {None}
    topics = [Topic(text) for text in texts if str(text).startswith(COMMUNITY.id)]
    return FakeClient(Offline(), COMMUNITY, topics, shards=[DEFAULT_SHARD])


def recorded(case: dict[str, Any], version: int | None = None) -> WakuMessage:
    return WakuMessage(
        bytes.fromhex(case["payload_hex"]),
        case["content_topic"],
        case["version"] if version is None else version,
        case["timestamp"],
    )


def received(one: SignedPayload) -> Received:
    return Received(one, COMMUNITY.description_topic, 0, one.signer, False, False)


def in_community() -> list[dict[str, Any]]:
    """The recorded messages of the community's channels, in the version of 2024."""
    found = []
    for case in CASES:
        one = signed(case)
        if case["version"] == 1 and one and isinstance(one.payload, ChatMessage):
            if one.payload.chat_id.startswith(COMMUNITY.id):
                found.append(case)
    return found


def test_recorded_messages_of_members_are_shown_and_nothing_else() -> None:
    shows = client()
    shard = str(DEFAULT_SHARD)
    cases = in_community()
    assert len(cases) >= 5
    shows.hear(recorded(cases[0]), shard)
    assert shows.refused == ["community not found"]
    latest = max(descriptions(), key=clock_of)
    shows = client()
    shows.receive(received(latest))
    for case in cases:
        shows.hear(recorded(case), shard)
    assert len(shows.shown) == len(cases) and shows.refused == []
    assert shows.description == latest.payload

    dropped = client()
    dropped.receive(received(latest))
    dropped.hear(recorded(cases[0], version=0), shard)
    broken = recorded(cases[0])
    dropped.hear(replace(broken, payload=broken.payload[:-1] + b"\0"), shard)
    dropped.hear(recorded(cases[0]), "/waku/2/rs/16/64")
    assert dropped.refused == ["failed to get signature"], "the others it cannot even read"
    assert dropped.shown == []


def test_stale_and_forged_descriptions_are_refused() -> None:
    first, latest = sorted(descriptions(), key=clock_of)
    shows = client()
    shows.receive(received(latest))
    shows.receive(received(first))
    assert isinstance(latest.payload, CommunityDescription)
    ahead = replace(latest.payload, clock=latest.payload.clock + 1, members={})
    nameless = replace(ahead, permissions=None)
    for payload, signer in ((ahead, ALICE.public_key), (nameless, latest.signer)):
        message_id = MessageId(f"0x{signer.hex}")
        forged = replace(
            latest,
            payload=payload,
            signer=signer,
            message_id=message_id,
            fingerprint=signer.hex.encode(),
        )
        shows.receive(received(forged))
    assert shows.description == latest.payload
    assert shows.refused == [
        "invalid community description outdated clock",
        "not authorized",
        "invalid community description no org permissions",
    ]


def test_a_stranger_in_the_recorded_community_is_refused() -> None:
    shows = client()
    latest = max(descriptions(), key=clock_of)
    shows.receive(received(latest))
    one = signed(in_community()[0])
    assert one is not None and isinstance(one.payload, ChatMessage)
    sealed = Sealer(ALICE).seal(
        replace(one.payload, text="let me in"), Topic(one.payload.chat_id), Offline().now_ms()
    )
    shows.hear(sealed.messages[0], str(DEFAULT_SHARD))
    assert (shows.shown, shows.refused) == ([], ["user can't post in community"])


@pytest.mark.parametrize("one", descriptions(), ids=lambda one: str(clock_of(one)))
def test_recorded_descriptions_keep_to_the_rules(one: SignedPayload) -> None:
    assert isinstance(one.payload, CommunityDescription)
    assert why_invalid(one.payload) is None
    assert why_closed(one.payload, ALICE.public_key) is None
    for case in in_community():
        said = signed(case)
        assert said is not None and isinstance(said.payload, ChatMessage)
        is_member = said.signer.hex in one.payload.members
        why = why_not_heard(one.payload, COMMUNITY, said.signer, said.payload)
        assert (why is None) is is_member, why
