"""The command line: `reliable-channel`, with the extra `[cli]`."""

import os
import sys
from io import TextIOWrapper
from typing import Final, NoReturn

EXTRA: Final = frozenset({"rich", "typer", "uvicorn"})
POSIX: Final = frozenset({"fcntl", "resource", "termios"})
"""Modules of Python that Windows lacks."""


def run() -> NoReturn:
    """Run the command line and end the process. Print how to install the extra if it is missing,
    and where the command line runs if this is Windows."""
    _prepare_streams()
    if sys.argv[1:2] == ["node"]:
        from .early_sockets import bind_early

        bind_early(sys.argv[2:])
    try:
        from .main import run as run_commands
    except ModuleNotFoundError as error:
        if error.name in POSIX:
            sys.exit(
                f"error: the command line needs a POSIX system such as Linux (Python has no "
                f"{error.name} here); run it in WSL or a container"
            )
        if error.name not in EXTRA:
            raise
        sys.exit(f"error: the command line needs {error.name}: pip install 'reliable-channel[cli]'")
    run_commands()


def _prepare_streams() -> None:
    """Let no character that the locale lacks end a command, nor a stream that is closed."""
    while (nowhere := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # otherwise a state file or socket would be opened in its place
    os.close(nowhere)
    sys.stdout = sys.stdout or os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = sys.stderr or os.fdopen(2, "w", encoding="utf-8", closefd=False)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stdin, TextIOWrapper):
        sys.stdin.reconfigure(errors="surrogateescape")  # `chat` refuses such a line
