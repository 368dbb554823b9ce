"""Sockets of `reliable-channel node`, which are bound before the program is loaded.

Loading the program takes a second, or several seconds on a busy machine. A client whose connection
is refused does not come back for a while (js-waku for a minute). A client in the queue of a bound
socket waits and is then served. The flags are parsed here only roughly, and again by the command.
The command closes each socket that it does not need, and binds each missing socket.
"""

import os
import re
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from waku.node.listening import listening_socket

__all__ = ["BOUND", "bind_early"]

BOUND: Final[list[socket.socket]] = []
"""Sockets of this process that already listen."""

HOST: Final = "127.0.0.1"
PORT: Final = 8645
# `reliable_channel.config` has these names, too; it loads all options of a channel.
PREFIX: Final = "RELIABLE_CHANNEL_"
FILE_VARIABLE: Final = "RELIABLE_CHANNEL_CONFIG"
_LIBP2P: Final = re.compile(r"/ip[46]/([^/]+)/tcp/([0-9]+)(/wss?)?")


def bind_early(arguments: Sequence[str], environment: Mapping[str, str] = os.environ) -> None:
    """Bind the addresses in the arguments of the command `node`. The command itself reports errors.

    Args:
        arguments: those after `node`.
        environment: `RELIABLE_CHANNEL_NODE_PORT` and others.
    """
    if not {"-h", "--help"}.isdisjoint(arguments):
        return
    table = _table(_last(arguments, "config") or environment.get(FILE_VARIABLE))

    def given(name: str) -> list[str]:
        text = environment.get(f"{PREFIX}NODE_{name.upper()}", "")
        found = _flags(arguments, name) or text.split() or table.get(name, [])
        return [str(one) for one in (found if isinstance(found, list) else [found])]

    addresses = [(match[1], match[2]) for match in map(_LIBP2P.fullmatch, given("listen")) if match]
    for host, port in addresses:
        _bind(host, port, v6_only=True)
    _bind((given("host") or [HOST])[-1], (given("port") or [str(PORT)])[-1], v6_only=False)


def _bind(host: str, port: str, *, v6_only: bool) -> None:
    # ValueError: no number, or a name that is none (UnicodeError).
    with suppress(OSError, OverflowError, ValueError):
        if number := int(port):  # the command itself takes a free one
            BOUND.append(listening_socket(host, number, v6_only=v6_only))


def _flags(arguments: Sequence[str], name: str) -> list[str]:
    """What follows each `--name`, or its `=`."""
    flag = f"--{name}"
    pairs = zip(arguments, (*arguments[1:], ""), strict=False)
    found = [
        after if one == flag else one.removeprefix(f"{flag}=")
        for one, after in pairs
        if one == flag or one.startswith(f"{flag}=")
    ]
    return [one for one in found if one]


def _last(arguments: Sequence[str], name: str) -> str | None:
    return next(reversed(_flags(arguments, name)), None)


def _table(file: str | None) -> dict[str, Any]:
    if file:
        import tomllib
        from pathlib import Path

        with suppress(OSError, ValueError, RecursionError):
            found = tomllib.loads(Path(file).read_text(encoding="utf-8-sig")).get("node")
            return found if isinstance(found, dict) else {}
    return {}
