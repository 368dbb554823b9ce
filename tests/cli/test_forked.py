"""A forked process prints and ends as one that begins with the interpreter."""

import signal
import subprocess
import sys
from pathlib import Path
from subprocess import PIPE

import pytest

from . import forked
from .processes import PROGRAM

ENVIRONMENT = {
    "RELIABLE_CHANNEL_PLUGINS": "none",
    "RELIABLE_CHANNEL_STATE": "memory:",
    "LC_ALL": "C.UTF-8",
    "COLUMNS": "100",
}
CHANNEL = ("--sender-id", "alice", "--node", "memory://forked")


@pytest.mark.parametrize(
    ("arguments", "status"),
    [
        (["chat", "--help-all"], 0),
        (["send", "--state", "nonsense", *CHANNEL, "hé"], 2),
    ],
)
def test_it_prints_and_ends_as_a_new_process(
    arguments: list[str], status: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    new = subprocess.run(
        [*PROGRAM, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    done = forked.run(*arguments, env=ENVIRONMENT)
    assert (done.returncode, done.stdout, done.stderr) == (status, new.stdout, new.stderr)
    assert done.stdout or done.stderr


def test_its_streams_environment_and_end_are_its_own() -> None:
    with forked.Process("chat", *CHANNEL, stdin=PIPE, stdout=PIPE, env=ENVIRONMENT) as one:
        with forked.Process("chat", *CHANNEL, stdin=PIPE, stdout=PIPE, env=ENVIRONMENT) as other:
            assert one.pid != other.pid
            other.kill()
            assert other.wait() == -signal.SIGKILL
        assert one.poll() is None
        assert one.stdin is not None and one.stdout is not None
        one.stdin.close()  # no other process has an end of this pipe
        assert "alice" in one.stdout.read()
        assert one.wait() == 0


def test_it_imports_what_depends_on_the_environment_anew() -> None:
    """A console decides about colours when it is made."""
    program = f"import sys; {'; '.join(f'import {name}' for name in forked.LIBRARIES)}; "
    program += "print('reliable_channel.cli.console' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"
