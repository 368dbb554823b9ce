"""The command line in this process, for commands that end by themselves: starting a process costs
ten times as much as most of them do."""

import os
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from subprocess import CompletedProcess
from unittest.mock import patch

from reliable_channel.cli.console import errors
from reliable_channel.cli.main import command_line


def run(*arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run `reliable-channel` and return what it printed, and its exit status."""
    out, err = StringIO(), StringIO()
    status: int | str | None = 0
    with patch.dict(os.environ, environment), redirect_stdout(out), redirect_stderr(err):
        try:
            with errors():
                command_line()(list(arguments), prog_name="reliable-channel")
        except SystemExit as end:
            status = end.code
    assert not isinstance(status, str), status
    return CompletedProcess(arguments, status or 0, out.getvalue(), err.getvalue())
