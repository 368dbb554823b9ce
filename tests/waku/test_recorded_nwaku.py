"""The client against everything that a real nwaku was recorded to say."""

from __future__ import annotations

import base64
import json
from typing import Any

import httpx
import pytest

from tests.asgi import app_of
from tests.waku.recordings import Call, Recording, call_for, recordings
from waku import WakuClient, message_hash
from waku.errors import (
    BadRequest,
    CursorExpired,
    EndpointMissing,
    MessageTooLarge,
    NoPeers,
    NotFound,
    NotSubscribed,
    WakuError,
)
from waku.models import (
    FilterAnswer,
    FilterSubscription,
    Health,
    LightPushAnswer,
    NodeInfo,
    Peer,
    Rejected,
    ShardPeers,
    StorePage,
    WakuMessage,
)

pytestmark = pytest.mark.anyio

REPLAYED = [(r, *found) for r in recordings() if (found := call_for(r)) is not None]

# Failures that are not "status 400 is a BadRequest".
NAMED_FAILURES: dict[type[WakuError], str] = {
    BadRequest: """filter-14 lightpush-3 lightpush-4 lightpush-15 lightpush-26 lightpush-27
        lightpush-38 relay_auto-3 relay_auto-4""",
    CursorExpired: "store-31",
    EndpointMissing: "admin-23 admin-24 admin-25 filter-10 relay-58 relay-60",
    MessageTooLarge: "lightpush-14 lightpush-37 relay-49 relay_auto-19",
    NoPeers: """filter-26 lightpush-1 lightpush-5 lightpush-6 lightpush-7 lightpush-13 lightpush-24
        lightpush-28 lightpush-29 lightpush-30 lightpush-36 relay_auto-34 relay_auto-35
        relay_auto-36 store-61 store-72 store-73""",
    NotFound: "admin-13",
    NotSubscribed: """filter-0 filter-8 filter-27 filter-29 filter-31 filter-33 filter-36 filter-37
        filter-38 relay-20 relay-22 relay-57 relay-59 relay_auto-30""",
}


def expected_failure(recording: Recording) -> type[WakuError] | None:
    for error, names in NAMED_FAILURES.items():
        if recording.name in names.split():
            return error
    if recording.status == 200:
        return None
    assert recording.status == 400, f"{recording.name} needs a name in NAMED_FAILURES"
    return BadRequest


def test_most_recordings_are_replayed_to_the_letter() -> None:
    assert len(recordings()) == 317
    assert len(REPLAYED) >= 285
    assert sum(exact for _, _, exact in REPLAYED) >= 195


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # `test_session.py` has both loops
async def test_replay() -> None:
    for each in REPLAYED:
        try:
            await replay(*each)
        except BaseException as error:
            error.add_note(f"recording {each[0].name}")
            raise


async def replay(recording: Recording, call: Call, exact: bool) -> None:
    sent: list[httpx.Request] = []
    rejected: list[Rejected] = []

    def node(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/version" and recording.path != "/version":
            return httpx.Response(200, text="v0.37.1-beta-7d1c6a")  # whose family is asked for
        sent.append(request)
        return recording.response()

    async with WakuClient(
        "http://node.invalid",
        app=app_of(node),
        retries=None,
        on_rejected=rejected.append,
    ) as client:
        failure = expected_failure(recording)
        if failure is None:
            check_result(recording, await call(client))
        else:
            with pytest.raises(failure) as caught:
                await call(client)
            assert type(caught.value) is failure
            assert caught.value.status in (recording.status, 504)
    assert rejected == []
    if exact:
        (request,) = sent
        check_request(recording, request)


def check_request(recording: Recording, request: httpx.Request) -> None:
    assert request.method == recording.method
    path = request.url.raw_path.partition(b"?")[0].decode()
    assert path.removeprefix("/debug/v1") == recording.path.removeprefix("/debug/v1")
    assert canonical_query(dict(request.url.params)) == canonical_query(recording.query)
    if recording.request_body is None:
        assert request.content == b""
    else:
        assert request.headers["content-type"] == "application/json"
        assert canonical_body(json.loads(request.content)) == canonical_body(recording.request_body)


def canonical_query(query: dict[str, Any]) -> dict[str, str]:
    """Leave out what the node takes for granted, and spell hashes in one way."""
    fields = {key: str(value) for key, value in query.items()}
    for key, default in (("includeData", "false"), ("ascending", "true")):
        if fields.get(key) == default:
            del fields[key]
    for key in fields.keys() & {"hashes", "cursor"}:
        fields[key] = fields[key].replace("0x", "")
    return fields


def canonical_body(body: Any) -> Any:
    if not isinstance(body, dict):
        return body
    fields = dict(body)
    if fields.get("ephemeral") is False:
        del fields["ephemeral"]
    if fields.get("timestamp") == 0:
        del fields["timestamp"]
    if "payload" in fields:
        payload = fields["payload"]
        too_large = payload == "<cut>" or len(payload) > 200_000
        fields["payload"] = "too large" if too_large else payload + "=" * (-len(payload) % 4)
    if "message" in fields:
        fields["message"] = canonical_body(fields["message"])
    return fields


def check_result(recording: Recording, result: object) -> None:
    """Compare a result with the recorded body, field by field, in the test's own reading."""
    match result:
        case None:
            assert recording.content == b"OK"
        case str():
            assert result == recording.content.decode()
        case StorePage():
            check_page(recording.json, result)
        case FilterAnswer():
            assert recording.json == {
                "requestId": result.request_id,
                "statusDesc": result.status_desc,
            }
        case LightPushAnswer():
            assert recording.json == {"relayPeerCount": result.relay_peer_count}
        case NodeInfo():
            assert recording.json == {
                "listenAddresses": list(result.listen_addresses),
                "enrUri": result.enr_uri,
            }
        case Health():
            check_health(recording.json, result)
        case Peer():
            check_peer(recording.json, result)
        case dict():
            assert result == recording.json
        case list():
            recorded = recording.json if isinstance(recording.json, list) else [recording.json]
            assert len(result) == len(recorded)
            for theirs, ours in zip(recorded, result, strict=True):
                check_item(theirs, ours)
        case _:
            raise AssertionError(f"{recording.name}: unexpected {result!r}")


def check_item(theirs: dict[str, Any], ours: object) -> None:
    match ours:
        case WakuMessage():
            check_message(theirs, ours)
        case Peer():
            check_peer(theirs, ours)
        case ShardPeers():
            assert theirs["shard"] == ours.shard
            for peer, our_peer in zip(theirs["peers"], ours.peers, strict=True):
                check_peer(peer, our_peer)
        case FilterSubscription():
            assert theirs == {
                "peerId": ours.peer_id,
                "filterCriteria": [
                    {"pubsubTopic": c.pubsub_topic, "contentTopic": c.content_topic}
                    for c in ours.filter_criteria
                ],
            }
        case _:
            raise AssertionError(f"unexpected {ours!r}")


def check_message(theirs: dict[str, Any], ours: WakuMessage) -> None:
    assert ours.payload == base64.b64decode(theirs["payload"])
    assert ours.meta == base64.b64decode(theirs.get("meta", ""))
    assert (ours.content_topic, ours.version, ours.timestamp, ours.ephemeral) == (
        theirs["contentTopic"],
        theirs["version"],
        theirs["timestamp"],
        theirs["ephemeral"],
    )


def check_page(theirs: dict[str, Any], page: StorePage) -> None:
    assert page.request_id == theirs["requestId"]
    ours = "0x" + page.cursor.hex() if page.cursor else None
    assert ours == theirs.get("paginationCursor")
    for stored, entry in zip(theirs["messages"], page.entries, strict=True):
        assert "0x" + entry.message_hash.hex() == stored["messageHash"]
        assert entry.pubsub_topic == stored.get("pubsubTopic")
        if "message" not in stored:
            assert entry.message is None
            continue
        assert entry.message is not None and entry.pubsub_topic is not None
        check_message(stored["message"], entry.message)
        assert message_hash(entry.pubsub_topic, entry.message) == entry.message_hash


def check_health(theirs: dict[str, Any], ours: Health) -> None:
    assert ours.node_health == theirs["nodeHealth"]
    for entry, protocol in zip(theirs["protocolsHealth"], ours.protocols, strict=True):
        assert entry[protocol.protocol] == protocol.status
        assert entry.get("desc", "") == protocol.desc
        assert ours.status_of(protocol.protocol) == protocol.status


def check_peer(theirs: dict[str, Any], ours: Peer) -> None:
    assert ours.multiaddrs == (theirs["multiaddr"],)
    assert theirs["multiaddr"].endswith(f"/p2p/{ours.peer_id}")
    assert (ours.connectedness, ours.connected) == (
        theirs["connected"],
        theirs["connected"] == "Connected",
    )
    assert (list(ours.protocols), list(ours.shards)) == (theirs["protocols"], theirs["shards"])
    assert (ours.agent, ours.origin, ours.score) == (
        theirs["agent"],
        theirs["origin"],
        theirs.get("score"),
    )
