import json

import pytest

from . import forked
from .in_process import run
from .test_commands import address, flags

__all__ = ["address"]  # a fixture


def sent(*arguments: str) -> tuple[str, list[str]]:
    """The id that `send` prints, and the lines of its log."""
    done = forked.run("send", *arguments, "secret text", check=True)
    return done.stdout.strip(), done.stderr.splitlines()


@pytest.mark.parametrize("verbose", [["-v"], ["--log-level", "info"]])
def test_verbose_logs_what_happens_to_the_channel(address: str, verbose: list[str]) -> None:
    _, lines = sent(*verbose, *flags(address, "logs", "alice"))
    assert [line.split(": ")[2].split()[0] for line in lines] == ["opened", "closed"]
    assert all(" INFO reliable_channel: " in line for line in lines)


def test_twice_verbose_logs_messages_and_requests_but_no_payload(address: str) -> None:
    message_id, lines = sent("-vv", *flags(address, "logs", "alice"))
    assert any(" DEBUG reliable_channel: " in line and message_id in line for line in lines)
    assert any(" DEBUG waku: POST " in line for line in lines)
    assert not any("secret" in line or "httpx" in line for line in lines)


def test_without_the_flag_there_is_no_log(address: str) -> None:
    assert sent(*flags(address, "logs", "alice"))[1] == []


def test_the_log_is_json_on_request(address: str) -> None:
    _, lines = sent("-v", "--log-format", "json", *flags(address, "logs", "alice"))
    assert [json.loads(line)["event"] for line in lines] == ["opened", "closed"]


def test_an_unknown_level_is_named() -> None:
    done = run("node", "--log-level", "loud")
    assert done.returncode == 2 and "'loud' is not one of" in done.stderr
