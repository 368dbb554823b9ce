"""Test vectors of single values, such as messages, filters, repair times, ids and segments."""

from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from reliable_channel.sds.ids import reliable_channel_id
from reliable_channel.sds.repair.buffers import in_response_group, t_req, t_resp
from reliable_channel.segmentation import LIP_243_V01, NIM_SEGMENTATION, Segmenter
from reliable_channel.spi import SPEC, BloomParameters, HistoryEntry, Message, RepairOptions
from waku.hashing import message_hash
from waku.models import WakuMessage

from .notation import bits, fields, wire

Case = dict[str, Any]
NOW_MS: Final = 1_760_000_000_000
MAX_UINT64: Final = 2**64 - 1


def messages() -> Iterator[Case]:
    """Yield messages of SDS in the layout of LIP 109, with their bytes."""
    held = filter_of(["m1"], BloomParameters())
    content = Message(
        "alice",
        "ab" * 32,
        "general",
        NOW_MS,
        [HistoryEntry("01" * 32, b"\x07" * 32, "bob"), HistoryEntry("02" * 32)],
        held,
        [HistoryEntry("03" * 32, None, "carol")],
        b"hello",
    )
    for name, message in {
        "content with references, a filter and a repair request": content,
        "content alone": Message("alice", "m2", "general", NOW_MS, content=b"hello"),
        "sync message": replace(content, message_id="sync", content=None, repair_request=()),
        "ephemeral message": Message("alice", "m3", "general", content=b"brief"),
        "greatest Lamport timestamp": Message("a", "m4", "c", MAX_UINT64, content=b"x"),
        "ids that are not ASCII": Message("élise", "m5 ☂", "général", 1, content="ü".encode()),
    }.items():
        yield {"name": name, "fields": fields(message), "wire": wire(SPEC.codec.encode(message))}


def filters() -> Iterator[Case]:
    """Yield bloom filters with the bits that ids set."""
    for capacity, error_rate in ((10_000, 0.001), (100, 0.01)):
        parameters = BloomParameters(capacity, error_rate)
        for count in (0, 1, 3, 50):
            ids = [sha256(f"message {n}".encode()).hexdigest() for n in range(count)]
            yield {
                "name": f"{count} ids in a filter for {capacity}",
                "capacity": capacity,
                "error_rate": error_rate,
                "bits_per_id": parameters.hash_count,
                "bit_count": parameters.bit_count,
                "ids": ids,
                "filter": bits(filter_of(ids, parameters)),
            }


def repairs() -> Iterator[Case]:
    """Yield T_req, T_resp and response groups of SDS-R."""
    for number, (participant, sender) in enumerate(
        (p, s) for p in ("alice", "bob", "carol", "é") for s in ("alice", "dave")
    ):
        message_id = sha256(f"missing {number}".encode()).hexdigest()
        options = RepairOptions(t_min_ms=30_000, t_max_ms=120_000)
        yield {
            "name": f"{participant} and a message of {sender}",
            "participant_id": participant,
            "sender_id": sender,
            "message_id": message_id,
            "now_ms": NOW_MS,
            "t_min_ms": options.t_min_ms,
            "t_max_ms": options.t_max_ms,
            "t_req_ms": t_req(participant, message_id, NOW_MS, options),
            "t_resp_ms": t_resp(participant, sender, message_id, NOW_MS, options),
            "in_group_of": {
                str(groups): in_response_group(participant, sender, message_id, groups)
                for groups in (1, 2, 3, 10)
            },
        }


def message_ids() -> Iterator[Case]:
    """Yield ids of the Reliable Channel API, keccak-256 of sender, decimal nanoseconds and
    content."""
    for sender, stamp_ns, content in (
        ("alice", NOW_MS * 1_000_000, b"hello"),
        ("alice", NOW_MS * 1_000_000 + 1, b"hello"),
        ("élise", 1, b"\x00\xff"),
    ):
        yield {
            "name": f"{sender} at {stamp_ns}",
            "sender_id": sender,
            "timestamp_ns": str(stamp_ns),
            "content": content.hex(),
            "message_id": reliable_channel_id(sender, stamp_ns, content),
        }


def hashes() -> Iterator[Case]:
    """Yield deterministic message hashes of 14/WAKU2-MESSAGE."""
    topic = "/waku/2/rs/1/0"
    for name, message in {
        "a message": WakuMessage(b"payload", "/app/1/chat/proto", timestamp=NOW_MS * 1_000_000),
        "with meta": WakuMessage(b"p", "/app/1/chat/proto", timestamp=1, meta=b"meta"),
        "without a timestamp": WakuMessage(b"p", "/app/1/chat/proto"),
        "before 1970": WakuMessage(b"p", "/app/1/chat/proto", timestamp=-1),
    }.items():
        yield {
            "name": name,
            "pubsub_topic": topic,
            "payload": message.payload.hex(),
            "content_topic": message.content_topic,
            "meta": message.meta.hex(),
            "timestamp_ns": str(message.timestamp),
            "hash": message_hash(topic, message).hex(),
        }


def segments() -> Iterator[Case]:
    """Yield payloads with their segments, in both layouts that are in use."""
    for layout in (NIM_SEGMENTATION, LIP_243_V01):
        for size in (0, 1, 400, 1_000):
            payload = bytes(n % 251 for n in range(size))
            cut = Segmenter(layout, segment_size_bytes=512).split(payload)
            yield {
                "name": f"{size} bytes in {layout.name}",
                "layout": layout.name,
                "segment_size_bytes": 512,
                "payload": payload.hex(),
                "segments": [each.hex() for each in cut],
            }


def filter_of(ids: list[str], parameters: BloomParameters) -> bytes:
    """Return a bloom filter that contains the given ids."""
    words = bytearray(parameters.layout.byte_count)
    for message_id in ids:
        for byte, mask in parameters.layout.probes(message_id):
            words[byte] |= mask
    return bytes(words)
