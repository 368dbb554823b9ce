"""The C functions of libsds through ctypes, against a stand-in with its manners."""

from pathlib import Path

import pytest

from reliable_channel.sds import NIM
from reliable_channel.spi import HistoryEntry, Message
from reliable_channel_conformance.libsds.library import Library, LibraryRefused


def said(message_id: str, *history: str, content: bytes = b"content") -> bytes:
    entries = [HistoryEntry(each) for each in history]
    return NIM.codec.encode(Message("alice", message_id, "c", 7_000, entries, b"", content=content))


def test_what_is_wrapped_is_a_message_of_the_dialect(stand_in: Path) -> None:
    library = Library(stand_in)
    first = NIM.codec.decode(library.wrap(b"\x00\xffhello", "m1", "c"))
    second = NIM.codec.decode(library.wrap(b"again", "m2", "c"))
    assert (first.message_id, first.channel_id, first.content) == ("m1", "c", b"\x00\xffhello")
    assert list(second.causal_ids) == ["m1"]
    library.close()


def test_a_message_that_waits_names_what_is_missing_and_is_ready_before_it(stand_in: Path) -> None:
    library = Library(stand_in)
    waits = library.unwrap(said("m2", "m1", content=b"second"))
    assert (waits.channel_id, waits.content) == ("c", b"second")
    assert [each.message_id for each in waits.missing] == ["m1"]
    assert library.events() == []
    assert library.unwrap(said("m1")).missing == ()
    assert [(e.kind, e.message_id) for e in library.events()] == [
        ("message_ready", "m2"),
        ("message_ready", "m1"),
    ]
    assert library.unwrap(said("m1")).missing == ()  # a duplicate
    assert library.events() == []
    library.close()


def test_what_will_not_come_can_be_marked_as_met(stand_in: Path) -> None:
    library = Library(stand_in)
    library.unwrap(said("m2", "m1"))
    library.mark_met(["m1"], "c")
    assert "m2" in [each.message_id for each in library.events()]
    library.close()


def test_an_own_message_that_is_referred_to_was_sent(stand_in: Path) -> None:
    library = Library(stand_in)
    library.wrap(b"hello", "m1", "c")
    library.unwrap(said("m2", "m1"))
    events = [(each.kind, each.message_id) for each in library.events()]
    assert ("message_sent", "m1") in events
    library.close()


def test_errors_are_the_library_s_words(stand_in: Path) -> None:
    library = Library(stand_in)
    with pytest.raises(LibraryRefused, match="channel ID is empty string"):
        library.wrap(b"hello", "m1", "")
    with pytest.raises(LibraryRefused, match="reDeserializationError"):
        library.unwrap(b"garbage")
    library.close()


def test_another_library_is_refused() -> None:
    with pytest.raises(OSError, match=r"has no function SdsNewReliabilityManager"):
        Library(Path("libc.so.6"))
    with pytest.raises(OSError, match=r"missing\.so"):
        Library(Path("/nowhere/missing.so"))
