"""What real Status clients sent: each message opens to the recorded author, id and bytes, those of
a double ratchet under their recorded keys."""

from collections.abc import Iterator
from typing import Any

from reliable_channel_status import (
    Community,
    Ignored,
    Opener,
    Payload,
    PrivateKey,
    Received,
    RefusalReason,
    Refused,
    Topic,
    decode_payload,
    encode_payload,
    partitioned_topic,
    personal_discovery_topic,
)
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.direct import (
    Correspondence,
    DirectPayload,
    RatchetHeader,
    group_of,
    read_datasync,
)
from reliable_channel_status.wire.direct.ratchet import decrypt_message, encrypt_message
from reliable_channel_status.wire.opening import read_again
from waku import WakuMessage

from .case import Result, first_difference, guarded

NS_PER_MS = 1_000_000


def is_recording(document: Any) -> bool:
    """Whether a file named `messages` is a list of recorded Waku messages."""
    return isinstance(document, list) and any(
        isinstance(case, dict) and "opens_with" in case for case in document
    )


def check_messages(document: Any) -> Iterator[Result]:
    for number, case in enumerate(document):
        name = case.get("name") if isinstance(case, dict) else None
        yield str(name or f"message {number}"), guarded(_message, case)


def check_keys(document: Any) -> Iterator[Result]:
    for name, pair in document["keys"].items():
        yield f"key of {name}", guarded(_key_pair, pair)
    for name, community in document["communities"].items():
        yield f"community {name}", guarded(_community, community)


def _message(case: Any) -> str | None:
    topic, keys = _opens_with(case)
    message = WakuMessage(
        bytes.fromhex(case["payload_hex"]),
        case["content_topic"],
        case["version"],
        case["timestamp"],
        ephemeral=case["ephemeral"],
    )
    heard: list[DirectPayload] = []
    opener = Opener(
        [topic],
        private_keys=keys,
        direct=Correspondence(keys[0]) if keys and _is_direct(case) else None,
        on_direct=lambda _, payload: heard.append(payload),
    )
    outcomes = opener.receive(message, case["timestamp"] // NS_PER_MS)
    if len(outcomes) != min(1, len(case["messages"])):
        return f"{len(outcomes)} outcomes, {len(case['messages'])} recorded"
    if not outcomes:  # a sync message of SDS, which has no content
        return None
    (outcome,) = outcomes
    if _is_direct(case) and not keys:
        name = outcome.reason.value if isinstance(outcome, Refused) else type(outcome).__name__
        wanted = RefusalReason.DIRECT_MESSAGE_NOT_SUPPORTED.value
        return first_difference([("without a session", name, wanted)]) or _ratcheted(case, topic)
    match outcome:
        case Received():
            return _read(outcome, case) or _acknowledged(outcome, heard, case)
        case Ignored():
            return _ignored(outcome, case["messages"][0])
        case Refused():
            return f"not read: {outcome}"


def _ratcheted(case: Any, topic: Topic) -> str | None:
    """A message of a session opens under its recorded key, and is encrypted to the same bytes."""
    data = bytes.fromhex(case["envelope"]["payload_hex"])
    (encrypted,) = status_pb2.ProtocolMessage.FromString(data).encrypted_message.values()
    (entry,) = case["protocol"]["entries"]
    head, key = encrypted.dr_header, bytes.fromhex(entry["message_key_hex"])
    covered = RatchetHeader(head.key, head.n, head.pn).associated_data
    plain = decrypt_message(key, encrypted.payload, covered)
    datasync = read_datasync(plain)
    body = plain if datasync is None else datasync.messages[0].body
    ids = [] if datasync is None else [one.id.hex() for one in datasync.messages]
    read = read_again(body, topic, is_private=True)
    if not isinstance(read, Received):
        return f"not read: {read}"
    recorded = case["messages"][0]
    raw = status_pb2.ApplicationMetadataMessage.FromString(bytes.fromhex(recorded["signed_hex"]))
    again = encode_payload(read.payload)
    return first_difference(
        [
            ("inner", plain.hex(), case["inner_hex"]),
            ("encrypted again", encrypt_message(key, plain, covered), encrypted.payload),
            ("datasync ids", ids, case.get("mvds", {}).get("messages", [])),
            ("message_id", read.message_id, recorded["message_id"]),
            ("author", read.signer.hex, recorded["author"]),
            ("signed", body.hex(), recorded["signed_hex"]),
            (
                "written again",
                _canonical(read.payload, again),
                _canonical(read.payload, raw.payload),
            ),
        ]
    )


def _acknowledged(received: Received, heard: list[DirectPayload], case: Any) -> str | None:
    """What the client waits for, and the bytes that it wrote."""
    recorded = case.get("mvds")
    if recorded is None:
        return first_difference([("datasync id", received.datasync_id, None)])
    (payload,) = heard
    assert payload.datasync is not None and received.datasync_id is not None
    (message,) = payload.datasync.messages
    receiver = _opens_with(case)[1][0].public_key
    return first_difference(
        [
            ("datasync id", [received.datasync_id.hex()], recorded["messages"]),
            ("group", message.group_id, group_of(receiver, received.signer)),
            ("written again", payload.datasync.encode().hex(), case["inner_hex"]),
        ]
    )


def _ignored(ignored: Ignored, recorded: Any) -> str | None:
    return first_difference(
        [
            ("message_id", ignored.message_id, recorded["message_id"]),
            ("author", ignored.signer.hex, recorded["author"]),
            ("type", int(ignored.payload_type), recorded["type"]),
        ]
    )


def _read(received: Received, case: Any) -> str | None:
    """The recorded ids, and the recorded fields: written again they mean the same."""
    recorded = case["messages"][0]
    envelope = received.envelope_signer
    signed = bytes.fromhex(recorded["signed_hex"])
    raw = status_pb2.ApplicationMetadataMessage.FromString(signed)
    again = encode_payload(received.payload)
    return first_difference(
        [
            ("message_id", received.message_id, recorded["message_id"]),
            ("author", received.signer.hex, recorded["author"]),
            ("signed", received.signed.data, signed),
            ("type", raw.type, recorded["type"]),
            ("envelope", envelope and envelope.hex, case["envelope"]["signer"]),
            ("is_private", received.is_private, case["opens_with"]["kind"] == "ecies"),
            ("is_ephemeral", received.is_ephemeral, case["ephemeral"]),
            ("fields", received.payload, decode_payload(recorded["type"], raw.payload)),
            (
                "written again",
                _canonical(received.payload, again),
                _canonical(received.payload, raw.payload),
            ),
        ]
    )


def _opens_with(case: Any) -> tuple[Topic, list[PrivateKey]]:
    """The topic whose text the file tells, or that of the receiver; and the receiver's key."""
    how = case["opens_with"]
    if how["kind"] == "symmetric":
        topic = Topic(how["topic_text"])
        if topic.key.reveal().hex() != how["key_hex"]:
            raise ValueError("the topic has another key than the recorded one")
        return topic, []
    key = PrivateKey.from_hex(how["private_key_hex"])
    receiver = key.public_key
    topics = [
        Community(receiver).requests_topic,
        partitioned_topic(receiver),
        personal_discovery_topic(receiver),
    ]
    return next(one for one in topics if one.content_topic == case["content_topic"]), [key]


def _is_direct(case: Any) -> bool:
    protocol = case["protocol"]
    return isinstance(protocol, dict) and protocol["kind"] == "encrypted_message"


def _canonical(payload: Payload, data: bytes) -> bytes:
    """The same fields in one order: protobuf leaves that of fields and of maps to the writer."""
    message = getattr(status_pb2, type(payload).__name__).FromString(data)
    encoded: bytes = message.SerializeToString(deterministic=True)
    return encoded


def _key_pair(pair: Any) -> str | None:
    public = PrivateKey.from_hex(pair["private_hex"]).public_key
    return first_difference([("public", public.hex, pair["public"])])


def _community(recorded: Any) -> str | None:
    community = Community(PrivateKey.from_hex(recorded["private_hex"]).public_key)
    chats = [community.channel_id(chat) for chat in recorded["chats"]]
    return first_difference(
        [
            ("id", community.id, recorded["id"]),
            ("parsed", Community.parse(recorded["id"]), community),
            ("chats", chats, recorded["chats"]),
        ]
    )
