"""What real Status clients sent: each message opens to the recorded author, id and bytes, those of
double ratchets and hash ratchets under their recorded keys."""

from collections.abc import Iterator
from typing import Any

from reliable_channel_status import (
    Community,
    Ignored,
    Opener,
    Payload,
    PrivateKey,
    PublicKey,
    Received,
    RefusalReason,
    Refused,
    SignedPayload,
    Topic,
    decode_payload,
    encode_payload,
    partitioned_topic,
    personal_discovery_topic,
    unwrap,
)
from reliable_channel_status.community.group_keys import TABLES, GroupKeys
from reliable_channel_status.wire import status_pb2
from reliable_channel_status.wire.direct import (
    Correspondence,
    DirectPayload,
    RatchetHeader,
    group_of,
    read_datasync,
)
from reliable_channel_status.wire.direct.ratchet import decrypt_message, encrypt_message
from reliable_channel_status.wire.direct.session_store import MemorySessionStore
from reliable_channel_status.wire.direct.sessions import Sessions
from reliable_channel_status.wire.hash_ratchet import GroupKey, read_keys, write_keys
from reliable_channel_status.wire.opening import read_again
from reliable_channel_status.wire.outcomes import MessageKeyId
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
    for number, group_key in enumerate(document.get("group_keys", ())):
        yield f"group key {number}", guarded(_group_key, group_key)


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
    groups = _groups(case, keys)
    opener = Opener(
        [topic],
        private_keys=keys,
        direct=_correspondence(case, keys[0]) if keys and _is_direct(case) else None,
        on_direct=lambda _, payload: heard.append(payload),
        groups=groups,
    )
    outcomes = opener.receive(message, case["timestamp"] // NS_PER_MS)
    if len(outcomes) != min(1, len(case["messages"])):
        return f"{len(outcomes)} outcomes, {len(case['messages'])} recorded"
    if (why := _taken_keys(case, groups)) is not None:
        return why
    if not outcomes:  # a sync message of SDS, or keys alone, which have no content
        return None
    (outcome,) = outcomes
    if _is_direct(case) and not keys and not _is_of_group(case):
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


class _Recorded(Sessions):
    """Sessions that open a message under its recorded key."""

    def __init__(self, case: Any, key: PrivateKey) -> None:
        self._entry = next((e for e in case["protocol"]["entries"] if "message_key_hex" in e), None)
        name = "a device" if self._entry is None else self._entry["installation"]
        super().__init__(key, name, MemorySessionStore())

    def decrypt(
        self,
        message: status_pb2.EncryptedMessageProtocol,
        sender: PublicKey,
        device: str,
        own: str,
        timestamp_ms: int,
    ) -> tuple[bytes, MessageKeyId] | Refused:
        assert self._entry is not None
        key, head = bytes.fromhex(self._entry["message_key_hex"]), message.dr_header
        covered = RatchetHeader(head.key, head.n, head.pn).associated_data
        plain = decrypt_message(key, message.payload, covered)
        if encrypt_message(key, plain, covered) != message.payload:
            raise ValueError("encrypted again, it has other bytes")
        return plain, MessageKeyId("", head.key, head.n)


def _correspondence(case: Any, key: PrivateKey) -> Correspondence:
    return Correspondence(key, sessions=_Recorded(case, key))


def _groups(case: Any, keys: list[PrivateKey]) -> GroupKeys:
    """The group keys that the reader of a message has, of the communities that it is about."""
    if "member_private_key_hex" in case:
        keys = [PrivateKey.from_hex(case["member_private_key_hex"])]
    headers = [bytes.fromhex(entry["hr"]["group_id"]) for entry in _entries(case) if "hr" in entry]
    communities = [
        Community(PublicKey(one[:33])) if len(one) == 33 else Community.parse(one[:68].decode())
        for one in headers
    ]
    groups = GroupKeys(
        keys[0] if keys else PrivateKey.generate(),
        communities,
        MemorySessionStore(TABLES),
        is_owner=lambda user, community: True,
    )
    for recorded in case.get("group_keys", ()):
        key = _recorded_key(recorded)
        refused = groups.learn(key.group_id, write_keys([key]), communities[0].public_key)
        if refused is not None:
            raise ValueError(str(refused))
    return groups


def _recorded_key(recorded: Any) -> GroupKey:
    group_id, key = bytes.fromhex(recorded["group_id_hex"]), bytes.fromhex(recorded["key_hex"])
    return GroupKey(group_id, recorded["timestamp_ms"], key)


def _group_key(recorded: Any) -> str | None:
    key = _recorded_key(recorded)
    return first_difference([("key_id", key.id.hex(), recorded["key_id_hex"])])


def _taken_keys(case: Any, groups: GroupKeys) -> str | None:
    """The keys that a message brings are those that were recorded."""
    pairs: list[tuple[str, Any, Any]] = []
    for entry in _entries(case):
        header = entry.get("hr", {})
        if "keys_hex" in header and not header["seq_no"] and "needs" not in case:
            group_id = bytes.fromhex(header["group_id"])
            # The SDK's are encrypted, as in an older form of status-go's.
            encoded = bytes.fromhex(header["keys_hex"] or case["inner_hex"])
            raw = status_pb2.HRKeys.FromString(encoded)
            wanted = [one.id.hex() for one in read_keys(group_id, raw)]
            pairs.append(("keys", [one.id.hex() for one in groups.keys_of(group_id)], wanted))
        elif "key_id_hex" in case:
            found = groups.current(bytes.fromhex(header["group_id"]))
            pairs.append(("key for a member", found and found.id.hex(), case["key_id_hex"]))
    return first_difference(pairs)


def _entries(case: Any) -> list[Any]:
    protocol = case["protocol"]
    return protocol.get("entries", []) if isinstance(protocol, dict) else []


def _is_of_group(case: Any) -> bool:
    return any(entry["headers"] == ["HR"] for entry in _entries(case))


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
    if recorded is None or not recorded["messages"]:
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
    signed_again = unwrap(received.signed.data)  # a description as it was, its parts encrypted
    assert isinstance(signed_again, SignedPayload)
    payload, again = signed_again.payload, encode_payload(signed_again.payload)
    return first_difference(
        [
            ("message_id", received.message_id, recorded["message_id"]),
            ("author", received.signer.hex, recorded["author"]),
            ("signed", received.signed.data, signed),
            ("type", raw.type, recorded["type"]),
            ("envelope", envelope and envelope.hex, case["envelope"]["signer"]),
            ("is_private", received.is_private, case["opens_with"]["kind"] == "ecies"),
            ("is_ephemeral", received.is_ephemeral, case["ephemeral"]),
            ("fields", payload, decode_payload(recorded["type"], raw.payload)),
            ("written again", _canonical(payload, again), _canonical(payload, raw.payload)),
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
