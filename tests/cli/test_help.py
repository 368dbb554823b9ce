"""Help fits a terminal of 80 columns, and shows people what people need."""

from contextlib import redirect_stdout, suppress
from io import StringIO
from typing import Any

import pytest
from typer.testing import CliRunner

from reliable_channel.cli.lazy_command import loaded_command
from reliable_channel.cli.main import STATE_COMMANDS, command_line

from .test_lazy_command import ALL

COLUMNS = 80
WITHOUT_JSON = {
    "chat": "for people; `listen` and `send` are for programs",
    "peer": "prints nothing but JSON lines",
    "run": "a bot: it logs, and prints nothing",
}
PRINTING = [(name, module) for name, module, _ in ALL if name not in WITHOUT_JSON]
PRINTING += [(name, "reliable_channel.cli.state") for name in STATE_COMMANDS]
PEOPLE = ("chat", "listen", "send")
BESIDE = {"--help", "--help-all", "--json", "--log-level", "--verbose"}
"""Flags that every command has, beside those of a channel."""


def help_texts(name: str, module: str) -> list[str]:
    command = loaded_command(name, module)
    flags = ["--help"]
    if any("--help-all" in parameter.opts for parameter in command.params):
        flags.append("--help-all")
    return [_output(loaded_command(name, module), flag) for flag in flags]


def _output(command: Any, flag: str) -> str:
    written = StringIO()
    with redirect_stdout(written), suppress(SystemExit):
        command.main([flag], prog_name=f"reliable-channel {command.name}")
    return written.getvalue()


@pytest.mark.parametrize(("name", "module"), [one[:2] for one in ALL], ids=[one[0] for one in ALL])
def test_nothing_is_cut_off_at_80_columns(
    name: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    texts = help_texts(name, module)
    for text in texts:
        assert f"Usage: reliable-channel {name}" in text
        assert max(map(len, text.splitlines())) <= COLUMNS
    shown = "".join(texts[-1].split())
    for parameter in loaded_command(name, module).params:
        assert "".join((getattr(parameter, "help", "") or "").split()) in shown
    declared = {
        flag for parameter in loaded_command(name, module).params for flag in parameter.opts
    }
    assert [flag for flag in declared if flag.startswith("--") and flag not in texts[-1]] == []


def test_the_list_of_commands_is_whole_at_80_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    text = CliRunner().invoke(command_line(), ["--help"]).output
    assert max(map(len, text.splitlines())) <= COLUMNS
    assert "..." not in text.partition("Commands:")[2] and "…" not in text
    for _, _, summary in ALL[:7]:
        assert summary.split()[-1] in text


@pytest.mark.parametrize("name", PEOPLE)
def test_people_see_some_eight_flags(name: str) -> None:
    command = loaded_command(name, f"reliable_channel.cli.{name}")
    flags = {
        max(parameter.opts, key=len)
        for parameter in command.params
        if not getattr(parameter, "hidden", False) and parameter.opts[0].startswith("-")
    }
    assert 7 <= len(flags - BESIDE) <= 10, flags
    assert len(help_texts(name, f"reliable_channel.cli.{name}")[0].splitlines()) < 40


@pytest.mark.parametrize(("name", "module"), PRINTING, ids=[name for name, _ in PRINTING])
def test_a_command_that_prints_data_can_print_json(name: str, module: str) -> None:
    flags = {flag for one in loaded_command(name, module).params for flag in one.opts}
    assert "--json" in flags
