"""What others write, as a terminal gets it."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reliable_channel import printable
from reliable_channel._terminal_text import printable_name

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
"""Writes the clipboard of terminals that know OSC 52."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("hi\nalice: I owe you 100", "hi\\nalice: I owe you 100"),
        ("hi\r\x1b[2Kalice: yes", "hi\\r\\x1b[2Kalice: yes"),
        (CLIPBOARD, "\\x1b]52;c;cm0gLXJmIH4=\\x07"),
        ("\x9b2J", "\\x9b2J"),
        ("pay \u202e001\u202c", "pay \\u202e001\\u202c"),
        ("\u2066a\u2069\u200f\u061c", "\\u2066a\\u2069\\u200f\\u061c"),
        ("one\u2028two\u2029three\x85four", "one\\u2028two\\u2029three\\x85four"),
        ("half \ud800", "half \\ud800"),
        ("tag \U000e0041", "tag \\U000e0041"),
    ],
)
def test_what_steers_a_terminal_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert printable(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "hello",
        "naïve",
        "שלום",
        "مرحبا",
        "日本\u3000語",
        "👨\u200d👩\u200d👧",
        "می\u200cخواهم",  # noqa: RUF001
        "c:\\new",
    ],
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(st.text(alphabet=st.characters()))
def test_nothing_that_steers_is_left(text: str) -> None:
    left = {
        unicodedata.category(character)
        for character in printable(text)
        if character not in "\u200c\u200d"
    }
    assert not left & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("alice", "alice"),
        ("0x04ab", "0x04ab"),
        ("", '""'),
        ("alice: yes", '"alice: yes"'),
        ('a"b', '"a\\"b"'),
        ("bob smith", '"bob smith"'),
        ("a\nb", "a\\nb"),
    ],
)
def test_one_sees_where_a_name_ends(name: str, shown: str) -> None:
    assert printable_name(name) == shown
