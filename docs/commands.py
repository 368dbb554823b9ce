"""Write docs/api/commands.md: every command and flag, from what the commands declare.

`make docs` writes it, a test holds it to the command tree. All plugins of this project must be
installed, as in its own environment.
"""

import inspect
from collections.abc import Iterable, Iterator
from html import escape
from pathlib import Path
from typing import Any, Final, NamedTuple

import typer

from reliable_channel._plugins.loading import installed
from reliable_channel.cli.channel_flags import channel_flag_names
from reliable_channel.cli.logs import log_options
from reliable_channel.cli.main import command_line
from reliable_channel.cli.plugin_commands import commands_of_plugins

PAGE: Final = Path(__file__).parent / "api" / "commands.md"
PROGRAM: Final = "reliable-channel"
EXAMPLE: Final = "send"
"""A command with the flags of a channel."""

_MARKS: Final = (("|", "&#124;"), ("<", "&lt;"), ("*", "&#42;"), ("_", "&#95;"))
"""What Markdown would read as its own, outside of code."""


class Row(NamedTuple):
    """An argument or flag, as `--help` shows it."""

    flags: str
    text: str


class Command(NamedTuple):
    """A command that does something, with all its words, such as `reliable-channel bot key`."""

    name: str
    usage: str
    text: str
    rows: dict[str, Row]
    """By the name of the parameter, in the order of `--help`."""


def commands() -> Iterator[Command]:
    """All commands of the program and of installed plugins."""
    yield from _below(PROGRAM, typer.main.get_command(command_line()))


def page() -> str:
    """The text of the page."""
    found = {command.name: command for command in commands()}
    every = {one.name for one in log_options()}
    channel = set(channel_flag_names())
    example = found[f"{PROGRAM} {EXAMPLE}"].rows
    lines = [*_head(), *_list(list(found.values()))]
    lines += ["", "## Flags of every command", "", "`-h` and `--help` print a command's help.", ""]
    lines += _table(row for name, row in example.items() if name in every)
    lines += ["", "## Flags of a channel", "", *_channel_head()]
    lines += _table(row for name, row in example.items() if name in channel)
    for command in found.values():
        lines += ["", f"## {command.name}", "", *_paragraphs(command.text), ""]
        lines += ["```text", command.usage, "```"]
        shared = every | channel if channel <= command.rows.keys() else every
        if own := [row for name, row in command.rows.items() if name not in shared]:
            lines += ["", *_table(own)]
        if channel <= shared:
            lines += ["", "Also all [flags of a channel](#flags-of-a-channel)."]
    return "\n".join(lines) + "\n"


def _below(name: str, command: Any) -> Iterator[Command]:
    """The commands of a group, or the command itself."""
    if hasattr(command, "commands"):
        for word, each in command.commands.items():
            yield from _below(f"{name} {word}", each)
        return
    # A command that is loaded when it is used is replaced by itself here.
    context = command.make_context(name, [], resilient_parsing=True)
    rows = {}
    for one in context.command.params:
        was_hidden, one.hidden = one.hidden, False
        if (record := one.get_help_record(context)) is not None:
            if one.name in rows:
                raise ValueError(f"`{name}` declares {record[0]} twice")
            rows[one.name] = Row(*(" ".join(text.split()) for text in record))
        one.hidden = was_hidden
    usage = context.command.get_usage(context).removeprefix("Usage: ")
    yield Command(name, " ".join(usage.split()), inspect.cleandoc(context.command.help), rows)


def _head() -> Iterator[str]:
    yield "# Commands"
    yield ""
    yield (
        "Every command and flag, made from their declarations by `make docs`; a test holds the "
        "page to them. [The command line](../command-line.md) explains what they have in common: "
        "where options come from, exit status, signals."
    )
    yield ""


def _list(found: list[Command]) -> Iterator[str]:
    package = {plugin.name: plugin.distribution for plugin in installed()}
    of = {word: package[name] for name, words in commands_of_plugins().items() for word in words}
    yield from ("| command | comes with | |", "|---|---|---|")
    for command in found:
        anchor = command.name.replace(" ", "-")
        words = command.name.removeprefix(f"{PROGRAM} ")
        first = _escaped(command.text.split("\n\n")[0])
        yield f"| [`{words}`](#{anchor}) | `{of.get(words, PROGRAM)}` | {first} |"


def _channel_head() -> Iterator[str]:
    yield (
        "`chat`, `send`, `listen`, `peer` and `doctor` take all of them; `--help` shows the first "
        "ones, `--help-all` all. Their units and bounds are in the "
        "[table of options](../reference.md#options)."
    )
    yield ""


def _paragraphs(text: str) -> Iterator[str]:
    for number, paragraph in enumerate(text.split("\n\n")):
        if number:
            yield ""
        yield _escaped(paragraph)


def _table(rows: Iterable[Row]) -> list[str]:
    lines = [f"| {_code(row.flags)} | {_escaped(row.text)} |" for row in rows]
    return ["| flag | meaning |", "|---|---|", *lines]


def _code(text: str) -> str:
    """Code in a cell, where a bar would end it, and its escape be shown."""
    return f"<code>{escape(text).replace('|', '&#124;')}</code>" if "|" in text else f"`{text}`"


def _escaped(text: str) -> str:
    """A text in one line, in which only backticks are Markdown."""
    parts = " ".join(text.split()).split("`")
    for old, new in _MARKS:
        parts[::2] = [part.replace(old, new) for part in parts[::2]]
    return "`".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())
