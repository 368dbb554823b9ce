"""What go-libp2p, js-libp2p and nim-libp2p wrote and read, recorded on loopback, and the published
vectors of Noise. A file is a list of `{name, source, input, expected}`; bytes are hex."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from tests import inside
from waku.libp2p import (
    Connection,
    KeyType,
    Libp2pError,
    Limits,
    Multiaddr,
    PeerId,
    PrivateKey,
    ProtocolNotSupported,
    PublicKey,
    Received,
    RemoteEnded,
    StaticKeys,
    StreamReset,
)
from waku.libp2p.gossipsub_pb2 import GossipRpc
from waku.libp2p.libp2p_pb2 import Identify
from waku.libp2p.mplex import Mplex
from waku.libp2p.multistream import MULTISTREAM, Dialler, Listener, line
from waku.libp2p.muxer import Muxer, MuxerEvent, StreamOpened
from waku.libp2p.noise import HandshakeState, NoiseSession
from waku.libp2p.yamux import Yamux

from .case import Result, cases, first_difference

Check = Callable[[Any], str | None]

LIMITS = Limits()
ONE_MUXER = {Yamux.protocol: Yamux, Mplex.protocol: Mplex}


def listed(check: Check) -> Callable[[Any], Iterator[Result]]:
    """A check of whole files from the check of one case."""
    return lambda document: cases({"cases": document}, check)


def multiaddr(case: Any) -> str | None:
    address = Multiaddr.parse(case["input"])
    encoded = bytes.fromhex(case["expected"])
    return first_difference(
        [
            ("encoded", address.encode(), encoded),
            ("decoded", Multiaddr.decode(encoded), address),
            ("written", str(Multiaddr.decode(encoded)), case["input"]),
        ]
    )


def peer_id(case: Any) -> str | None:
    given, expected = case["input"], case["expected"]
    key = PublicKey(bytes.fromhex(expected["public_key_protobuf"]))
    message, signature = bytes.fromhex(given["message"]), bytes.fromhex(expected["signature"])
    pairs: list[tuple[str, object, object]] = [
        ("peer id", str(key.peer_id), expected["peer_id"]),
        ("multihash", key.peer_id.multihash.hex(), expected["peer_id_bytes"]),
        ("CID", PeerId.parse(expected["peer_id_cid"]), key.peer_id),
        ("signature holds", key.verify(message, signature), True),
        ("signature of another message", key.verify(message + b"!", signature), False),
    ]
    if given["kind"] in ("ed25519", "secp256k1"):
        own = PrivateKey(KeyType[given["kind"].upper()], bytes.fromhex(given["secret"]))
        pairs += [
            ("public key", own.public_key, key),
            ("own signature", own.sign(message), signature),
            ("key file", PrivateKey.parse(own.encode()).peer_id, key.peer_id),
        ]
    return first_difference(pairs)


def noise_xx(case: Any) -> str | None:
    """The published vectors of Noise_XX_25519_ChaChaPoly_SHA256."""
    given, expected = case["input"], case["expected"]
    sides = [
        HandshakeState(
            initiator=name == "init",
            static=_x25519(given[f"{name}_static"]),
            ephemeral=_x25519(given[f"{name}_ephemeral"]),
            prologue=bytes.fromhex(given[f"{name}_prologue"]),
        )
        for name in ("init", "resp")
    ]
    messages = expected["messages"]
    pairs: list[tuple[str, object, object]] = []
    for number, message in enumerate(messages[:3]):
        writer, reader = sides[number % 2], sides[1 - number % 2]
        written = writer.write_message(bytes.fromhex(message["payload"]))
        pairs.append((f"message {number}", written.hex(), message["ciphertext"]))
        pairs.append((f"payload {number}", reader.read_message(written).hex(), message["payload"]))
    if "handshake_hash" in expected:
        pairs.append(("hash", sides[0].handshake_hash.hex(), expected["handshake_hash"]))
    # In flynn's set the initiator writes the first message after the handshake as well.
    first = 0 if "flynn" in case["name"] else 1
    ciphers = [side.split()[0] for side in sides]
    for number, message in enumerate(messages[3:]):
        cipher = ciphers[(first + number) % 2]
        sealed = cipher.encrypt(bytes.fromhex(message["payload"]))
        pairs.append((f"transport {number}", sealed.hex(), message["ciphertext"]))
    return first_difference(pairs)


def noise_libp2p(case: Any) -> str | None:
    """Both sides with fixed keys, libp2p's payloads, and what they encrypt afterwards."""
    given, expected = case["input"], case["expected"]
    sides = [
        NoiseSession(
            initiator=name == "initiator",
            identity=PrivateKey(
                KeyType.ED25519, bytes.fromhex(given[f"{name}_identity_ed25519_seed"])
            ),
            keys=StaticKeys(
                _x25519(given[f"{name}_static_private"]),
                _x25519(given[f"{name}_ephemeral_private"]),
            ),
            muxers=tuple(given["stream_muxers"] or ()),
        )
        for name in ("initiator", "responder")
    ]
    initiator, responder = sides
    pairs: list[tuple[str, object, object]] = []
    for number, message in enumerate(expected["messages"]):
        written = sides[number % 2].data_to_send()
        pairs.append((f"message {number}", written[2:].hex(), message))
        sides[1 - number % 2].receive(written)
    pairs.append(("hash", initiator.handshake_hash.hex(), expected["handshake_hash"]))
    for message in expected["transport"]:
        plain = bytes.fromhex(message["plain"])
        for side, other, name in (
            (initiator, responder, "by_initiator"),
            (responder, initiator, "by_responder"),
        ):
            sealed = side.encrypt(plain)
            if plain:  # an empty plaintext is no message of ours
                pairs.append((name, sealed[2:].hex(), message[name]))
                pairs.append((f"{name}, read", other.receive(sealed), plain))
            else:
                pairs.append((f"{name}, read", other.receive(_framed(message[name])), b""))
                # The counter of an empty message that was recorded passes here, too.
                inside.ciphers(side)[0].encrypt(b"")
    return first_difference(pairs)


def noise_session(case: Any) -> str | None:
    """A whole recorded connection: its handshake byte for byte, then what the peer said."""
    given, expected = case["input"], case["expected"]
    connection = Connection(
        dialler=given["we_dial"],
        identity=PrivateKey(KeyType.ED25519, bytes.fromhex(given["identity_ed25519_seed"])),
        keys=StaticKeys(
            _x25519(given["noise_static_private"]), _x25519(given["noise_ephemeral_private"])
        ),
        now_ms=0,
        muxers=given["muxers_offered"],
        muxers_in_noise=given["muxers_in_noise_payload"],
        supports=lambda _: True,
    )
    sent = connection.data_to_send()
    muxer = None
    for direction, data in given["wire"]:
        if direction == "in":
            connection.receive(bytes.fromhex(data), 0)
            sent += connection.data_to_send()
            while (event := connection.next_event()) is not None:
                muxer = getattr(event, "muxer", muxer)
    recorded = b"".join(bytes.fromhex(data) for way, data in given["wire"] if way == "out")
    messages = 2 if given["we_dial"] else 1
    remote = connection.remote
    assert remote is not None
    return first_difference(
        [
            ("handshake", _handshake(sent, messages), _handshake(recorded, messages)),
            ("peer id", str(remote.peer_id), expected["remote_peer_id"]),
            ("public key", remote.public_key.encoded.hex(), expected["remote_public_key"]),
            ("static key", remote.static_key.hex(), expected["remote_static"]),
            ("muxer", muxer, expected["muxer"]),
        ]
    )


def muxer_session(case: Any) -> str | None:
    """The plain bytes of a recorded connection, both ways; a second muxer reads what we wrote."""
    given = case["input"]
    kind, we_dial = ONE_MUXER[given["muxer"]], given["we_dial"]
    ours, mirror = kind(dialler=we_dial, limits=LIMITS), kind(dialler=not we_dial, limits=LIMITS)
    seen: list[MuxerEvent] = []
    dropped: set[int | None] = set()
    negotiated = {"in": 0, "out": 0}
    preface = line(MULTISTREAM) + line(given["muxer"])
    if not _in_noise(given["plain"], preface):
        negotiated = {"in": len(preface), "out": len(preface)}
    for direction, text in given["plain"]:
        data = bytes.fromhex(text)
        skipped = min(negotiated[direction], len(data))
        negotiated[direction] -= skipped
        if direction == "out":
            _read(mirror, data[skipped:])
            while (event := mirror.next_event()) is not None:
                dropped.add(_do_again(ours, event))
        else:
            _read(ours, data[skipped:])
            while (event := ours.next_event()) is not None:
                seen.append(event)
                if isinstance(event, StreamOpened):
                    mirror.open_stream()
                if isinstance(event, Received):
                    ours.consumed(event.stream_id, len(event.data))
    return first_difference(
        [
            (f"stream {number}", _story(seen, number), story)
            for number, story in _stories(case["expected"])
            if number not in dropped  # recorded events end where we reset a stream
        ]
    )


def multistream(case: Any) -> str | None:
    """The first bytes of a stream, as each side of it."""
    expected = case["expected"]
    dialler_sends = bytes.fromhex(case["input"]["dialler_sends"])
    listener_sends = bytes.fromhex(expected["listener_sends"])
    wishes = expected["lines"][1:]
    agreed = wishes[-1] if expected["answer_lines"][-1] != "na" else None
    listener, dialler = Listener(lambda text: text == agreed, LIMITS), Dialler(wishes, LIMITS)
    asked = dialler.data_to_send()
    ahead = dialler_sends[len(asked) :]
    # What is sent ahead for a protocol that is refused ends the negotiation (T3).
    with suppress(Libp2pError):
        listener.receive(dialler_sends)
    with suppress(ProtocolNotSupported):
        dialler.receive(listener_sends)
    return first_difference(
        [
            ("wish", dialler_sends.startswith(asked), True),
            ("answer", listener_sends.startswith(listener.data_to_send()), True),
            ("agreed", dialler.protocol, agreed),
            ("the listener agreed", listener.protocol, agreed),
            ("sent ahead", listener.rest if agreed else ahead, ahead),
        ]
    )


def multistream_raw(case: Any) -> str | None:
    """Dialogues with go-multistream, with us in its place: what it takes we take, what ends its
    connection is a violation here."""
    listener = Listener(lambda text: text in ("/noise", "/tls/1.0.0"), LIMITS)
    answers, failed = b"", False
    if any("/tls" in bytes.fromhex(data).decode("latin1") for _, data in case["input"]["dialogue"]):
        listener = Listener("/tls/1.0.0".__eq__, LIMITS)
    try:
        for _, data in case["input"]["dialogue"]:
            if listener.protocol is None:
                listener.receive(bytes.fromhex(data))
                answers += listener.data_to_send()
    except Libp2pError:
        failed = True
        answers += listener.data_to_send()
    recorded = b"".join(bytes.fromhex(d) for way, d in case["expected"]["dialogue"] if way == "in")
    ended = any(way in ("closed", "reset") for way, _ in case["expected"]["dialogue"])
    pairs: list[tuple[str, object, object]] = [("answers", answers, recorded)]
    if ended and listener.protocol is None:
        pairs.append(("ends", failed, True))
    return first_difference(pairs)


def identify(case: Any) -> str | None:
    message = Identify.FromString(bytes.fromhex(case["input"]))
    return first_difference(_fields(message, case["expected"]))


def _fields(message: Any, expected: Any) -> list[tuple[str, object, object]]:
    pairs: list[tuple[str, object, object]] = []
    for name, recorded in expected.items():
        ours = getattr(message, name)
        if isinstance(ours, bytes):
            ours = ours.hex()
        elif isinstance(recorded, list):
            ours = [value.hex() if isinstance(value, bytes) else value for value in ours]
        pairs.append((name, ours, recorded))
    return pairs


def _x25519(text: str) -> X25519PrivateKey:
    return X25519PrivateKey.from_private_bytes(bytes.fromhex(text))


def _handshake(data: bytes, messages: int) -> bytes:
    """The negotiation of noise, and so many of its messages."""
    end = data.index(line("/noise")) + len(line("/noise"))
    for _ in range(messages):
        end += 2 + int.from_bytes(data[end : end + 2], "big")
    return data[:end]


def _framed(text: str) -> bytes:
    data = bytes.fromhex(text)
    return len(data).to_bytes(2, "big") + data


def _in_noise(plain: Any, preface: bytes) -> bool:
    """Whether the muxer was agreed in the noise payload, so that no multistream comes before."""
    return not any(preface.startswith(bytes.fromhex(data)[:20]) for _, data in plain[:2])


def _read(muxer: Muxer, data: bytes) -> None:
    if data:
        muxer.receive(data)


def _do_again(muxer: Muxer, event: MuxerEvent) -> int | None:
    """Do what the mirror saw us do; the number of the stream if that was to reset it."""
    match event:
        case StreamOpened():
            muxer.open_stream()
        case Received(stream_id, data):
            muxer.send(_number_here(muxer, stream_id), data)
        case RemoteEnded(stream_id):
            muxer.end(_number_here(muxer, stream_id))
        case StreamReset(stream_id):
            muxer.reset(_number_here(muxer, stream_id))
            return _number_here(muxer, stream_id)
    return None


def _number_here(muxer: Muxer, stream_id: int) -> int:
    """A stream's number on the other side: mplex counts streams of each side from 0."""
    return stream_id if isinstance(muxer, Yamux) else -(stream_id + 1)


_Story = tuple[bytes, bool, bool]
"""All bytes of a stream, whether the peer ended it, and whether it opened it."""


def _story(events: list[MuxerEvent], stream_id: int) -> _Story:
    data = b"".join(e.data for e in events if isinstance(e, Received) and e.stream_id == stream_id)
    return data, RemoteEnded(stream_id) in events, StreamOpened(stream_id) in events


def _stories(expected: Any) -> Iterator[tuple[int, _Story]]:
    events = expected["events"]
    for number in sorted({event[1] for event in events}):
        data = "".join(e[2] for e in events if e[0] == "Received" and e[1] == number)
        kinds = {event[0] for event in events if event[1] == number}
        yield number, (bytes.fromhex(data), "RemoteEnded" in kinds, "StreamOpened" in kinds)


def gossip_rpc(case: Any) -> str | None:
    """An RPC of gossipsub: what it says, and that the same is written."""
    data, expected = bytes.fromhex(case["input"]), case["expected"]
    rpc, control = GossipRpc.FromString(data), expected.get("control", {})
    return first_difference(
        [
            ("written", rpc.SerializeToString(), data),
            (
                "subscriptions",
                [(one.topic, one.subscribe) for one in rpc.subscriptions],
                [(one["topicid"], one["subscribe"]) for one in expected.get("subscriptions", ())],
            ),
            (
                "messages",
                [(one.topic, one.data.hex()) for one in rpc.publish],
                [(one["topic"], one["data"]) for one in expected.get("publish", ())],
            ),
            (
                "have",
                [(one.topic, [i.hex() for i in one.message_ids]) for one in rpc.control.have],
                [(one["topicID"], one["messageIDs"]) for one in control.get("ihave", ())],
            ),
            (
                "want",
                [[i.hex() for i in one.message_ids] for one in rpc.control.want],
                [one["messageIDs"] for one in control.get("iwant", ())],
            ),
            (
                "graft",
                [one.topic for one in rpc.control.graft],
                [one["topicID"] for one in control.get("graft", ())],
            ),
            (
                "prune",
                [(one.topic, one.backoff_s) for one in rpc.control.prune],
                [(one["topicID"], one["backoff"]) for one in control.get("prune", ())],
            ),
        ]
    )


CHECKS: dict[str, Callable[[Any], Iterator[Result]]] = {
    "multiaddrs": listed(multiaddr),
    "peer_ids": listed(peer_id),
    "noise_cacophony": listed(noise_xx),
    "noise_libp2p_fixed": listed(noise_libp2p),
    "noise_sessions": listed(noise_session),
    "muxer_sessions": listed(muxer_session),
    "multistream": listed(multistream),
    "multistream_raw": listed(multistream_raw),
    "messages_identify": listed(identify),
    "gossipsub_rpcs": listed(gossip_rpc),
}
