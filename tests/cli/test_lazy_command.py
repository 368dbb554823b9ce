"""Help and completion load no more of a command than they show."""

import gc
import os
import subprocess
import sys
from importlib import import_module

import pytest

from reliable_channel.cli.lazy_command import loaded_command
from reliable_channel.cli.main import COMMANDS

PLUGINS = {
    "reliable_channel_audit": "reliable_channel_audit.commands.{}",
    "reliable_channel_conformance": "reliable_channel_conformance.commands.{}",
    "reliable_channel_lab": "reliable_channel_lab.commands.{}",
    "reliable_channel_status": "reliable_channel_status.cli.commands",
}
SHARED = {"ingest": "journals", "archive": "store"}
"""Commands in the module of another command, with its name."""
ALL = [(name, f"reliable_channel.cli.{name}", text) for name, text in COMMANDS.items()] + [
    (name, module.format(SHARED.get(name, name).replace("-", "_")), text)
    for package, module in PLUGINS.items()
    for name, text in import_module(f"{package}.plugin").COMMANDS.items()
]
HEAVY = {
    "httpx",
    "matplotlib",
    "pyspark",
    "reliable_channel.channel",
    "reliable_channel.runtime",
    "reliable_channel.transport.pool",
    "reliable_channel.transport.waku",
    "sqlite3",
    "waku.client",
    "waku.node.node",
}
RUN = """
import sys
from reliable_channel.cli import run
sys.argv = ["reliable-channel", *sys.argv[1:]]
try:
    run()
finally:
    print("LOADED", *sys.modules, file=sys.stderr)
"""


@pytest.mark.parametrize(("name", "module", "text"), ALL, ids=[name for name, _, _ in ALL])
def test_the_list_has_the_first_paragraph_of_a_commands_own_help(
    name: str, module: str, text: str
) -> None:
    help_text = loaded_command(name, module).help or ""
    assert gc.isenabled()
    assert " ".join(help_text.split("\n\n")[0].split()) == text


def loaded(*arguments: str, **environment: str) -> set[str]:
    """The modules that the command line has loaded in the end."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments],
        capture_output=True,
        text=True,
        env=os.environ | {"RELIABLE_CHANNEL_PLUGINS": "none"} | environment,
    )
    assert "Traceback" not in done.stderr
    return set(done.stderr.partition("LOADED ")[2].split())


def test_help_loads_neither_the_runtime_nor_a_command() -> None:
    modules = loaded("--help")
    assert "typer.main" in modules and "typer.rich_utils" not in modules
    assert modules & HEAVY == set()
    assert not modules & {f"reliable_channel.cli.{name}" for name in COMMANDS}


@pytest.mark.parametrize("command", ["send", "node", "plugins"])
def test_completion_loads_one_command_without_the_runtime(command: str) -> None:
    modules = loaded(
        _RELIABLE_CHANNEL_COMPLETE="complete_bash",
        COMP_WORDS=f"reliable-channel {command} --",
        COMP_CWORD="2",
    )
    assert f"reliable_channel.cli.{command}" in modules
    assert modules & HEAVY == set()
