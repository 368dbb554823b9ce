"""Packed bytes: the same bytes come out, once each, and bad ones cost no memory."""

import zlib
from base64 import b64encode
from random import Random

import pytest

from reliable_channel.runtime import journal_packing
from reliable_channel.runtime.journal_packing import MAX_UNPACKED_BYTES, Packer, Unpacker
from reliable_channel.sds.bloom import BloomParameters, RollingBloomFilter
from reliable_channel.sds.dialects import NimCodec, SpecCodec
from reliable_channel.sds.message import HistoryEntry, Message


def payloads(codec: SpecCodec | NimCodec, count: int) -> list[bytes]:
    """What two participants say in turn, with 50 references and filters for 1,000 messages."""
    random, ids = Random(1), list[str]()
    filters = [RollingBloomFilter(BloomParameters(1_000)) for _ in range(2)]
    found = []
    for number in range(count):
        message_id = random.randbytes(32).hex()
        history = tuple(HistoryEntry(each) for each in ids[-50:])
        sender, content = number % 2, random.randbytes(100)
        message = Message(
            ("alice", "bob")[sender],
            message_id,
            "general",
            (number + 1) * 1_000,
            history,
            bytes(filters[sender]),
            (),
            content,
        )
        found.append(codec.encode(message))
        ids.append(message_id)
        for each in filters:
            each.insert(message_id)
    return found


def packed(given: list[bytes]) -> list[tuple[bool, str]]:
    packer = Packer()
    return [(packer.begins(), packer.pack(each)) for each in given]


def unpacked(lines: list[tuple[bool, str]]) -> list[bytes]:
    unpacker = Unpacker()
    found = []
    for fresh, text in lines:
        if fresh:
            unpacker.begin()
        found.append(unpacker.unpack(text))
    return found


@pytest.mark.parametrize("codec", [SpecCodec(), NimCodec()])
def test_messages_come_out_as_they_went_in(codec: SpecCodec | NimCodec) -> None:
    given = payloads(codec, 200)
    lines = packed(given)
    assert unpacked(lines) == given
    assert sum(len(text) for _, text in lines) < sum(map(len, given)) / 3


def test_a_message_that_comes_again_is_a_few_numbers() -> None:
    given = payloads(SpecCodec(), 20)
    assert len(packed([*given, given[10]])[-1][1]) < 80


def test_whatever_comes_over_the_wire_comes_out_as_it_went_in() -> None:
    random = Random(2)
    given = [random.randbytes(random.randrange(200)) for _ in range(500)]
    given += [b"", b"\x0a", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", b"\x08" * 99]
    (message, *_) = payloads(SpecCodec(), 1)
    given += [message[:length] for length in range(len(message))]
    assert unpacked(packed(given)) == given


def test_what_the_application_receives_is_not_written_again() -> None:
    content = b"as long as a sentence is, and longer"
    message = Message("alice", "id", "general", 1, (), None, (), content)
    packer, unpacker = Packer(), Unpacker()
    packer.begins()
    unpacker.unpack(packer.pack(SpecCodec().encode(message)))
    text = packer.pack_value(content)
    assert text.startswith("~")
    assert unpacker.unpack(text) == content
    assert unpacker.unpack(packer.pack_value(b"short")) == b"short"


@pytest.mark.parametrize("limit", ["MAX_FIELDS", "MAX_REMEMBERED_BYTES", "MAX_PACKED_BYTES"])
def test_numbers_begin_anew_after_a_while(monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(journal_packing, limit, 100 if limit == "MAX_FIELDS" else 40_000)
    given = payloads(SpecCodec(), 200)
    lines = packed(given)
    fresh = [number for number, (is_fresh, _) in enumerate(lines) if is_fresh]
    assert len(fresh) > 2
    assert unpacked(lines[fresh[1] :]) == given[fresh[1] :]


def test_a_lost_line_costs_only_those_that_refer_to_it() -> None:
    given = payloads(SpecCodec(), 100)
    lines = packed(given)
    unpacker = Unpacker()
    found, lost = [], 0
    for number, (_, text) in enumerate(lines):
        if number == 20:
            continue
        try:
            found.append(unpacker.unpack(text) == given[number])
        except LookupError:
            lost += 1
    assert all(found)
    assert 0 < lost < 99


@pytest.mark.parametrize(
    "text",
    ["=?", "=AAE", "x=AAEC", "9999999999=AAEC", "-1", "1-x", "1=AA==^AAEC", "~", "=é", "  "],
)
def test_what_was_not_packed_is_an_error(text: str) -> None:
    with pytest.raises((ValueError, LookupError)):
        Unpacker().unpack(text)


def test_a_journal_that_grows_without_end_when_unpacked_is_refused() -> None:
    unpacker = Unpacker()
    field = b64encode(bytes(1024 * 1024)).decode()
    unpacker.unpack(f"1={field}")
    with pytest.raises(ValueError, match=f"longer than {MAX_UNPACKED_BYTES}"):
        unpacker.unpack(" ".join(["1"] * 40))
    with pytest.raises(LookupError):
        unpacker.unpack("1-999999999")
    bomb = b64encode(zlib.compress(bytes(100 * 1024 * 1024), 9)).decode()
    with pytest.raises(ValueError, match="not as long as its base"):
        unpacker.unpack(f"2=1^{bomb}")
