"""What the exit status of a command says."""

import logging
import signal
from pathlib import Path
from subprocess import PIPE

import anyio
import pytest

from reliable_channel import ChannelOptions, ChannelUnavailable, __version__
from reliable_channel._contracts.plugin_code import Owner
from reliable_channel.cli.console import PrintableFormatter, errors
from reliable_channel.cli.exit_codes import ExitCode
from reliable_channel.cli.send import SendResult, outcome
from reliable_channel.transport import LossyTransport, MemoryNetwork
from reliable_channel.transport.base import Envelope, TransportError
from tests.channel.world import make_channel
from tests.virtual_time import backend

from .forked import Process
from .in_process import run
from .processes import Node
from .test_commands import address, flags

__all__ = ["address"]  # a fixture

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"
NOWHERE = "http://127.0.0.1:9"


def _status(*arguments: str) -> int:
    return run(*arguments).returncode


def test_a_message_that_was_sent(address: str) -> None:
    assert _status("send", "hello", *flags(address, "sent", "alice")) == ExitCode.DONE


class Away(LossyTransport):
    """Goes away once the channel is open."""

    async def publish(self, envelope: Envelope) -> None:
        raise TransportError("it is away")


@pytest.mark.parametrize(
    ("is_away", "wait_s", "code", "words"),
    [
        (False, 0, ExitCode.DONE, ""),
        (
            False,
            60,
            ExitCode.FAILED,
            "no participant acknowledged the message within 60 s; a longer",
        ),
        (True, 60, ExitCode.NO_NODE, "no node took the message in time"),
        (True, 0, ExitCode.NO_NODE, "no node took the message in time"),
    ],
)
def test_a_message_to_nobody(is_away: bool, wait_s: float, code: ExitCode, words: str) -> None:
    async def main() -> SendResult:
        transport = (Away if is_away else LossyTransport)(
            MemoryNetwork().transport(), drop_incoming=0, seed=0
        )
        async with make_channel(transport, "alice", options=ChannelOptions()) as channel:
            return await outcome(channel, await channel.send(b"hello"), wait_s)

    name, options = backend("asyncio")
    found = anyio.run(main, backend=name, backend_options=options)
    assert found.code == code
    assert words in found.detail


@pytest.mark.parametrize(
    "arguments",
    [
        ("dance",),
        ("send", "--dance"),
        ("send", "hello", "--wait", "soon", "--sender-id", "alice"),
        ("send", "", "--sender-id", "alice", "--node", "memory://usage"),
        ("listen", "--sender-id", "bob", "--causal-history-size", "5000"),
        ("listen", "--sender-id", "bob", "--node", "gopher://x"),
    ],
    ids=" ".join,
)
def test_wrong_usage(arguments: tuple[str, ...]) -> None:
    assert _status(*arguments) == ExitCode.USAGE


@pytest.mark.parametrize("command", [("send", "hello"), ("listen",), ("chat",)], ids=" ".join)
def test_no_node(command: tuple[str, ...]) -> None:
    done = run(*command, *flags(NOWHERE, "x", "alice"))
    assert done.returncode == ExitCode.NO_NODE
    assert "127.0.0.1:9" in done.stderr
    assert done.stderr.count("\n") == 1


def test_errors_with_words_of_others_are_one_line_without_control_characters(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit), errors():
        raise ChannelUnavailable("the node answers 500: \n\x1b]0;title\x07\u202e")
    assert capsys.readouterr().err == (
        "error: the node answers 500: \\n\\x1b]0;title\\x07\\u202e\n"
    )


def test_log_lines_with_words_of_others_have_no_control_characters() -> None:
    words = ("a node\nalice: yes\x1b]0;title\x07",)
    record = logging.LogRecord("waku", logging.WARNING, "here", 1, "%s refuses", words, None)
    assert PrintableFormatter().format(record) == ("a node\\nalice: yes\\x1b]0;title\\x07 refuses")


def test_tasks_that_fail_for_one_reason_name_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    reasons = [ChannelUnavailable("no node"), ChannelUnavailable("no node"), TimeoutError()]
    with pytest.raises(SystemExit) as end, errors():
        raise ExceptionGroup("tasks", [ExceptionGroup("more", reasons)])
    assert end.value.code == ExitCode.NO_NODE
    assert capsys.readouterr().err == "error: no node\nerror: TimeoutError\n"


def test_an_error_names_the_plugin_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    error = ValueError("no loft")
    Owner("plugin 'pigeons': transport 'pigeon'").add_note(error)
    with pytest.raises(SystemExit) as end, errors():
        raise ExceptionGroup("tasks", [error])
    assert end.value.code == ExitCode.USAGE
    assert capsys.readouterr().err == "error: no loft (plugin 'pigeons': transport 'pigeon')\n"


@pytest.mark.parametrize(
    "state",
    ["sqlite:///{}/no/such/directory.db", "sqlite:///{}/foreign.db"],
    ids=["gone", "foreign"],
)
def test_state_that_cannot_be_used(state: str, address: str, tmp_path: Path) -> None:
    (tmp_path / "foreign.db").write_bytes(b"no database" * 100)
    (tmp_path / "no").touch()
    kept = ["--state", state.format(tmp_path)]
    assert _status("send", "hello", *flags(address, "x", "alice"), *kept) == ExitCode.UNUSABLE


def test_sigterm_before_the_answer(address: str) -> None:
    command = ["send", "hello", "--wait", "3600", *flags(address, "patient", "alice")]
    with Process(*command, stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == ExitCode.TERMINATED


def test_sigint_while_listening(address: str) -> None:
    assert _status("send", "hello", *flags(address, "int", "alice")) == ExitCode.DONE
    with Process("listen", *flags(address, "int", "bob"), stdout=PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "alice: hello\n"
        process.send_signal(signal.SIGINT)
        assert process.wait() == ExitCode.INTERRUPTED


def test_a_taken_port(address: str) -> None:
    assert _status("node", "--port", address.rsplit(":", 1)[1]) == ExitCode.UNUSABLE


def test_a_node_that_is_told_to_stop() -> None:
    with Node() as node:
        node.process.terminate()
        assert node.process.wait() == ExitCode.DONE


def test_the_page_and_the_help_list_every_status() -> None:
    page, shown = PAGE.read_text(), " ".join(run("--help").stdout.split())
    for code in ExitCode:
        assert f"| {code.value} | {code.meaning} |" in page
        assert f"{code.value} {code.meaning}" in shown


def test_the_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"reliable-channel {__version__}\n")
