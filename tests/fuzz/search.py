"""One target, given to libFuzzer: `python -m tests.fuzz.search TARGET ARGUMENT…`.

A process of its own, since atheris ends the one it runs in, and instruments what is imported in it.
"""

import shlex
import sys
from typing import Final, NoReturn

import atheris

OURS: Final = [
    "reliable_channel",
    "reliable_channel_encryption",
    "reliable_channel_mvds",
    "reliable_channel_signing",
    "reliable_channel_status",
    "reliable_channel_svs",
    "waku",
]


def search(name: str, *arguments: str) -> NoReturn:
    """Let libFuzzer do what the arguments say."""
    with atheris.instrument_imports(include=OURS):
        from .targets import TARGETS
    # To merge, libFuzzer starts the program again by its first argument.
    program = shlex.join([sys.executable, "-m", "tests.fuzz.search", name])
    atheris.Setup([program, *arguments], TARGETS[name].check)
    atheris.Fuzz()
    raise AssertionError("atheris ends the process")


if __name__ == "__main__":
    search(*sys.argv[1:])
