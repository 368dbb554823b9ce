"""The page of commands has every command and every flag of the program."""

import re
from typing import Any

import pytest
import typer

from docs import commands
from reliable_channel.cli.main import command_line
from tests.cli.in_process import run


@pytest.fixture(autouse=True)
def all_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RELIABLE_CHANNEL_PLUGINS", raising=False)


def sections() -> dict[str, str]:
    parts = re.split(r"(?m)^## ", commands.PAGE.read_text())
    return {part.partition("\n")[0]: part for part in parts}


def flags(section: str) -> set[str]:
    """The flags of the first column."""
    cells = re.findall(r"(?m)^\| (?:`|<code>)(.*?)(?:`|</code>) \|", section)
    return {word for cell in cells for word in re.findall(r"(?<!\S)--?[a-z][\w-]*", cell)}


def test_the_page_is_that_of_the_commands() -> None:
    assert commands.page() == commands.PAGE.read_text(), "run `make docs`"


def test_it_has_each_flag_of_the_command_tree() -> None:
    found = sections()
    shared = flags(found["Flags of every command"]) | {"--help", "-h"}
    channel = flags(found["Flags of a channel"])

    def missing(name: str, command: Any) -> set[str]:
        if hasattr(command, "commands"):
            lists = (missing(f"{name} {word}", one) for word, one in command.commands.items())
            return set().union(*lists)
        real = command.make_context(name, [], resilient_parsing=True).command
        known = flags(found[name]) | shared
        if "flags of a channel" in found[name]:
            known |= channel
        options = [one for one in real.params if one.param_type_name == "option"]
        wanted = {flag for one in options for flag in (*one.opts, *one.secondary_opts)}
        return {f"{name} {flag}" for flag in wanted - known}

    assert missing("reliable-channel", typer.main.get_command(command_line())) == set()


@pytest.mark.parametrize("words", [("send", "--help-all"), ("check", "--help")])
def test_it_has_what_the_program_prints(words: tuple[str, str]) -> None:
    printed = run(*words).stdout
    found = sections()
    known = flags(found[f"reliable-channel {words[0]}"]) | flags(found["Flags of every command"])
    if "--help-all" in words:
        known |= flags(found["Flags of a channel"])
    listed = re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", printed)
    assert set(listed) - {"--help"} <= known and len(listed) > 4
    groups = {name.split()[1] for name in found if name.startswith("reliable-channel ")}
    assert {"chat", "bot", "state", "watch", "audit"} <= groups
