"""Payloads become columns; what is no message becomes a row that says why."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from reliable_channel._contracts.encryption import Encryption, EncryptionPair
from reliable_channel._plugins.loading import SELECTION
from reliable_channel.sds.dialects import NimCodec, SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message
from reliable_channel_audit.decode import NamedEncryption, decode_batch, decoded
from reliable_channel_encryption import Keyring, Secret, SymmetricEncryption

SAID = Message(
    "alice",
    "m3",
    "general",
    1_700_000_000_000,
    (HistoryEntry("m1", b"h" * 32), HistoryEntry("m2")),
    b"bloom",
    (HistoryEntry("m0", None, "bob"),),
    b"hello",
)
SYNC = Message("bob", "s1", "general", 1_700_000_000_001, (HistoryEntry("m3"),), b"bloom")
ROW = {
    "channel_id": "general",
    "sender_id": "alice",
    "message_id": "m3",
    "lamport_timestamp": 1_700_000_000_000,
    "causal_history": ["m1", "m2"],
    "repair_request": ["m0"],
    "content": b"hello",
    "signature": None,
    "bloom_filter": None,
    "error": None,
}


KEYS = SymmetricEncryption(Keyring(Secret.generate()), context=b"general")


def decode(*payloads: bytes | None, **options: Any) -> list[dict[str, object]]:
    rows: list[dict[str, object]]
    rows = decode_batch(pa.array(payloads, pa.binary()), **options).to_pylist()
    return rows


@pytest.mark.parametrize(("dialect", "codec"), [("spec", SpecCodec()), ("nim", NimCodec())])
def test_both_dialects(dialect: str, codec: SpecCodec | NimCodec) -> None:
    assert decode(codec.encode(SAID)) == [{"dialect": dialect, "kind": "content", **ROW}]


def test_kinds_and_blooms() -> None:
    said, sync = decode(SpecCodec().encode(SAID), SpecCodec().encode(SYNC), blooms=True)
    assert (said["kind"], sync["kind"]) == ("content", "sync")
    assert (said["bloom_filter"], sync["content"]) == (b"bloom", None)


def test_what_is_no_message_says_why() -> None:
    far = Message("alice", "m", "general", 2**64 - 1, (), None, (), b"content")
    broken, empty, ahead, null = decode(b"\xff\xff", b"", SpecCodec().encode(far), None)
    assert str(broken["error"]).startswith("the bytes are not an SDS message")
    assert str(empty["error"]).startswith("the message has neither lamport_timestamp nor")
    assert str(ahead["error"]).startswith("lamport_timestamp 18446744073709551615")
    assert set(null.values()) == {None}
    assert decode() == []


def sealed(content: bytes) -> bytes:
    return anyio.run(KEYS.encrypt, content)


def test_sealed_messages() -> None:
    message = SpecCodec().encode(SAID)
    tampered = sealed(message)[:-1] + b"?"
    rows = decode(sealed(message), tampered, message, None, sealed(b"?"), outer=KEYS)
    said, *others, unread = rows
    assert said == {"dialect": "spec", "kind": "content", **ROW}
    for other in others[:2]:
        assert str(other.pop("error")).startswith("not for this key, or tampered with: ")
    assert {value for other in others for value in other.values()} == {None}
    assert str(unread["error"]).startswith("the bytes are not an SDS message")


def test_sealed_contents() -> None:
    codec = SpecCodec()
    said, clear, sync = decode(
        codec.encode(replace(SAID, content=sealed(b"hello"))),
        codec.encode(SAID),
        codec.encode(SYNC),
        inner=KEYS,
    )
    assert said == {"dialect": "spec", "kind": "content", **ROW}
    assert str(clear["error"]).startswith("not for this key, or tampered with: ")
    assert (clear["message_id"], clear["content"]) == ("m3", None)
    assert (sync["kind"], sync["content"], sync["error"]) == ("sync", None, None)


def test_whatever_an_encryption_does_is_a_row() -> None:
    async def broken(payload: bytes) -> bytes:
        raise RuntimeError("out of order")

    async def wrong(payload: bytes) -> Any:
        return payload.hex()

    (one,) = decode(b"sealed", outer=EncryptionPair(broken, broken))
    assert one["error"] == "the encryption failed: RuntimeError('out of order')"
    (other,) = decode(b"sealed", outer=EncryptionPair(broken, wrong))
    assert other["error"] == "the encryption gave str, not bytes"


def test_keys_by_name_in_workers(spark: SparkSession, tmp_path: Path) -> None:
    secret, message = Secret.generate(), SpecCodec().encode(SAID)
    (tmp_path / "keys").write_text(secret.reveal().hex())
    theirs = SymmetricEncryption(Keyring(secret), context=b"general")
    rows = [(1, bytearray(anyio.run(theirs.encrypt, message))), (2, bytearray(sealed(message)))]
    frame = spark.createDataFrame(rows, "number long, payload binary")
    named = NamedEncryption(f"aes-256-gcm:///{tmp_path / 'keys'}", "general")

    def with_plugin() -> Encryption:
        """In a worker, where the tests' plugins are none."""
        os.environ[SELECTION] = "encryption"
        return named()

    found = decoded(frame, encryption=with_plugin).select(
        "number", "message.message_id", "message.error"
    )
    opened, other = found.orderBy("number").collect()
    assert tuple(opened) == (1, "m3", None)
    assert other.error.startswith("not for this key")
    with pytest.raises(ValueError, match=r"`encryption_order` must be .* \(got 'both'\)"):
        decoded(frame, encryption=named, encryption_order="both")


def test_a_column_of_any_table(spark: SparkSession) -> None:
    rows = [(1, bytearray(SpecCodec().encode(SAID))), (2, bytearray(b"\xff"))]
    frame = spark.createDataFrame(rows, "number long, payload binary")
    found = decoded(frame).select("number", "message.message_id", "message.error").collect()
    assert [(row.number, row.message_id) for row in found] == [(1, "m3"), (2, None)]
    assert found[0].error is None
    assert found[1].error.startswith("the bytes are not an SDS message")
