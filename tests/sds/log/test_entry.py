"""How an entry of the log shows itself."""

from __future__ import annotations

from reliable_channel.sds.log.entry import SHOWN_BYTES, LogEntry


def test_it_shows_its_content() -> None:
    assert repr(LogEntry("id", "alice", 7, b"coo")) == "LogEntry('id', 'alice', 7, b'coo')"


def test_of_long_content_it_shows_the_beginning_and_the_length() -> None:
    shown = repr(LogEntry("id", "alice", 7, b"x" * 150_000))
    assert shown.endswith(f"{b'x' * SHOWN_BYTES!r}… (150000 bytes))")
