"""What people type on phones calls the command that they see."""

# ruff: noqa: RUF001 - look-alikes are what this is about

import unicodedata
from typing import Literal

import pytest

from reliable_channel_status.bot import Message, StatusBot
from reliable_channel_status.testing import BotTester
from reliable_channel_status.wire.typed_text import first_word

TEXTS = (
    '!poll "red wine" white',
    "!poll “red wine” white",
    "!poll ”red wine” white",  # Swedish: the same mark closes
    "!poll „red wine“ white",  # German
    "!poll „red wine” white",  # Polish
    "!poll «red wine» white",
    "!poll »red wine« white",
    "!poll ‘red wine’ white",
    "!poll ‚red wine‘ white",
    "!poll 'red wine' white",
    "!poll 「red wine」 white",
    " !poll 'red wine' white",
    "\n!poll 'red wine' white",
    "\u200f!poll 'red wine' white",
    "\u200e\u2068!poll 'red wine' white",
    "\ufeff!poll 'red wine' white",
    "\u200b !poll 'red wine' white",
    "！poll 'red wine' white",
    "!poll\u200f 'red wine' white",
    "!POLL 'red wine' white",
    "!ｐｏｌｌ 'red wine' white",
    "!poll\u00a0'red wine'\u3000white",
)


@pytest.mark.parametrize("text", TEXTS)
def test_it_calls_the_command_that_it_shows(text: str) -> None:
    bot = StatusBot(node="http://node")
    bot.join_public("tea")
    bot.command("poll")(_poll)
    with BotTester(bot) as tester:
        assert tester.user("Alice").asks(text) == "red wine|white"


async def _poll(message: Message, *choices: str) -> str:
    return "|".join(choices)


@pytest.mark.parametrize("form", ["NFC", "NFD"])
@pytest.mark.parametrize("named", ["NFC", "NFD"])
def test_composed_and_decomposed_names_are_the_same(
    named: Literal["NFC", "NFD"], form: Literal["NFC", "NFD"]
) -> None:
    bot = StatusBot(node="http://node")
    bot.join_public("tea")
    bot.command(unicodedata.normalize(named, "café"))(_poll)
    group = bot.command_group(unicodedata.normalize(named, "thé"), "About tea.")
    group.command(unicodedata.normalize(named, "versé"))(_poll)
    with BotTester(bot) as tester:
        alice = tester.user("Alice")
        assert alice.asks(unicodedata.normalize(form, "!café au lait")) == "au|lait"
        assert alice.asks(unicodedata.normalize(form, "!thé versé vite")) == "vite"


@pytest.mark.parametrize(
    ("text", "word", "rest"),
    [
        ("’tis tea", "’tis", "tea"),
        ("don't 'say so'", "don't", "'say so'"),
        ("'it's mine' rest", "it's mine", " rest"),
        ("“open end", "“open", "end"),
        ("'' rest", "", " rest"),
        ("", "", ""),
    ],
)
def test_an_apostrophe_is_no_quote(text: str, word: str, rest: str) -> None:
    assert first_word(text) == (word, rest)
