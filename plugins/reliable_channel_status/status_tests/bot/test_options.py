"""Settings of a bot from a file and the environment."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from reliable_channel.config import FILE_VARIABLE, channel_settings
from reliable_channel_status.bot import Between, BotOptions, StatusBot, read_settings
from status_tests.world import BOB, COMMUNITY, GENERAL


@dataclass(frozen=True)
class Tea:
    kind: Literal["green", "black"]
    cups: Annotated[int, Between(1, 9)] = 2
    steep: timedelta = timedelta(minutes=3)
    loud: bool = False
    guests: tuple[str, ...] = ()


@dataclass(frozen=True)
class Shelf:
    place: Path
    names: tuple[str, ...] = ()
    full: bool = False
    price: float = 1.5


FILE = f"""
[channel]
channel_id = "orders"

[bot]
node = "http://node"
community = "{COMMUNITY.id}"
channels = ["{GENERAL}"]
poll_ms = 500
request_membership = false

[bot.shelf]
place = "/srv/tea"
names = ["a b", "c"]
full = true
price = 2
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "bot.toml"
    path.write_text(FILE)
    return path


def test_the_file_and_then_the_environment_give_settings(file: Path) -> None:
    assert read_settings(Shelf, "shelf", file=file, environment={}) == Shelf(
        Path("/srv/tea"), ("a b", "c"), True, 2.0
    )
    variables = {
        FILE_VARIABLE: str(file),
        "RELIABLE_CHANNEL_BOT_SHELF_NAMES": "x y",
        "RELIABLE_CHANNEL_BOT_SHELF_FULL": "no",
        "RELIABLE_CHANNEL_BOT_SHELF_PRICE": "",
    }
    assert read_settings(Shelf, "shelf", environment=variables) == Shelf(
        Path("/srv/tea"), ("x", "y"), False, 2.0
    )


def test_a_bot_takes_its_arguments_and_options(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RELIABLE_CHANNEL_BOT_MODERATORS", BOB.public_key.hex)
    monkeypatch.setenv("RELIABLE_CHANNEL_BOT_DISPLAY_NAME", "tea bot")
    monkeypatch.setenv("RELIABLE_CHANNEL_BOT_WAKU_VERSION", "0")
    bot = StatusBot.configured(file, options=BotOptions(poll_ms=7, history_ms=9))
    assert bot.options.poll_ms == 500 and bot.options.history_ms == 9
    assert bot.options.display_name == "tea bot" and bot.options.waku_version == 0
    assert not bot.options.request_membership
    assert [room.name for room in bot.rooms] == [GENERAL]
    other = StatusBot.configured(file, channels=None)
    assert list(other.rooms) == [], "an argument of the program overrides"


def test_a_channel_takes_the_same_file(file: Path) -> None:
    assert channel_settings(file, {}) == {"channel_id": "orders"}


@pytest.mark.parametrize(
    ("text", "variables", "why"),
    [
        ("", {}, "`kind` is missing: give it in [bot.tea] or as RELIABLE_CHANNEL_BOT_TEA_KIND"),
        ("[bot.tea]\nkind = 'red'", {}, "`kind` in `[bot.tea]` must be one of green, black"),
        ("[bot.tea]\ncups = 10", {}, "`cups` in `[bot.tea]` must be between 1 and 9 (got '10')"),
        ("[bot.tea]\nguests = 1", {}, "`guests` in `[bot.tea]` must be a list of texts (got 1)"),
        ("[bot.tea]\ncups = [1]", {}, "`cups` in `[bot.tea]` must be one value (got [1])"),
        ("[bot.tea]\ncpus = 1", {}, "`cpus` in [bot.tea] must be one of kind, cups, steep"),
        ("[bot]\ntea = 1", {}, "`tea` in"),
        ("", {"LOUD": "maybe"}, "`RELIABLE_CHANNEL_BOT_TEA_LOUD` must be yes or no (got 'maybe')"),
        ("", {"STEEP": "3"}, "`RELIABLE_CHANNEL_BOT_TEA_STEEP` must be a duration"),
    ],
)
def test_what_is_wrong_is_named(
    tmp_path: Path, text: str, variables: dict[str, str], why: str
) -> None:
    file = tmp_path / "bot.toml"
    file.write_text(text)
    environment = {f"RELIABLE_CHANNEL_BOT_TEA_{name}": v for name, v in variables.items()}
    with pytest.raises(ValueError, match="`") as raised:
        read_settings(Tea, "tea", file=file, environment=environment)
    assert str(raised.value).startswith(why)


def test_unknown_names_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "bot.toml"
    file.write_text("[bot]\ncomunity = 'x'")
    with pytest.raises(ValueError, match="did you mean `community`"):
        StatusBot.configured(file)


def test_an_annotation_that_no_text_becomes_is_refused() -> None:
    @dataclass
    class Bad:
        what: dict[str, Any]

    with pytest.raises(TypeError, match=r"Bad\.what"):
        read_settings(Bad, "bad", environment={})
