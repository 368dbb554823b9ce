"""What Jupyter shows of a log and of events."""

import re
from html import unescape
from typing import get_args

import pytest

from reliable_channel import MessageReceived, ReliableChannel
from reliable_channel._message_log import MAX_TEXT, SHOWN_ENTRIES, Log, table
from reliable_channel.events import AnyEvent
from reliable_channel.sds.message import LogEntry

pytestmark = pytest.mark.anyio


def cells(html: str) -> list[list[str]]:
    """The texts of a table, row by row."""
    rows = re.findall("<tr>(.*?)</tr>", html, re.DOTALL)
    return [
        [unescape(cell) for cell in re.findall("<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)]
        for row in rows
    ]


def log_of(*contents: bytes) -> Log:
    return Log(
        LogEntry(f"{number:064}", "bob", number, content) for number, content in enumerate(contents)
    )


async def test_the_log_of_a_channel_is_a_table() -> None:
    async with ReliableChannel("memory://table", channel_id="lab", sender_id="alice") as alice:
        request = await alice.send(b"temperature 21.5")
        shown = alice.log()
    assert isinstance(shown, Log) and shown[0].content == b"temperature 21.5"
    assert cells(shown._repr_html_()) == [
        ["", "sender", "content", "message id"],
        ["0", "alice", "temperature 21.5", request.message_id[:8]],
    ]


def test_markup_and_control_characters_of_others_are_shown_as_text() -> None:
    html = log_of(b"<script>alert(1)</script>\x1b[2J\nalice: I owe you 100")._repr_html_()
    assert "<script" not in html and "\x1b" not in html and "\n" not in html
    assert cells(html)[1][2] == r"<script>alert(1)</script>\x1b[2J\nalice: I owe you 100"
    assert "<b>" not in table(("<b>",), [('"<b>',)])


def test_bytes_that_are_no_text_are_shown_as_python_writes_them() -> None:
    assert cells(log_of(b"\xff\x00")._repr_html_())[1][2] == r"b'\xff\x00'"


def test_of_a_long_text_the_beginning_is_shown() -> None:
    shown = cells(log_of(b"a" * 10_000)._repr_html_())[1][2]
    assert shown == "a" * MAX_TEXT + "… (10000 characters)"


def test_of_a_long_log_the_first_and_last_entries_are_shown() -> None:
    log = log_of(*(b"%d" % number for number in range(1_000)))
    rows = cells(log._repr_html_())[1:]
    half = SHOWN_ENTRIES // 2
    assert [row[0] for row in rows] == [
        *map(str, range(half)),
        "…",
        *map(str, range(1_000 - half, 1_000)),
    ]
    assert rows[half][2] == f"{1_000 - SHOWN_ENTRIES} more"
    assert len(cells(Log(log[:SHOWN_ENTRIES])._repr_html_())) == 1 + SHOWN_ENTRIES


def test_every_event_is_a_table_of_its_fields() -> None:
    event = MessageReceived("an id", "mal<i>", b"<b>hello", 7, 0)
    shown = cells(event._repr_html_())  # type: ignore[attr-defined]
    assert shown[0] == ["MessageReceived", ""]
    assert dict(shown[1:])["content"] == "<b>hello" and dict(shown[1:])["sender_id"] == "mal<i>"
    assert all(hasattr(kind, "_repr_html_") for kind in get_args(AnyEvent))
