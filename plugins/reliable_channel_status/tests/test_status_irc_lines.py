"""Lines of IRC: parsing, writing, cutting, and what nobody should send."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel_status.irc import Line, LineBuffer, parse, pieces, without_format
from reliable_channel_status.irc.lines import MAX_RECEIVED_BYTES


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"PING :abc", Line("PING", ("abc",))),
        (b":srv 001 me :Hello there", Line("001", ("me", "Hello there"), "srv")),
        (b":a!b@c PRIVMSG #tea :: hi :)\r", Line("PRIVMSG", ("#tea", ": hi :)"), "a!b@c")),
        (b"@msgid=x\\:1;time=t :a PRIVMSG #t hi", Line("PRIVMSG", ("#t", "hi"), "a", "x;1")),
        (b"  join  #tea ", Line("JOIN", ("#tea",))),
        (b":a!b@c PRIVMSG #tea :\xff\xfe", Line("PRIVMSG", ("#tea", "\ufffd\ufffd"), "a!b@c")),
        (b"PRIVMSG #tea :", Line("PRIVMSG", ("#tea", ""))),
        (b"", None),
        (b":only.source", None),
        (b"12 x", None),
    ],
)
def test_a_line_is_parsed(data: bytes, line: Line | None) -> None:
    assert parse(data) == line


def test_a_line_is_written_and_read_back() -> None:
    line = Line("PRIVMSG", ("#tea", "hello: world"))
    assert line.encode() == b"PRIVMSG #tea :hello: world\r\n"
    assert parse(line.encode()) == line


@pytest.mark.parametrize(
    "params", [("#tea", "a\r\nQUIT"), ("#tea x", "y"), ("", "y"), (":x", "y"), ("#tea", "x" * 500)]
)
def test_what_would_be_another_line_is_refused(params: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"line|parameter"):
        Line("PRIVMSG", params).encode()


@given(st.lists(st.binary(max_size=40)), st.integers(1, 7))
def test_lines_come_however_they_are_cut(lines: list[bytes], size: int) -> None:
    data = b"\r\n".join(one.replace(b"\n", b"") for one in lines) + b"\n"
    whole, cut = LineBuffer(), LineBuffer()
    expected = list(whole.feed(data))
    found = [x for at in range(0, len(data), size) for x in cut.feed(data[at : at + size])]
    assert found == expected and whole.dropped == cut.dropped


def test_a_line_without_end_is_dropped_and_memory_is_bounded() -> None:
    buffer = LineBuffer()
    for _ in range(1_000):
        assert list(buffer.feed(b"x" * 1_000)) == []
        assert len(buffer._rest) <= MAX_RECEIVED_BYTES
    assert list(buffer.feed(b"tail\nPING :a\n")) == [Line("PING", ("a",))]
    assert buffer.dropped == 1


def test_colors_are_taken_away() -> None:
    assert without_format("\x0304,12red\x03 \x02bold\x0f \x1d\x04ff0000x") == "red bold x"


@given(st.text(), st.integers(10, 400), st.integers(1, 5))
def test_pieces_fit_and_are_few(text: str, max_bytes: int, most: int) -> None:
    found = pieces(text, max_bytes, most)
    assert len(found) <= most
    for one in found:
        assert one and len(one.encode("utf-8", "replace")) <= max_bytes
        assert not set(one) & set("\r\n\0")
        with suppress(ValueError):
            Line("PRIVMSG", ("#t", one)).encode()


def test_pieces_are_cut_between_words_and_show_what_is_missing() -> None:
    assert pieces("one two three", 8, 5) == ["one two", "three"]
    assert pieces("a\n\n b \nc", 10, 2) == ["a", "b"]
    assert pieces("äöü" * 10, 12, 2) == ["äöüäöü", "äöüä…"]
