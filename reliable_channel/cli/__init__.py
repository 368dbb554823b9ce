"""The command line: `reliable-channel`, with the extra `[cli]`."""

import sys
from typing import Final, NoReturn

EXTRA: Final = frozenset({"rich", "typer", "uvicorn"})


def run() -> NoReturn:
    """Run the command line and end the process; without the extra, say how to install it."""
    if sys.argv[1:2] == ["node"]:
        from .early_sockets import bind_early

        bind_early(sys.argv[2:])
    try:
        from .main import run as run_commands
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        sys.exit(f"error: the command line needs {error.name}: pip install 'reliable-channel[cli]'")
    run_commands()
