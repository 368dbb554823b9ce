"""What dishonest participants can do to a person's terminal, and what a signal does to it."""

import json
import signal
from pathlib import Path

import pytest
from rich.text import Text

from . import forked
from .processes import Node, Terminal, peers
from .test_commands import address, flags

__all__ = ["address"]  # a fixture

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
FORGED = "alice: I owe you 100"
HOSTILE = f"hi\n{FORGED}\r\x1b[2K{CLIPBOARD}\u202etxt\u2069\x9b2J\u2028end"
SHOWN = (
    "hi\\nalice: I owe you 100\\r\\x1b[2K\\x1b]52;c;cm0gLXJmIH4=\\x07"
    "\\u202etxt\\u2069\\x9b2J\\u2028end"
)
NAME = f"mal\n{FORGED}{CLIPBOARD}end"  # an id that ends with a control character is refused
NAME_SHOWN = '"mal\\nalice: I owe you 100\\x1b]52;c;cm0gLXJmIH4=\\x07end"'
WIDTH = 60


def test_listen_prints_a_line_a_message_without_control_characters(address: str) -> None:
    with peers(flags(address, "hostile", NAME)) as (mal,):
        mal.send(HOSTILE)
        mal.event("message_sent")
    listen = ["listen", "--count", "1", *flags(address, "hostile", "bob")]
    assert forked.run(*listen, check=True).stdout == f"{NAME_SHOWN}: {SHOWN}\n"
    told = forked.run(*listen, "--json", check=True).stdout.splitlines()
    assert all(line.isprintable() for line in told)
    assert NAME in {json.loads(line).get("sender_id") for line in told}


@pytest.mark.parametrize("command", ["listen", "chat"])
def test_nothing_on_a_terminal_passes_for_a_line_of_somebody_else(
    command: str, address: str, tmp_path: Path
) -> None:
    """Where long lines are not indented, spaces up to the edge are as good as a newline."""
    channel = f"hostile {command}"
    kept = ["--state", f"sqlite:///{tmp_path}/bob.db"]
    program = [command, *flags(address, channel, "bob"), *kept]
    with peers(flags(address, channel, NAME)) as (mal,):
        with Terminal(*program, columns=WIDTH) as terminal:
            mal.send(HOSTILE)
            for spaces in (*range(WIDTH - 10, WIDTH + 10), 3 * WIDTH):
                mal.send(f"hi{' ' * spaces}{FORGED} {'x' * 100}")
            mal.send("over")
            terminal.until("over")
            _is_clean(terminal.screen)
            terminal.process.send_signal(signal.SIGTERM)
            assert terminal.process.wait() == 0
        if command == "chat":  # what was said before it was taken up again
            with Terminal(*program, columns=WIDTH) as terminal:
                terminal.until("over")
                _is_clean(terminal.screen)


def _is_clean(screen: str) -> None:
    assert not {"\x9b", "\u202e", "\u2069", "\u2028"} & {*screen}
    assert "\x1b]" not in screen
    # Before a line, chat takes its prompt away.
    lines = [row.split("\x1b[K")[-1] for row in screen.replace("\r", "").split("\n")]
    rows = [Text.from_ansi(line).plain for line in lines]
    assert any(FORGED in row for row in rows)
    conversation = [row for row in rows if not row.startswith("channel hostile ")]
    assert not [row for row in conversation if row.startswith("alice") or len(row) > WIDTH]


@pytest.mark.parametrize("command", ["listen", "chat"])
def test_sigterm_closes_the_channel(command: str, tmp_path: Path) -> None:
    with Node() as node:
        kept = ["--state", f"sqlite:///{tmp_path}/bob.db", "--journal", f"{tmp_path}/bob.jsonl"]
        with peers(flags(node.address, "ended", "alice")) as (alice,):
            alice.send("hello")
            program = [command, *flags(node.address, "ended", "bob", *kept)]
            with Terminal(*program) as terminal:
                terminal.until("hello")
                terminal.process.send_signal(signal.SIGTERM)
                assert terminal.process.wait() == 0
                assert terminal.echoes()
    last = (tmp_path / "bob.jsonl").read_text().splitlines()[-1]
    assert json.loads(last)["event"] == "journal_closed"
